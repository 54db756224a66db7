// NAME.cpp's update of the parameters and its learning rate.
#pragma once

#include <string>

#include "codegen/emit/model.hpp"

namespace tessera::codegen {

/// Whether the optimiser keeps something from step to step.
bool keeps_state(const ModelFiles& model);

/// The functions that only some recipes need for their update.
std::string update_helpers(const ModelFiles& model);

/// The body of update and, with `range`, of update_range.
std::string update_body(const ModelFiles& model, bool range);

/// The schedule as declared; dsl/recipe.hpp has the formulas.
std::string learning_rate_body(const graph::Recipe& recipe);

}  // namespace tessera::codegen
