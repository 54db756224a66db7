// timm's aimv2_1b_patch14_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using Aimv21bPatch14224Block = VitBlock<V, Attention<V, FusedQkv<V>, Unplaced<V>, LinearWithoutBias<V::A, V::D>>, SwiGlu<V, Identity, LinearWithoutBias<V::D, V::M>, LinearWithoutBias<V::M, V::D>>>;

struct Aimv21bPatch14224 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .hidden = 66,
    .class_token = false,
    .stem = Stem::normed,
    .norm = Normalization::rms,
    .qkv_bias = false,
    .pooling = Pooling::mean,
    .epsilon = 1e-05}, Aimv21bPatch14224Block> {
  static constexpr Preprocessing input{.mean = {0.48145466, 0.4578275, 0.40821073}, .deviation = {0.26862954, 0.26130258, 0.27577711}, .crop = 1};
};

}  // namespace tessera::models
