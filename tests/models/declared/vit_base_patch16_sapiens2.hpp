// timm's vit_base_patch16_sapiens2, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using VitBasePatch16Sapiens2Block = AttentionGammaBlock<V, Attention<V, SeparateQkv<V, Linear<V::D, V::A>>, Rotary<V, Rope{.temperature = 100, .pairs = RopePairs::halves, .places = RopePlaces::centres}>>>;

using VitBasePatch16Sapiens2 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .registers = 8,
    .positions = Positions::none,
    .norm = Normalization::rms,
    .qk_norm = true,
    .layer_scale = 1,
    .activation = Activation::swiglu}, VitBasePatch16Sapiens2Block>;

}  // namespace tessera::models
