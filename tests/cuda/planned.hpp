// What a program of products in bf16 gives as it is planned for a GPU, by the interpreter of graphs.
#pragma once

#include <cstdint>

#include "codegen/passes/pass.hpp"
#include "codegen/program_kind.hpp"
#include "tests/codegen/support/interpreter.hpp"

namespace tessera::test {

/// In double precision, but for what the plan stores as bf16: that is taken rounded by all who read it from memory, as
/// are the operands of GEMMs. `traced`: the declaration. `options`: of the passes over kernels.
Arrays interpret_planned(const graph::Graph& traced, codegen::ProgramKind kind, std::int64_t batch, const Arrays& given,
                         const codegen::PassOptions& options = {});

}  // namespace tessera::test
