// The models of models/, in their published sizes.
#include "dsl/trace.hpp"
#include "examples/cifar10.hpp"
#include "examples/mnist.hpp"
#include "examples/taming_digits.hpp"
#include "examples/vit_digits.hpp"
#include "examples/vqgan_digits.hpp"
#include "models/dpt.hpp"
#include "models/vit.hpp"
#include "models/vit_cifar.hpp"
#include "models/vit_mnist.hpp"
#include "models/vit_notebook.hpp"
#include "tests/declared/models.hpp"

tessera::test::DeclaredModels tessera::test::published_models() {
  return {
      TESSERA_DECLARED(tessera::models::vit_mnist::VitMnist),
      TESSERA_DECLARED(tessera::models::VitDigits),
      TESSERA_DECLARED(tessera::models::Mnist),
      TESSERA_DECLARED(tessera::models::DigitsGpt),
      TESSERA_DECLARED(tessera::models::VqganDigitsGenerator),
      TESSERA_DECLARED(tessera::models::VqganDigitsDiscriminator),
      TESSERA_DECLARED(tessera::models::VqganDigitsEncode),
      TESSERA_DECLARED(tessera::models::VqganDigitsDecode),
      TESSERA_DECLARED(tessera::models::Cifar10),
      TESSERA_DECLARED(tessera::models::CifarVit<{}>),
      TESSERA_DECLARED(tessera::models::VitTiny),
      TESSERA_DECLARED(tessera::models::VitSmall),
      TESSERA_DECLARED(tessera::models::VitBase),
      TESSERA_DECLARED(tessera::models::VitLarge),
      TESSERA_DECLARED(tessera::models::VitHuge),
      TESSERA_DECLARED(tessera::models::SimpleVitSmall),
      TESSERA_DECLARED(tessera::models::Dinov2Small),
      TESSERA_DECLARED(tessera::models::Dinov2Base),
      TESSERA_DECLARED(tessera::models::Dinov2Large),
      TESSERA_DECLARED(tessera::models::Dinov2Giant),
      TESSERA_DECLARED(tessera::models::DptLarge),
      TESSERA_DECLARED(tessera::models::DepthAnythingSmall),
      TESSERA_DECLARED(tessera::models::DepthAnythingBase),
      TESSERA_DECLARED(tessera::models::DepthAnythingLarge),
      TESSERA_DECLARED(tessera::models::NotebookVit<{}>),
  };
}
