// scalar_graph: the worked example of automatic differentiation on paper, e = (a + b) * (b + 1).
#pragma once

#include "dsl/tessera.hpp"

namespace tessera::models {

/// Its inputs are its parameters, so that there are gradients: de/da = b + 1 and de/db = a + 2 b + 1.
struct ScalarGraph : Module {
  Parameter<> a, b;
  TESSERA_MEMBERS(ScalarGraph, a, b)

  Tensor<> forward() const { return (a + b) * (b + 1); }
};

}  // namespace tessera::models
