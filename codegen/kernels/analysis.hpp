// What the grouping of nodes into kernels needs to know of a graph: who uses what, which nodes are views, which need
// memory of their own.
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernels/kernel.hpp"
#include "codegen/passes/op.hpp"

namespace tessera::codegen {

/// How a node's value comes to be.
enum class Role : std::uint8_t {
  leaf,     ///< stands in memory from the start: inputs, parameters, tables, carries
  inlined,  ///< an expression over its operands, wherever it is read: views, constants, indices, one-hot rows
  member,   ///< computed by a kernel
  storage,  ///< memory that its operands' kernels write into: concat, merging rearrangement
};

/// The memory that a node's value is written into when it is not its own.
struct Claim {
  enum class Kind : std::uint8_t { none, part, merged, yield, initial, output } kind = Kind::none;
  NodeId by = graph::none;  ///< the concat, rearrangement or carry; for outputs unused
  std::int64_t offset = 0;  ///< of a concat's part
  int output = -1;          ///< index into Graph::outputs
};

struct Analysis {
  std::vector<Role> role;
  std::vector<Claim> claim;
  std::vector<bool> kept;  ///< read by the mirror region: one slot a layer
};

/// Adjacent atoms that stay adjacent on both sides become one, and atoms of extent 1 vanish.
graph::Rearrangement canonical(const graph::Rearrangement& rearrangement);

/// The index into a rearrangement's operand, given the index into its result; nothing when it is not affine.
std::optional<std::vector<Affine>> operand_index(const graph::Rearrangement& r, const std::vector<Affine>& index);
/// The index into a rearrangement's result, given the index into its operand; nothing when it is not affine.
std::optional<std::vector<Affine>> result_index(const graph::Rearrangement& r, const std::vector<Affine>& index);

Affine axis_index(int axis);
Affine operator+(Affine a, const Affine& b);
Affine operator*(Affine a, std::int64_t factor);

/// Inserts copies so that every value which must stand in a given place (a concat's part, a carry, an output) is
/// computed by a kernel that can write it there.
graph::Graph legalise(const graph::Graph& graph);
Analysis analyse(const graph::Graph& graph);

}  // namespace tessera::codegen
