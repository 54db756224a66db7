// timm's vit_so150m_patch16_reg4_gap_256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct VitSo150mPatch16Reg4Gap256 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .hidden = 61,
    .class_token = false,
    .registers = 4,
    .pooling = Pooling::mean}> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0.5, .deviation = 0.5, .crop = 0.95}};
};

}  // namespace tessera::models
