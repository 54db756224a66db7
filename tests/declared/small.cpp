// Models made for one test or another.
#include "dsl/trace.hpp"
#include "tests/cuda/toy_models.hpp"
#include "tests/declared/many_tokens.hpp"
#include "tests/declared/models.hpp"
#include "tests/downstream/project/tiny_vit.hpp"
#include "tests/models/deep_model.hpp"
#include "tests/models/forward_only_models.hpp"
#include "tests/models/quantized_models.hpp"

tessera::test::DeclaredModels tessera::test::small_models() {
  return {
      TESSERA_DECLARED(tessera::test::WholeNumbers),  TESSERA_DECLARED(tessera::test::SmallVit),
      TESSERA_DECLARED(tessera::test::SmallLayers),   TESSERA_DECLARED(tessera::test::Deep),
      TESSERA_DECLARED(tessera::models::ToyCifarVit), TESSERA_DECLARED(tessera::models::ToyWideVit),
      TESSERA_DECLARED(tessera::models::TimedVit),    TESSERA_DECLARED(tessera::test::SmallVitInference),
      TESSERA_DECLARED(downstream::TinyVit),          TESSERA_DECLARED(tessera::test::ManyTokens),
      TESSERA_DECLARED(tessera::test::ManyKeys),      TESSERA_DECLARED(tessera::test::SomeKeys),
      TESSERA_DECLARED(tessera::test::BlockVit),      TESSERA_DECLARED(tessera::test::MapSam),
      TESSERA_DECLARED(tessera::test::KeysVit),       TESSERA_DECLARED(tessera::models::ToySwin),
      TESSERA_DECLARED(tessera::models::ToySwinV2),   TESSERA_DECLARED(tessera::models::ToySam),
      TESSERA_DECLARED(tessera::test::WideHead),      TESSERA_DECLARED(tessera::models::ToyDepth),
  };
}
