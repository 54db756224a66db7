#include "runtime/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <set>
#include <string>

#include "runtime/error.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

constexpr const char* format = "tessera checkpoint 1";

Shape shape_of(const tessera_parameter& parameter) { return {parameter.shape, parameter.shape + parameter.rank}; }

template <class Number>
std::string exact(Number value, int base = 10) {
  char buffer[64];
  if constexpr (std::is_floating_point_v<Number>)
    return {buffer, std::to_chars(buffer, std::end(buffer), value).ptr};
  else
    return {buffer, std::to_chars(buffer, std::end(buffer), value, base).ptr};
}

void put(Safetensors& file, const Model& model, const std::string& prefix, const float* numbers) {
  for (const tessera_parameter& parameter : model.parameters) {
    const Shape shape = shape_of(parameter);
    file.tensors[prefix + parameter.name] =
        Tensor::of(shape, std::span(numbers + parameter.offset, static_cast<std::size_t>(elements(shape))));
  }
}

void get(const Safetensors& file, const Model& model, const std::string& prefix, float* numbers) {
  for (const tessera_parameter& parameter : model.parameters) {
    const std::string key = prefix + parameter.name;
    const Shape expected = shape_of(parameter);
    if (!file.has(key))
      fail(file.where, " has no tensor '", key, "' ", printed(expected), ", which ", model.name, " needs");
    const Tensor& tensor = file.at(key);
    if (tensor.shape != expected) {
      const bool turned = Shape(tensor.shape.rbegin(), tensor.shape.rend()) == expected;
      fail(file.where, ": tensor '", key, "' has the shape ", printed(tensor.shape), ", ", model.name, " needs ",
           printed(expected), turned ? " (was it saved transposed?)" : "");
    }
    if (tensor.dtype != "F32") fail(file.where, ": tensor '", key, "' has the type ", tensor.dtype, ", F32 is needed");
    std::memcpy(numbers + parameter.offset, tensor.bytes.data(), tensor.bytes.size());
  }
}

/// Refuses tensors that neither the model nor its optimiser knows: they show that the file belongs to something else.
void check_names(const Safetensors& file, const Model& model) {
  std::set<std::string> known;
  for (const tessera_parameter& parameter : model.parameters) {
    known.insert(parameter.name);
    for (const std::string& kept : model.optimizer_state) known.insert(kept + parameter.name);
  }
  for (const auto& [name, tensor] : file.tensors)
    if (!known.contains(name))
      fail(file.where, " holds '", name, "' ", printed(tensor.shape), ", which ", model.name, " does not have");
}

void check_model(const Safetensors& file, const Model& model) {
  const auto name = file.metadata.find("model"), hash = file.metadata.find("declaration_hash");
  if (name != file.metadata.end() && name->second != model.name)
    fail(file.where, " is a checkpoint of ", name->second, ", this is ", model.name);
  if (hash != file.metadata.end() && hash->second != exact(model.declaration_hash, 16))
    fail(file.where, " was trained with another declaration of ", model.name, " (", hash->second, ", this is ",
         exact(model.declaration_hash, 16), ")");
}

class Metadata {
 public:
  explicit Metadata(const Safetensors& file) : file_(file) {}

  const std::string& text(const char* key) const {
    const auto found = file_.metadata.find(key);
    if (found == file_.metadata.end()) fail(file_.where, ": the checkpoint does not say its '", key, "'");
    return found->second;
  }
  template <class Number>
  Number number(const char* key, Number least = 0) const {
    const std::string& digits = text(key);
    Number value{};
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    // Written so that a loss that is not a number is refused as well.
    if (failed != std::errc{} || end != digits.data() + digits.size() || !(value >= least))
      fail(file_.where, ": the checkpoint's '", key, "' is damaged");
    return value;
  }

 private:
  const Safetensors& file_;
};

TrainingState state_of(const Safetensors& file) {
  const Metadata metadata(file);
  TrainingState state;
  state.recipe.batch = metadata.number<std::int64_t>("batch", 1);
  state.recipe.epochs = metadata.number<std::int64_t>("epochs");
  state.recipe.learning_rate = metadata.number<double>("learning_rate");
  state.recipe.seed = metadata.number<std::uint64_t>("seed");
  state.recipe.input_mean = metadata.number<double>("input_mean", -1e9);
  state.recipe.input_deviation = metadata.number<double>("input_deviation", -1e9);
  state.data.folder = metadata.text("data");
  state.data.digits = metadata.number<std::int64_t>("digits", 1);
  state.data.limit = metadata.number<std::int64_t>("limit");
  state.fingerprint = metadata.number<std::uint32_t>("fingerprint");
  state.step = metadata.number<std::int64_t>("step");
  state.epoch = metadata.number<std::int64_t>("epoch");
  state.position = metadata.number<std::int64_t>("position");
  state.loss_sum = metadata.number<double>("loss_sum", -1e300);
  state.correct = metadata.number<std::int64_t>("correct");
  state.seen = metadata.number<std::int64_t>("seen");
  state.batches = metadata.number<std::int64_t>("batches");
  state.best_epoch = metadata.number<std::int64_t>("best_epoch");
  state.best_loss = metadata.number<double>("best_loss", -1e300);
  state.curve = parse_curve_csv(metadata.text("curve"), file.where);
  return state;
}

bool has_state(const Safetensors& file) {
  const auto found = file.metadata.find("format");
  return found != file.metadata.end() && found->second == format;
}

Safetensors read(const std::filesystem::path& path, const Model& model, float* parameters) {
  Safetensors file = read_safetensors(path);
  std::fill(parameters, parameters + model.parameter_floats, 0.0f);
  get(file, model, "", parameters);
  check_names(file, model);
  check_model(file, model);
  return file;
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Model& model, const float* parameters,
                     const float* optimizer, const TrainingState& state) {
  Safetensors file;
  put(file, model, "", parameters);
  for (std::size_t i = 0; i < model.optimizer_state.size(); ++i)
    put(file, model, model.optimizer_state[i], optimizer + static_cast<std::int64_t>(i) * model.parameter_floats);
  file.metadata = {{"format", format},
                   {"model", model.name},
                   {"declaration_hash", exact(model.declaration_hash, 16)},
                   {"batch", exact(state.recipe.batch)},
                   {"epochs", exact(state.recipe.epochs)},
                   {"learning_rate", exact(state.recipe.learning_rate)},
                   {"seed", exact(state.recipe.seed)},
                   {"input_mean", exact(state.recipe.input_mean)},
                   {"input_deviation", exact(state.recipe.input_deviation)},
                   {"data", state.data.folder.string()},
                   {"digits", exact(state.data.digits)},
                   {"limit", exact(state.data.limit)},
                   {"fingerprint", exact(state.fingerprint)},
                   {"step", exact(state.step)},
                   {"epoch", exact(state.epoch)},
                   {"position", exact(state.position)},
                   {"loss_sum", exact(state.loss_sum)},
                   {"correct", exact(state.correct)},
                   {"seen", exact(state.seen)},
                   {"batches", exact(state.batches)},
                   {"best_epoch", exact(state.best_epoch)},
                   {"best_loss", exact(state.best_loss)},
                   {"curve", curve_csv(state.curve)}};
  write_safetensors(path, file);
}

TrainingState resume_checkpoint(const std::filesystem::path& path, const Model& model, float* parameters,
                                float* optimizer) {
  const Safetensors file = read(path, model, parameters);
  if (!has_state(file)) fail(path.string(), " holds a model and no training run: it can be evaluated, not resumed");
  std::fill(optimizer, optimizer + model.optimizer_floats(), 0.0f);
  for (std::size_t i = 0; i < model.optimizer_state.size(); ++i)
    get(file, model, model.optimizer_state[i], optimizer + static_cast<std::int64_t>(i) * model.parameter_floats);
  return state_of(file);
}

std::optional<TrainingState> load_parameters(const std::filesystem::path& path, const Model& model, float* parameters) {
  const Safetensors file = read(path, model, parameters);
  if (!has_state(file)) return std::nullopt;
  TrainingState state = state_of(file);
  // There is no average before the first step.
  if (model.average_offset() && state.step > 0) get(file, model, "average.", parameters);
  return state;
}

}  // namespace tessera::runtime
