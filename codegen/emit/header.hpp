// NAME.h, the C99 header of a model, and NAME_kernels.h, which NAME.cpp and the kernels share.
#pragma once

#include <string>

#include "codegen/emit/model.hpp"

namespace tessera::codegen {

std::string emit_header(const ModelFiles& model);
/// Declares the entry points of each instruction set, for NAME.cpp.
std::string emit_kernels_header(const ModelFiles& model);

}  // namespace tessera::codegen
