// timm's eva_giant_patch14_clip_224, as its checkpoint has it: written by `tessera declare`.
// Images alone: texts, and zero-shot classification by them, are out of scope.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using EvaGiantPatch14Clip224Block = VitBlock<V, Attention<V, QvBias<V>>>;

using EvaGiantPatch14Clip224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .hidden = 104}, EvaGiantPatch14Clip224Block>;

}  // namespace tessera::models
