// timm's vit_so400m_patch14_siglip_384, as its checkpoint has it: written by `tessera declare`.
// Images alone: texts, and zero-shot classification by them, are out of scope.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitSo400mPatch14Siglip384 = Vit<{
    .image = {28, 19},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .rest = {4, 3},
    .hidden = 89,
    .class_token = false,
    .pooling = Pooling::attention}>;

}  // namespace tessera::models
