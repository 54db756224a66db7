// dropout and drop_path: numbers, or whole samples, that training leaves out at random.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "dsl/axis_ref.hpp"
#include "dsl/module.hpp"
#include "dsl/ops/reordered.hpp"

namespace tessera {

namespace detail {

/// Adds a number with six decimals.
constexpr void put_decimal(Text& t, double x) {
  const auto millionths = static_cast<std::int64_t>((x < 0 ? -x : x) * 1e6 + 0.5);
  t.put(x < 0 ? "-" : "").put(millionths / 1'000'000).put(".");
  for (std::int64_t place = 100'000, rest = millionths % 1'000'000; rest || place == 100'000; place /= 10) {
    t.put(rest / place);
    rest %= place;
  }
}

/// A rate has to be in [0, 1); nothing to say about others.
constexpr Text rate_problem(const char* op, double rate) {
  Text t;
  if (rate >= 0 && rate < 1) return t;
  t.put(op).put(" at a rate of ");
  put_decimal(t, rate);
  t.put(": it is the share that is left out, at least 0 and below 1 [dropout-rate]");
  return t;
}

/// `axes`: those that the choice is made along; along the others one is for all.
template <class X>
auto dropped(const X& x, double rate, std::vector<int> axes) {
  return TensorOf<typename X::dims>(recorder().dropout(node_of(x), rate, std::move(axes)));
}

}  // namespace detail

/// While training, each number is 0 with probability `rate`, else divided by 1 - rate; in evaluation, x. What is left
/// out follows from seed, step and place alone. A rate of 0 records nothing. Sentence: [dropout-rate].
/// Srivastava et al. 2014. PyTorch equivalent: torch.nn.functional.dropout(x, rate, training).
template <double rate, AnyTensor X>
auto dropout(const X& x) {
  if constexpr (poisoned<X>) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::rate_problem("dropout", rate); };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else if constexpr (rate == 0)
      return TensorOf<typename X::dims>(node_of(x));
    else
      return detail::dropped(x, rate, detail::axes_but(-1, X::shape.rank));
  }
}

/// While training, each sample is 0 with probability `rate`, else divided by 1 - rate; samples are the positions of the
/// first axis. For the branch of a residual sum: x + drop_path<0.1>(mlp(x)). As dropout in everything else.
/// Huang et al. 2016 (stochastic depth). Sentence: [dropout-rate].
/// PyTorch equivalent: timm.layers.drop_path(x, rate, training).
template <double rate, AnyTensor X>
auto drop_path(const X& x) {
  if constexpr (poisoned<X>) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      Text t = detail::rate_problem("drop_path", rate);
      if (!t.size && X::shape.rank == 0) explain_axis(t, "drop_path", 0, X::shape);
      return t;
    };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else if constexpr (rate == 0)
      return TensorOf<typename X::dims>(node_of(x));
    else
      return detail::dropped(x, rate, {0});
  }
}

/// dropout as a module. PyTorch equivalent: torch.nn.Dropout(rate).
template <double rate>
struct Dropout : Module {
  TESSERA_MEMBERS(Dropout)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return dropout<rate>(x);
  }
};

/// drop_path as a module. PyTorch equivalent: timm.layers.DropPath(rate).
template <double rate>
struct DropPath : Module {
  TESSERA_MEMBERS(DropPath)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return drop_path<rate>(x);
  }
};

}  // namespace tessera
