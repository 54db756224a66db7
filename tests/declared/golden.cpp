// The sizes and variants of tests/golden.
#include "dsl/trace.hpp"
#include "tests/declared/models.hpp"
#include "tests/models/declared/hf_depth_anything.hpp"
#include "tests/models/declared/open_clip.hpp"
#include "tests/models/forward_only_models.hpp"
#include "tests/models/golden_models.hpp"
#include "tests/models/golden_variants.hpp"
#include "tests/models/taming_models.hpp"
#include "tests/models/vqgan_models.hpp"

tessera::test::DeclaredModels tessera::test::golden_models() {
  return {
      TESSERA_DECLARED(tessera::models::GoldenVit),
      TESSERA_DECLARED(tessera::models::GoldenCifarVit),
      TESSERA_DECLARED(tessera::models::GoldenNotebookVit),
      TESSERA_DECLARED(tessera::models::VitGap),
      TESSERA_DECLARED(tessera::models::VitRegisters),
      TESSERA_DECLARED(tessera::models::VitSimple),
      TESSERA_DECLARED(tessera::models::VitVaswani),
      TESSERA_DECLARED(tessera::models::VitMeanOfPatches),
      TESSERA_DECLARED(tessera::models::VitOnlyRegisters),
      TESSERA_DECLARED(tessera::test::VitMnistInference),
      TESSERA_DECLARED(tessera::test::GoldenVitInference),
      TESSERA_DECLARED(tessera::test::GoldenSelfAttention),
      TESSERA_DECLARED(tessera::test::SmallVqgan),
      TESSERA_DECLARED(tessera::test::SmallVqganEncode),
      TESSERA_DECLARED(tessera::test::SmallVqganDecode),
      TESSERA_DECLARED(tessera::models::GoldenGpt),
      TESSERA_DECLARED(tessera::models::LongGpt),
      TESSERA_DECLARED(tessera::models::OpenClip),
      TESSERA_DECLARED(tessera::models::HfDepthAnything),
      TESSERA_DECLARED(tessera::test::SmallVqganGenerator),
      TESSERA_DECLARED(tessera::test::SmallVqganDiscriminator),
      TESSERA_DECLARED(tessera::test::PaperVqganGenerator),
      TESSERA_DECLARED(tessera::test::PaperVqganDiscriminator),
      TESSERA_DECLARED(tessera::test::LayersVit),
  };
}
