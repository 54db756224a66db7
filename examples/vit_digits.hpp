// vit_digits: the demo's model. A published architecture (models/vit.hpp) in other sizes, and how it is trained.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct VitDigits
    : Vit<{.image = 28, .patch = 4, .channels = 1, .width = 32, .heads = 4, .depth = 3, .mlp = 2, .classes = 10}> {
  static constexpr Recipe recipe{.optimizer = {.kind = Optimizer::adamw, .learning_rate = 0.003, .weight_decay = 0.01},
                                 .schedule = {.kind = Schedule::cosine, .warmup = 0.5},
                                 .batch = 128,
                                 .epochs = 5,
                                 .input = {.mean = 0.5, .deviation = 0.5}};
};

}  // namespace tessera::models
