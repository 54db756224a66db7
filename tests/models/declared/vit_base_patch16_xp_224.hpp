// timm's vit_base_patch16_xp_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit_parallel.hpp"

namespace tessera::models {

using VitBasePatch16Xp224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .stem = Stem::norm_of_all,
    .patch_positions = true,
    .norm = Normalization::rms,
    .qkv_bias = false,
    .qk_norm = true}, ParallelScalingBlock>;

}  // namespace tessera::models
