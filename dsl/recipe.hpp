// The recipe: how a model is trained, declared beside it.
#pragma once

#include <cstdint>

#include "dsl/graph/graph.hpp"

namespace tessera {

/// What training makes small.
enum class Loss : std::uint8_t {
  cross_entropy,  ///< of the model's outputs as logits; mean over the batch. PyTorch: torch.nn.CrossEntropyLoss
};

/// Adam: Kingma & Ba 2015, algorithm 1. PyTorch equivalent: torch.optim.Adam.
struct Adam {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

/// A pixel, in [0, 1], enters the model as (pixel - mean) / deviation.
struct Normalisation {
  double mean = 0;
  double deviation = 1;
};

/// static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.005}, .batch = 128, .epochs = 5};
struct Recipe {
  Loss loss = Loss::cross_entropy;
  Adam optimizer{};
  std::int64_t batch = 128;
  std::int64_t epochs = 5;
  std::uint64_t seed = 1;
  Normalisation input{};

  graph::Recipe record() const {
    graph::Recipe r;
    r.batch = batch;
    r.epochs = epochs;
    r.seed = seed;
    r.learning_rate = optimizer.learning_rate;
    r.beta1 = optimizer.beta1;
    r.beta2 = optimizer.beta2;
    r.epsilon = optimizer.epsilon;
    r.input_mean = input.mean;
    r.input_deviation = input.deviation;
    return r;
  }
};

}  // namespace tessera
