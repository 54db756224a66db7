// timm's vit_large_patch14_clip_quickgelu_224, as its checkpoint has it: written by `tessera declare`.
// Images alone: texts, and zero-shot classification by them, are out of scope.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitLargePatch14ClipQuickgelu224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .stem = Stem::norm_of_all,
    .activation = Activation::quick_gelu,
    .epsilon = 1e-05}>;

}  // namespace tessera::models
