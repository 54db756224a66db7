// The gradient of every op, in terms of ops: the one place where derivatives are written down.
#pragma once

#include <cstdint>
#include <vector>

#include "dsl/graph/builder.hpp"

namespace tessera::codegen {

/// What one reader of a value adds to the value's gradient: all of it, or the part along `axis` from `offset` on. Parts
/// are kept apart so that the parts of a split become one concat, not a sum of padded parts.
struct Contribution {
  graph::NodeId node = graph::none;
  int axis = graph::none;
  std::int64_t offset = 0;
};

/// Records the vector-Jacobian product of node `id`: given the gradient of its result, the contribution to each operand
/// that is wanted (its node is graph::none where the derivative is zero or the operand is not wanted). For all ops but
/// leaves and carries. Where a maximum is reached several times the gradient is split evenly, as PyTorch does it.
std::vector<Contribution> vjp(graph::Builder& builder, graph::NodeId id, graph::NodeId gradient,
                              const std::vector<bool>& wanted);

}  // namespace tessera::codegen
