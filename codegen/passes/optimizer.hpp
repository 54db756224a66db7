// The parameter update as a graph.
#pragma once

#include <cstdint>
#include <string>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// One Adam step (Kingma & Ba 2015, algorithm 1, in PyTorch's order of operations) over flat arenas of P = `reals`
/// numbers. Inputs: parameters, gradients, moment1, moment2 [P]; learning_rate_corrected = rate / (1 - beta1^t)
/// and second_correction = 1 / sqrt(1 - beta2^t), t counting from 1. Outputs: parameters, moment1, moment2.
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   p = p - learning_rate_corrected * m / (sqrt(v) * second_correction + epsilon)
graph::Graph optimizer(const graph::Recipe& recipe, std::int64_t reals, const std::string& name);

}  // namespace tessera::codegen
