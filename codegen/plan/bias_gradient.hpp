// Weight gradients of single precision that make the gradient of the bias as well.
#pragma once

#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// Whether both operands of a weight gradient are copied, tile by tile, before they are multiplied: they lie side by
/// side for each of so many tokens.
bool copies_operands(const Layouts& layouts, const Kernel& kernel);
/// Has such weight gradients, of single precision, add up the gradients of the biases beside them, while they copy what
/// both are made of.
void fuse_bias_gradients(KernelProgram& program);

}  // namespace tessera::codegen
