#include "codegen/passes/normalised.hpp"

#include "codegen/passes/rewrite.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::NodeId;
using graph::Op;

NodeId spread_reduce(Builder& b, Op op, NodeId x, const std::vector<int>& axes) {
  const std::vector<Dim> shape = b.shape(x);
  return b.broadcast(b.reduce(op, x, axes), shape, other_axes(shape.size(), axes));
}

namespace {

NodeId mean(Builder& b, NodeId x, const std::vector<int>& axes) {
  Dim count = Dim::constant(1);
  for (int axis : axes) count = count * b.shape(x)[axis];
  const NodeId sum = b.reduce(Op::reduce_sum, x, axes);
  return b.divide(sum, extent_of(b, count));
}

}  // namespace

NodeId spread_mean(Builder& b, NodeId x, const std::vector<int>& axes) {
  const std::vector<Dim> shape = b.shape(x);
  return b.broadcast(mean(b, x, axes), shape, other_axes(shape.size(), axes));
}

Normalised normalised(Builder& b, NodeId x, const std::vector<int>& axes, double epsilon) {
  const std::vector<Dim> shape = b.shape(x);
  const NodeId centred = b.subtract(x, spread_mean(b, x, axes));
  const NodeId variance = mean(b, b.multiply(centred, centred), axes);
  const NodeId inverse = b.unary(Op::rsqrt, b.add(variance, b.constant(epsilon)));
  const NodeId spread = b.broadcast(inverse, shape, other_axes(shape.size(), axes));
  return {b.multiply(centred, spread), spread};
}

}  // namespace tessera::codegen
