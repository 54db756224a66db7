// GPUs of ranks over NCCL: compiled where tessera_add_model has DISTRIBUTED mpi nccl.
#pragma once

#include "runtime/model.hpp"

namespace tessera::runtime {

extern const GpuRanks ranks_over_nccl;

}  // namespace tessera::runtime
