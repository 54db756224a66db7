// What the generator says of what it refuses.
#pragma once

#include <string>

#include "codegen/driver.hpp"
#include "codegen/error.hpp"

namespace tessera::test {

/// "" where it writes files.
inline std::string refusal(const graph::Graph& graph, const codegen::GeneratorOptions& options = {}) {
  try {
    codegen::generate(graph, options);
  } catch (const codegen::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tessera::test
