// timm's vit_huge_patch14_gap_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct VitHugePatch14Gap224 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .class_token = false,
    .pooling = Pooling::mean}> {
  static constexpr Preprocessing input{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 0.9};
};

}  // namespace tessera::models
