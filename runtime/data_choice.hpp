// Which images a program works on.
#pragma once

#include <cstdint>
#include <filesystem>

#include "runtime/dataset.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// The most that a command line or a checkpoint may ask for.
inline constexpr std::int64_t most_digits = 10'000'000, most_images = 1'000'000'000;

/// A data set in a folder or in a file of packed data, or the digits that the program draws itself.
struct DataChoice {
  std::filesystem::path folder;  ///< or file; empty: built-in digits
  std::int64_t digits = 12000;   ///< built-in training digits; a sixth as many for the test
  std::int64_t limit = 0;        ///< use only the first ones; 0: all

  bool operator==(const DataChoice&) const = default;
};

/// Reads or draws the images. What lies in the folder is found out: MNIST's IDX files, CIFAR-10's binary files or an
/// image folder, whose pictures are prepared for the model, into `room` where there is one. Throws an Error when it is
/// none of these, and when it cannot be read.
Dataset load(const DataChoice& choice, Split split, const Model& model, const Preprocessing& input,
             const Room& room = {});

}  // namespace tessera::runtime
