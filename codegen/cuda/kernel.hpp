// One kernel of the plan as __global__ functions, and how each is launched.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/cuda/values.hpp"

namespace tessera::codegen::cuda {

/// A function of the kernel, as its launch says. Its parameters, in this order: batch (where it takes it), layer,
/// first, last and stopped (update), left_map and right_map, then its arguments.
struct Emitted {
  const Launch* launch = nullptr;  ///< of the plan
  tree::Function function;
  bool takes_batch = false, takes_layer = false, takes_stretch = false;
  std::vector<Argument> arguments;
  tree::Expr grid[3];  ///< CTAs along x, y and z, in `batch`
  tree::Expr shared_bytes;
  std::vector<Emitted> wgmma;  ///< in its place on sm_90a: one, or none
};

/// "real" or "bf16": what the values of a tensor are stored as.
std::string type_of(const Tensor& tensor);

/// What a kernel is passed beside tensors: Argument::tensor of its own partial sums, and of those of the kernel behind.
constexpr TensorId own_partial(-1), partial_behind(-2);

/// A function for each launch of a kernel in its plan.
std::vector<Emitted> emit(const Plan& plan, int kernel, const TableName& table);

/// Types, functions and constants that kernels may use without declaring them.
const std::set<std::string>& known_names();

}  // namespace tessera::codegen::cuda
