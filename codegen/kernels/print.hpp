// Kernels as text, for --dump and for tests.
#pragma once

#include <string>

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

std::string print(const KernelProgram& program);
/// One of its kernels.
std::string print(const KernelProgram& program, const Kernel& kernel);

}  // namespace tessera::codegen
