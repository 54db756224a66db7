// timm's eva, and cait.
#include "models/cait.hpp"
#include "models/eva.hpp"
#include "tests/models/timm_golden.hpp"

namespace {

using namespace tessera::models;
using tessera::test::reduced;
using tessera::test::small;

template <class V>
using PerceptionCore = PerceptionBlock<V, 14, 1>;
template <class V>
using PerceptionSpatial = PerceptionBlock<V, 32, 1>;
template <class V>
using PerceptionLanguage = PerceptionLanguageBlock<V, 0>;
template <class V>
using LingbotGiant = Dinov3BlockWith<V, FusedQkv<V>, SwiGlu<V>>;

template <class V>
using Dinov3Unbiased = Dinov3BlockWith<V>;
template <class V>
using Dinov3HugePlus = Dinov3BlockWith<V, QvBias<V>, SwiGlu<V>>;
template <class V>
using RopeUnbiased = GammaBlock<V, Attention<V, FusedQkv<V>, Rotary<V, eva02_rope>>>;
template <class V>
using PerceptionGigantic = PerceptionBlock<V, 32, 0>;
template <class V>
using PerceptionLanguageLarge = PerceptionLanguageBlock<V, 1>;

constexpr auto fc_norm = FinalNorm::after_pooling;
constexpr auto no_positions = Positions::none;

TIMM(eva02_base_patch14_224,
     Vit<reduced({.classes = 0, .hidden = 64, .final_norm = fc_norm, .pooling = Pooling::mean}), Eva02Block>)
TIMM(eva02_base_patch16_clip_224, Vit<reduced({.classes = 512, .hidden = 64}), Eva02ClipBlock>)
TIMM(eva02_tiny_patch14_224, Vit<reduced({.classes = 0,
                                          .hidden = 64,
                                          .activation = Activation::swiglu,
                                          .final_norm = fc_norm,
                                          .pooling = Pooling::mean}),
                                 Eva02SmallBlock>)
TIMM(eva_giant_patch14_224, Vit<reduced({.hidden = 104, .final_norm = fc_norm, .pooling = Pooling::mean}), EvaBlock>)
TIMM(vit_base_patch16_dinov3_qkvb, Vit<reduced({.classes = 0,
                                                .registers = 4,
                                                .positions = no_positions,
                                                .layer_scale = 1e-5,
                                                .pooling = Pooling::mean,
                                                .epsilon = 1e-5}),
                                       Dinov3Block>)
TIMM(vit_base_patch16_lingbot,
     Vit<reduced({.classes = 0, .registers = 4, .positions = no_positions, .layer_scale = 1e-5, .epsilon = 1e-5}),
         Dinov3Block>)
TIMM(vit_base_patch16_rope_224, Vit<reduced({.positions = no_positions, .layer_scale = 1e-5}), RopeVitBlock>)
TIMM(vit_base_patch16_rope_mixed_224, Vit<reduced({.positions = no_positions, .layer_scale = 1e-5}), RopeMixedBlock>)
TIMM(vit_base_patch16_rope_reg1_gap_256, Vit<reduced({.class_token = false,
                                                      .registers = 1,
                                                      .positions = no_positions,
                                                      .layer_scale = 1e-5,
                                                      .final_norm = fc_norm,
                                                      .pooling = Pooling::mean}),
                                             RopeRegisterBlock>)
TIMM(vit_betwixt_patch16_rope_reg4_gap_256, Vit<reduced({.class_token = false,
                                                         .registers = 4,
                                                         .positions = no_positions,
                                                         .layer_scale = 1e-5,
                                                         .final_norm = fc_norm,
                                                         .pooling = Pooling::mean}),
                                                RopeRegisterBlock>)
TIMM(vit_giant_patch16_lingbot, Vit<reduced({.classes = 0,
                                             .hidden = 64,
                                             .registers = 4,
                                             .positions = no_positions,
                                             .qkv_bias = false,
                                             .layer_scale = 1e-5,
                                             .epsilon = 1e-5}),
                                    LingbotGiant>)
TIMM(vit_pe_core_base_patch16_224, Vit<reduced({.classes = 1024,
                                                .stem = Stem::norm_of_all,
                                                .pooling = Pooling::attention_to_all,
                                                .pooling_heads = 8,
                                                .epsilon = 1e-5}),
                                       PerceptionCore>)
TIMM(vit_pe_lang_gigantic_patch14_448, Vit<reduced({.classes = 0,
                                                    .hidden = 140,
                                                    .class_token = false,
                                                    .stem = Stem::norm_of_all,
                                                    .layer_scale = 0.1,
                                                    .final_norm = FinalNorm::none,
                                                    .pooling = Pooling::mean,
                                                    .epsilon = 1e-5}),
                                           PerceptionLanguage>)
TIMM(vit_pe_spatial_base_patch16_512, Vit<reduced({.classes = 0,
                                                   .stem = Stem::norm_of_all,
                                                   .final_norm = FinalNorm::none,
                                                   .pooling = Pooling::mean,
                                                   .epsilon = 1e-5}),
                                          PerceptionSpatial>)

TIMM(cait_m36_384, Cait<small({.class_token = false, .layer_scale = 1e-6})>)
TIMM(eva02_base_patch14_448, Vit<small({.hidden = 64, .final_norm = fc_norm, .pooling = Pooling::mean}), Eva02Block>)
TIMM(eva02_enormous_patch14_clip_224, Vit<small({.hidden = 205, .norms = Norms::after}), EvaBlock>)
TIMM(eva02_small_patch14_336,
     Vit<small({.hidden = 64, .activation = Activation::swiglu, .final_norm = fc_norm, .pooling = Pooling::mean}),
         Eva02SmallBlock>)
TIMM(eva_giant_patch14_clip_224, Vit<small({.hidden = 104}), EvaBlock>)
TIMM(vit_7b_patch16_dinov3, Vit<small({.classes = 0,
                                       .hidden = 64,
                                       .registers = 4,
                                       .positions = no_positions,
                                       .qkv_bias = false,
                                       .layer_scale = 1e-5,
                                       .pooling = Pooling::mean,
                                       .epsilon = 1e-5}),
                                LingbotGiant>)
TIMM(vit_base_patch16_dinov3, Vit<small({.classes = 0,
                                         .registers = 4,
                                         .positions = no_positions,
                                         .qkv_bias = false,
                                         .layer_scale = 1e-5,
                                         .pooling = Pooling::mean,
                                         .epsilon = 1e-5}),
                                  Dinov3Unbiased>)
TIMM(vit_base_patch16_rope_ape_224, Vit<small({.patch_positions = true, .layer_scale = 1e-5}), RopeVitBlock>)
TIMM(vit_base_patch16_rope_mixed_ape_224, Vit<small({.patch_positions = true, .layer_scale = 1e-5}), RopeMixedBlock>)
TIMM(vit_huge_plus_patch16_dinov3_qkvb, Vit<small({.classes = 0,
                                                   .registers = 4,
                                                   .positions = no_positions,
                                                   .layer_scale = 1e-5,
                                                   .pooling = Pooling::mean,
                                                   .epsilon = 1e-5}),
                                            Dinov3HugePlus>)
TIMM(vit_mediumd_patch16_rope_reg1_gap_256, Vit<small({.class_token = false,
                                                       .registers = 1,
                                                       .positions = no_positions,
                                                       .qkv_bias = false,
                                                       .layer_scale = 1e-5,
                                                       .final_norm = fc_norm,
                                                       .pooling = Pooling::mean}),
                                                RopeUnbiased>)
TIMM(vit_pe_core_gigantic_patch14_448, Vit<small({.hidden = 140,
                                                  .class_token = false,
                                                  .stem = Stem::norm_of_all,
                                                  .pooling = Pooling::attention_to_all,
                                                  .pooling_heads = 8,
                                                  .pooling_hidden = 96,
                                                  .epsilon = 1e-5}),
                                           PerceptionGigantic>)
TIMM(vit_pe_lang_large_patch14_448, Vit<small({.classes = 0,
                                               .stem = Stem::norm_of_all,
                                               .layer_scale = 0.1,
                                               .final_norm = FinalNorm::none,
                                               .pooling = Pooling::mean,
                                               .epsilon = 1e-5}),
                                        PerceptionLanguageLarge>)

}  // namespace
