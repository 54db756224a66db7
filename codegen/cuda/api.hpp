// The C API over the programs, and the kernels that make the update's numbers from the step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/cuda/file.hpp"

namespace tessera::codegen::cuda {

/// The kernels that stand beside the plan's: the update's numbers, the next step.
std::string update_kernels(const Model& model);
/// Runs of trained parameters in the arena to which weight decay applies, or does not: first, behind the last, and
/// whether it does. The update is launched for each.
std::vector<std::tuple<std::int64_t, std::int64_t, bool>> decay_runs(const Model& model);
/// What a program's kernels and grids have room for.
using LargestBatches = std::map<ProgramKind, std::int64_t>;
/// The functions of NAME_cuda.h. Each refuses batches above the largest of its program.
std::string api(const Model& model, const LargestBatches& largest);

}  // namespace tessera::codegen::cuda
