// timm's vit_base_patch16_lingbot, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using VitBasePatch16LingbotBlock = GammaBlock<V, Attention<V, QvBias<V>, Rotary<V, Rope{.temperature = 100, .pairs = RopePairs::halves, .places = RopePlaces::centres}>>>;

struct VitBasePatch16Lingbot : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .registers = 4,
    .positions = Positions::none,
    .layer_scale = 1e-05,
    .epsilon = 1e-05}, VitBasePatch16LingbotBlock> {
  static constexpr Preprocessing input{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 1, .interpolation = Interpolation::bilinear, .fit = Fit::squash};
};

}  // namespace tessera::models
