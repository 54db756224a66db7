// What ONNX's tests do not have: rows of tests/golden/operators.safetensors, in its order of inputs and outputs.
#include <tuple>

#include "tests/onnx/row.hpp"

namespace tessera::test {

namespace {

inline constexpr auto H = axis<"H", 2>;
inline constexpr auto T = axis<"T", 5>;
inline constexpr auto Q = axis<"Q", 5>;  // queries
inline constexpr auto S = axis<"S", Q>;  // and their keys
inline constexpr auto I = axis<"I", 4>;  // other queries
inline constexpr auto J = axis<"J", 7>;  // keys, and classes
inline constexpr auto D = axis<"D", 6>;
inline constexpr auto CLS = axis<"CLS", 1>;  // the parts of a sum axis
inline constexpr auto R = axis<"R", 3>;
inline constexpr auto N = axis<"N", 4>;
inline constexpr auto ALL = axis<"ALL", CLS + R + N>;

}  // namespace

std::vector<Row> pytorch_rows() {
  return {
      TESSERA_ROW(conv2d_of_1, [](Tensor<B, 3_c, 5_c, 4_c> x, Conv2d<3_c, 4_c, 1_c, 1_c> f) { return f(x); }),
      TESSERA_ROW(conv2d_of_3_padded, [](Tensor<B, 3_c, 6_c, 5_c> x,
                                         Conv2d<3_c, 4_c, 3_c, 3_c, Convolution{.padding = 1}> f) { return f(x); }),
      TESSERA_ROW(conv2d_of_3_with_stride_2,
                  [](Tensor<B, 3_c, 6_c, 5_c> x, Conv2d<3_c, 4_c, 3_c, 3_c, Convolution{.stride = 2, .padding = 1}> f) {
                    return f(x);
                  }),
      TESSERA_ROW(conv2d_of_7_with_stride_4,
                  [](Tensor<B, 3_c, 16_c, 13_c> x,
                     Conv2d<3_c, 4_c, 7_c, 7_c, Convolution{.stride = 4, .padding = 3}> f) { return f(x); }),
      TESSERA_ROW(
          conv2d_uneven,
          [](Tensor<B, 3_c, 9_c, 8_c> x,
             Conv2d<3_c, 4_c, 3_c, 2_c, Convolution{.stride = {2, 3}, .padding = {2, 1}, .dilation = {1, 2}}> f) {
            return f(x);
          }),
      TESSERA_ROW(patch_convolution,
                  [](Tensor<B, 3_c, 8_c, 6_c> x, PatchConvolution<3_c, 5_c, 2_c> f) { return f(x); }),
      TESSERA_ROW(conv_transpose2d, [](Tensor<B, 3_c, 4_c, 2_c> x, ConvTranspose2d<3_c, 5_c, 2_c> f) { return f(x); }),
      TESSERA_ROW(resize,
                  [](Tensor<B, 3_c, 4_c, 5_c> x) {
                    return std::tuple{tessera::resize<7_c, 9_c>(x), tessera::resize<4_c, 12_c>(x),
                                      tessera::resize<2_c, 3_c>(x), tessera::resize<1_c, 1_c>(x)};
                  }),

      TESSERA_ROW(argmax,
                  [](Tensor<B, 5_c, 4_c> x) { return std::tuple{tessera::argmax<1>(x), tessera::argmax<-1>(x)}; }),
      TESSERA_ROW(least_and_greatest,
                  [](Tensor<B, 5_c, 4_c> x) { return std::tuple{min<1>(x), min<1, 2>(x), max<1, -1>(x), max<2>(x)}; }),
      TESSERA_ROW(pooling,
                  [](Tensor<B, 6_c, 4_c, 3_c> x) {
                    return std::tuple{reduce<"b (h 2) (w 2) c -> b h w c", "max">(x),
                                      reduce<"b (h p) (w q) c -> b h w c", "mean">(x, "p"_is(3_c), "q"_is(2_c))};
                  }),
      TESSERA_ROW(mean_over_the_batch, [](Tensor<B, 4_c> x) { return mean<B>(x); }),

      TESSERA_ROW(comparisons,
                  [](Tensor<B, 17_c> a, Tensor<B, 17_c> b) {
                    return std::tuple{greater(a, b),    less(a, b),      equal(a, b), greater_equal(a, b),
                                      less_equal(a, b), not_equal(a, b), equal(a, 1)};
                  }),
      TESSERA_ROW(where,
                  [](Tensor<B, 5_c, 4_c> c, Tensor<B, 5_c, 4_c> a, Tensor<5_c, 4_c> b) {
                    return std::tuple{tessera::where(c, a, b), tessera::where(c, a, -7.5), tessera::where(b, c, a)};
                  }),
      TESSERA_ROW(
          causal_mask,
          [](Tensor<B, 3_c, Q, S> scores) { return softmax<-1>(mask_scores(scores, tessera::causal_mask<Q, S>())); }),
      TESSERA_ROW(mask_of_keys,
                  [](Tensor<B, H, I, J> scores, Tensor<B, J> keys) {
                    return softmax<"J">(mask_scores(scores, expand_as(keys, scores)));
                  }),

      TESSERA_ROW(one_hot, [](Integers<B> labels) { return tessera::one_hot<J>(labels); }),
      TESSERA_ROW(cross_entropy,
                  [](Tensor<B, J> logits, Integers<B> labels) { return tessera::cross_entropy(logits, labels); }),
      TESSERA_ROW(cross_entropy_with_label_smoothing,
                  [](Tensor<B, J> logits, Integers<B> labels) { return tessera::cross_entropy<0.1>(logits, labels); }),
      TESSERA_ROW(cross_entropy_of_probabilities,
                  [](Tensor<B, J> probabilities, Integers<B> labels) {
                    return tessera::cross_entropy_of_probabilities(probabilities, labels);
                  }),
      TESSERA_ROW(cross_entropy_of_soft_targets,
                  [](Tensor<B, J> logits, Tensor<B, J> targets) { return tessera::cross_entropy(logits, targets); }),
      TESSERA_ROW(embedding_added,
                  [](Tensor<B, D> x, Integers<B> rows, Embedding<9_c, D> table) { return x + table(rows); }),

      TESSERA_ROW(activations,
                  [](Tensor<B, 19_c> x) {
                    return std::tuple{relu(x), tanh(x), sigmoid(x), silu(x), gelu(x), gelu_tanh(x), erf(x), abs(x), -x};
                  }),
      TESSERA_ROW(
          roots_and_powers,
          [](Tensor<B, 19_c> x) { return std::tuple{exp(x), log(x), sqrt(x), pow<3>(x), pow<-2>(x), pow<5>(x)}; }),
      TESSERA_ROW(arithmetic,
                  [](Tensor<B, 5_c, 4_c> a, Tensor<4_c> b) {
                    return std::tuple{a + b,   b - a,    a * b,    b / a,   1.0 - a,       2.0 / a,
                                      a / 3.0, a * -0.5, 0.25 + a, a - 4.0, maximum(a, b), minimum(a, b)};
                  }),

      TESSERA_ROW(expand_by_name,
                  [](Tensor<B, R, I, T> a, Tensor<T, R> b) {
                    return std::tuple{a + expand_as(b, a), a * expand<B, R, I, T>(mean<T>(b))};
                  }),
      TESSERA_ROW(einsum_of_the_last_axis,
                  [](Tensor<B, R, I, T> a, Tensor<T, D> b) { return einsum<"... t, t d -> ... d">(a, b); }),
      TESSERA_ROW(stacks,
                  [](Tensor<B, 4_c, D> q, Tensor<B, 4_c, D> k, Tensor<B, 4_c, D> v) {
                    const auto all = stack<0>(q, k, v);
                    return std::tuple{unstack<0>(all, 3_c)[1], stack<-1>(q, k, v), stack<1>(q, k), mean<0>(all)};
                  }),
      TESSERA_ROW(tokens,
                  [](Tensor<CLS, D> token, Tensor<B, N, D> tokens, Tensor<R, D> registers) {
                    const auto first = repeat<"n d -> b n d">(token, "b"_is(B));
                    const auto second = repeat<"n d -> b n d">(registers, "b"_is(B));
                    const Tensor<B, ALL, D> all = concat<1>(first, second, tokens);
                    return std::tuple{all, take<CLS>(all), part<N>(all), sum<1>(part<R>(all))};
                  }),
      TESSERA_ROW(reshapes,
                  [](Tensor<B, 6_c, 12_c> x) {
                    return std::tuple{reshape<B, infer>(x), reshape<B, 6_c, infer, 4_c>(x), transpose<1, 2>(x),
                                      slice<1>(x, 2_c, 3_c), reshape<B, 2_c, 3_c, 12_c>(x)};
                  }),
      TESSERA_ROW(sinusoidal_positions_2d,
                  [](Tensor<B, 3_c * 4_c, 8_c> x) { return x + sinusoidal_2d<3_c, 4_c, 8_c>(); }),
  };
}

}  // namespace tessera::test
