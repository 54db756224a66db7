// timm's test_vit4, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using TestVit4 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .mlp = 3,
    .classes = 10,
    .class_token = false,
    .registers = 1,
    .norm = Normalization::rms,
    .layer_scale = 1e-05,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}>;

}  // namespace tessera::models
