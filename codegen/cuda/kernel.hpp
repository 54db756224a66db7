// One kernel of the plan as __global__ functions, and how each is launched.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/cuda/tile.hpp"
#include "codegen/cuda/values.hpp"

namespace tessera::codegen::cuda {

/// A function of the kernel. Its parameters, in this order: batch (where it takes it), layer, first, last and stopped
/// (update), then its arguments.
struct Emitted {
  tree::Function function;
  bool takes_batch = false, takes_layer = false, takes_stretch = false;
  std::vector<Argument> arguments;
  tree::Expr grid[3];  ///< blocks along x, y and z, in `batch`
  int threads = 1;     ///< of a block
  int blocks = 0;      ///< at least so many on a multiprocessor; 0: as the compiler likes
  tree::Expr shared_bytes;
  std::int64_t largest_batch = 0;  ///< that the grid has room for
  Tile tile;                       ///< of a matrix product
  Extent depth;                    ///< that a block of it sums over
  double alone = 0;                ///< cycles in which a block of it multiplies nothing
};

/// "real" or "bf16": what the values of a tensor are stored as.
std::string type_of(const Tensor& tensor);

/// One function; two where partial sums over chunks of the batch are added up afterwards.
std::vector<Emitted> emit(const Plan& plan, int kernel, const TableName& table, const Tiles& tiles);

/// Types, functions and constants that kernels may use without declaring them.
const std::set<std::string>& known_names();

}  // namespace tessera::codegen::cuda
