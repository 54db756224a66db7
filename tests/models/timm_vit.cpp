// timm's vision_transformer and deit. Declared as `tessera declare` writes it (tests/declare).
#include "tests/models/declared/aimv2_1b_patch14_224.hpp"
#include "tests/models/declared/aimv2_huge_patch14_224.hpp"
#include "tests/models/declared/beit3_base_patch16_224.hpp"
#include "tests/models/declared/deit3_base_patch16_224.hpp"
#include "tests/models/declared/deit_base_distilled_patch16_224.hpp"
#include "tests/models/declared/eva_large_patch14_196.hpp"
#include "tests/models/declared/flexivit_base.hpp"
#include "tests/models/declared/test_vit.hpp"
#include "tests/models/declared/test_vit2.hpp"
#include "tests/models/declared/test_vit3.hpp"
#include "tests/models/declared/test_vit4.hpp"
#include "tests/models/declared/vit_base_patch14_dinov2.hpp"
#include "tests/models/declared/vit_base_patch14_reg1_tipsv2.hpp"
#include "tests/models/declared/vit_base_patch14_reg4_dinov2.hpp"
#include "tests/models/declared/vit_base_patch14_reg4_dinov2_layers.hpp"
#include "tests/models/declared/vit_base_patch16_18x2_224.hpp"
#include "tests/models/declared/vit_base_patch16_224_miil.hpp"
#include "tests/models/declared/vit_base_patch16_clip_224.hpp"
#include "tests/models/declared/vit_base_patch16_clip_quickgelu_224.hpp"
#include "tests/models/declared/vit_base_patch16_gap_224.hpp"
#include "tests/models/declared/vit_base_patch16_plus_240.hpp"
#include "tests/models/declared/vit_base_patch16_radio_v3.hpp"
#include "tests/models/declared/vit_base_patch16_reg4_gap_256.hpp"
#include "tests/models/declared/vit_base_patch16_rpn_224.hpp"
#include "tests/models/declared/vit_base_patch16_siglip_224.hpp"
#include "tests/models/declared/vit_base_patch16_xp_224.hpp"
#include "tests/models/declared/vit_base_patch32_siglip_256.hpp"
#include "tests/models/declared/vit_base_patch32_siglip_gap_256.hpp"
#include "tests/models/declared/vit_betwixt_patch16_reg1_gap_256.hpp"
#include "tests/models/declared/vit_betwixt_patch16_reg4_gap_256.hpp"
#include "tests/models/declared/vit_dlittle_patch16_reg1_gap_256.hpp"
#include "tests/models/declared/vit_dpwee_patch16_reg1_gap_256.hpp"
#include "tests/models/declared/vit_dwee_patch16_reg1_gap_256.hpp"
#include "tests/models/declared/vit_giant_patch14_dinov2.hpp"
#include "tests/models/declared/vit_giant_patch14_reg1_tipsv2.hpp"
#include "tests/models/declared/vit_giant_patch14_reg4_dinov2.hpp"
#include "tests/models/declared/vit_giant_patch16_radio_v3.hpp"
#include "tests/models/declared/vit_huge_patch14_224.hpp"
#include "tests/models/declared/vit_huge_patch14_gap_224.hpp"
#include "tests/models/declared/vit_huge_patch16_radio_v4.hpp"
#include "tests/models/declared/vit_intern300m_patch14_448.hpp"
#include "tests/models/declared/vit_large_patch14_clip_quickgelu_224.hpp"
#include "tests/models/declared/vit_medium_patch16_gap_240.hpp"
#include "tests/models/declared/vit_pwee_patch16_reg1_gap_256.hpp"
#include "tests/models/declared/vit_so150m2_patch16_reg1_gap_256.hpp"
#include "tests/models/declared/vit_so150m_patch16_reg4_gap_256.hpp"
#include "tests/models/declared/vit_so150m_patch16_reg4_map_256.hpp"
#include "tests/models/declared/vit_so400m_patch14_siglip_384.hpp"
#include "tests/models/timm_models.hpp"

namespace tessera::test {

using namespace models;

/// As it is written but for the layers that it gives, of four.
constexpr VitSpec dinov2_layers = [] {
  VitSpec spec = VitBasePatch14Reg4Dinov2Layers::V::spec;
  spec.layers = {0, 2, 3};
  return spec;
}();

std::vector<TimmModel> timm_eva_models();
std::vector<TimmModel> timm_relative_models();

std::vector<TimmModel> timm_models() {
  std::vector<TimmModel> all{
      TIMM(vit_large_patch14_clip_quickgelu_224, VitLargePatch14ClipQuickgelu224),
      TIMM(vit_dlittle_patch16_reg1_gap_256, VitDlittlePatch16Reg1Gap256),
      TIMM(aimv2_huge_patch14_224, Aimv2HugePatch14224),
      TIMM(aimv2_1b_patch14_224, Aimv21bPatch14224),
      TIMM(deit3_base_patch16_224, Deit3BasePatch16224),
      TIMM(eva_large_patch14_196, EvaLargePatch14196),
      TIMM(test_vit, TestVit),
      TIMM(test_vit3, TestVit3),
      TIMM(vit_base_patch14_dinov2, VitBasePatch14Dinov2),
      TIMM(vit_base_patch14_reg4_dinov2, VitBasePatch14Reg4Dinov2),
      TIMM(vit_base_patch14_reg4_dinov2_layers, Vit<dinov2_layers>),
      TIMM(vit_base_patch16_224_miil, VitBasePatch16224Miil),
      TIMM(vit_base_patch16_clip_quickgelu_224, VitBasePatch16ClipQuickgelu224),
      TIMM(vit_base_patch16_radio_v3, VitBasePatch16RadioV3),
      TIMM(vit_base_patch16_siglip_224, VitBasePatch16Siglip224),
      TIMM(vit_base_patch32_siglip_256, VitBasePatch32Siglip256),
      TIMM(vit_so400m_patch14_siglip_384, VitSo400mPatch14Siglip384),
      TIMM(vit_dwee_patch16_reg1_gap_256, VitDweePatch16Reg1Gap256),
      TIMM(vit_giant_patch14_reg1_tipsv2, VitGiantPatch14Reg1Tipsv2),
      TIMM(vit_huge_patch14_gap_224, VitHugePatch14Gap224),
      TIMM(vit_huge_patch16_radio_v4, VitHugePatch16RadioV4),
      TIMM(vit_intern300m_patch14_448, VitIntern300mPatch14448),
      TIMM(vit_medium_patch16_gap_240, VitMediumPatch16Gap240),
      TIMM(vit_so150m_patch16_reg4_gap_256, VitSo150mPatch16Reg4Gap256),
      TIMM(beit3_base_patch16_224, Beit3BasePatch16224),
      TIMM(deit_base_distilled_patch16_224, DeitBaseDistilledPatch16224),
      TIMM(flexivit_base, FlexivitBase),
      TIMM(test_vit2, TestVit2),
      TIMM(test_vit4, TestVit4),
      TIMM(vit_base_patch14_reg1_tipsv2, VitBasePatch14Reg1Tipsv2),
      TIMM(vit_base_patch16_18x2_224, VitBasePatch1618x2224),
      TIMM(vit_base_patch16_clip_224, VitBasePatch16Clip224),
      TIMM(vit_base_patch16_gap_224, VitBasePatch16Gap224),
      TIMM(vit_base_patch16_plus_240, VitBasePatch16Plus240),
      TIMM(vit_base_patch16_reg4_gap_256, VitBasePatch16Reg4Gap256),
      TIMM(vit_base_patch16_rpn_224, VitBasePatch16Rpn224),
      TIMM(vit_base_patch16_xp_224, VitBasePatch16Xp224),
      TIMM(vit_base_patch32_siglip_gap_256, VitBasePatch32SiglipGap256),
      TIMM(vit_betwixt_patch16_reg1_gap_256, VitBetwixtPatch16Reg1Gap256),
      TIMM(vit_betwixt_patch16_reg4_gap_256, VitBetwixtPatch16Reg4Gap256),
      TIMM(vit_dpwee_patch16_reg1_gap_256, VitDpweePatch16Reg1Gap256),
      TIMM(vit_giant_patch14_dinov2, VitGiantPatch14Dinov2),
      TIMM(vit_giant_patch14_reg4_dinov2, VitGiantPatch14Reg4Dinov2),
      TIMM(vit_giant_patch16_radio_v3, VitGiantPatch16RadioV3),
      TIMM(vit_huge_patch14_224, VitHugePatch14224),
      TIMM(vit_pwee_patch16_reg1_gap_256, VitPweePatch16Reg1Gap256),
      TIMM(vit_so150m2_patch16_reg1_gap_256, VitSo150m2Patch16Reg1Gap256),
      TIMM(vit_so150m_patch16_reg4_map_256, VitSo150mPatch16Reg4Map256),
  };
  for (const auto& others : {timm_eva_models(), timm_relative_models()})
    all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace tessera::test
