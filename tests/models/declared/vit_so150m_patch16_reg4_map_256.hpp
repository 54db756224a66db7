// timm's vit_so150m_patch16_reg4_map_256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitSo150mPatch16Reg4Map256 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .hidden = 61,
    .class_token = false,
    .registers = 4,
    .pooling = Pooling::attention}>;

}  // namespace tessera::models
