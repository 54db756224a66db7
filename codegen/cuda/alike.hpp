// Which kernels are the same but for names.
#pragma once

#include <string>

#include "codegen/emit/tree.hpp"

namespace tessera::codegen::cuda {

/// The same for two functions that differ in nothing but comments, the names of what they declare, and in which
/// elements of lists their own names speak of: "heads_0_forward" and "heads_11_forward" may be alike.
std::string alike_text(tree::Function f);

}  // namespace tessera::codegen::cuda
