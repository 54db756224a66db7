// timm's vit_giant_patch14_dinov2, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitGiantPatch14Dinov2 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .hidden = 64,
    .layer_scale = 1e-05,
    .activation = Activation::swiglu}>;

}  // namespace tessera::models
