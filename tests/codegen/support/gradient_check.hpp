// Gradients against central differences.
#pragma once

#include "tests/codegen/support/sketch.hpp"

namespace tessera::test {

/// Differentiates the sketch's graph and compares every gradient, element by element, with (loss(x + h) - loss(x - h))
/// / 2h, both interpreted in double; then again for the decomposed joint graph, for the simplified one, and for the
/// graph that is decomposed before it is differentiated. Each of them must verify. Failures are GoogleTest failures.
void check_gradients(Sketch& sketch);

}  // namespace tessera::test
