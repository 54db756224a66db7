// Gradients are accumulated, microbatch after microbatch.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

/// Has sums over the batch be added to what is stored, so that a batch can go by microbatch after microbatch, and
/// scratch memory has to hold those images alone. Sums of which more is made are stored first. False, and
/// nothing is changed, where an image needs a sum over the batch.
bool accumulate_microbatches(KernelProgram& program);

}  // namespace tessera::codegen
