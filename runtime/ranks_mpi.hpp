// Ranks over MPI: compiled for the MPI that a program is linked with, where tessera_add_model has DISTRIBUTED mpi.
#pragma once

#include "runtime/model.hpp"

namespace tessera::runtime {

extern const Ranks ranks_over_mpi;

}  // namespace tessera::runtime
