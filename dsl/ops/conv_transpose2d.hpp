// ConvTranspose2d: a learned map of each pixel to a square of them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "dsl/mismatch.hpp"
#include "dsl/module.hpp"
#include "dsl/ops/einsum.hpp"
#include "dsl/ops/linear.hpp"
#include "dsl/ops/rearrange.hpp"
#include "dsl/recorder.hpp"

namespace tessera {

namespace detail {

constexpr Text conv_transpose2d_problem(const Shape& x, const Shape& weight) {
  Text t;
  if (x.rank == 4 && x[1] == weight[0]) return t;
  t.put("conv_transpose2d of ");
  x.print(t);
  t.put(" by ");
  weight.print(t);
  if (x.rank != 4) {
    t.put(": it needs a map [B, C, height, width]");
    if (x.rank == 3) t.put(" (did you mean rearrange<b (gh gw) d -> b d gh gw> of tokens?)");
  } else {
    t.put(": axis 1 of the map is ");
    x[1].print(t);
    t.put(", needs ");
    weight[0].print(t);
    t.put(" (did you mean ConvTranspose2d<");
    for (int i : {0, 1, 2}) {
      t.put(i ? ", " : "");
      put_code(t, (i == 0 ? x[1] : weight[i]).shown);
    }
    t.put(">?)");
  }
  t.put(" [convolution-input]");
  return t;
}

}  // namespace detail

/// A learned transposed convolution whose kernel is as large as its stride: of maps [B, C, height, width] each pixel
/// becomes a square of S x S, side by side: [B, D, height*S, width*S]. Keys: weight [C, D, S, S], bias [D]; both start
/// uniform in +-1/sqrt(D*S*S), as PyTorch's do, and the weight decays. Sentence: [convolution-input].
/// PyTorch equivalent: torch.nn.ConvTranspose2d(C, D, S, stride=S).
template <DimExpression auto C, DimExpression auto D, DimExpression auto S>
struct ConvTranspose2d : Module {
  static double bound() { return detail::fan_in_bound<std::remove_cv_t<decltype(D * S * S)>>(); }

  Parameter<C, D, S, S> weight{with_decay(uniform(-bound(), bound()))};
  Parameter<D> bias{uniform(-bound(), bound())};
  TESSERA_MEMBERS(ConvTranspose2d, weight, bias)

  template <AnyTensor X>
  auto forward(const X& x) const {
    constexpr auto problem = [] { return detail::conv_transpose2d_problem(X::shape, Parameter<C, D, S, S>::shape); };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      const auto squares = einsum<"b c y x, c d p q -> b d y p x q">(x, weight);
      auto y = rearrange<"b d y p x q -> b d (y p) (x q)">(squares);
      using Y = decltype(y);
      graph::Builder& r = recorder();
      return Y(r.add(node_of(y), r.broadcast(node_of(bias), Y::shape.dims(), {1})));
    }
  }
};

}  // namespace tessera
