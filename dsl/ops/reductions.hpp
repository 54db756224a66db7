// sum, mean, max and min over axes, which go away.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/axis_list.hpp"
#include "dsl/ops/reordered.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

enum class Reduction : std::uint8_t { sum, mean, max, min, none };

constexpr Reduction reduction_named(std::string_view name) {
  if (name == "sum") return Reduction::sum;
  if (name == "mean") return Reduction::mean;
  if (name == "max") return Reduction::max;
  return name == "min" ? Reduction::min : Reduction::none;
}
constexpr const char* name_of(Reduction kind) {
  return kind == Reduction::sum ? "sum" : kind == Reduction::mean ? "mean" : kind == Reduction::max ? "max" : "min";
}

/// x reduced over `axes`, ascending; x itself where there are none.
inline graph::NodeId reduced(Reduction kind, graph::NodeId x, std::vector<int> axes) {
  if (axes.empty()) return x;
  graph::Builder& r = recorder();
  if (kind == Reduction::max) return r.reduce(graph::Op::reduce_max, x, std::move(axes));
  if (kind == Reduction::min) {
    const graph::NodeId negated = r.unary(graph::Op::negate, x);
    const graph::NodeId largest = r.reduce(graph::Op::reduce_max, negated, std::move(axes));
    return r.unary(graph::Op::negate, largest);
  }
  Dim count = Dim::constant(1);
  for (const int axis : axes) count = count * r.shape(x)[static_cast<std::size_t>(axis)];
  const graph::NodeId sum = r.reduce(graph::Op::reduce_sum, x, std::move(axes));
  if (kind == Reduction::sum) return sum;
  const graph::NodeId number = count.known() ? r.constant(static_cast<double>(count.value())) : r.extent(count);
  return r.divide(sum, number);
}

template <Reduction kind, AxisRef... axes, class X>
auto reduction(const X& x) {
  if constexpr (poisoned<X> || (axes.poisoned || ...)) {
    return Poison{};
  } else {
    using List = AxisList<typename X::dims, axes...>;
    constexpr auto problem = [] {
      Text t;
      List::explain(t, name_of(kind));
      return t;
    };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else if constexpr (List::size == 0)
      return Tensor<>(reduced(kind, node_of(x), axes_but(-1, X::shape.rank)));
    else
      return TensorOf<typename List::rest>(reduced(kind, node_of(x), List::sorted()));
  }
}

}  // namespace detail

/// The sum over axes: sum<1, 2>(x), sum<N>(x); over all of them: sum(x).
/// Sentences: [axis-index], [axis-name], [axis-twice].
/// PyTorch equivalent: torch.sum(x, dim=axes).
template <AxisRef... axes, AnyTensor X>
auto sum(const X& x) {
  return detail::reduction<detail::Reduction::sum, axes...>(x);
}

/// The mean over axes, which may be the batch; as sum.
/// PyTorch equivalent: torch.mean(x, dim=axes).
template <AxisRef... axes, AnyTensor X>
auto mean(const X& x) {
  return detail::reduction<detail::Reduction::mean, axes...>(x);
}

/// The largest number over axes; as sum. Where it stands more than once, each gets a share of the gradient.
/// PyTorch equivalent: torch.amax(x, dim=axes).
template <AxisRef... axes, AnyTensor X>
auto max(const X& x) {
  return detail::reduction<detail::Reduction::max, axes...>(x);
}

/// The smallest number over axes, as -max(-x).
/// PyTorch equivalent: torch.amin(x, dim=axes).
template <AxisRef... axes, AnyTensor X>
auto min(const X& x) {
  return detail::reduction<detail::Reduction::min, axes...>(x);
}

}  // namespace tessera
