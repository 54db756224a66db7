// timm's vision_transformer and deit.
#include "models/vit_diff.hpp"
#include "models/vit_parallel.hpp"
#include "tests/models/timm_golden.hpp"

namespace {

using namespace tessera::models;
using tessera::Identity;
using tessera::LinearWithoutBias;
using tessera::test::reduced;
using tessera::test::small;

/// AIMv2: no biases.
template <class V>
using Aimv2Block = VitBlock<V, Attention<V, FusedQkv<V>, Unplaced<V>, LinearWithoutBias<V::A, V::D>>,
                            SwiGlu<V, Identity, LinearWithoutBias<V::D, V::M>, LinearWithoutBias<V::M, V::D>>>;

/// BEiT-3: a norm within attention and one within the MLP.
template <class V>
using Beit3Block =
    VitBlock<V, Attention<V, FusedQkv<V>, Unplaced<V>, NormedProjection<V>>, Mlp<V, typename V::template Norm<V::M>>>;
template <class V>
using TwoByTwo = ParallelThingsBlock<V>;

TIMM(aimv2_1b_patch14_224, Vit<reduced({.classes = 0,
                                        .hidden = 66,
                                        .class_token = false,
                                        .stem = Stem::normed,
                                        .norm = Normalization::rms,
                                        .qkv_bias = false,
                                        .pooling = Pooling::mean,
                                        .epsilon = 1e-5}),
                               Aimv2Block>)
TIMM(deit3_base_patch16_224, Vit<reduced({.patch_positions = true, .layer_scale = 1e-6})>)
TIMM(eva_large_patch14_196, Vit<reduced({.final_norm = FinalNorm::after_pooling, .pooling = Pooling::mean})>)
TIMM(test_vit, Vit<reduced({.mlp = 3})>)
TIMM(test_vit3,
     Vit<reduced(
         {.mlp = 2, .class_token = false, .registers = 1, .layer_scale = 1e-5, .pooling = Pooling::attention_to_all})>)
TIMM(vit_base_patch14_dinov2, Vit<reduced({.classes = 0, .layer_scale = 1e-5})>)
TIMM(vit_base_patch14_reg4_dinov2,
     Vit<reduced({.classes = 0, .registers = 4, .patch_positions = true, .layer_scale = 1e-5})>)
TIMM(vit_base_patch16_224_miil, Vit<reduced({.classes = 11221, .qkv_bias = false})>)
TIMM(vit_base_patch16_clip_quickgelu_224,
     Vit<reduced({.classes = 512, .stem = Stem::norm_of_all, .activation = Activation::quick_gelu, .epsilon = 1e-5})>)
TIMM(vit_base_patch16_radio_v3,
     Vit<reduced(
         {.classes = 0, .registers = 7, .patch_positions = true, .layer_scale = 1e-5, .final_norm = FinalNorm::none})>)
TIMM(vit_base_patch16_siglip_224, Vit<reduced({.classes = 0, .class_token = false, .pooling = Pooling::attention})>)
TIMM(vit_base_patch32_siglip_256,
     Vit<reduced(
         {.classes = 0, .class_token = false, .activation = Activation::gelu_tanh, .pooling = Pooling::attention})>)
TIMM(vit_dwee_patch16_reg1_gap_256, Vit<reduced({.mlp = 5,
                                                 .class_token = false,
                                                 .registers = 1,
                                                 .patch_positions = true,
                                                 .layer_scale = 1e-5,
                                                 .final_norm = FinalNorm::after_pooling,
                                                 .pooling = Pooling::mean}),
                                        DifferentialBlock>)
TIMM(vit_giant_patch14_reg1_tipsv2, Vit<reduced({.classes = 0,
                                                 .hidden = 64,
                                                 .registers = 1,
                                                 .patch_positions = true,
                                                 .layer_scale = 1,
                                                 .activation = Activation::swiglu})>)
TIMM(vit_huge_patch14_gap_224, Vit<reduced({.classes = 0, .class_token = false, .pooling = Pooling::mean})>)
TIMM(vit_huge_patch16_radio_v4,
     Vit<reduced({.classes = 0, .registers = 9, .patch_positions = true, .final_norm = FinalNorm::none})>)
TIMM(vit_intern300m_patch14_448, Vit<reduced({.classes = 0, .layer_scale = 0.1, .final_norm = FinalNorm::none})>)
TIMM(vit_medium_patch16_gap_240,
     Vit<reduced(
         {.classes = 11821, .class_token = false, .qkv_bias = false, .layer_scale = 1e-6, .pooling = Pooling::mean})>)
TIMM(vit_so150m_patch16_reg4_gap_256,
     Vit<reduced({.hidden = 61, .class_token = false, .registers = 4, .pooling = Pooling::mean})>)

TIMM(beit3_base_patch16_224,
     Vit<small({.final_norm = FinalNorm::after_pooling, .pooling = Pooling::mean, .epsilon = 1e-5}), Beit3Block>)
TIMM(deit_base_distilled_patch16_224, Vit<small({.distilled = true})>)
TIMM(flexivit_base, Vit<small({.patch_positions = true})>)
TIMM(test_vit2, Vit<small({.mlp = 3,
                           .class_token = false,
                           .registers = 1,
                           .layer_scale = 1e-5,
                           .final_norm = FinalNorm::after_pooling,
                           .pooling = Pooling::mean})>)
TIMM(test_vit4, Vit<small({.mlp = 3,
                           .class_token = false,
                           .registers = 1,
                           .norm = Normalization::rms,
                           .layer_scale = 1e-5,
                           .final_norm = FinalNorm::after_pooling,
                           .pooling = Pooling::mean})>)
TIMM(vit_base_patch14_reg1_tipsv2,
     Vit<small({.classes = 0, .registers = 1, .patch_positions = true, .layer_scale = 1})>)
TIMM(vit_base_patch16_18x2_224, Vit<small({.layer_scale = 1e-5}), TwoByTwo>)
TIMM(vit_base_patch16_clip_224, Vit<small({.stem = Stem::norm_of_all, .epsilon = 1e-5})>)
TIMM(vit_base_patch16_gap_224, Vit<small({.class_token = false, .pooling = Pooling::mean})>)
TIMM(vit_base_patch16_plus_240, Vit<small({.layer_scale = 1e-5})>)
TIMM(vit_base_patch16_reg4_gap_256, Vit<small({.class_token = false,
                                               .registers = 4,
                                               .patch_positions = true,
                                               .final_norm = FinalNorm::after_pooling,
                                               .pooling = Pooling::mean})>)
TIMM(vit_base_patch16_rpn_224, Vit<small({.class_token = false,
                                          .norms = Norms::after,
                                          .qkv_bias = false,
                                          .final_norm = FinalNorm::after_pooling,
                                          .pooling = Pooling::mean})>)
TIMM(vit_base_patch16_xp_224, Vit<small({.stem = Stem::norm_of_all,
                                         .patch_positions = true,
                                         .norm = Normalization::rms,
                                         .qkv_bias = false,
                                         .qk_norm = true}),
                                  ParallelScalingBlock>)
TIMM(vit_base_patch32_siglip_gap_256,
     Vit<small({.classes = 0, .class_token = false, .activation = Activation::gelu_tanh, .pooling = Pooling::mean})>)
TIMM(vit_betwixt_patch16_reg1_gap_256, Vit<small({.class_token = false,
                                                  .registers = 1,
                                                  .patch_positions = true,
                                                  .layer_scale = 1e-5,
                                                  .final_norm = FinalNorm::after_pooling,
                                                  .pooling = Pooling::mean})>)
TIMM(vit_betwixt_patch16_reg4_gap_256, Vit<small({.class_token = false,
                                                  .registers = 4,
                                                  .patch_positions = true,
                                                  .layer_scale = 1e-5,
                                                  .final_norm = FinalNorm::after_pooling,
                                                  .pooling = Pooling::mean})>)
TIMM(vit_dpwee_patch16_reg1_gap_256, Vit<small({.mlp = 5,
                                                .class_token = false,
                                                .registers = 1,
                                                .patch_positions = true,
                                                .layer_scale = 1e-5,
                                                .final_norm = FinalNorm::after_pooling,
                                                .pooling = Pooling::mean}),
                                         DifferentialParallelBlock>)
TIMM(vit_giant_patch14_dinov2,
     Vit<small({.classes = 0, .hidden = 64, .layer_scale = 1e-5, .activation = Activation::swiglu})>)
TIMM(vit_giant_patch14_reg4_dinov2, Vit<small({.classes = 0,
                                               .hidden = 64,
                                               .registers = 4,
                                               .patch_positions = true,
                                               .layer_scale = 1e-5,
                                               .activation = Activation::swiglu})>)
TIMM(vit_giant_patch16_radio_v3,
     Vit<small({.classes = 0, .registers = 7, .patch_positions = true, .final_norm = FinalNorm::none})>)
TIMM(vit_huge_patch14_224, Vit<small({.classes = 0})>)
TIMM(vit_pwee_patch16_reg1_gap_256, Vit<small({.mlp = 5,
                                               .class_token = false,
                                               .registers = 1,
                                               .patch_positions = true,
                                               .layer_scale = 1e-5,
                                               .final_norm = FinalNorm::after_pooling,
                                               .pooling = Pooling::mean}),
                                        ParallelScalingBlock>)
TIMM(vit_so150m2_patch16_reg1_gap_256, Vit<small({.hidden = 62,
                                                  .class_token = false,
                                                  .registers = 1,
                                                  .qkv_bias = false,
                                                  .layer_scale = 1e-5,
                                                  .final_norm = FinalNorm::after_pooling,
                                                  .pooling = Pooling::mean})>)
TIMM(vit_so150m_patch16_reg4_map_256,
     Vit<small({.hidden = 61, .class_token = false, .registers = 4, .pooling = Pooling::attention})>)

}  // namespace
