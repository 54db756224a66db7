// timm's vit_huge_patch16_radio_v4, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct VitHugePatch16RadioV4 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .registers = 9,
    .patch_positions = true,
    .final_norm = FinalNorm::none}> {
  static constexpr Preprocessing input{.mean = {0.48145466, 0.4578275, 0.40821073}, .deviation = {0.26862954, 0.26130258, 0.27577711}, .crop = 1};
};

}  // namespace tessera::models
