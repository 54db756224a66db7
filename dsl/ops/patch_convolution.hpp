// PatchConvolution: the convolution whose stride is its kernel, which makes tokens of an image's patches.
#pragma once

#include <type_traits>

#include "dsl/mismatch.hpp"
#include "dsl/ops/arithmetic.hpp"
#include "dsl/ops/einsum.hpp"
#include "dsl/ops/linear.hpp"
#include "dsl/ops/rearrange.hpp"

namespace tessera {

namespace detail {

/// The axes of an image have to be batch, channels, height and width; `weight` is [D, C, P, Q].
constexpr Text patch_convolution_problem(const Shape& x, const Shape& weight) {
  Text t;
  if (x.rank == 4 && x[1] == weight[1]) return t;
  t.put("patch convolution (");
  weight[1].print(t);
  t.put(" -> ");
  weight[0].print(t);
  t.put(") cannot take ");
  x.print(t);
  if (x.rank == 4) {
    t.put(": axis 1 is ");
    x[1].print(t);
    t.put(", needs ");
    weight[1].print(t);
    // Channels last, as image decoders give them.
    const Shape channels_first{4, {x.dim[0], x.dim[3], x.dim[1], x.dim[2]}};
    const Shape stretched{4, {x.dim[0], weight.dim[1], x.dim[2], x.dim[3]}};
    if (x[3] == weight[1] && suggest_rearrange(t, " (", x, channels_first))
      t.put(")");
    else if (!suggest_repeat(t, x, stretched))
      suggest(t, x[1], weight[1], 1);
  } else {
    t.put(": it needs the axes batch, channels, height and width");
  }
  t.put(" [patch-convolution-input]");
  return t;
}

/// Each patch times the weight [D, C, P, Q]: [B, GH*GW, D].
template <auto P, auto Q, class X, class W>
auto patch_products(const X& x, const W& weight) {
  if constexpr (poisoned<X, W>) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return patch_convolution_problem(X::shape, W::shape); };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      const auto patches = rearrange<"b c (gh p) (gw q) -> b (gh gw) c p q">(x, "p"_is(P), "q"_is(Q));
      return einsum<"b n c p q, d c p q -> b n d">(patches, weight);
    }
  }
}

}  // namespace detail

/// Each patch of P x Q pixels (square where Q is not given) becomes one token: images [B, C, GH*P, GW*Q] -> tokens
/// [B, GH*GW, D], row by row. Patches do not overlap, so that the convolution is one product: each patch times the
/// weight. Keys: weight [D, C, P, Q], bias [D]; both start uniform in +-1/sqrt(C*P*Q), as PyTorch's do, and the weight
/// decays. Sentences: [patch-convolution-input]; [dim-division] and [dim-factor] for patches that do not tile the
/// image. PyTorch equivalent: torch.nn.Conv2d(C, D, (P, Q), stride=(P, Q))(x).flatten(2).transpose(1, 2).
template <DimExpression auto C, DimExpression auto D, DimExpression auto P, DimExpression auto Q = P>
struct PatchConvolution : Module {
  static double bound() { return detail::fan_in_bound<std::remove_cv_t<decltype(C * P * Q)>>(); }

  Parameter<D, C, P, Q> weight{with_decay(uniform(-bound(), bound()))};
  Parameter<D> bias{uniform(-bound(), bound())};
  TESSERA_MEMBERS(PatchConvolution, weight, bias)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return detail::patch_products<P, Q>(x, weight) + bias;
  }
};

/// PatchConvolution without a bias. Key: weight [D, C, P, Q].
/// PyTorch equivalent: torch.nn.Conv2d(C, D, (P, Q), stride=(P, Q), bias=False)(x).flatten(2).transpose(1, 2).
template <DimExpression auto C, DimExpression auto D, DimExpression auto P, DimExpression auto Q = P>
struct PatchConvolutionWithoutBias : Module {
  static double bound() { return detail::fan_in_bound<std::remove_cv_t<decltype(C * P * Q)>>(); }

  Parameter<D, C, P, Q> weight{with_decay(uniform(-bound(), bound()))};
  TESSERA_MEMBERS(PatchConvolutionWithoutBias, weight)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return detail::patch_products<P, Q>(x, weight);
  }
};

}  // namespace tessera
