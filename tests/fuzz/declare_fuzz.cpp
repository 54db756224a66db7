// No keys, shapes and configuration may do more than draw an Error from `tessera declare`; a header that is written
// holds one declaration of finite numbers. An input is JSON: {"tensors": {KEY: SHAPE}, "config": config.json or text of
// it, "preprocessor": preprocessor_config.json}.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "declare/declare.hpp"
#include "runtime/error.hpp"
#include "runtime/safetensors.hpp"
#include "tests/fuzz/random.hpp"

namespace {

using Json = nlohmann::json;
using tessera::runtime::Safetensors;
using tessera::runtime::Shape;
using tessera::runtime::Tensor;
using tessera::test::Choices;

/// Every place in the tree below the first two levels.
void gather(Json& json, std::vector<Json*>& places) {
  for (Json& below : json) {
    places.push_back(&below);
    if (below.is_structured()) gather(below, places);
  }
}

Json some_value(Choices& choices) {
  static const char* const words[] = {"vit",
                                      "clip",
                                      "siglip",
                                      "dinov2",
                                      "gelu",
                                      "quick_gelu",
                                      "silu",
                                      "bicubic",
                                      "bilinear",
                                      "center",
                                      "squash",
                                      "shortest",
                                      "token",
                                      "avg",
                                      "map",
                                      "tok",
                                      "longest",
                                      "pad",
                                      "x\ny",
                                      "*/ #include",
                                      "\"; int x;",
                                      "",
                                      "vit_tiny_patch16_224",
                                      "eva02_base_patch14_448",
                                      "cait_m36_384"};
  switch (choices.below(6)) {
    case 0:
      return choices.of(words);
    case 1:
      return choices.size();
    case 2:
      return choices.one_in(2);
    case 3:
      return nullptr;
    case 4:
      return Json::array({choices.size(), choices.size(), choices.size()});
    default: {
      const Json number = Json::parse(choices.number(), nullptr, false);
      return number.is_discarded() ? Json(1e-310) : number;
    }
  }
}

void change(Json& json, Choices& choices) {
  static const char* const fields[] = {"architecture",
                                       "num_classes",
                                       "global_pool",
                                       "num_heads",
                                       "model_type",
                                       "hidden_act",
                                       "image_size",
                                       "img_size",
                                       "layer_norm_eps",
                                       "vision_config",
                                       "pretrained_cfg",
                                       "model_args",
                                       "mean",
                                       "std",
                                       "crop_pct",
                                       "interpolation",
                                       "crop_mode",
                                       "model_cfg",
                                       "vision_cfg",
                                       "preprocess_cfg",
                                       "layerscale_value",
                                       "head_width",
                                       "width",
                                       "pool_type",
                                       "quick_gelu",
                                       "resize_mode",
                                       "num_attention_heads",
                                       "timm_model_name",
                                       "image_mean",
                                       "image_std",
                                       "size",
                                       "crop_size",
                                       "resample",
                                       "do_center_crop",
                                       "shortest_edge",
                                       "height"};
  Json& tensors = json["tensors"];
  if (choices.one_in(2)) {  // a key or a shape
    if (!tensors.is_object() || tensors.empty()) return;
    const auto one = std::next(tensors.begin(), static_cast<std::ptrdiff_t>(choices.below(tensors.size())));
    const auto other = std::next(tensors.begin(), static_cast<std::ptrdiff_t>(choices.below(tensors.size())));
    std::string key = one.key();
    const Json shape = *one;
    switch (choices.below(6)) {
      case 0:
        tensors.erase(key);
        return;
      case 1:
        tensors[key] = *other;
        return;
      case 2: {  // a block more, or another name
        const std::size_t digit = key.find_first_of("0123456789");
        if (digit != std::string::npos) key[digit] = static_cast<char>('0' + choices.below(10));
        tensors[key] = shape;
        return;
      }
      case 3:
        tensors[key.substr(0, choices.below(key.size() + 1)) +
                other.key().substr(choices.below(other.key().size() + 1))] = shape;
        return;
      case 4:
        if (shape.is_array() && !shape.empty()) tensors[key][choices.below(shape.size())] = choices.below(40);
        return;
      default:
        // The same width everywhere.
        if (!shape.is_array() || shape.empty()) return;
        const Json from = shape[0], to = static_cast<int>(1 + choices.below(64));
        for (Json& all : tensors)
          for (Json& dim : all)
            if (dim == from) dim = to;
        return;
    }
  }
  Json& config = json[choices.one_in(4) ? "preprocessor" : "config"];
  if (!config.is_object()) config = Json::object();
  if (choices.one_in(3)) {
    config[choices.of(fields)] = some_value(choices);
    return;
  }
  std::vector<Json*> places;
  gather(config, places);
  if (places.empty()) return;
  Json& place = *choices.of(places);
  if (place.is_object() && choices.one_in(2))
    place[choices.of(fields)] = some_value(choices);
  else
    place = some_value(choices);
}

/// Zeros in these shapes; nothing where they are too many, or no shapes.
std::optional<Safetensors> file_of(const Json& tensors) {
  constexpr std::int64_t most = 1 << 18;
  Safetensors file;
  file.where = "model.safetensors";
  std::int64_t all = 0;
  for (const auto& [key, dims] : tensors.items()) {
    if (!dims.is_array() || dims.size() > 8) return std::nullopt;
    Shape shape;
    for (const Json& dim : dims) {
      if (!dim.is_number_integer() || dim < 0 || dim > most) return std::nullopt;
      shape.push_back(dim.get<std::int64_t>());
    }
    const std::int64_t count = tessera::runtime::elements(shape);
    if (count < 0 || (all += count) > most) return std::nullopt;
    file.tensors[key] = Tensor{"F32", shape, tessera::runtime::Bytes(static_cast<std::size_t>(4 * count))};
  }
  return file;
}

void demand_sound(const tessera::declare::Declaration& declaration) {
  const std::string& text = declaration.header;
  const auto count = [&](char c) { return std::count(text.begin(), text.end(), c); };
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  if (count('{') != count('}') || count('<') != count('>') || has("inf") || has("nan") || count('"') != 2 ||
      std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }))
    std::abort();
  for (const std::string& sentence : declaration.assumptions)
    if (sentence.empty() || sentence.find('\n') != std::string::npos) std::abort();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  Choices choices(seed);
  Json json = Json::parse(data, data + size, nullptr, false);
  if (choices.one_in(16) || !json.is_object() || json.size() > 8) return LLVMFuzzerMutate(data, size, most);
  try {
    for (std::size_t times = 1 + choices.below(3); times > 0; --times) change(json, choices);
  } catch (const Json::exception&) {  // two changes that do not go together
  }
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > most) return size;
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Json json = Json::parse(data, data + size, nullptr, false);
  if (!json.is_object() || !json.contains("tensors")) return 0;
  const auto text_of = [&](const char* part) {
    const auto found = json.find(part);
    return found == json.end() ? std::string() : found->is_string() ? found->get<std::string>() : found->dump();
  };
  try {
    using namespace tessera::declare;
    std::optional<Safetensors> file = file_of(json["tensors"]);
    if (!file) return 0;
    Config config;
    if (json.contains("config")) config = parse_config(text_of("config"), "config.json");
    if (json.contains("preprocessor")) add_preprocessor(config, text_of("preprocessor"), "preprocessor_config.json");
    demand_sound(declare(checkpoint_of(std::move(*file)), config, "Fuzzed"));
  } catch (const tessera::runtime::Error&) {
  }
  return 0;
}
