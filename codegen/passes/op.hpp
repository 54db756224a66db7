// What the passes ask of an operation and of a node: names, classes (from the rows of ops.hpp), attributes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/passes/ops.hpp"
#include "dsl/graph/graph.hpp"
#include "dsl/graph/op_name.hpp"

namespace tessera::codegen {

using graph::op_name;

/// Whether the op is a function of its operands' elements at the same place, so that it can be moved past any view.
constexpr bool is_elementwise(graph::Op op) { return row_of(op).of == OpClass::elementwise; }
constexpr bool is_unary(graph::Op op) { return is_elementwise(op) && row_of(op).most == 1; }
constexpr bool is_binary(graph::Op op) { return is_elementwise(op) && row_of(op).most == 2; }
constexpr bool is_reduction(graph::Op op) { return row_of(op).of == OpClass::reduction; }

/// The attributes of a node that its op has, as the printed graph shows them: " axis=1 offset=3".
std::string attributes_of(const graph::Node& n);

/// A field that the node sets though its op does not list it, so that neither the printed graph nor the declaration's
/// hash would show it; "": there is none.
std::string unlisted_field(const graph::Node& n);

/// Whether a node has a value for each image of the batch.
inline bool grows(const graph::Node& n) { return !n.shape.empty() && !n.shape.front().known(); }

/// How many values a node has for each image.
std::int64_t size_of_image(const graph::Node& n);

/// [B, N+1=50, D=8]
std::string to_string(const std::vector<Dim>& shape);

/// Whether two dims have one size: equal in normal form, or equal in number where both are known. Shapes must agree in
/// normal form; the parts of a concat need only agree in size, since 3 and 4 tokens may well be the J of 7.
bool same_size(const Dim& a, const Dim& b);

/// The letters of one operand of an einsum: "bij".
std::string letters_of(const std::vector<int>& letters);

/// The text with the layer's number where it has "{}", with 8 more where it has "{8}", and with 1 more than twice the
/// number where it has "{1:2}".
std::string of_layer(std::string text, int layer);

/// Position of a node in Graph::nodes.
inline std::size_t at(graph::NodeId id) { return static_cast<std::size_t>(id); }

}  // namespace tessera::codegen
