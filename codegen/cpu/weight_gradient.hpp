// Weight gradients, GEMMs whose k is the tokens of all images, by one function of the simd text.
#pragma once

#include <string>

#include "codegen/cpu/gemm_operands.hpp"
#include "codegen/cpu/loop_nest.hpp"

namespace tessera::codegen::cpu {

/// The function that sums up a weight gradient over the tokens of an image, or by a matrix unit over those of all
/// images; "": this kernel has none.
std::string gradient_function(const Values& v);
/// Calls it for the rows from `begin` to before `end`.
tree::Block weight_gradient(Values& v);

}  // namespace tessera::codegen::cpu
