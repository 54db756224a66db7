// vit_mnist: a small Vision Transformer for 28x28 digits whose heads each see their own slice of the token; MnistVit is
// it in any sizes.
//
// Patches are cut out of the image, mapped to tokens, given a class token and fixed positions, and passed through two
// blocks; the class token's row becomes class probabilities. The loss takes those probabilities as logits, so a softmax
// is applied twice: that is how the published notebook trains it, and its numbers are reproduced here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dsl/tessera.hpp"

namespace tessera::models {

/// What can differ from one to another.
struct MnistVitSpec {
  std::int64_t channels = 1;
  std::int64_t height = 28, width = 28;  ///< pixels
  std::int64_t patch = 4;                ///< pixels of a patch, down and across; has to divide both
  std::int64_t token = 8;                ///< width of a token
  std::int64_t heads = 2;                ///< has to divide token
  std::int64_t mlp = 4;                  ///< the MLP's hidden layer is this many times as wide as a token
  std::int64_t classes = 10;
  int blocks = 2;
};

/// Images [B, C, IH, IW] -> probabilities [B, CLASSES], trained as logits.
template <MnistVitSpec S>
struct MnistVit : Module {
  static constexpr auto B = axis<"B">;  // the batch, known when the program runs
  static constexpr auto C = axis<"C", S.channels>;
  static constexpr auto P = axis<"P", S.patch>;                     // a patch is P x P pixels
  static constexpr auto GH = axis<"GH", Constant<S.height>{} / P>;  // patches down
  static constexpr auto GW = axis<"GW", Constant<S.width>{} / P>;   // patches across
  static constexpr auto IH = axis<"IH", GH * P>;                    // image height
  static constexpr auto IW = axis<"IW", GW * P>;                    // image width
  static constexpr auto N = axis<"N", GH * GW>;                     // patches
  static constexpr auto H = axis<"H", S.heads>;                     // heads
  static constexpr auto K = axis<"K", Constant<S.token>{} / H>;     // width of a head
  static constexpr auto D = axis<"D", H * K>;                       // width of a token
  static constexpr auto M = axis<"M", Constant<S.mlp>{} * D>;       // width of the MLP's hidden layer
  static constexpr auto CLASSES = axis<"CLASSES", S.classes>;

  /// Each head attends within its own slice of the token; there is no output projection.
  struct SlicedAttention : Module {
    List<Linear<K, K>, H> q_mappings, k_mappings, v_mappings;
    TESSERA_MEMBERS(SlicedAttention, q_mappings, k_mappings, v_mappings)

    Tensor<B, N + 1_c, D> forward(Tensor<B, N + 1_c, D> x) const {
      auto heads = chunk<2>(x, H);
      for (std::size_t h = 0; h < heads.size(); ++h) {
        const auto q = q_mappings[h](heads[h]), k = k_mappings[h](heads[h]), v = v_mappings[h](heads[h]);
        const auto attention = softmax<2>(einsum<"b i k, b j k -> b i j">(q, k) / sqrt(K));
        heads[h] = einsum<"b i j, b j k -> b i k">(attention, v);
      }
      return concat<2>(heads, H);
    }
  };

  struct Block : Module {
    LayerNorm<D> norm1;
    SlicedAttention mhsa;
    LayerNorm<D> norm2;
    Sequential<Linear<D, M>, Gelu, Linear<M, D>> mlp;
    TESSERA_MEMBERS(Block, norm1, mhsa, norm2, mlp)

    Tensor<B, N + 1_c, D> forward(Tensor<B, N + 1_c, D> x) const {
      const auto y = x + mhsa(norm1(x));
      return y + mlp(norm2(y));
    }
  };

  Linear<C * P * P, D> linear_mapper;
  Parameter<1_c, D> class_token{uniform(0, 1)};
  Stack<Block, S.blocks> blocks;
  Sequential<Linear<D, CLASSES>, Softmax> mlp;
  TESSERA_MEMBERS(MnistVit, linear_mapper, class_token, blocks, mlp)

  static constexpr Recipe recipe{.loss = Loss::cross_entropy,
                                 .optimizer = {.learning_rate = 0.005},
                                 .batch = 128,
                                 .epochs = 5,
                                 .seed = 1,
                                 .input = {.mean = 0, .deviation = 1}};

  Tensor<B, CLASSES> forward(Tensor<B, C, IH, IW> images) const {
    const Tensor<B, N, C * P * P> patches =
        rearrange<"b c (gh p) (gw q) -> b (gh gw) (c p q)">(images, "p"_is(P), "q"_is(P));
    const auto token = repeat<"n d -> b n d">(class_token, "b"_is(B));
    const Tensor<B, N + 1_c, D> tokens = concat<1>(token, linear_mapper(patches)) + sinusoidal<N + 1_c, D>();
    return mlp(take<1>(blocks(tokens), 0_c));
  }
};

/// The notebook's.
namespace vit_mnist {
using VitMnist = MnistVit<MnistVitSpec{}>;
}

}  // namespace tessera::models
