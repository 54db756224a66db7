// A Vision Transformer of Hugging Face's BEiT of transformers 5, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using HfBeitModelBlock = GammaBlock<V, Attention<V, QvBias<V>>>;

struct HfBeitModel : Vit<{
    .image = 8,
    .patch = 4,
    .width = 8,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 0,
    .layer_scale = 0.1,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean,
    .epsilon = 1e-12}, HfBeitModelBlock> {
  static constexpr Preprocessing input{.mean = 0.5, .deviation = 0.5, .crop = 1};
};

}  // namespace tessera::models
