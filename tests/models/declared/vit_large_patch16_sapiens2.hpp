// timm's vit_large_patch16_sapiens2, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V, class Qkv>
using VitLargePatch16Sapiens2Layer = AttentionGammaBlock<V, Attention<V, Qkv, Rotary<V, Rope{.temperature = 100, .pairs = RopePairs::halves, .places = RopePlaces::centres}>>>;

template <class V>
using VitLargePatch16Sapiens2Blocks = Stacks<Stack<VitLargePatch16Sapiens2Layer<V, SeparateQkv<V, Linear<V::D, V::A>>>, 1>,
    Stack<VitLargePatch16Sapiens2Layer<V, GroupedQkv<V, 1>>, 2>,
    Stack<VitLargePatch16Sapiens2Layer<V, SeparateQkv<V, Linear<V::D, V::A>>>, 1>>;

using VitLargePatch16Sapiens2 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 4,
    .mlp = 1,
    .classes = 0,
    .registers = 8,
    .positions = Positions::none,
    .norm = Normalization::rms,
    .qk_norm = true,
    .layer_scale = 1,
    .activation = Activation::swiglu}, VitLargePatch16Sapiens2Blocks>;

}  // namespace tessera::models
