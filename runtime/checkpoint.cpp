#include "runtime/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/labels.hpp"
#include "runtime/matching.hpp"
#include "runtime/metadata.hpp"
#include "runtime/positions.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/taming_keys.hpp"
#include "runtime/translation.hpp"

namespace tessera::runtime {
namespace {

constexpr const char *format = "tessera checkpoint 1", *start_format = "tessera start 1";
constexpr std::string_view average_prefix = "average.";
constexpr const char* says_usage = "input_crop";

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

/// Differences between the model that a file says it is of and this one.
void check_model(const Safetensors& file, const Model& model, Matching& matching) {
  const auto name = file.metadata.find("model"), hash = file.metadata.find("declaration_hash");
  if (name != file.metadata.end() && name->second != model.name)
    matching.refuse(text("it is a checkpoint of ", printable(name->second)));
  else if (hash != file.metadata.end() && hash->second != exact(model.declaration_hash, 16))
    matching.refuse(text("it was made with another declaration of ", model.name, " (", printable(hash->second),
                         ", this is '", exact(model.declaration_hash, 16),
                         "'; 'import' takes its parameters all the same)"));
}

/// Of a file that says how its parameters are used.
Usage usage_of(const Safetensors& file) {
  const Metadata metadata(file);
  Usage usage;
  Preprocessing& input = usage.input;
  for (std::size_t c = 0; c < input.mean.size(); ++c) {
    input.mean[c] = metadata.number(text("input_mean.", c), -1e6, 1e6);
    input.deviation[c] = metadata.number(text("input_deviation.", c), 1e-6, 1e6);
  }
  // A picture is scaled to 1 / crop of what the model reads.
  input.crop = metadata.number(says_usage, 0.0, 1.0);
  metadata.demand(input.crop == 0 || input.crop >= 0.05, says_usage);
  // All are said where they are not the usual, and hold where pictures are cropped.
  const auto says = [&](const char* key, const char* value) {
    if (!file.metadata.contains(key)) return false;
    metadata.demand(metadata.text(key) == value && input.crop > 0, key);
    return true;
  };
  if (says("input_interpolation", "bilinear")) input.interpolation = Interpolation::bilinear;
  if (says("input_squash", "1")) input.fit = Fit::squash;
  if (says("input_pad", "1")) {
    metadata.demand(input.crop == 1 && input.fit == Fit::cut, "input_pad");
    input.fit = Fit::pad;
  }
  if (file.metadata.contains("class_names")) usage.classes = names_of_lines(metadata.text("class_names"));
  return usage;
}

/// Of any file.
std::optional<Usage> usage_if_any(const Safetensors& file) {
  return file.metadata.contains(says_usage) ? std::optional(usage_of(file)) : std::nullopt;
}

TrainingState state_of(const Safetensors& file) {
  constexpr double largest = 1e300;
  const Metadata metadata(file);
  const auto count = [&](const char* key, std::int64_t least, std::int64_t most) {
    return metadata.number(key, least, most);
  };
  TrainingState state;
  state.recipe.batch = count("batch", 1, most_batch);
  state.recipe.accumulate = file.metadata.contains("accumulate") ? count("accumulate", 1, most_batch) : 0;
  state.recipe.epochs = count("epochs", 0, most_epochs);
  state.recipe.learning_rate = metadata.number("learning_rate", 0.0, most_learning_rate);
  state.recipe.seed = metadata.number<std::uint64_t>("seed", 0, UINT64_MAX);
  Usage usage = usage_of(file);
  state.recipe.input = usage.input;
  state.classes = std::move(usage.classes);
  state.data.folder = metadata.text("data");
  state.data.digits = count("digits", 1, most_digits);
  state.data.limit = count("limit", 0, most_images);
  state.fingerprint = metadata.number<std::uint32_t>("fingerprint", 0, UINT32_MAX);
  if (file.metadata.contains("test_fingerprint"))
    state.test_fingerprint = metadata.number<std::uint32_t>("test_fingerprint", 0, UINT32_MAX);
  if (file.metadata.contains("kernels")) state.kernels = metadata.text("kernels");
  metadata.demand(state.kernels.size() <= 32, "kernels");
  if (file.metadata.contains("init")) state.init = metadata.text("init");
  for (std::string key = "skip.0"; file.metadata.contains(key); key = text("skip.", state.skip.size()))
    state.skip.push_back(metadata.text(key));
  state.epoch = count("epoch", 0, state.recipe.epochs);
  state.position = count("position", 0, INT32_MAX);
  // How many an epoch has, only the images tell.
  state.step = count("step", 0, (state.epoch + 1) * std::int64_t{INT32_MAX});
  state.seen = count("seen", 0, state.position);
  state.correct = count("correct", 0, state.seen);
  state.batches = count("batches", 0, state.seen);
  state.loss_sum = metadata.number("loss_sum", -largest, largest);
  state.best_epoch = count("best_epoch", 0, state.epoch);
  state.best_loss = metadata.number("best_loss", -largest, largest);
  state.curve = parse_curve_csv(metadata.text("curve"), file.where);
  std::int64_t before = 0;
  for (const CurveRow& row : state.curve) {
    metadata.demand(row.step >= before && row.step <= state.step && row.epoch >= 1 && row.epoch <= state.epoch + 1,
                    "curve");
    before = row.step;
  }
  return state;
}

/// All that state_of reads, and which model it is of.
void write_state(Safetensors& file, const Model& model, const TrainingState& state) {
  file.metadata = {{"model", model.name},
                   {"declaration_hash", exact(model.declaration_hash, 16)},
                   {"batch", exact(state.recipe.batch)},
                   {"accumulate", exact(state.recipe.accumulate)},
                   {"epochs", exact(state.recipe.epochs)},
                   {"learning_rate", exact(state.recipe.learning_rate)},
                   {"seed", exact(state.recipe.seed)},
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
                   {"curve", curve_csv(state.curve)},
                   {"kernels", state.kernels}};
  if (state.test_fingerprint) file.metadata["test_fingerprint"] = exact(*state.test_fingerprint);
  if (state.init) file.metadata["init"] = state.init->string();
  for (std::size_t i = 0; i < state.skip.size(); ++i) file.metadata[text("skip.", i)] = state.skip[i];
  Usage{state.recipe.input, state.classes}.write(file, model);
}

/// A file for the model. Eight times its numbers as F64, and 1 GiB for a larger head or the difference from another
/// model: a file with more than that is not brought into memory to be refused.
Safetensors read_for(const Model& model, const std::filesystem::path& path) {
  const auto numbers = static_cast<std::uint64_t>(model.parameter_floats + model.optimizer_floats());
  return read_safetensors(path, (std::uint64_t{1} << 30) + 8 * sizeof(double) * numbers);
}

bool has_format(const std::map<std::string, std::string>& metadata, const char* wanted) {
  const auto found = metadata.find("format");
  return found != metadata.end() && found->second == wanted;
}

bool has_state(const Safetensors& file) { return has_format(file.metadata, format); }

/// The parameters that are to be used, alone: those of a checkpoint without its optimiser, the averaged ones where it
/// has them. Any other file stays as it is.
Safetensors parameters_of(Safetensors file) {
  if (!has_state(file)) return file;
  // There is no average before the first step.
  const bool started = state_of(file).step > 0;
  std::map<std::string, Tensor> kept, average;
  for (auto& [name, tensor] : file.tensors) {
    if (name.starts_with(average_prefix))
      average.emplace(name.substr(average_prefix.size()), std::move(tensor));
    else if (!name.starts_with("optimizer."))
      kept.emplace(name, std::move(tensor));
  }
  file.tensors = std::move(started && !average.empty() ? average : kept);
  return file;
}

/// "a.b is left out: WHY", or of several the first.
void tell_left_out(const std::vector<std::string>& keys, const char* who, std::ostream& notes) {
  if (keys.empty()) return;
  const bool one = keys.size() == 1;
  notes << printable(keys[0]) << (one ? "" : text(" and ", keys.size() - 1, " more")) << (one ? " is" : " are")
        << " left out: " << who << " not need " << (one ? "it" : "them") << "\n";
}

/// For a model with the keys of a library: the file with them too, where it has others, which is said.
Safetensors for_own_keys(Safetensors file, const Model& model, std::ostream& notes) {
  std::vector<std::string> left_out;
  file = from_taming(std::move(file), model, left_out);
  tell_left_out(left_out, text(model.name, " does").c_str(), notes);
  const auto is_timms = [](const tessera_parameter& row) {
    return row.name == std::string_view("patch_embed.proj.weight");
  };
  if (std::ranges::none_of(model.parameters, is_timms)) return file;
  Translation translation = in_timms_keys(std::move(file));
  if (!translation.keys.wrapper.empty())
    notes << "keys are read without " << printable(translation.keys.wrapper) << ", which stands before each\n";
  if (!translation.keys.are_timms())
    notes << "keys of " << translation.keys.dialect->library << " are read as timm's\n";
  tell_left_out(translation.left_out, "images do", notes);
  return std::move(translation.file);
}

void tell(const Matching& matching, std::ostream& notes) {
  for (const std::string& note : matching.notes()) notes << note << '\n';
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Model& model, const float* parameters,
                     const float* optimizer, const TrainingState& state, const std::filesystem::path& keep) {
  Safetensors file;
  put(file, model, "", parameters);
  for (std::size_t i = 0; i < model.optimizer_state.size(); ++i)
    put(file, model, model.optimizer_state[i], optimizer + static_cast<std::int64_t>(i) * model.parameter_floats);
  write_state(file, model, state);
  file.metadata["format"] = format;
  write_safetensors(path, file, keep);
}

void Usage::write(Safetensors& file, const Model& model) const {
  file.metadata[says_usage] = exact(input.crop);
  if (input.interpolation == Interpolation::bilinear) file.metadata["input_interpolation"] = "bilinear";
  if (input.fit == Fit::squash) file.metadata["input_squash"] = "1";
  if (input.fit == Fit::pad) file.metadata["input_pad"] = "1";
  for (std::size_t c = 0; c < input.mean.size(); ++c) {
    file.metadata[text("input_mean.", c)] = exact(input.mean[c]);
    file.metadata[text("input_deviation.", c)] = exact(input.deviation[c]);
  }
  if (const std::string lines = lines_of_names(classes); !lines.empty()) file.metadata["class_names"] = lines;
  tell_grid(file, model.patches);
}

void save_model(const std::filesystem::path& path, const Model& model, const float* parameters,
                const std::optional<Usage>& usage, const std::filesystem::path& keep) {
  Safetensors file;
  put(file, model, "", parameters);
  file.metadata = {{"model", model.name}, {"declaration_hash", exact(model.declaration_hash, 16)}};
  if (usage) usage->write(file, model);
  write_safetensors(path, file, keep);
}

TrainingState resume_checkpoint(const std::filesystem::path& path, const Model& model, float* parameters,
                                float* optimizer) {
  const Safetensors file = read_for(model, path);
  if (!has_state(file))
    fail(path.string(), " holds a model and no training run: it can be evaluated, not resumed (train --init ",
         path.string(), " starts from it)");
  std::fill(parameters, parameters + model.parameter_floats, 0.0f);
  std::fill(optimizer, optimizer + model.optimizer_floats(), 0.0f);
  Matching matching(file, model);
  check_model(file, model, matching);
  matching.take("", parameters);
  for (std::size_t i = 0; i < model.optimizer_state.size(); ++i)
    matching.take(model.optimizer_state[i], optimizer + static_cast<std::int64_t>(i) * model.parameter_floats);
  matching.finish();
  return state_of(file);
}

void write_start(const std::filesystem::path& path, const Model& model, const TrainingState& state) {
  Safetensors file;
  write_state(file, model, state);
  file.metadata["format"] = start_format;
  write_safetensors(path, file);
}

TrainingState read_start(const std::filesystem::path& path, const Model& model) {
  const Safetensors file = read_for(model, path);
  if (!has_format(file.metadata, start_format)) fail(path.string(), " does not say how a run was started");
  Matching matching(file, model);
  check_model(file, model, matching);
  matching.finish();
  TrainingState state = state_of(file);
  Metadata(file).demand(state.step == 0 && state.epoch == 0 && state.position == 0, "step");
  return state;
}

std::string packed_state(const Model& model, const TrainingState& state) {
  Safetensors file;
  write_state(file, model, state);
  std::string text;
  for (const auto& [key, value] : file.metadata) text += key + '\0' + value + '\0';
  return text;
}

TrainingState unpacked_state(const std::string& text) {
  Safetensors file;
  file.where = "rank 0";
  auto next = [&, at = std::size_t{0}]() mutable {
    const std::size_t begin = at, end = std::min(text.find('\0', at), text.size());
    at = end + 1;
    return begin < text.size() ? text.substr(begin, end - begin) : std::string();
  };
  for (std::string key = next(); !key.empty(); key = next()) file.metadata[key] = next();
  return state_of(file);
}

void spare_models(const std::filesystem::path& path, Output output, const std::vector<std::filesystem::path>& inputs) {
  std::optional<SafetensorsHeader> header;
  try {
    header = read_safetensors_header(InputFile(path));
  } catch (const Error&) {
    // no model
  }
  if (header) {
    // Any program's run has its optimiser's moments.
    const auto moments = header->tensors.lower_bound("optimizer.");
    if (has_format(header->metadata, format) ||
        (moments != header->tensors.end() && moments->first.starts_with("optimizer.")))
      fail("cannot write ", path.string(), ": it is the checkpoint of a training run, which would be lost");
    if (output != Output::parameters)
      fail("cannot write ", path.string(), ": it is a safetensors file, whose parameters would be lost");
  }
  spare_inputs(path, inputs);
}

std::optional<Usage> read_usage(const std::filesystem::path& path) { return usage_if_any(read_safetensors(path)); }

Loaded load_parameters(const std::filesystem::path& path, const Model& model, float* parameters, std::ostream& notes) {
  Safetensors file = read_for(model, path);
  Loaded loaded;
  if (has_state(file)) loaded.state = state_of(file);
  loaded.usage = usage_if_any(file);
  file = for_own_keys(parameters_of(std::move(file)), model, notes);
  Matching matching(file, model, {.resample = true, .skipping = false, .skip = {}});
  check_model(file, model, matching);
  matching.take("", parameters);
  matching.finish();
  tell(matching, notes);
  return loaded;
}

std::optional<Usage> start_from(const std::filesystem::path& path, const Model& model,
                                const std::vector<std::string>& skip, float* parameters, std::ostream& notes) {
  const Safetensors file = for_own_keys(parameters_of(read_for(model, path)), model, notes);
  Matching matching(file, model, {.resample = true, .skipping = true, .skip = skip});
  matching.take("", parameters);
  matching.finish();
  tell(matching, notes);
  return usage_if_any(file);
}

}  // namespace tessera::runtime
