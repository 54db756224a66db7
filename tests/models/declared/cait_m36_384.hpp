// timm's cait_m36_384, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/cait.hpp"

namespace tessera::models {

using CaitM36384 = Cait<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .mlp = 1,
    .classes = 10,
    .class_token = false,
    .layer_scale = 1e-06}>;

}  // namespace tessera::models
