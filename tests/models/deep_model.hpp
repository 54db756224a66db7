// A model of products so deep that L1 does not hold their A operand.
#pragma once

#include "dsl/tessera.hpp"

namespace tessera::test {

/// The mean over the tokens of head(gelu(down(up(x)))): `down` is deep forward, `up` backward; at sizes that leave a
/// rest everywhere.
struct Deep : Module {
  static constexpr auto B = axis<"B">;
  static constexpr auto N = axis<"N", 101>;
  static constexpr auto D = axis<"D", 24>;
  static constexpr auto M = axis<"M", 6144>;
  static constexpr auto K = axis<"K", 45>;
  static constexpr auto CLASSES = axis<"CLASSES", 18>;

  Linear<D, M> up;
  Linear<M, K> down;
  Linear<K, CLASSES> head;
  TESSERA_MEMBERS(Deep, up, down, head)
  static constexpr Recipe recipe{};

  Tensor<B, CLASSES> forward(Tensor<B, N, D> x) const { return mean<N>(head(gelu(down(up(x))))); }
};

}  // namespace tessera::test
