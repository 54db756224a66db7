// Which nodes are computed together. A greedy pass in graph order: a contraction takes what follows it as its epilogue,
// a row kernel takes every elementwise step and reduction over the same rows.
#pragma once

#include <map>
#include <vector>

#include "codegen/kernels/analysis.hpp"

namespace tessera::codegen {

/// Nodes that one kernel computes, and where each stands in the kernel's axes.
struct Group {
  Anchor anchor = Anchor::elementwise;
  int region = 0;
  std::vector<Axis> axes;
  std::vector<NodeId> nodes;                    ///< in graph order
  std::map<NodeId, std::vector<Affine>> index;  ///< of each node: one Affine for each of its dims
  std::vector<Affine> full;                     ///< the index of a node that spans a whole row (row kernels)
  std::vector<Dim> full_shape;
  bool across_batch = false;
};

struct Grouping {
  std::vector<int> group;  ///< by node; -1 for what no kernel computes
  std::vector<Group> groups;
  std::vector<std::vector<Item>>
      order;  ///< by region: groups (as Item::kernel) and regions in an order that respects every use
};

Grouping fuse(const graph::Graph& graph, const Analysis& analysis);

}  // namespace tessera::codegen
