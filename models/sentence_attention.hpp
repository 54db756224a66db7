// sentence_attention: the worked example of attention on paper. Six words of four numbers each; the scores are not
// scaled.
#pragma once

#include "dsl/tessera.hpp"

namespace tessera::models {

/// Words [T, E] -> outputs [T, K]. The weights are [in, out], as the example writes them: q = x W_Q.
struct SentenceAttention : Module {
  static constexpr auto T = axis<"T", 6>;  // words
  static constexpr auto E = axis<"E", 4>;  // numbers of a word
  static constexpr auto K = axis<"K", 4>;  // numbers of a query, of a key and of a value

  Parameter<E, K> w_q, w_k, w_v;
  TESSERA_MEMBERS(SentenceAttention, w_q, w_k, w_v)

  /// Every step of the example, to be looked at.
  struct Steps {
    Tensor<T, K> q, k, v;
    Tensor<T, T> scores, weights;
    Tensor<T, K> outputs;
  };

  Steps steps(Tensor<T, E> x) const {
    Steps s;
    s.q = einsum<"t e, e k -> t k">(x, w_q);
    s.k = einsum<"t e, e k -> t k">(x, w_k);
    s.v = einsum<"t e, e k -> t k">(x, w_v);
    s.scores = einsum<"i k, j k -> i j">(s.q, s.k);
    s.weights = softmax<-1>(s.scores);
    s.outputs = einsum<"i j, j k -> i k">(s.weights, s.v);
    return s;
  }

  Tensor<T, K> forward(Tensor<T, E> x) const { return steps(x).outputs; }
};

}  // namespace tessera::models
