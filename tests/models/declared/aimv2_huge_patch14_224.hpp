// timm's aimv2_huge_patch14_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using Aimv2HugePatch14224Block = VitBlock<V, Attention<V, FusedQkv<V>, Unplaced<V>, LinearWithoutBias<V::A, V::D>>, SwiGlu<V, Identity, LinearWithoutBias<V::D, V::M>, LinearWithoutBias<V::M, V::D>>>;

using Aimv2HugePatch14224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .hidden = 64,
    .class_token = false,
    .stem = Stem::normed,
    .norm = Normalization::rms,
    .qkv_bias = false,
    .pooling = Pooling::mean,
    .epsilon = 1e-05}, Aimv2HugePatch14224Block>;

}  // namespace tessera::models
