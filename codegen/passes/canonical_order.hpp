// One order of nodes for one declaration.
#pragma once

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The same graph with its nodes in an order that depends on what they compute only: inputs and parameters first, as
/// recorded, then depth first from the outputs, operands from left to right; regions stay contiguous and are numbered
/// in the order in which they are needed. A declaration such as f(x) + g(x) is recorded in the order in which a
/// compiler happens to evaluate its operands; after this pass GCC and Clang emit the same bytes. Nodes that no output
/// needs come last.
graph::Graph canonical_order(const graph::Graph& graph);

}  // namespace tessera::codegen
