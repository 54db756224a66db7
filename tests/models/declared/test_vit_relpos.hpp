// timm's test_vit_relpos, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit_relpos.hpp"

namespace tessera::models {

template <class V>
using TestVitRelposBlock = VitBlock<V, Attention<V, FusedQkv<V>, RelativeMlpOfBlock<V>>>;

struct TestVitRelpos : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .class_token = false,
    .positions = Positions::none,
    .qkv_bias = false,
    .layer_scale = 1e-06,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, TestVitRelposBlock> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0.5, .deviation = 0.5, .crop = 0.95}};
};

}  // namespace tessera::models
