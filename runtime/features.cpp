#include "runtime/features.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint.hpp"
#include "runtime/error.hpp"
#include "runtime/matching.hpp"

namespace tessera::runtime {
namespace {

using Json = nlohmann::json;

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(number));
  return digits.data();
}

/// FNV-1a over the bits of the parameters, a number at a time, without the gaps between them.
std::uint64_t hash_of(const Model& model, const float* parameters) {
  std::uint64_t hash = 14695981039346656037u;
  for (const tessera_parameter& parameter : model.parameters) {
    const std::int64_t count = elements(shape_of(parameter));
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, parameters + parameter.offset + i, sizeof bits);
      hash = (hash ^ bits) * 1099511628211u;
    }
  }
  return hash;
}

std::string metadata_of(const Safetensors& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  return found == file.metadata.end() ? "" : found->second;
}

}  // namespace

Origin origin_of(const Model& model, const float* parameters, const Preprocessing& input) {
  Safetensors file;
  Usage{input, {}}.write(file, model);
  file.metadata["model"] = model.name;
  file.metadata["declaration_hash"] = hexadecimal(model.declaration_hash);
  file.metadata["parameters_hash"] = hexadecimal(hash_of(model, parameters));
  return file.metadata;
}

void check_origin(const Safetensors& file, const Model& model, const Origin& origin) {
  const auto differs = [&](const char* key) { return metadata_of(file, key) != origin.at(key); };
  if (differs("model"))
    fail(file.where, " was made by another model, ", printable(metadata_of(file, "model")), ", and this is ",
         model.name);
  if (differs("declaration_hash"))
    fail(file.where, " was made with another declaration of ", model.name, " (",
         printable(metadata_of(file, "declaration_hash")), ", this is '", origin.at("declaration_hash"), "')");
  if (differs("parameters_hash"))
    fail(file.where, " was made with other parameters of ", model.name, " than those that are used now (",
         printable(metadata_of(file, "parameters_hash")), ", these are '", origin.at("parameters_hash"), "')");
  const auto other = [&](const std::string& key) {
    fail(file.where, " was made of pictures that were prepared in another way (", key, ")");
  };
  for (const auto& [key, value] : origin)
    if (differs(key.c_str())) other(key);
  for (const auto& [key, value] : file.metadata)
    if (key.starts_with("input_") && !origin.contains(key)) other(printable(key));
}

void check_finite(std::span<const float> numbers, const std::string& whose) {
  if (!std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); }))
    fail(whose, " are not all finite numbers");
}

void check_place(const std::filesystem::path& path, const std::vector<std::filesystem::path>& inputs) {
  check_target(path);
  std::string format;
  try {
    const auto metadata = read_metadata(path);
    if (const auto found = metadata.find("format"); found != metadata.end()) format = found->second;
  } catch (const Error&) {
    // no safetensors file
  }
  if (format != features_format && format != probe_format && format != depths_format)
    return spare_models(path, Output::other, inputs);
  for (const std::filesystem::path& input : inputs)  // of folders, what embed wrote there is no picture
    if (std::error_code unknown; !std::filesystem::is_directory(input, unknown)) spare_inputs(path, {input});
}

void write_features(const std::filesystem::path& path, const Features& features, const Origin& origin) {
  constexpr std::size_t longest = 90'000'000;  // of a header of 100 million bytes
  for (const std::string& name : features.names)
    if (!can_hold(name)) fail("the name of ", printable(name), " is not UTF-8: ", path.string(), " cannot hold it");
  Safetensors file;
  file.metadata = origin;
  file.metadata["format"] = features_format;
  file.metadata["pictures"] = Json(features.names).dump();
  if (file.metadata["pictures"].size() > longest)
    fail(path.string(), " cannot hold the names of ", features.size(), " pictures: embed them in parts");
  if (!features.data.empty()) {
    if (!can_hold(features.data.string())) fail("the name of the folder ", features.data.string(), " is not UTF-8");
    file.metadata["data"] = features.data.string();
    file.metadata["split"] = name(features.split);
  }
  Shape shape = features.dense.empty() ? Shape{features.width} : features.dense;
  shape.insert(shape.begin(), features.size());
  file.tensors["features"] = Tensor::of(shape, std::span(features.numbers));
  write_safetensors(path, file);
}

Features read_features(const std::filesystem::path& path, const Model& model, const Origin& origin) {
  const Safetensors file = read_safetensors(path);
  if (metadata_of(file, "format") != features_format)
    fail(file.where, " holds no features: ", model.name, " embed writes such files");
  check_origin(file, model, origin);
  Features features;
  const Tensor& tensor = file.at("features");
  const Json names = Json::parse(metadata_of(file, "pictures"), nullptr, false);
  features.width = model.embedding.features;
  if (tensor.dtype != "F32" || tensor.shape.size() != 2 || tensor.shape[1] != features.width || !names.is_array() ||
      static_cast<std::int64_t>(names.size()) != tensor.shape[0] || tensor.shape[0] < 1 ||
      !std::ranges::all_of(names, [](const Json& name) { return name.is_string(); }))
    fail(file.where, " is damaged: its features are not F32 [pictures, ", features.width,
         "], or it has not a name for each picture");
  features.names = names.get<std::vector<std::string>>();
  features.numbers = tensor.floats();
  check_finite(features.numbers, text("the features in ", file.where));
  features.data = metadata_of(file, "data");
  const std::string split = metadata_of(file, "split");
  if (!features.data.empty() && split != name(Split::train) && split != name(Split::test))
    fail(file.where, " is damaged: it is of the ", printable(split), " images of ", features.data.string());
  features.split = split == name(Split::test) ? Split::test : Split::train;
  return features;
}

std::vector<std::string> classes_of(const Features& features) {
  std::vector<std::string> classes;
  for (const std::string& name : features.names) {
    classes.push_back(std::filesystem::path(name).parent_path().filename().string());
    if (classes.back().empty() || classes.back() == "." || classes.back() == "..")
      fail(printable(name), " lies in no folder whose name would be its class: embed CLASS/", printable(name),
           " from the folder above");
  }
  return classes;
}

}  // namespace tessera::runtime
