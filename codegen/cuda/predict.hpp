// What a model's kernels should take on a GPU: a table from the plan, to hold the first measured run against.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "codegen/cuda/file.hpp"

namespace tessera::codegen::cuda {

/// The names under which kernels stand in NAME_cuda.cu, which are those a profiler tells: what emit_file gives.
using Standing = std::map<std::string, std::string>;

/// Kernel by kernel of inference and of a training step: launches, blocks, waves of them, operations, bytes and time;
/// behind a kernel that stands under another's name, "as" and that name. `gpu` is A100 or sm_80, H200 or sm_90a, or
/// H100; throws Error for another one.
std::string predict(const Model& model, const Standing& standing, const std::string& gpu, std::int64_t batch);
/// NAME_cuda_predict.cpp: NAME_predict(gpu, batch), which gives that table in the emitted program; it throws
/// std::invalid_argument for another GPU.
std::string emit_prediction(const Model& model, const Standing& standing);

}  // namespace tessera::codegen::cuda
