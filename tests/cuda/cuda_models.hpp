// The models whose CUDA kernels run on the CPU, and what of their tiles and passes is chosen for that.
#pragma once

#include <vector>

#include "codegen/cuda/tile.hpp"
#include "codegen/passes/pass.hpp"
#include "dsl/graph/graph.hpp"

namespace tessera::test {

struct CudaModel {
  graph::Graph traced;  ///< with factors of bf16 where its name ends so
  codegen::cuda::Tiles tiles = {};
  codegen::PassOptions passes = {};
};

/// In sizes that run on the CPU.
std::vector<CudaModel> toy_cuda_models();
/// ViT-Tiny, whose backward pass computes attention's probabilities again.
CudaModel vit_tiny_again();
/// For nvcc alone: heads of 128, with few keys and with as many as attention's backward pass by one kernel takes.
std::vector<CudaModel> heads_of_128();

}  // namespace tessera::test
