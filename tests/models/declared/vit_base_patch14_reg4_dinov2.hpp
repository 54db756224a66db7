// timm's vit_base_patch14_reg4_dinov2, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct VitBasePatch14Reg4Dinov2 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .registers = 4,
    .patch_positions = true,
    .layer_scale = 1e-05}> {
  static constexpr Preprocessing input{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 1};
};

}  // namespace tessera::models
