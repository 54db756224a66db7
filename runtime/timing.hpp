// How fast a model is on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model.hpp"

namespace tessera::runtime {

/// Times the forward pass and the training step at each batch size: the median of `runs` runs after one that does not
/// count, in a table. Parameters are the starting ones, images are noise: no number depends on either.
std::string timing_table(const Model& model, const std::vector<std::int64_t>& batches, std::int64_t runs);

}  // namespace tessera::runtime
