// What goes on inside a model, as outputs of its own.
#pragma once

#include <string>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The graph with two kinds of outputs only, in the graph's order.
///
/// "attention.0" and so on are its attention maps: a softmax [B, rows, columns] or [B, heads, rows, columns] over its
/// last dim, which an einsum then sums over; behind a repeated block, that of a pooling is left to `embedding`. None
/// when they differ in shape, or some lie in a repeated block and others do not, or repeated blocks differ in how many
/// they have.
///
/// "magnitude.0" and so on, each [B], are the means of |x| of what its layers give: of the last of every run of nodes
/// that one module recorded, and that compute something, for each image. Their nodes have the module's path.
graph::Graph inspected(const graph::Graph& graph);

/// Whether some einsum sums over the last axis of this softmax.
bool weighs_values(const graph::Graph& graph, graph::NodeId softmax);

/// Whether an output of an inspected graph, or the tensor of that name, is an attention map.
bool is_attention(const std::string& output);

}  // namespace tessera::codegen
