// What may become a name in emitted text: checked once, where a graph enters the generator.
#pragma once

#include <string>
#include <string_view>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// Throws Error for names that an emitted file would have to escape in one context or another: identifier, string
/// literal, comment, file name. The model, its inputs, outputs and axes have identifiers (dsl/text.hpp); modules and
/// parameters have keys of letters, digits and _ . - : / { }.
void check_names(const graph::Graph& graph);

/// A text of somebody else's for a terminal: what that would obey, a line's end too, as \x0a.
std::string shown(std::string_view text);

}  // namespace tessera::codegen
