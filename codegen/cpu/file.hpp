// The file of one instruction set: support text, kernels, and one function for each program that calls them in order.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/emit/tree.hpp"
#include "codegen/plan/arena.hpp"

namespace tessera::codegen::cpu {

/// NAME_<isa>.cpp. `real` is "float", or "double" for the scalar target. `distributed`: loss_and_gradients calls back
/// when a range of the gradients is final. `standing`, unless null, gets the name under
/// which each kernel's function stands, by its own name and suffix_of its program.
std::string emit_file(const std::string& model, const std::vector<Plan>& plans, const Arena& arena,
                      const PackedArena& packed, const Target& target, const std::string& real,
                      bool distributed = false, std::map<std::string, std::string>* standing = nullptr);

}  // namespace tessera::codegen::cpu
