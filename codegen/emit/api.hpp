// NAME.cpp: the C API over the kernels.
#pragma once

#include <string>

#include "codegen/emit/model.hpp"

namespace tessera::codegen {

std::string emit_api(const ModelFiles& model);

}  // namespace tessera::codegen
