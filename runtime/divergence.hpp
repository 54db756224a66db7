// Where numbers that are none come from.
#pragma once

#include <string>

#include "runtime/batches.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Whether all these floats are numbers.
bool finite(const float* first, std::int64_t count);

/// The key of the first parameter, in the order of the forward pass, that has a value that is not a number; empty when
/// there is none. Parameters lie in the order in which the backward pass finishes their gradients (codegen/plan/arena),
/// so the one with the largest offset is the first of the forward pass.
std::string first_not_finite(const Model& model, const float* parameters);

/// Why a loss is not a number, as part of a sentence: the first parameter that is none; else the first layer that
/// gives for some image what is none (as in evaluation, without dropout); else the layer that gives the largest values.
/// The parameters have to be those that gave the loss.
std::string cause_of_loss(const Model& model, const float* parameters, const Batch& batch);

/// Which gradient was the first that is not a number, as part of a sentence; empty when all are. What is not a number
/// spreads on the way back: it is the one with the smallest offset.
std::string cause_of_gradients(const Model& model, const float* gradients);

}  // namespace tessera::runtime
