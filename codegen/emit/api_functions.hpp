// The functions of the C API.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/model.hpp"
#include "codegen/emit/tree.hpp"

namespace tessera::codegen {

/// The functions that read what pack_forward packs: "forward, evaluate and inspect".
std::string readers_of(const ModelFiles& model);

/// Without bodies; their comments are C comments' lines.
std::vector<tree::Function> api_functions(const ModelFiles& model);

}  // namespace tessera::codegen
