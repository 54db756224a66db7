// timm's vit_base_patch16_radio_v3, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct VitBasePatch16RadioV3 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .registers = 7,
    .patch_positions = true,
    .layer_scale = 1e-05,
    .final_norm = FinalNorm::none}> {
  static constexpr Preprocessing input{.mean = {0.48145466, 0.4578275, 0.40821073}, .deviation = {0.26862954, 0.26130258, 0.27577711}, .crop = 1};
};

}  // namespace tessera::models
