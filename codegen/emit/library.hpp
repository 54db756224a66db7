// NAME_model.h, NAME_model.cpp and NAME.py: the model with its weights, for programs in C, C++ and Python.
#pragma once

#include <string>

#include "codegen/emit/model.hpp"

namespace tessera::codegen {

/// `embedding`: the model without its head (passes/headless.hpp), or null.
std::string emit_model_header(const ModelFiles& model, const ModelFiles* embedding);
std::string emit_model(const ModelFiles& model, const ModelFiles* embedding);
std::string emit_python(const ModelFiles& model, const ModelFiles* embedding);

}  // namespace tessera::codegen
