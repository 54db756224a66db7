// Heads that are not merged before the output projection, in a module that is a template, as those of models/vit.hpp.
// expect: linear (D=192 -> D=192) cannot take [B, H=3, N=196, K=64]: it ends in K=64, needs D=192 (D := H*K; did you
// mean rearrange<b h n k -> b n (h k)>?) [linear-input]
#pragma once

#include "dsl/tessera.hpp"

using namespace tessera;

inline constexpr auto B = axis<"B">;
inline constexpr auto N = axis<"N", 196>;
inline constexpr auto H = axis<"H", 3>;
inline constexpr auto K = axis<"K", 64>;
inline constexpr auto D = axis<"D", H * K>;

template <bool>
struct Projection : Module {
  Linear<D, D> proj;
  TESSERA_MEMBERS(Projection, proj)

  Tensor<B, N, D> forward(Tensor<B, H, N, K> heads) const {
#ifdef TWIN
    const auto merged = rearrange<"b h n k -> b n (h k)">(heads);
    return proj(merged);
#else
    return proj(heads);  // the mistake
#endif
  }
};

using Mistake = Projection<true>;
