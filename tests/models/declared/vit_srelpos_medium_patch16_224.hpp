// timm's vit_srelpos_medium_patch16_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit_relpos.hpp"

namespace tessera::models {

template <class V>
using VitSrelposMediumPatch16224Block = SharedRelativeBlock<V, 512>;

using VitSrelposMediumPatch16224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .class_token = false,
    .positions = Positions::none,
    .qkv_bias = false,
    .layer_scale = 1e-06,
    .pooling = Pooling::mean}, VitSrelposMediumPatch16224Block>;

}  // namespace tessera::models
