// What a model becomes, and what its kernels should take: text for the tests of the generator.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "codegen/cuda/tile.hpp"
#include "codegen/driver.hpp"

namespace tessera::codegen::cuda {

/// The row of a kernel in a program's table: launches, blocks, waves, GFLOP, MB and microseconds.
inline std::vector<double> row_of(const std::string& text, const std::string& program, const std::string& kernel) {
  const std::size_t at = text.find("\n" + kernel + " ", text.find("\n" + program + " ") + 1);
  std::stringstream row(text.substr(at + 1 + kernel.size(), text.find('\n', at + 1) - at - 1 - kernel.size()));
  std::vector<double> numbers;
  for (double x = 0; row >> x;) numbers.push_back(x);
  return numbers;
}

/// NAME_cuda.cu of a model in bf16.
inline std::string kernels_of(const graph::Graph& traced, const Tiles& tiles, const PassOptions& passes = {}) {
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.cuda = true;
  options.precision = Precision::bf16;
  options.tiles = tiles;
  options.disabled_passes = passes.disabled;
  options.pass_options = passes.values;
  for (const auto& [name, text] : generate(traced, options))
    if (name == traced.name + "_cuda.cu") return text;
  return "";
}

}  // namespace tessera::codegen::cuda
