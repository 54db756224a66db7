// Scratch memory: stages, lifetimes, offsets.
#pragma once

#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// Runs of kernels of one kind.
std::vector<std::vector<Stage>> make_stages(const KernelProgram& program);
void place_buffers(Plan& plan);
/// The outputs of `inspect` lie in two arrays, in the order in which they are computed: the attention maps, of an image
/// [layers, maps of a layer, ...], and the magnitudes.
void place_inspected(Plan& plan);
/// The caches of `step`, in the order in which they are computed.
std::vector<TensorId> cached(const KernelProgram& program);
/// They lie in one array, of an image as what is inspected: [layers, caches of a layer, ...].
void place_cache(Plan& plan);

}  // namespace tessera::codegen
