// The optimiser's state, of which each rank has its slice of the parameters.
//
// Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, stage 1.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/arena.hpp"
#include "runtime/communicator.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Sends each rank its slice of every state: [states, slice's floats]. `whole` is rank 0's alone,
/// [Model::optimizer_floats()].
Arena scatter_slices(const Communicator& ranks, const Model& model, const float* whole);

/// The way back: on rank 0 the whole state, on the others nothing. `own` is what scatter_slices gave.
std::optional<Arena> gather_slices(const Communicator& ranks, const Model& model, const float* own);

/// Every rank's slice of one state, by its number, into `to` [Model::parameter_floats] of every rank.
void all_gather_state(const Communicator& ranks, const Model& model, const float* own, std::int64_t state, float* to);

}  // namespace tessera::runtime
