// NAME_model.h, NAME_model.cpp and NAME.py: the model with its weights, for programs in C, C++ and Python.
#pragma once

#include <string>

#include "codegen/emit/model.hpp"

namespace tessera::codegen {

/// Whether the outputs are numbers of classes; else they are features.
bool classifies(const ModelFiles& model);

/// `embeds`: with NAME_model_embed, of a model that has features. One that does not classify has nothing else.
std::string emit_model_header(const ModelFiles& model, bool embeds);
std::string emit_model(const ModelFiles& model, bool embeds);
std::string emit_python(const ModelFiles& model, bool embeds);

}  // namespace tessera::codegen
