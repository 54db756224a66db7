// The models of tests/recipes, which differ in how they are trained.
#include "tests/recipes/recipes.hpp"

#include "dsl/trace.hpp"
#include "tests/declared/models.hpp"
#include "tests/recipes/digit_probe.hpp"

tessera::test::DeclaredModels tessera::test::recipe_models() {
  DeclaredModels all{TESSERA_DECLARED(tessera::test::DigitProbe), TESSERA_DECLARED(tessera::test::OwnCrossEntropy),
                     TESSERA_DECLARED(tessera::test::SquaredError), TESSERA_DECLARED(tessera::test::CallersLoss)};
#define TESSERA_PROBE(name) all.push_back({"tessera::test::probe_" #name, &trace<Probe<recipes::name>>});
  TESSERA_RECIPES(TESSERA_PROBE)
#undef TESSERA_PROBE
  return all;
}
