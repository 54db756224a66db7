// The parameter update as a graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// What an optimiser keeps from step to step, each as long as the parameters: "moment1" and "moment2" of Adam,
/// "velocity" of descent with momentum, "average" of the parameters where the recipe wants one.
std::vector<std::string> optimizer_state(const graph::Recipe& recipe);

/// The numbers of one step: "learning_rate", or of Adam "learning_rate_corrected" = rate / (1 - beta1^t) and
/// "second_correction" = 1 / sqrt(1 - beta2^t), t counting from 1; "decay", the weight decay of these parameters, of
/// AdamW times the learning rate; "gradient_scale", which clips; "average_kept", how much of the average stays.
std::vector<std::string> optimizer_numbers(const graph::Recipe& recipe);

/// One step over flat arenas of P = `reals` numbers, in PyTorch's order of operations. Inputs: parameters and gradients
/// [P], the state [P], the numbers. Outputs: parameters and the state.
///   g = gradient_scale * g;   Adam, descent: g = g + decay * p;   AdamW: p = p * (1 - decay)
///   Adam     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///            p = p - learning_rate_corrected * m / (sqrt(v) * second_correction + epsilon)
///   descent  v = momentum v + g;  p = p - learning_rate * v, of Nesterov's: g + momentum v in place of v
///   average = p + average_kept (average - p)
graph::Graph optimizer(const graph::Recipe& recipe, std::int64_t reals, const std::string& name);

}  // namespace tessera::codegen
