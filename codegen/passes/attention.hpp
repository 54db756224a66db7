// Attention maps as outputs of their own.
#pragma once

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The graph with its attention maps as its only outputs, "attention.0" and so on in the graph's order. An attention
/// map is a softmax [B, rows, columns] or [B, heads, rows, columns] over its last dim, which an einsum then sums over.
/// No outputs when there are none, or when they differ in shape or do not all lie in one repeated block.
graph::Graph attention_outputs(const graph::Graph& graph);

}  // namespace tessera::codegen
