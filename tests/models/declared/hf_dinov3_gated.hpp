// A Vision Transformer of Hugging Face's DINOv3 with a gate of transformers 5, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using HfDinov3GatedBlock = GammaBlock<V, Attention<V, QvBias<V>, Rotary<V, Rope{.temperature = 50, .pairs = RopePairs::halves, .places = RopePlaces::centres}>>, SwiGlu<V>>;

struct HfDinov3Gated : Vit<{
    .image = 8,
    .patch = 4,
    .width = 8,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 0,
    .registers = 3,
    .positions = Positions::none,
    .layer_scale = 1,
    .epsilon = 1e-05}, HfDinov3GatedBlock> {
  static constexpr Preprocessing input{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 0.875};
};

}  // namespace tessera::models
