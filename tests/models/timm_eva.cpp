// timm's eva, and cait. Declared as `tessera declare` writes it (tests/declare).
#include "tests/models/declared/cait_m36_384.hpp"
#include "tests/models/declared/eva02_base_patch14_224.hpp"
#include "tests/models/declared/eva02_base_patch14_448.hpp"
#include "tests/models/declared/eva02_base_patch16_clip_224.hpp"
#include "tests/models/declared/eva02_enormous_patch14_clip_224.hpp"
#include "tests/models/declared/eva02_large_patch14_clip_224.hpp"
#include "tests/models/declared/eva02_small_patch14_336.hpp"
#include "tests/models/declared/eva02_tiny_patch14_224.hpp"
#include "tests/models/declared/eva_giant_patch14_224.hpp"
#include "tests/models/declared/eva_giant_patch14_clip_224.hpp"
#include "tests/models/declared/vit_7b_patch16_dinov3.hpp"
#include "tests/models/declared/vit_base_patch16_dinov3.hpp"
#include "tests/models/declared/vit_base_patch16_dinov3_qkvb.hpp"
#include "tests/models/declared/vit_base_patch16_lingbot.hpp"
#include "tests/models/declared/vit_base_patch16_rope_224.hpp"
#include "tests/models/declared/vit_base_patch16_rope_ape_224.hpp"
#include "tests/models/declared/vit_base_patch16_rope_mixed_224.hpp"
#include "tests/models/declared/vit_base_patch16_rope_mixed_ape_224.hpp"
#include "tests/models/declared/vit_base_patch16_rope_reg1_gap_256.hpp"
#include "tests/models/declared/vit_base_patch16_sapiens2.hpp"
#include "tests/models/declared/vit_betwixt_patch16_rope_reg4_gap_256.hpp"
#include "tests/models/declared/vit_giant_patch16_lingbot.hpp"
#include "tests/models/declared/vit_huge_plus_patch16_dinov3_qkvb.hpp"
#include "tests/models/declared/vit_large_patch16_sapiens2.hpp"
#include "tests/models/declared/vit_mediumd_patch16_rope_reg1_gap_256.hpp"
#include "tests/models/declared/vit_pe_core_base_patch16_224.hpp"
#include "tests/models/declared/vit_pe_core_gigantic_patch14_448.hpp"
#include "tests/models/declared/vit_pe_lang_gigantic_patch14_448.hpp"
#include "tests/models/declared/vit_pe_lang_large_patch14_448.hpp"
#include "tests/models/declared/vit_pe_spatial_base_patch16_512.hpp"
#include "tests/models/timm_models.hpp"

namespace tessera::test {

using namespace models;

std::vector<TimmModel> timm_eva_models() {
  return {
      TIMM(eva02_large_patch14_clip_224, Eva02LargePatch14Clip224),
      TIMM(eva02_base_patch14_224, Eva02BasePatch14224),
      TIMM(eva02_base_patch16_clip_224, Eva02BasePatch16Clip224),
      TIMM(eva02_tiny_patch14_224, Eva02TinyPatch14224),
      TIMM(eva_giant_patch14_224, EvaGiantPatch14224),
      TIMM(vit_base_patch16_dinov3_qkvb, VitBasePatch16Dinov3Qkvb),
      TIMM(vit_base_patch16_lingbot, VitBasePatch16Lingbot),
      TIMM(vit_base_patch16_rope_224, VitBasePatch16Rope224),
      TIMM(vit_base_patch16_rope_mixed_224, VitBasePatch16RopeMixed224),
      TIMM(vit_base_patch16_rope_reg1_gap_256, VitBasePatch16RopeReg1Gap256),
      TIMM(vit_betwixt_patch16_rope_reg4_gap_256, VitBetwixtPatch16RopeReg4Gap256),
      TIMM(vit_giant_patch16_lingbot, VitGiantPatch16Lingbot),
      TIMM(vit_pe_core_base_patch16_224, VitPeCoreBasePatch16224),
      TIMM(vit_pe_lang_gigantic_patch14_448, VitPeLangGiganticPatch14448),
      TIMM(vit_pe_spatial_base_patch16_512, VitPeSpatialBasePatch16512),
      TIMM(cait_m36_384, CaitM36384),
      TIMM(eva02_base_patch14_448, Eva02BasePatch14448),
      TIMM(eva02_enormous_patch14_clip_224, Eva02EnormousPatch14Clip224),
      TIMM(eva02_small_patch14_336, Eva02SmallPatch14336),
      TIMM(eva_giant_patch14_clip_224, EvaGiantPatch14Clip224),
      TIMM(vit_7b_patch16_dinov3, Vit7bPatch16Dinov3),
      TIMM(vit_base_patch16_dinov3, VitBasePatch16Dinov3),
      TIMM(vit_base_patch16_sapiens2, VitBasePatch16Sapiens2),
      TIMM(vit_base_patch16_rope_ape_224, VitBasePatch16RopeApe224),
      TIMM(vit_base_patch16_rope_mixed_ape_224, VitBasePatch16RopeMixedApe224),
      TIMM(vit_huge_plus_patch16_dinov3_qkvb, VitHugePlusPatch16Dinov3Qkvb),
      TIMM(vit_large_patch16_sapiens2, VitLargePatch16Sapiens2),
      TIMM(vit_mediumd_patch16_rope_reg1_gap_256, VitMediumdPatch16RopeReg1Gap256),
      TIMM(vit_pe_core_gigantic_patch14_448, VitPeCoreGiganticPatch14448),
      TIMM(vit_pe_lang_large_patch14_448, VitPeLangLargePatch14448),
  };
}

}  // namespace tessera::test
