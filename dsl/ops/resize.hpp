// resize: feature maps of another size.
#pragma once

#include <cstdint>

#include "dsl/ops/abs.hpp"
#include "dsl/ops/arithmetic.hpp"
#include "dsl/ops/einsum.hpp"
#include "dsl/ops/relu.hpp"
#include "dsl/recorder.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

constexpr Text resize_problem(const Shape& x, const Shape& sides) {
  Text t;
  const bool map = x.rank == 4;
  if (map && x[2].known() && x[3].known() && sides[0].known() && sides[1].known()) return t;
  t.put("resize of ");
  x.print(t);
  t.put(" to ");
  sides.print(t);
  if (map)
    t.put(" needs sizes that are known when the program is compiled [dim-unknown]");
  else
    t.put(": it needs a map [B, C, height, width]")
        .put(x.rank == 3 ? " (did you mean rearrange<b (gh gw) d -> b d gh gw> of tokens?)" : "")
        .put(" [resize-input]");
  return t;
}

/// [To, From]: how much of each of From numbers in a row one of To has, whose ends are theirs: the one at i is the mean
/// of the two beside i (From-1)/(To-1), weighted by how near they are. Recorded as max(1 - |i (From-1)/(To-1) - j|, 0).
template <class To, class From>
auto interpolation_weights() {
  using Weights = TensorOf<Dims<To, From>>;
  constexpr std::int64_t to = To::value.value(), from = From::value.value();
  constexpr double step = to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
  graph::Builder& r = recorder();
  const graph::NodeId places = r.multiply(r.arange(To::value), r.constant(step));
  const Weights place(r.broadcast(places, Weights::shape.dims(), {0}));
  const Weights pixel(r.broadcast(r.arange(From::value), Weights::shape.dims(), {1}));
  return relu(1 - abs(place - pixel));
}

}  // namespace detail

/// Feature maps [B, C, height, width] as [B, C, Height, Width] by linear interpolation, down and across; the pixels at
/// the corners stay what they are. A side that stays as long is not interpolated. Recorded as a product with
/// weights for each side. Sentences: [resize-input], [dim-unknown]. PyTorch equivalent:
/// torch.nn.functional.interpolate(x, (height, width), mode="bilinear", align_corners=True).
template <DimExpression auto Height, DimExpression auto Width, AnyTensor X>
auto resize(const X& x) {
  using Sides = Tensor<Height, Width>;
  if constexpr (poisoned<X> || Sides::dims::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::resize_problem(X::shape, Sides::shape); };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      using D = typename X::dims;
      using To = typename Sides::dims;
      const auto down = [](const auto& map) {
        if constexpr (To::template at<0>::value == D::template at<2>::value)
          return map;
        else
          return einsum<"b c y x, o y -> b c o x">(
              map, detail::interpolation_weights<typename To::template at<0>, typename D::template at<2>>());
      };
      const auto across = [](const auto& map) {
        if constexpr (To::template at<1>::value == D::template at<3>::value)
          return map;
        else
          return einsum<"b c y x, o x -> b c y o">(
              map, detail::interpolation_weights<typename To::template at<1>, typename D::template at<3>>());
      };
      return down(across(x));
    }
  }
}

}  // namespace tessera
