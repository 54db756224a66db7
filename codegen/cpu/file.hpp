// The file of one instruction set: support text, kernels, and one function for each program that calls them in order.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/tree.hpp"
#include "codegen/plan/arena.hpp"

namespace tessera::codegen::cpu {

/// NAME_<isa>.cpp. `real` is "float", or "double" for the scalar target.
std::string emit_file(const std::string& model, const std::vector<Plan>& plans, const Arena& arena,
                      const PackedArena& packed, const Target& target, const std::string& real);

}  // namespace tessera::codegen::cpu
