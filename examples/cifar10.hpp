// cifar10: CIFAR-10's images (docs/how-to/train-on-real-data.md has a run on a sixth of them).
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct Cifar10 : Vit<{.image = 32, .patch = 4, .width = 128, .heads = 4, .depth = 4, .mlp = 2, .classes = 10}> {
  static constexpr Recipe recipe{.optimizer = {.kind = Optimizer::adamw, .learning_rate = 0.001, .weight_decay = 0.05},
                                 .schedule = {.kind = Schedule::cosine, .warmup = 3},
                                 .batch = 64,
                                 .epochs = 32,
                                 .input = {.mean = {0.4914, 0.4822, 0.4465}, .deviation = {0.2470, 0.2435, 0.2616}},
                                 .labels = {.smoothing = 0.1},
                                 .augment = {.crop = 4, .flip = true, .operations = 1, .magnitude = 9},
                                 .average = 0.999};
};

}  // namespace tessera::models
