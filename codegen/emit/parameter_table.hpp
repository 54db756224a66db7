// NAME.cpp's tables of the parameters: keys, shapes, places in the arena, starting values.
#pragma once

#include <string>

#include "codegen/emit/model.hpp"

namespace tessera::codegen {

/// And the names of the layers and losses. The namespace that is opened for the starting values is left open.
std::string parameter_tables(const ModelFiles& model);

}  // namespace tessera::codegen
