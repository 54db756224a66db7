// timm's beit and vision_transformer_relpos.
#include "models/beit.hpp"
#include "models/vit_relpos.hpp"
#include "tests/models/timm_golden.hpp"

namespace {

using namespace tessera::models;
using tessera::test::reduced;
using tessera::test::small;

template <class V>
using SharedRelative384 = SharedRelativeBlock<V, 384>;

TIMM(beit_base_patch16_224, Vit<reduced(beit(768, 12, 12, 0.1)), BeitBlock>)
TIMM(test_vit_relpos, Vit<reduced({.mlp = 2,
                                   .class_token = false,
                                   .positions = Positions::none,
                                   .qkv_bias = false,
                                   .layer_scale = 1e-5,
                                   .final_norm = FinalNorm::after_pooling,
                                   .pooling = Pooling::mean}),
                          RelativeBlock>)
TIMM(vit_relpos_base_patch16_cls_224,
     Vit<reduced({.positions = Positions::none, .qkv_bias = false, .layer_scale = 1e-5}), RelativeBlock>)
TIMM(vit_relpos_base_patch16_plus_240,
     Vit<reduced({.class_token = false, .positions = Positions::none, .layer_scale = 1e-5, .pooling = Pooling::mean}),
         RelativeBlock>)
TIMM(vit_relpos_base_patch32_plus_rpn_256,
     Vit<reduced({.class_token = false, .positions = Positions::none, .norms = Norms::after, .pooling = Pooling::mean}),
         RelativeBlock>)
TIMM(vit_srelpos_small_patch16_224, Vit<reduced({.class_token = false,
                                                 .positions = Positions::none,
                                                 .qkv_bias = false,
                                                 .layer_scale = 1e-5,
                                                 .pooling = Pooling::mean}),
                                        SharedRelative384>)

TIMM(vit_relpos_base_patch16_clsgap_224, Vit<small({.positions = Positions::none,
                                                    .qkv_bias = false,
                                                    .layer_scale = 1e-5,
                                                    .final_norm = FinalNorm::after_pooling,
                                                    .pooling = Pooling::mean}),
                                             RelativeBlock>)
TIMM(vit_relpos_base_patch16_rpn_224, Vit<small({.class_token = false,
                                                 .positions = Positions::none,
                                                 .norms = Norms::after,
                                                 .qkv_bias = false,
                                                 .pooling = Pooling::mean}),
                                          RelativeBlock>)

}  // namespace
