// What the entry points of a program take: the same for every back end and instruction set.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/tree.hpp"

namespace tessera::codegen {

/// `real` is "float" or "double".
std::vector<tree::Parameter> entry_parameters(const std::string& program, const std::string& real);

}  // namespace tessera::codegen
