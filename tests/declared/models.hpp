// Every model that a test declares: what test_generator generates, and what tests/net holds to its hashes.
#pragma once

#include <vector>

#include "codegen/driver.hpp"

namespace tessera::test {

using DeclaredModels = std::vector<codegen::DeclaredModel>;

DeclaredModels declared_models();

/// The parts of declared_models(), a source each: compilers work on them side by side.
DeclaredModels published_models();
DeclaredModels golden_models();
DeclaredModels small_models();
DeclaredModels recipe_models();
DeclaredModels example_models();

}  // namespace tessera::test

/// A row: the class as MODEL of tessera_add_model says it.
#define TESSERA_DECLARED(...) {#__VA_ARGS__, &tessera::trace<__VA_ARGS__>}
