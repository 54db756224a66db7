// kernels: single kernels, declared as models, at the sizes they have in a ViT of 196 patches and a class token.
//
// A model learns something and ends in one row of outputs: so what has no weight adds a learned bias, and tokens are
// laid end to end, which moves nothing. The sizes of the products are those of ViT-Tiny and ViT-B.
#pragma once

#include <cstdint>

#include "dsl/tessera.hpp"

namespace tessera::bench {

inline constexpr auto B = axis<"B">;       // images
inline constexpr auto T = axis<"T", 197>;  // tokens of an image

/// x W^T + b of every token: [B, 197, In] -> [B, 197 * Out].
template <std::int64_t Inputs, std::int64_t Outputs>
struct Gemm : Module {
  static constexpr auto In = axis<"In", Inputs>;
  static constexpr auto Out = axis<"Out", Outputs>;

  Linear<In, Out> linear;
  TESSERA_MEMBERS(Gemm, linear)
  static constexpr Recipe recipe{};

  Tensor<B, T * Out> forward(Tensor<B, T, In> x) const { return reshape<B, T * Out>(linear(x)); }
};

/// 3x3 over a feature map of `Channels`, as many as it gives: [B, C, Size, Size] -> [B, C * Size * Size].
template <std::int64_t Channels, std::int64_t Size>
struct Conv : Module {
  static constexpr auto C = axis<"C", Channels>;
  static constexpr auto H = axis<"H", Size>;
  static constexpr auto W = axis<"W", Size>;

  Conv2d<C, C, 3_c, 3_c, Convolution{.padding = 1}> conv;
  TESSERA_MEMBERS(Conv, conv)
  static constexpr Recipe recipe{};

  using Maps = Tensor<B, C * H * W>;

  Maps forward(Tensor<B, C, H, W> x) const { return reshape<B, C * H * W>(conv(x)); }
  /// Whose gradient with respect to the outputs are the targets.
  Tensor<> loss(Maps outputs, Maps targets) const { return sum<0>(sum<1>(outputs * targets)); }
};

/// Two of them with SiLU, and classes of the map's means, to be trained: [B, C, Size, Size] -> [B, 10].
template <std::int64_t Channels, std::int64_t Size>
struct TwoConvs : Module {
  static constexpr auto C = axis<"C", Channels>;
  static constexpr auto H = axis<"H", Size>;
  static constexpr auto W = axis<"W", Size>;
  static constexpr auto CLASSES = axis<"CLASSES", 10>;

  Conv2d<C, C, 3_c, 3_c, Convolution{.padding = 1}> first, second;
  Linear<C, CLASSES> head;
  TESSERA_MEMBERS(TwoConvs, first, second, head)
  static constexpr Recipe recipe{.loss = Loss::cross_entropy};

  Tensor<B, CLASSES> forward(Tensor<B, C, H, W> x) const {
    return head(mean<-1>(mean<-1>(silu(second(silu(first(x)))))));
  }
};

/// Heads of 64 channels, from queries, keys and values as one product writes them: [B, N, 3 * D] -> [B, N * D].
template <std::int64_t Heads, std::int64_t Tokens>
struct Attention : Module {
  static constexpr auto N = axis<"N", Tokens>;
  static constexpr auto H = axis<"H", Heads>;
  static constexpr auto K = axis<"K", 64>;
  static constexpr auto D = axis<"D", H * K>;

  Parameter<K> bias;
  TESSERA_MEMBERS(Attention, bias)
  static constexpr Recipe recipe{};

  Tensor<B, N * D> forward(Tensor<B, N, 3_c * D> qkv) const {
    const auto [q, k, v] = unstack<0>(rearrange<"b n (s h k) -> s b h n k">(qkv, "h"_is(H), "k"_is(K)), 3_c);
    const auto probabilities = softmax<-1>(einsum<"b h i k, b h j k -> b h i j">(q, k) / sqrt(K));
    const auto mixed = einsum<"b h i j, b h j k -> b h i k">(probabilities, v) + bias;
    return reshape<B, N * D>(rearrange<"b h n k -> b n (h k)">(mixed));
  }
};

inline constexpr auto D = axis<"D", 192>;  // width of a token

struct Norm : Module {
  LayerNorm<D> norm{1e-6};
  TESSERA_MEMBERS(Norm, norm)
  static constexpr Recipe recipe{};

  Tensor<B, T * D> forward(Tensor<B, T, D> x) const { return reshape<B, T * D>(norm(x)); }
};

struct Gelu : Module {
  Parameter<D> bias;
  TESSERA_MEMBERS(Gelu, bias)
  static constexpr Recipe recipe{};

  Tensor<B, T * D> forward(Tensor<B, T, D> x) const { return reshape<B, T * D>(gelu(x + bias)); }
};

struct Exp : Module {
  Parameter<D> bias;
  TESSERA_MEMBERS(Exp, bias)
  static constexpr Recipe recipe{};

  Tensor<B, T * D> forward(Tensor<B, T, D> x) const { return reshape<B, T * D>(exp(x + bias)); }
};

/// Of one head's scores: [B, 197, Keys] -> [B, 197 * Keys]. Rows of 208 begin with lines of memory, as those of 197 do
/// in the models, whose scratch memory has room between them.
template <std::int64_t Keys>
struct Probabilities : Module {
  static constexpr auto J = axis<"J", Keys>;  // what a token attends to

  Parameter<J> bias;
  TESSERA_MEMBERS(Probabilities, bias)
  static constexpr Recipe recipe{};

  Tensor<B, T * J> forward(Tensor<B, T, J> scores) const { return reshape<B, T * J>(softmax<-1>(scores + bias)); }
};

}  // namespace tessera::bench
