// timm's vit_base_patch16_rope_mixed_ape_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

using VitBasePatch16RopeMixedApe224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .patch_positions = true,
    .layer_scale = 1e-05}, RopeMixedBlock>;

}  // namespace tessera::models
