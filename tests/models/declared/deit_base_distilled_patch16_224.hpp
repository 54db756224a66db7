// timm's deit_base_distilled_patch16_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using DeitBaseDistilledPatch16224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .distilled = true}>;

}  // namespace tessera::models
