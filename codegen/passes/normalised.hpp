// What layer norm and its gradient share, in primitives.
#pragma once

#include <vector>

#include "dsl/graph/builder.hpp"

namespace tessera::codegen {

/// Mean over axes, standing again at every element: [.., axes, ..] -> the same shape.
graph::NodeId spread_mean(graph::Builder& builder, graph::NodeId x, const std::vector<int>& axes);

struct Normalised {
  graph::NodeId value;           ///< (x - mean) / deviation, x's shape
  graph::NodeId inverse_spread;  ///< 1 / deviation at every element, x's shape
};

/// x with mean 0 and variance 1 over axes: rsqrt(variance + epsilon), biased variance (Ba et al. 2016).
Normalised normalised(graph::Builder& builder, graph::NodeId x, const std::vector<int>& axes, double epsilon);

/// reduce over axes, standing again at every element.
graph::NodeId spread_reduce(graph::Builder& builder, graph::Op op, graph::NodeId x, const std::vector<int>& axes);

}  // namespace tessera::codegen
