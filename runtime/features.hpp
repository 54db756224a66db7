// Features of pictures, as one safetensors file: what `embed` writes and what searches and probes read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/dataset.hpp"
#include "runtime/model.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {

/// Of files of features, of heads that are fitted to them, and of depths.
inline constexpr const char *features_format = "tessera features 1", *probe_format = "tessera probe 1",
                            *depths_format = "tessera depths 1";

/// Features [size, width] of pictures.
struct Features {
  std::int64_t width = 0;          ///< numbers of a picture
  std::vector<std::string> names;  ///< of the pictures: files, or CLASS/NUMBER of a data set
  std::vector<float> numbers;
  std::filesystem::path data{};  ///< the folder of the data set; empty: the pictures are files
  Split split = Split::train;    ///< of the data set
  Shape dense{};                 ///< of a picture's features, where they are more than a row

  std::int64_t size() const { return static_cast<std::int64_t>(names.size()); }
  std::span<const float> row(std::int64_t index) const {
    return std::span(numbers).subspan(static_cast<std::size_t>(index * width), static_cast<std::size_t>(width));
  }
};

/// What features come from, as metadata: the model's name, hashes of its declaration and of its parameters, and what
/// pictures go through before. Only features of one origin can be compared.
using Origin = std::map<std::string, std::string>;
Origin origin_of(const Model& model, const float* parameters, const Preprocessing& input);

/// Throws an Error that says in what the metadata of a file differ from the origin.
void check_origin(const Safetensors& file, const Model& model, const Origin& origin);

/// Throws an Error where one of the numbers is none; `whose`: "the features of a.jpg".
void check_finite(std::span<const float> numbers, const std::string& whose);

/// Throws the Error that write_features would throw for what has the name now. What features, probes or depths were
/// written to before may be replaced, any other safetensors file may not.
void check_place(const std::filesystem::path& path, const std::vector<std::filesystem::path>& inputs);

/// Writes tensor "features" F32 [size, width], or of dense ones [size, layers, tokens, width], with the names as a JSON
/// list in the metadata "pictures"; all or nothing. Throws an Error for a name that is not UTF-8, and for more names
/// than a header holds.
void write_features(const std::filesystem::path& path, const Features& features, const Origin& origin);

/// Throws an Error for a file that holds no features, for another origin, and for numbers that are none.
Features read_features(const std::filesystem::path& path, const Model& model, const Origin& origin);

/// What the pictures' classes are called: each is the name of the folder that it lies in. Throws an Error for a picture
/// in no folder.
std::vector<std::string> classes_of(const Features& features);

}  // namespace tessera::runtime
