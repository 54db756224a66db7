#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "declare/architecture.hpp"
#include "declare/declare.hpp"
#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;

Checkpoint read_checkpoint(const std::filesystem::path& path) { return checkpoint_of(runtime::read_safetensors(path)); }

Checkpoint checkpoint_of(runtime::Safetensors file) {
  runtime::Translation read = runtime::in_timms_keys(std::move(file));
  Checkpoint checkpoint{{}, read.file.where, std::move(read.keys), std::move(read.left_out)};
  for (const auto& [key, tensor] : read.file.tensors) {
    const auto refuse = [&, &name = key](const auto&... why) {
      fail(checkpoint.where, ": ", runtime::printable(checkpoint.keys.theirs(name)), why...);
    };
    if (!tensor.is_real()) refuse(" is ", tensor.dtype, ", and parameters are F64, F32, F16 or BF16");
    const std::vector<float> numbers = tensor.floats();
    if (!std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); }))
      refuse(" has numbers that are infinite or none (NaN)");
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
    // A fraction, or a number beyond 64 bits, would be converted to any integer.
    const bool is_beyond = found->is_number_unsigned() && found->template get<std::uint64_t>() > INT64_MAX;
    if (!std::is_same_v<T, std::int64_t> || (found->is_number_integer() && !is_beyond)) {
      to = found->template get<T>();
      return;
    }
  } catch (const Json::exception&) {
    // said below
  }
  fail(where, ": ", field, " is not of its type");
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

/// A window for all stages, or a list of one for each; a window is a side, or height and width.
void take_windows(const Json& from, const char* field, std::vector<std::array<std::int64_t, 2>>& to,
                  const std::string& where) {
  const auto found = from.find(field);
  if (found == from.end() || found->is_null()) return;
  to.clear();
  for (const Json& window : found->is_array() ? *found : Json::array({*found})) {
    std::vector<std::int64_t> sides;
    for (const Json& side : window.is_array() ? window : Json::array({window})) {
      if (!side.is_number_integer() || side.get<std::int64_t>() < 0 || side.get<std::int64_t>() > 65536)
        fail(where, ": ", field, " is no window of 0 to 65536 tokens, or list of such");
      sides.push_back(side.get<std::int64_t>());
    }
    if (sides.empty() || sides.size() > 2) fail(where, ": ", field, " has a window of ", sides.size(), " numbers");
    to.push_back({sides.front(), sides.back()});
  }
}

/// A JSON object of a field, empty where there is none.
const Json& part(const Json& json, const char* field, const std::string& where) {
  static const Json none = Json::object();
  const auto found = json.find(field);
  if (found == json.end() || found->is_null()) return none;
  if (!found->is_object()) fail(where, ": ", field, " is no JSON object");
  return *found;
}

std::string named(const Json& json, const char* field, const std::string& where, const std::string& otherwise = "") {
  std::optional<std::string> name;
  take(json, field, name, where);
  return name.value_or(otherwise);
}

std::int64_t count(const Json& json, const char* field, const std::string& where, std::int64_t otherwise) {
  std::optional<std::int64_t> number;
  take(json, field, number, where);
  if (number.value_or(1) < 1) fail(where, ": ", field, " is ", *number, ", and has to be above 0");
  return number.value_or(otherwise);
}

double positive(const Json& json, const char* field, const std::string& where, double otherwise) {
  std::optional<double> number;
  take(json, field, number, where);
  if (number && !(*number >= 1e-30 && *number <= 1e30)) fail(where, ": ", field, " has to be from 1e-30 to 1e30");
  return number.value_or(otherwise);
}

void timms(const Json& json, Config& config) {
  const std::string& where = config.where;
  const Json &arguments = part(json, "model_args", where), &pretrained = part(json, "pretrained_cfg", where);
  for (const Json* from : {&pretrained, &arguments, &json}) {
    take(*from, "num_classes", config.classes, where);
    take(*from, "global_pool", config.pool, where);
  }
  take_sides(pretrained, "input_size", config.image, where);
  take_sides(arguments, "img_size", config.image, where);
  take_sides(json, "image_size", config.image, where);
  take_sides(json, "img_size", config.image, where);
  for (const Json* from : {&json, &arguments})  // a Swin Transformer has those of each stage, which its shapes tell
    if (const auto heads = from->find("num_heads"); heads != from->end() && !heads->is_array())
      take(*from, "num_heads", config.heads, where);
  if (json.contains("max_depth")) config.farthest = positive(json, "max_depth", where, 1);
  for (const Json* from : {&arguments, &json}) {
    take_windows(*from, "window_size", config.windows, where);
    take_windows(*from, "pretrained_window_sizes", config.pretrained_windows, where);
  }
  take(pretrained, "mean", config.mean, where);
  take(pretrained, "std", config.deviation, where);
  take(pretrained, "crop_pct", config.crop, where);
  config.architecture = named(json, "architecture", where);
  config.interpolation = named(pretrained, "interpolation", where);
  config.crop_mode = named(pretrained, "crop_mode", where);
}

/// What Hugging Face's classes have where config.json says nothing, and how their tokens become one vector; empty: the
/// keys say it.
struct Family {
  std::string_view model_type, library, activation, pool;
  double epsilon;
};
constexpr std::array<Family, 28> families{
    {{"vit", "Hugging Face's ViT", "gelu", "token", 1e-12},
     {"deit", "Hugging Face's ViT", "gelu", "token", 1e-12},
     {"vit_mae", "Hugging Face's ViT", "gelu", "token", 1e-12},
     {"vit_msn", "Hugging Face's ViT", "gelu", "token", 1e-6},
     {"ijepa", "Hugging Face's ViT", "gelu", "avg", 1e-12},
     {"beit", "Hugging Face's BEiT", "gelu", "", 1e-12},
     {"data2vec-vision", "Hugging Face's BEiT", "gelu", "", 1e-12},
     {"dinov2", "Hugging Face's DINOv2", "gelu", "token", 1e-6},
     {"dinov2_with_registers", "Hugging Face's DINOv2", "gelu", "token", 1e-6},
     {"dinov3_vit", "Hugging Face's DINOv3", "gelu", "token", 1e-5},
     {"clip", "Hugging Face's CLIP", "quick_gelu", "token", 1e-5},
     {"clip_vision_model", "Hugging Face's CLIP", "quick_gelu", "token", 1e-5},
     {"chinese_clip", "Hugging Face's CLIP", "quick_gelu", "token", 1e-5},
     {"chinese_clip_vision_model", "Hugging Face's CLIP", "quick_gelu", "token", 1e-5},
     {"metaclip_2", "Hugging Face's CLIP", "quick_gelu", "token", 1e-5},
     {"metaclip_2_vision_model", "Hugging Face's CLIP", "quick_gelu", "token", 1e-5},
     {"blip", "Hugging Face's BLIP", "gelu", "token", 1e-5},
     {"blip_vision_model", "Hugging Face's BLIP", "gelu", "token", 1e-5},
     {"swin", "Hugging Face's Swin", "gelu", "avg", 1e-5},
     {"swinv2", "Hugging Face's Swin", "gelu", "avg", 1e-5},
     {"sam", "Hugging Face's SAM", "gelu", "", 1e-6},
     {"sam_vision_model", "Hugging Face's SAM", "gelu", "", 1e-6},
     {"sam_hq", "Hugging Face's SAM", "gelu", "", 1e-6},
     {"sam_hq_vision_model", "Hugging Face's SAM", "gelu", "", 1e-6},
     {"dpt", "Hugging Face's DPT", "gelu", "token", 1e-12},
     {"depth_anything", "Hugging Face's Depth Anything", "gelu", "token", 1e-6},
     {"siglip", "Hugging Face's SigLIP", "gelu_pytorch_tanh", "avg", 1e-6},
     {"siglip_vision_model", "Hugging Face's SigLIP", "gelu_pytorch_tanh", "avg", 1e-6}}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> activations{{{"gelu", "gelu"},
                                                                                    {"gelu_pytorch_tanh", "gelu_tanh"},
                                                                                    {"gelu_new", "gelu_tanh"},
                                                                                    {"gelu_fast", "gelu_tanh"},
                                                                                    {"quick_gelu", "quick_gelu"},
                                                                                    {"relu", "relu"},
                                                                                    {"silu", "silu"},
                                                                                    {"swish", "silu"}}};

/// A list of blocks, counted from `first`.
std::vector<std::int64_t> blocks_of(const Json& from, const char* field, std::int64_t first, const std::string& where) {
  std::vector<std::int64_t> blocks;
  const auto found = from.find(field);
  if (found == from.end() || found->is_null()) return blocks;
  for (const Json& block : found->is_array() ? *found : Json::array({*found})) {
    if (!block.is_number_integer() || block.get<std::int64_t>() < first || block.get<std::int64_t>() > first + 63)
      fail(where, ": ", field, " is no list of blocks, counted from ", first, " to ", first + 63);
    blocks.push_back(block.get<std::int64_t>() - first);
  }
  return blocks;
}

/// Throws where the head reads another map than the last.
void check_map_of_head(const Json& json, const std::string& where) {
  std::optional<std::int64_t> read;
  take(json, "head_in_index", read, where);
  if (read && *read != -1 && *read != 3)
    fail(where, ": head_in_index is ", *read, ", and the head reads the last map, -1");
}

/// What Hugging Face's DPT has beside that of its encoder, which is a ViT.
void dpts(const Json& json, Config& config) {
  const std::string& where = config.where;
  std::optional<bool> hybrid;
  take(json, "is_hybrid", hybrid, where);
  if (hybrid.value_or(false) || !part(json, "backbone_config", where).empty())
    fail(where, ": the encoder is ", hybrid.value_or(false) ? "a hybrid of convolutions and ViT" : "another model",
         " (backbone_config), and of a DPT a ViT can be declared");
  if (const std::string readout = named(json, "readout_type", where, "project");
      readout != "project" && readout != "ignore")
    fail(where, ": readout_type ", runtime::printable(readout), " is none of project and ignore");
  config.layers = blocks_of(json, "backbone_out_indices", 0, where);
  check_map_of_head(json, where);
}

/// What Hugging Face's Depth Anything has beside the configuration of its encoder, which is a DINOv2.
void depth_anythings(const Json& json, const Json& encoder, Config& config) {
  const std::string& where = config.where;
  if (const std::string type = named(encoder, "model_type", where, "dinov2"); type != "dinov2")
    fail(where, ": the model_type of backbone_config is ", runtime::printable(type), ", and has to be dinov2");
  std::optional<bool> normed;
  take(encoder, "apply_layernorm", normed, where);
  if (!normed.value_or(true))
    fail(where, ": apply_layernorm is false, and layers are declared with the norm behind them");
  config.layers = blocks_of(encoder, "out_indices", 1, where);
  check_map_of_head(json, where);
  const std::string type = named(json, "depth_estimation_type", where, "relative");
  const double farthest = positive(json, "max_depth", where, 1);
  if (type == "metric")
    config.farthest = farthest;
  else if (type != "relative")
    fail(where, ": depth_estimation_type ", runtime::printable(type), " is none of relative and metric");
}

void hugging_faces(const Json& json, Config& config) {
  const std::string& where = config.where;
  const std::string type = named(json, "model_type", where);
  const auto family =
      std::find_if(families.begin(), families.end(), [&](const Family& f) { return f.model_type == type; });
  if (family == families.end()) {
    std::string known;
    for (const Family& f : families) known += (known.empty() ? "" : ", ") + std::string(f.model_type);
    fail(where, ": model_type ", runtime::printable(type), " is none of ", known);
  }
  config.library = family->library;
  const bool depth = type == "depth_anything";
  const Json& vision = depth                            ? part(json, "backbone_config", where)
                       : json.contains("vision_config") ? part(json, "vision_config", where)
                                                        : json;
  if (depth) depth_anythings(json, vision, config);
  if (type == "dpt") dpts(json, config);
  take_sides(vision, "image_size", config.image, where);
  take_windows(vision, "window_size", config.windows, where);
  take_windows(vision, "pretrained_window_sizes", config.pretrained_windows, where);
  const std::string act = named(vision, "hidden_act", where, std::string(family->activation));
  const auto known =
      std::find_if(activations.begin(), activations.end(), [&](const auto& a) { return a.first == act; });
  if (known == activations.end())
    fail(where, ": hidden_act ", runtime::printable(act), " is no activation of a declared MLP");
  config.facts["activation"] = known->second;
  config.facts["heads"] = std::to_string(count(vision, "num_attention_heads", where, 12));
  config.facts["epsilon"] = runtime::text(positive(vision, "layer_norm_eps", where, family->epsilon));
  const bool beit = config.library == "Hugging Face's BEiT", dino3 = type == "dinov3_vit";
  const char* const scale = beit ? "layer_scale_init_value" : "layerscale_value";
  const bool unscaled = vision.contains(scale) && vision.at(scale) == 0;  // there are no factors then
  config.facts["layer_scale"] = unscaled ? "1" : runtime::text(positive(vision, scale, where, beit ? 0.1 : 1));
  if (!family->pool.empty()) config.facts["pool"] = family->pool;
  config.facts["gate"] = dino3 ? config.facts["activation"] : "silu";
  if (dino3) {
    const Json& rope = part(vision, "rope_parameters", where);
    config.facts["rope"] = dino3_rope(positive(rope, "rope_theta", where, positive(vision, "rope_theta", where, 100)));
  }
}

void open_clips(const Json& json, Config& config) {
  const std::string& where = config.where;
  config.library = "OpenCLIP";
  const Json &model = part(json, "model_cfg", where), &input = part(json, "preprocess_cfg", where);
  const Json& vision = part(model, "vision_cfg", where);
  take_sides(vision, "image_size", config.image, where);
  take(input, "mean", config.mean, where);
  take(input, "std", config.deviation, where);
  config.interpolation = named(input, "interpolation", where);
  const std::string resizes = named(input, "resize_mode", where);
  if (!resizes.empty()) config.crop = 1, config.crop_mode = resizes == "shortest" ? "center" : resizes;
  config.architecture = named(vision, "timm_model_name", where);
  if (!config.architecture.empty()) return;
  std::optional<bool> quick;
  take(model, "quick_gelu", quick, where);
  const std::int64_t width = count(vision, "width", where, 768);
  config.facts["activation"] = quick.value_or(false) ? "quick_gelu" : "gelu";
  config.facts["heads"] = std::to_string(std::max<std::int64_t>(1, width / count(vision, "head_width", where, 64)));
  config.facts["epsilon"] = "1e-05";
  const std::string pool = named(vision, "pool_type", where, "tok");
  if (pool != "tok" && pool != "avg") fail(where, ": pool_type ", runtime::printable(pool), " is none of tok and avg");
  config.facts["pool"] = pool == "tok" ? "token" : "avg";
}

void check(const Config& config) {
  const std::string& where = config.where;
  const auto finite = [](double x) { return std::fabs(x) <= 1e6; };  // as a checkpoint's metadata has them
  if (config.mean && !std::all_of(config.mean->begin(), config.mean->end(), finite))
    fail(where, ": mean is not from -1e6 to 1e6");
  if (config.deviation && !std::all_of(config.deviation->begin(), config.deviation->end(),
                                       [&](double x) { return finite(x) && x >= 1e-6; }))
    fail(where, ": std has to be from 1e-6 to 1e6");
  if (config.crop && !(*config.crop >= 0.05 && *config.crop <= 1)) fail(where, ": crop_pct has to be from 0.05 to 1");
}

Json object(std::string_view content, const std::string& where) {
  Json json = Json::parse(content, nullptr, false);
  if (!json.is_object()) fail(where, ": no JSON object");
  return json;
}

std::string read_text(const std::filesystem::path& path) {
  const runtime::Bytes bytes = runtime::read_file(path, 1 << 20);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Config parse_config(std::string_view content, const std::string& where) {
  const Json json = object(content, where);
  Config config;
  config.where = where;
  if (json.contains("model_type"))
    hugging_faces(json, config);
  else if (json.contains("model_cfg"))
    open_clips(json, config);
  else
    timms(json, config);
  check(config);
  return config;
}

void add_preprocessor(Config& config, std::string_view content, const std::string& where) {
  const Json json = object(content, where);
  take(json, "image_mean", config.mean, where);
  take(json, "image_std", config.deviation, where);
  std::optional<std::int64_t> resample;
  take(json, "resample", resample, where);  // Pillow's numbers
  if (resample)
    config.interpolation = *resample == 3   ? "bicubic"
                           : *resample == 2 ? "bilinear"
                                            : runtime::text("filter ", *resample);
  // A side, or {"shortest_edge": side}, or {"height": side, "width": side}.
  const auto side = [&](const char* field, std::initializer_list<const char*> names) -> std::optional<std::int64_t> {
    const auto found = json.find(field);
    if (found == json.end() || found->is_null()) return std::nullopt;
    if (found->is_number_integer()) return found->get<std::int64_t>();
    const Json& sides = part(json, field, where);
    for (const char* name : names)
      if (sides.contains(name)) return count(sides, name, where, 1);
    return std::nullopt;
  };
  std::optional<bool> crops, pads;
  take(json, "do_center_crop", crops, where);
  take(json, "do_pad", pads, where);
  const auto shorter = side("size", {"shortest_edge"}), cut = side("crop_size", {"height"});
  if (crops.value_or(false) && shorter && cut && *cut >= 1 && *cut <= *shorter) {
    config.crop = double(*cut) / double(*shorter);
    config.crop_mode = "center";
  } else if (side("size", {"height"})) {
    config.crop = 1;
    config.crop_mode = "squash";
  } else if (const auto longer = side("size", {"longest_edge"}); longer && pads.value_or(false)) {
    if (const auto filled = side("pad_size", {"height"}); filled && *filled != *longer)
      fail(where, ": pictures are scaled to ", *longer, " and filled up to ", *filled, ", which have to be the same");
    config.crop = 1;
    config.crop_mode = "pad";
  }
  Config checked = config;
  checked.where = where;
  check(checked);
}

Config read_config(const std::filesystem::path& path) {
  Config config = parse_config(read_text(path), path.string());
  const std::filesystem::path beside = path.parent_path() / "preprocessor_config.json";
  std::error_code unknown;
  if (config.library.starts_with("Hugging Face") && std::filesystem::exists(beside, unknown))
    add_preprocessor(config, read_text(beside), beside.string());
  return config;
}

}  // namespace tessera::declare
