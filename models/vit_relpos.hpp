// vit_relpos: timm's VisionTransformerRelPos, whose blocks know positions by an MLP of how far patches are apart.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using RelativeBlock = VitBlock<V, Attention<V, FusedQkv<V>, RelativeMlpOfBlock<V>>>;

/// A bias of scores that a block is given.
template <class V>
struct GivenBias : Unplaced<V> {
  using Scores = Tensor<V::B, V::H, V::T, V::T>;
  TESSERA_MEMBERS(GivenBias)

  Tensor<V::H, V::T, V::T> bias;

  Scores biased(const Scores& scores) const { return scores + bias; }
};

/// One MLP for all blocks, key shared_rel_pos.
template <class V, std::int64_t hidden>
struct SharedRelativeBlock : VitBlock<V, Attention<V, FusedQkv<V>, GivenBias<V>>> {
  struct Shared : Part {
    RelativeMlp<V, hidden> shared_rel_pos;
    TESSERA_MEMBERS(Shared, shared_rel_pos)

    template <class Blocks, class X>
    auto forward(const Blocks& blocks, const X& x) const {
      const auto bias = shared_rel_pos();
      return blocks(x, [&](auto& block) { block.attn.places.bias = bias; });
    }
  };
};

}  // namespace tessera::models
