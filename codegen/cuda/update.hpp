// The optimiser's step on a GPU: the kernels beside the plan's that make its numbers and look at gradients, and the
// statements that launch it.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/cuda/file.hpp"

namespace tessera::codegen::cuda {

constexpr std::int64_t update_reals = 256;  ///< scratch of the update: 64 doubles, then its numbers

/// Whether products read a copy of the parameters as bf16.
bool packs(const Model& model);
/// Whether several batches may make one step.
bool gathers(const Model& model);
/// Whether the gradients' norm is clipped.
bool clips(const Model& model);
/// Of what is not trained nothing else writes gradients.
bool trains_all(const Model& model);
/// So many blocks look at the gradients: 16 of them, or more, for each thread.
std::int64_t check_blocks(const Model& model);
/// Where the parameters lie that a step gives new values, in the place of gradients.
std::vector<std::pair<std::int64_t, std::int64_t>> assigned_runs(const Model& model);
/// What lies between the parameters of the arena, each of which begins on a multiple of 16 reals.
std::vector<std::pair<std::int64_t, std::int64_t>> gaps(const Model& model);
/// Runs of trained parameters in the arena to which weight decay applies, or does not: first, behind the last, and
/// whether it does. The update is launched for each.
std::vector<std::tuple<std::int64_t, std::int64_t, bool>> decay_runs(const Model& model);

/// The kernels that stand beside the plan's: the update's numbers, the next step.
std::string update_kernels(const Model& model);
/// The statements of NAME_cuda_update and of NAME_cuda_update_range behind their checks.
std::string update_statements(const Model& model);
std::string update_range_statements(const Model& model);

}  // namespace tessera::codegen::cuda
