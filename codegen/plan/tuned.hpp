// Tiles of GEMMs that were measured, in the place of those that the sizes suggest.
#pragma once

#include <string_view>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// Gives targets the tiles that a table names for them: lines "ISA columns N vectors V" and
/// "ISA rows M vectors V tile R"; # begins a comment. What it says of other instruction sets is read, and left.
/// Throws Error with one sentence that names the line which cannot be read, or whose tile needs more registers than
/// there are.
void use_tiles(std::string_view table, std::vector<Target>& targets);

}  // namespace tessera::codegen
