// golden/timm: what timm's reduced instances compute.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/safetensors.hpp"
#include "tests/codegen/support/interpreter.hpp"
#include "tests/paths.hpp"

namespace tessera::test {

/// In the folder that TESSERA_TIMM names or, without it, below tests/golden or TESSERA_SHARED/golden; empty where it is
/// in neither.
inline std::filesystem::path timm_folder(const std::string& name) {
  if (const char* folder = std::getenv("TESSERA_TIMM")) return std::filesystem::path(folder) / name;
  const char* shared = std::getenv("TESSERA_SHARED");
  for (const std::filesystem::path& golden :
       {std::filesystem::path(paths::golden), std::filesystem::path(shared ? shared : "") / "golden"})
    if (std::filesystem::exists(golden / "timm" / name)) return golden / "timm" / name;
  return {};
}

/// Integers of 16 bits, times the tensor's scale.
inline std::vector<double> scaled(const runtime::Tensor& tensor, double scale) {
  std::vector<std::int16_t> whole(tensor.bytes.size() / sizeof(std::int16_t));
  tensor.bytes.read(0, {reinterpret_cast<std::uint8_t*>(whole.data()), whole.size() * sizeof(std::int16_t)});
  std::vector<double> numbers;
  for (const std::int16_t number : whole) numbers.push_back(scale * number);
  return numbers;
}

/// Where there are `scales`, one for each of the other tensors by their keys, these are integers.
inline Arrays timm_arrays(const std::string& name, const char* file) {
  Arrays arrays;
  auto tensors = runtime::read_safetensors(timm_folder(name) / (std::string(file) + ".safetensors")).tensors;
  const auto scales = tensors.extract("scales");
  const std::vector<double> scale = scales ? scales.mapped().doubles() : std::vector<double>();
  auto next = scale.begin();
  for (const auto& [key, tensor] : tensors)
    arrays[key] = {tensor.shape, scales ? scaled(tensor, *next++) : tensor.doubles()};
  return arrays;
}

/// Inputs, and the parameter grad_output, as `recorded` has them.
inline Arrays timm_batch(const std::string& name) {
  Arrays batch = timm_arrays(name, "batch");
  batch["images"] = batch.at("x");
  batch.erase("x");
  batch["labels"] = {{2}, {0, 1}};
  return batch;
}

/// By names of parameters and inputs.
inline Arrays timm_gradients(const std::string& name) {
  Arrays gradients = timm_arrays(name, "backward");
  gradients["images"] = gradients.at("grad_input");
  gradients.erase("grad_input");
  return gradients;
}

/// What gradients are at least measured by. Of a bias that a softmax takes no notice of, theirs is rounding: a share of
/// the largest of all gradients.
inline double least_of(const Arrays& gradients) {
  double largest = 0;
  for (const auto& [key, theirs] : gradients)
    for (const double number : theirs.numbers) largest = std::max(largest, std::fabs(number));
  return 1e-3 * largest;
}

/// The largest difference, as a share of the largest of theirs, or of `least` where that is more.
inline double distance(const Array& mine, const Array& theirs, double least) {
  double most = 0, largest = least;
  for (std::size_t i = 0; i < theirs.numbers.size(); ++i) {
    const double difference = std::fabs(mine.numbers[i] - theirs.numbers[i]);
    if (!(difference <= most)) most = difference;  // keeps a NaN
    largest = std::max(largest, std::fabs(theirs.numbers[i]));
  }
  return most / largest;
}

}  // namespace tessera::test
