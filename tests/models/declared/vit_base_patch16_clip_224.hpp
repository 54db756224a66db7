// timm's vit_base_patch16_clip_224, as its checkpoint has it: written by `tessera declare`.
// Images alone: texts, and zero-shot classification by them, are out of scope.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitBasePatch16Clip224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .stem = Stem::norm_of_all,
    .epsilon = 1e-05}>;

}  // namespace tessera::models
