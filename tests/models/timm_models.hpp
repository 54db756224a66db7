// Reduced instances of timm's architectures, as `tessera declare` writes them.
#pragma once

#include <string>
#include <vector>

#include "tests/models/recorded.hpp"

namespace tessera::test {

/// The declaration of an architecture.
struct TimmModel {
  std::string name;  ///< timm's
  graph::Graph (*record)();
};

/// All of a library: of the declarations in tests/models/declared, or of those that tests/declare/programs makes.
std::vector<TimmModel> timm_models();

}  // namespace tessera::test

#define TIMM(name, model) {#name, recorded<model>}
