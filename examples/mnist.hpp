// mnist: real MNIST digits above 99.2 % of the test images (docs/how-to/train-on-real-data.md has the run).
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct Mnist
    : Vit<{.image = 28, .patch = 4, .channels = 1, .width = 64, .heads = 4, .depth = 4, .mlp = 2, .classes = 10}> {
  static constexpr Recipe recipe{.optimizer = {.kind = Optimizer::adamw, .learning_rate = 0.002, .weight_decay = 0.05},
                                 .schedule = {.kind = Schedule::cosine, .warmup = 1},
                                 .batch = 128,
                                 .epochs = 20,
                                 .input = {.mean = 0.1307, .deviation = 0.3081},
                                 .augment = {.crop = 2, .operations = 1, .magnitude = 12},
                                 .average = 0.999};
};

}  // namespace tessera::models
