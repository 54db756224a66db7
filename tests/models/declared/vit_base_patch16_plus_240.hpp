// timm's vit_base_patch16_plus_240, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitBasePatch16Plus240 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .layer_scale = 1e-05}>;

}  // namespace tessera::models
