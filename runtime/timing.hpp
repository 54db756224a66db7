// How fast a model is on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/gpu.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Times the forward pass and the training step at each batch size: the median of `runs` runs after one that does not
/// count, in a table; on the GPU or, where it is null, on the CPU. Parameters are the starting ones, images are noise:
/// no number depends on either. On a GPU the images are there already.
std::string timing_table(const Model& model, const Recipe& recipe, const std::vector<std::int64_t>& batches,
                         std::int64_t runs, const Gpu* gpu);

}  // namespace tessera::runtime
