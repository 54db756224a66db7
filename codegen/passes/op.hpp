// What the passes ask of an operation: its name and its kind.
#pragma once

#include <string>
#include <vector>

#include "dsl/graph/graph.hpp"
#include "dsl/graph/op_name.hpp"

namespace tessera::codegen {

using graph::op_name;

bool is_unary(graph::Op op);   ///< elementwise, one operand
bool is_binary(graph::Op op);  ///< elementwise, two operands
/// Whether the op is a function of its operands' elements at the same place, so that it can be moved past any view.
inline bool is_pointwise(graph::Op op) { return is_unary(op) || is_binary(op) || op == graph::Op::select; }

inline bool is_reduction(graph::Op op) { return op == graph::Op::reduce_sum || op == graph::Op::reduce_max; }

/// Whether a node has a value for each image of the batch.
inline bool grows(const graph::Node& n) { return !n.shape.empty() && !n.shape.front().known(); }

/// [B, N+1=50, D=8]
std::string to_string(const std::vector<Dim>& shape);

/// Whether two dims have one size: equal in normal form, or equal in number where both are known. Shapes must agree in
/// normal form; the parts of a concat need only agree in size, since 3 and 4 tokens may well be the J of 7.
bool same_size(const Dim& a, const Dim& b);

/// The letters of one operand of an einsum: "bij".
std::string letters_of(const std::vector<int>& letters);

/// The text with the layer's number where it has "{}".
std::string of_layer(std::string text, int layer);

/// Position of a node in Graph::nodes.
inline std::size_t at(graph::NodeId id) { return static_cast<std::size_t>(id); }

}  // namespace tessera::codegen
