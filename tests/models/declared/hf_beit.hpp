// A Vision Transformer of Hugging Face's BEiT, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/beit.hpp"

namespace tessera::models {

template <class V>
using HfBeitBlock = GammaBlock<V, Attention<V, QvBias<V>, RelativeTable<V>>>;

struct HfBeit : Vit<{
    .image = 8,
    .patch = 4,
    .width = 8,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 10,
    .positions = Positions::none,
    .layer_scale = 0.1,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean,
    .epsilon = 1e-12}, HfBeitBlock> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0.5, .deviation = 0.5, .crop = 1}};
};

}  // namespace tessera::models
