// timm's vit_7b_patch16_dinov3, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using Vit7bPatch16Dinov3Block = GammaBlock<V, Attention<V, FusedQkv<V>, Rotary<V, Rope{.temperature = 100, .pairs = RopePairs::halves, .places = RopePlaces::centres}>>, SwiGlu<V>>;

using Vit7bPatch16Dinov3 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .hidden = 64,
    .registers = 4,
    .positions = Positions::none,
    .qkv_bias = false,
    .layer_scale = 1e-05,
    .pooling = Pooling::mean,
    .epsilon = 1e-05}, Vit7bPatch16Dinov3Block>;

}  // namespace tessera::models
