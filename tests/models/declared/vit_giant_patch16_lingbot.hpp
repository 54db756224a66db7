// timm's vit_giant_patch16_lingbot, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using VitGiantPatch16LingbotBlock = GammaBlock<V, Attention<V, FusedQkv<V>, Rotary<V, Rope{.temperature = 100, .pairs = RopePairs::halves, .places = RopePlaces::centres}>>, SwiGlu<V>>;

struct VitGiantPatch16Lingbot : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .hidden = 64,
    .registers = 4,
    .positions = Positions::none,
    .qkv_bias = false,
    .layer_scale = 1e-05,
    .epsilon = 1e-05}, VitGiantPatch16LingbotBlock> {
  static constexpr Preprocessing input{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 1, .interpolation = Interpolation::bilinear, .fit = Fit::squash};
};

}  // namespace tessera::models
