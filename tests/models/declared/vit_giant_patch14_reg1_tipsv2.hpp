// timm's vit_giant_patch14_reg1_tipsv2, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct VitGiantPatch14Reg1Tipsv2 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .hidden = 64,
    .registers = 1,
    .patch_positions = true,
    .layer_scale = 1,
    .activation = Activation::swiglu}> {
  static constexpr Preprocessing input{.mean = 0, .deviation = 1, .crop = 1};
};

}  // namespace tessera::models
