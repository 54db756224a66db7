#include "tests/declared/models.hpp"

tessera::test::DeclaredModels tessera::test::declared_models() {
  DeclaredModels all;
  for (const auto& part : {published_models(), golden_models(), small_models(), recipe_models(), example_models()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}
