// One small model, trained by many recipes: those of tests/golden/make_recipes.py.
#pragma once

#include "dsl/tessera.hpp"

namespace tessera::test {

template <Recipe R>
struct Probe : Module {
  static constexpr auto B = axis<"B">;
  static constexpr auto C = axis<"C", 1>;
  static constexpr auto IH = axis<"IH", 2>;
  static constexpr auto IW = axis<"IW", 3>;
  static constexpr auto D = axis<"D", 5>;
  static constexpr auto CLASSES = axis<"CLASSES", 3>;

  Linear<C * IH * IW, D> hidden;
  LayerNorm<D> norm;
  Linear<D, CLASSES> head;
  TESSERA_MEMBERS(Probe, hidden, norm, head)

  static constexpr Recipe recipe = R;

  Tensor<B, CLASSES> forward(Tensor<B, C, IH, IW> images) const {
    return head(norm(tanh(hidden(rearrange<"b c h w -> b (c h w)">(images)))));
  }
};

namespace recipes {

inline constexpr Recipe adam{.optimizer = {.learning_rate = 0.02}};
inline constexpr Recipe adam_decay{.optimizer = {.learning_rate = 0.02, .weight_decay = 0.3}};
inline constexpr Recipe adamw{.optimizer = {.kind = Optimizer::adamw,
                                            .learning_rate = 0.02,
                                            .beta1 = 0.8,
                                            .beta2 = 0.95,
                                            .epsilon = 1e-6,
                                            .weight_decay = 0.3}};
inline constexpr Optimizer plain{.kind = Optimizer::sgd, .learning_rate = 0.1};
inline constexpr Recipe descent{.optimizer = plain};
inline constexpr Recipe momentum{
    .optimizer = {.kind = Optimizer::sgd, .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1}};
inline constexpr Recipe nesterov{
    .optimizer = {.kind = Optimizer::sgd, .learning_rate = 0.1, .momentum = 0.8, .nesterov = true}};
inline constexpr Recipe clipped{.optimizer = {.kind = Optimizer::sgd, .learning_rate = 0.5, .clip_norm = 0.2}};
inline constexpr Recipe averaged{.optimizer = {.kind = Optimizer::adamw, .learning_rate = 0.02, .weight_decay = 0.1},
                                 .average = 0.8};
inline constexpr Recipe smoothed{.optimizer = {.learning_rate = 0.02}, .labels = {.smoothing = 0.1}};
inline constexpr Recipe accumulated{.optimizer = plain, .accumulate = 3};
inline constexpr Recipe cosine{.optimizer = plain, .schedule = {.kind = Schedule::cosine, .floor = 0.01}};
inline constexpr Recipe warm_cosine{.optimizer = plain,
                                    .schedule = {.kind = Schedule::cosine, .warmup = 1.5, .floor = 0.01}};
inline constexpr Recipe steps{.optimizer = plain, .schedule = {.kind = Schedule::steps, .every = 2, .factor = 0.5}};

inline constexpr Recipe of_caller{.loss = Loss::of_caller, .optimizer = {.learning_rate = 0.02}};

}  // namespace recipes

/// The recipe's loss, declared as a loss of the model's own.
struct OwnCrossEntropy : Probe<recipes::adam> {
  Tensor<> loss(Tensor<B, CLASSES> outputs, Tensor<B> labels) const { return cross_entropy(outputs, labels); }
};

/// A regression: a loss of real targets.
struct SquaredError : Probe<recipes::adam> {
  Tensor<> loss(Tensor<B, CLASSES> outputs, Tensor<B, CLASSES> targets) const {
    const auto error = outputs - targets;
    return mean(error * error);
  }
};

/// A model whose loss only the caller knows.
using CallersLoss = Probe<recipes::of_caller>;

/// use(NAME) for each recipe.
#define TESSERA_RECIPES(use)                                                                               \
  use(adam) use(adam_decay) use(adamw) use(descent) use(momentum) use(nesterov) use(clipped) use(averaged) \
      use(smoothed) use(accumulated) use(cosine) use(warm_cosine) use(steps)

}  // namespace tessera::test
