// sqrt: the square root, of numbers and of dims.
#pragma once

#include <cmath>

#include "dsl/ops/unary.hpp"

namespace tessera {

/// The square root of x, elementwise; nan below 0.
/// PyTorch equivalent: torch.sqrt(x).
template <AnyTensor X>
auto sqrt(const X& x) {
  return detail::unary<graph::Op::sqrt>(x);
}

/// The square root of a dim's size, for scores / sqrt(K). The size has to be known, else [dim-unknown].
/// PyTorch equivalent: math.sqrt(k).
template <DimExpression E>
constexpr double sqrt(E) {  // constexpr for clangd, as the conversion of tensors is
  constexpr auto problem = [] {
    Text t;
    if (E::poisoned || E::value.known()) return t;
    t.put("sqrt(");
    E::value.print(t);
    t.put(") needs the size of ");
    E::value.print(t);
    t.put(", which is known only when the program runs [dim-unknown]");
    return t;
  };
  if constexpr (!fits<decltype(problem)>) Refusal<decltype(problem)>::poison();
  return std::sqrt(static_cast<double>(E::value.value()));
}

}  // namespace tessera
