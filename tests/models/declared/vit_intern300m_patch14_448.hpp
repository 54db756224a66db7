// timm's vit_intern300m_patch14_448, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct VitIntern300mPatch14448 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .layer_scale = 0.1,
    .final_norm = FinalNorm::none}> {
  static constexpr Preprocessing input{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 1};
};

}  // namespace tessera::models
