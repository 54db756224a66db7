#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "declare/declare.hpp"
#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;

Checkpoint read_checkpoint(const std::filesystem::path& path) {
  {
    const runtime::InputFile file(path);
    std::array<std::uint8_t, 9> first{};
    file.read(0, std::span(first).first(std::min<std::uint64_t>(file.size(), first.size())));
    // The length of a safetensors header can begin with the same bytes; its header follows, and begins with a brace.
    if (first[8] != '{' && ((first[0] == 'P' && first[1] == 'K') || (first[0] == 0x80 && first[1] >= 2 && first[1] <= 5)))
      fail(file.where(), ": a pickle of PyTorch, which may run any code when it is read, and is not read; convert it where ",
           "you trust it: python3 -c \"import sys, torch, safetensors.torch as s; s.save_file({k: v.contiguous() for k, v ",
           "in torch.load(sys.argv[1], weights_only=True).items()}, sys.argv[2])\" IN.pt OUT.safetensors");
  }
  const runtime::Safetensors content = runtime::read_safetensors(path);
  Checkpoint checkpoint{{}, content.where};
  for (const auto& [key, tensor] : content.tensors) {
    if (!tensor.is_real())
      fail(content.where, ": ", runtime::printable(key), " is ", tensor.dtype, ", and parameters are F64, F32, F16 or BF16");
    const std::vector<float> numbers = tensor.floats();
    if (!std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); }))
      fail(content.where, ": ", runtime::printable(key), " has numbers that are infinite or none (NaN)");
    checkpoint.shapes[key] = tensor.shape;
  }
  return checkpoint;
}

namespace {

using Json = nlohmann::json;

template <class T>
void take(const Json& from, const char* field, std::optional<T>& to, const std::string& where) {
  const auto found = from.find(field);
  if (found == from.end() || found->is_null()) return;
  try {
    to = found->template get<T>();
  } catch (const Json::exception&) {
    fail(where, ": ", field, " is not of the type that timm gives it");
  }
}

/// A side, or height and width.
void take_sides(const Json& from, const char* field, std::optional<std::array<std::int64_t, 2>>& to,
                const std::string& where) {
  const auto found = from.find(field);
  if (found == from.end() || found->is_null()) return;
  std::vector<std::int64_t> sides;
  for (const Json& side : found->is_array() ? *found : Json::array({*found})) {
    if (!side.is_number_integer() || side.get<std::int64_t>() < 1 || side.get<std::int64_t>() > 65536)
      fail(where, ": ", field, " is no number of pixels from 1 to 65536, or list of such");
    sides.push_back(side.get<std::int64_t>());
  }
  if (sides.empty() || sides.size() > 3) fail(where, ": ", field, " has ", sides.size(), " numbers");
  to = {sides[sides.size() == 1 ? 0 : sides.size() - 2], sides.back()};
}

}  // namespace

Config parse_config(std::string_view content, const std::string& where) {
  const Json json = Json::parse(content, nullptr, false);
  if (!json.is_object()) fail(where, ": no JSON object");
  Config config;
  config.where = where;
  std::optional<std::string> architecture, interpolation, crop_mode;
  take(json, "architecture", architecture, where);
  const Json none = Json::object();
  const auto part = [&](const char* field) -> const Json& {
    const auto found = json.find(field);
    if (found == json.end() || found->is_null()) return none;
    if (!found->is_object()) fail(where, ": ", field, " is no JSON object");
    return *found;
  };
  const Json &arguments = part("model_args"), &pretrained = part("pretrained_cfg");
  for (const Json* from : {&pretrained, &arguments, &json}) {
    take(*from, "num_classes", config.classes, where);
    take(*from, "global_pool", config.pool, where);
  }
  take_sides(pretrained, "input_size", config.image, where);
  take_sides(arguments, "img_size", config.image, where);
  take(arguments, "num_heads", config.heads, where);
  take(pretrained, "mean", config.mean, where);
  take(pretrained, "std", config.deviation, where);
  take(pretrained, "crop_pct", config.crop, where);
  take(pretrained, "interpolation", interpolation, where);
  take(pretrained, "crop_mode", crop_mode, where);
  config.architecture = architecture.value_or("");
  config.interpolation = interpolation.value_or("");
  config.crop_mode = crop_mode.value_or("");
  const auto finite = [](double x) { return std::isfinite(x); };
  if (config.mean && !std::all_of(config.mean->begin(), config.mean->end(), finite)) fail(where, ": mean is not finite");
  if (config.deviation &&
      !std::all_of(config.deviation->begin(), config.deviation->end(), [&](double x) { return finite(x) && x > 0; }))
    fail(where, ": std has to be above 0");
  if (config.crop && !(*config.crop > 0 && *config.crop <= 1)) fail(where, ": crop_pct has to be above 0 and at most 1");
  return config;
}

Config read_config(const std::filesystem::path& path) {
  const runtime::Bytes bytes = runtime::read_file(path, 1 << 20);
  return parse_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

}  // namespace tessera::declare
