// The CUDA files of a model: NAME_cuda.cu, all kernels with the functions that launch them, and NAME_cuda.h, its C API.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/cuda/tile.hpp"
#include "codegen/emit/tree.hpp"
#include "codegen/plan/arena.hpp"

namespace tessera::codegen::cuda {

/// What the files are written from.
struct Model {
  std::string name;         ///< "vit_mnist"
  std::vector<Plan> plans;  ///< by plan_for_gpu: forward, evaluate, loss_and_gradients, input_gradient, update, maps
  Arena arena;              ///< the same as on the CPU: a checkpoint is read by both
  graph::Recipe recipe;
  Tiles tiles;
  bool distributed = false;  ///< GPUs share a step
};

/// NAME_cuda.cu. `standing`, unless null, gets the name under which each kernel's function stands, by the name of its
/// launch and suffix_of its program.
std::string emit_file(const Model& model, std::map<std::string, std::string>* standing = nullptr);
/// NAME_cuda.h.
std::string emit_header(const Model& model);

}  // namespace tessera::codegen::cuda
