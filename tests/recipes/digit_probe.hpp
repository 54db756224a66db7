// A small classifier of digits whose recipe asks for everything: what a run does must not depend on how often it was
// stopped.
#pragma once

#include "dsl/tessera.hpp"

namespace tessera::test {

struct DigitProbe : Module {
  static constexpr auto B = axis<"B">;
  static constexpr auto C = axis<"C", 1>;
  static constexpr auto IH = axis<"IH", 28>;
  static constexpr auto IW = axis<"IW", 28>;
  static constexpr auto D = axis<"D", 24>;
  static constexpr auto CLASSES = axis<"CLASSES", 10>;

  Linear<C * IH * IW, D> hidden;
  LayerNorm<D> norm;
  Linear<D, CLASSES> head;
  TESSERA_MEMBERS(DigitProbe, hidden, norm, head)

  static constexpr Recipe recipe{
      .optimizer = {.kind = Optimizer::adamw, .learning_rate = 0.003, .weight_decay = 0.05, .clip_norm = 1},
      .schedule = {.kind = Schedule::cosine, .warmup = 0.5, .floor = 1e-5},
      .batch = 50,
      .accumulate = 2,
      .epochs = 4,
      .labels = {.smoothing = 0.1, .mixup = 0.2, .cutmix = 1},
      .augment = {.crop = 2, .flip = true, .operations = 1, .magnitude = 5, .erase = 0.25},
      .average = 0.9,
      .patience = 10};

  Tensor<B, CLASSES> forward(Tensor<B, C, IH, IW> images) const {
    const auto x = rearrange<"b c h w -> b (c h w)">(images);
    return head(dropout<0.2>(norm(gelu(hidden(dropout<0.1>(x))))));
  }
};

}  // namespace tessera::test
