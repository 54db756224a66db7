// Groups of nodes become kernels: expression trees, steps, and the tensors that they read and write.
#pragma once

#include <string_view>

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

/// Groups the graph's nodes into kernels. The graph must be decomposed and verified.
/// `name`: of the program, where it is not its kind's.
KernelProgram lower(const graph::Graph& graph, ProgramKind kind, std::string_view name = {});

}  // namespace tessera::codegen
