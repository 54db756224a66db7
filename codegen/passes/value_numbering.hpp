// Value numbering: which nodes have the same value.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// Numbers the nodes of a growing graph; nodes of one number have one value (in regions: of the same layer).
class ValueNumbering {
 public:
  explicit ValueNumbering(const graph::Graph& graph) : graph_(graph) {}

  /// The first node with the value of `id` in its region; or the node of the region that it mirrors, when what it takes
  /// to compute the value again is more than a view.
  graph::NodeId representative(graph::NodeId id);

 private:
  void number_new_nodes();
  std::string key(graph::NodeId id) const;

  const graph::Graph& graph_;
  std::vector<int> number_;  // by node
  std::map<std::string, int> numbers_;
  std::map<std::pair<int, int>, graph::NodeId> first_;  // by number and region
};

}  // namespace tessera::codegen
