// arange: the places along an axis, as numbers.
#pragma once

#include "dsl/ops/shared_table.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// 0, 1, 2, ... along T, as reals: arange<T>() is [T]. It is computed where it is read, and takes no memory; exact up
/// to 2^24. No gradient. Sentence: [dim-unknown]. PyTorch equivalent: torch.arange(t).float().
template <DimExpression auto T>
auto arange() {
  using Places = Tensor<T>;
  if constexpr (Places::dims::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::table_problem("arange", Places::shape); };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else
      return Places(recorder().arange(Places::shape[0]));
  }
}

}  // namespace tessera
