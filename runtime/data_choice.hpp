// Which images a program works on.
#pragma once

#include <cstdint>
#include <filesystem>

#include "runtime/dataset.hpp"

namespace tessera::runtime {

/// MNIST's files in a folder, or the digits that the program draws itself.
struct DataChoice {
  std::filesystem::path folder;  ///< empty: built-in digits
  std::int64_t digits = 12000;   ///< built-in training digits; a sixth as many for the test
  std::int64_t limit = 0;        ///< use only the first ones; 0: all

  bool operator==(const DataChoice&) const = default;
};

/// Reads or draws the images. Throws an Error when they cannot be read.
Dataset load(const DataChoice& choice, Split split);

}  // namespace tessera::runtime
