// timm's samvit_base_patch16, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/sam.hpp"

namespace tessera::models {

using SamvitBasePatch16 = SamEncoder<{
    .image = {24, 16},
    .patch = 4,
    .width = 8,
    .heads = 2,
    .depth = 4,
    .mlp = 2,
    .window = 3,
    .whole_every = 2,
    .neck = 4,
    .epsilon = 1e-05}>;

}  // namespace tessera::models
