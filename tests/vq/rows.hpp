// Operations of VQGAN, said in the DSL: a row for each file of tests/golden/vq/vq_operations.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/onnx/row.hpp"

namespace tessera::test {

/// A row and the names that its tensors have in the file: "in.x" of the input x. Parameters of a module have their
/// keys.
struct VqRow {
  std::string name;                          ///< of the file
  std::vector<std::string> inputs, results;  ///< without those of modules
  std::size_t sloped;                        ///< the first results, which have gradients
  RecordedRow (*record)(const std::string& name, std::size_t sloped);

  RecordedRow values() const { return record(name, 0); }
  RecordedRow gradients() const { return record(name + "_gradient", sloped); }
};

std::vector<VqRow> vq_rows();

/// What is recorded: the values of each row, and behind them the gradients of those that have some.
std::vector<RecordedRow> recorded_vq_rows();

}  // namespace tessera::test
