// timm's vit_base_patch16_siglip_224, as its checkpoint has it: written by `tessera declare`.
// Images alone: texts, and zero-shot classification by them, are out of scope.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitBasePatch16Siglip224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .class_token = false,
    .pooling = Pooling::attention}>;

}  // namespace tessera::models
