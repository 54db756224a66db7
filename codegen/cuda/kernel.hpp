// One kernel of the plan as __global__ functions, and how each is launched.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/cuda/tile.hpp"
#include "codegen/cuda/values.hpp"

namespace tessera::codegen::cuda {

/// What a kernel by warpgroups is passed for a factor: the arguments of the device's tensor_map.
struct Map {
  Argument tensor;
  std::int64_t first = 0;  ///< of its numbers
  Extent extents[4] = {{1, 0}, {1, 0}, {1, 0}, {1, 0}};
  std::int64_t strides[3] = {8, 8, 8};  ///< of all but the first
  int lines = 0;                        ///< of a box
  bool deep = false;                    ///< its lines run along the depth
  tree::Expr third, fourth;             ///< the block's place, in the kernel
};

/// A function of the kernel. Its parameters, in this order: batch (where it takes it), layer, first, last and stopped
/// (update), left_map and right_map, then its arguments.
struct Emitted {
  tree::Function function;
  bool takes_batch = false, takes_layer = false, takes_stretch = false;
  std::vector<Argument> arguments;
  tree::Expr grid[3];      ///< blocks along x, y and z, in `batch`
  int threads = 1;         ///< of a block
  int blocks = 0;          ///< at least so many on a multiprocessor; 0: as the compiler likes
  int with_registers = 0;  ///< so many have to have registers there; 0: these
  tree::Expr shared_bytes;
  std::int64_t largest_batch = 0;      ///< that the grid has room for
  Tile tile;                           ///< of a matrix product
  int chunks = batch_chunks;           ///< of a sum over the batch that is made in two
  Extent depth;                        ///< that a block of it sums over
  double alone = 0;                    ///< cycles in which a block of it multiplies nothing
  double of_tile = 0;                  ///< of attention: those of a warp with a tile of queries
  std::vector<Map> maps;               ///< by warpgroups: of both factors
  std::vector<Emitted> by_warpgroups;  ///< in its place on sm_90a: one, or none
  int sums_of_rows = 0;                ///< partial ones of its left factor, which it makes for the kernel behind it
  bool without_warpgroups = false;     ///< where there are some, the product before it makes what this one does
};

/// "real" or "bf16": what the values of a tensor are stored as.
std::string type_of(const Tensor& tensor);

/// What a kernel is passed beside tensors: Argument::tensor of its own partial sums, and of those of the kernel behind.
constexpr TensorId own_partial(-1), partial_behind(-2);

/// One function; two where partial sums over chunks of the batch are added up afterwards.
std::vector<Emitted> emit(const Plan& plan, int kernel, const TableName& table, const Tiles& tiles);

/// Types, functions and constants that kernels may use without declaring them.
const std::set<std::string>& known_names();

}  // namespace tessera::codegen::cuda
