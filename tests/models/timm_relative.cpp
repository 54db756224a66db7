// timm's beit, vision_transformer_relpos, swin_transformer, swin_transformer_v2 and vision_transformer_sam. Declared as
// `tessera declare` writes it (tests/declare).
#include "tests/models/declared/beit_base_patch16_224.hpp"
#include "tests/models/declared/beit_large_patch16_224.hpp"
#include "tests/models/declared/samvit_base_patch16.hpp"
#include "tests/models/declared/swin_tiny_patch4_window7_224.hpp"
#include "tests/models/declared/swinv2_base_window12to16_192to256.hpp"
#include "tests/models/declared/test_vit_relpos.hpp"
#include "tests/models/declared/vit_relpos_base_patch16_cls_224.hpp"
#include "tests/models/declared/vit_relpos_base_patch16_clsgap_224.hpp"
#include "tests/models/declared/vit_relpos_base_patch16_plus_240.hpp"
#include "tests/models/declared/vit_relpos_base_patch16_rpn_224.hpp"
#include "tests/models/declared/vit_relpos_base_patch32_plus_rpn_256.hpp"
#include "tests/models/declared/vit_srelpos_medium_patch16_224.hpp"
#include "tests/models/declared/vit_srelpos_small_patch16_224.hpp"
#include "tests/models/timm_models.hpp"

namespace tessera::test {

using namespace models;

std::vector<TimmModel> timm_relative_models() {
  return {
      TIMM(vit_srelpos_medium_patch16_224, VitSrelposMediumPatch16224),
      TIMM(beit_large_patch16_224, BeitLargePatch16224),
      TIMM(beit_base_patch16_224, BeitBasePatch16224),
      TIMM(samvit_base_patch16, SamvitBasePatch16),
      TIMM(swin_tiny_patch4_window7_224, SwinTinyPatch4Window7224),
      TIMM(swinv2_base_window12to16_192to256, Swinv2BaseWindow12to16192to256),
      TIMM(test_vit_relpos, TestVitRelpos),
      TIMM(vit_relpos_base_patch16_cls_224, VitRelposBasePatch16Cls224),
      TIMM(vit_relpos_base_patch16_plus_240, VitRelposBasePatch16Plus240),
      TIMM(vit_relpos_base_patch32_plus_rpn_256, VitRelposBasePatch32PlusRpn256),
      TIMM(vit_srelpos_small_patch16_224, VitSrelposSmallPatch16224),
      TIMM(vit_relpos_base_patch16_clsgap_224, VitRelposBasePatch16Clsgap224),
      TIMM(vit_relpos_base_patch16_rpn_224, VitRelposBasePatch16Rpn224),
  };
}

}  // namespace tessera::test
