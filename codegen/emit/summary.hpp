// The shape table that people read and that is compared in review.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/model.hpp"

namespace tessera::codegen {

/// Every step of a declared graph with what it reads and its named shape; every parameter with its shape, size and
/// whether weight decay applies. A block that is repeated stands once, with how often it runs.
std::string shape_table(const graph::Graph& declared);
/// A row of its first part.
struct ShapeRow {
  graph::NodeId node;
  std::string path, step, shape;
  int layers = 1;
};
std::vector<ShapeRow> shape_rows(const graph::Graph& declared);
/// The shape table and the contract, the latter also at the recipe's batch (of one image, where nothing trains): what
/// NAME_summary() returns.
std::string summary(const ModelFiles& model);

}  // namespace tessera::codegen
