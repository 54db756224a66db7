// timm's eva02_large_patch14_clip_224, as its checkpoint has it: written by `tessera declare`.
// Images alone: texts, and zero-shot classification by them, are out of scope.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using Eva02LargePatch14Clip224Block = VitBlock<V, Attention<V, SeparateQkv<V>, Rotary<V, Rope{.rows = 16, .columns = 16}>, NormedProjection<V>>, SwiGlu<V, typename V::template Norm<V::M>>>;

using Eva02LargePatch14Clip224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .hidden = 64}, Eva02LargePatch14Clip224Block>;

}  // namespace tessera::models
