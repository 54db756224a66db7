// Building a graph from another one, node by node: what decompose, simplify and subgraph are made of.
#pragma once

#include <functional>

#include "dsl/graph/builder.hpp"
#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// Called for each node in order, with its operands already those of the new graph and the builder standing in its
/// region and path. `old` is the node's id in the old graph. Answers what stands for the node: appended to the builder,
/// or there before; graph::none leaves it out (then nothing may read it).
using Rule = std::function<graph::NodeId(graph::Builder& builder, const graph::Node& node, graph::NodeId old)>;

/// The graph after `rule`: regions, carries, yields and outputs follow their nodes. A carry must be answered with a
/// carry.
graph::Graph rewrite(const graph::Graph& graph, const Rule& rule);

/// Without the nodes, carries and regions that no output depends on. Parameters whose gradient is an output stay.
graph::Graph remove_dead(graph::Graph graph);

/// The value of dim as a number in the graph: a constant where it is known, else an extent.
graph::NodeId extent_of(graph::Builder& builder, const Dim& dim);

/// How many rows logits of this shape have, as a number in the graph: the product of all dims but the last.
graph::NodeId rows_of(graph::Builder& builder, const std::vector<Dim>& logits);

/// x with its dims in another order: dim i of the result is dim order[i] of x; x itself, where none changes place.
graph::NodeId permuted(graph::Builder& builder, graph::NodeId x, const std::vector<int>& order);

/// The axes of a shape of `rank` dims that are not in `axes`, ascending.
std::vector<int> other_axes(std::size_t rank, const std::vector<int>& axes);

}  // namespace tessera::codegen
