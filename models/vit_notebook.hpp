// vit_notebook: the first notebook's Vision Transformer. One block is applied several times, sharing its weights; every
// head maps whole tokens; the second layer norm is over tokens and channels jointly; the head ends in a tanh.
//
// Three slips of the notebook are mended, as its text intends: patches are cut out of the image (its plain reshape
// mixes pixels of different patches), the second layer norm is over [N+1, D] (it passes D as epsilon), and the heads
// are concatenated and mapped back to D (it stops before that).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dsl/tessera.hpp"

namespace tessera::models {

/// What can differ from one to another.
struct NotebookVitSpec {
  std::int64_t channels = 3;
  std::int64_t height = 224, width = 224;  ///< pixels
  std::int64_t patch = 16;                 ///< pixels of a patch, down and across; has to divide both
  std::int64_t token = 768;                ///< width of a token
  std::int64_t heads = 12;
  std::int64_t classes = 10;
  int blocks = 6;  ///< how often the one block is applied
};

/// Images [B, C, IH, IW] -> outputs [B, CLASSES] in (-1, 1), trained as logits.
template <NotebookVitSpec S>
struct NotebookVit : Module {
  static constexpr auto B = axis<"B">;  // the batch, known when the program runs
  static constexpr auto C = axis<"C", S.channels>;
  static constexpr auto P = axis<"P", S.patch>;                     // a patch is P x P pixels
  static constexpr auto GH = axis<"GH", Constant<S.height>{} / P>;  // patches down
  static constexpr auto GW = axis<"GW", Constant<S.width>{} / P>;   // patches across
  static constexpr auto IH = axis<"IH", GH * P>;                    // image height
  static constexpr auto IW = axis<"IW", GW * P>;                    // image width
  static constexpr auto N = axis<"N", GH * GW>;                     // patches
  static constexpr auto H = axis<"H", S.heads>;                     // heads
  static constexpr auto D = axis<"D", S.token>;                     // width of a token, and of each head
  static constexpr auto CLASSES = axis<"CLASSES", S.classes>;

  /// Scores are scaled by the root of D, which is each head's width.
  struct WideAttention : Module {
    List<Linear<D, D>, H> q_weights, k_weights, v_weights;
    Linear<H * D, D> linear;
    TESSERA_MEMBERS(WideAttention, q_weights, k_weights, v_weights, linear)

    Tensor<B, N + 1_c, D> forward(Tensor<B, N + 1_c, D> x) const {
      std::array<Tensor<B, N + 1_c, D>, S.heads> heads;
      for (std::size_t h = 0; h < heads.size(); ++h) {
        const auto q = q_weights[h](x), k = k_weights[h](x), v = v_weights[h](x);
        const auto attention = softmax<2>(einsum<"b i k, b j k -> b i j">(q, k) / sqrt(D));
        heads[h] = einsum<"b i j, b j k -> b i k">(attention, v);
      }
      return linear(concat<2>(heads, H));
    }
  };

  Linear<C * P * P, D> linear_patching;
  Parameter<1_c, D> class_embedding{uniform(0, 1)};
  Parameter<N + 1_c, D> positional_embedding{uniform(0, 1)};
  Repeat<S.blocks> blocks;
  Sequential<LayerNorm<D>, WideAttention> transformer_1;
  Sequential<LayerNorm<N + 1_c, D>, Linear<D, D>> transformer_2;
  Sequential<Linear<D, CLASSES>, Tanh> mlp_head;
  TESSERA_MEMBERS(NotebookVit, linear_patching, class_embedding, positional_embedding, blocks, transformer_1,
                  transformer_2, mlp_head)

  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}};

  Tensor<B, CLASSES> forward(Tensor<B, C, IH, IW> images) const {
    const Tensor<B, N, C * P * P> patches =
        rearrange<"b c (gh p) (gw q) -> b (gh gw) (c p q)">(images, "p"_is(P), "q"_is(P));
    const auto token = repeat<"n d -> b n d">(class_embedding, "b"_is(B));
    const Tensor<B, N + 1_c, D> tokens = concat<1>(token, linear_patching(patches)) + positional_embedding;
    const auto z = blocks(tokens, [this](const auto& x) { return transformer_2(transformer_1(x) + x); });
    return mlp_head(take<1>(z, 0_c));
  }
};

}  // namespace tessera::models
