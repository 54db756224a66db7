// timm's eva02_small_patch14_336, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using Eva02SmallPatch14336Block = VitBlock<V, Attention<V, QvBias<V>, Rotary<V, Rope{.rows = 16, .columns = 16}>>>;

using Eva02SmallPatch14336 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .hidden = 64,
    .activation = Activation::swiglu,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, Eva02SmallPatch14336Block>;

}  // namespace tessera::models
