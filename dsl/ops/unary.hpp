// What the elementwise operations of one tensor have in common.
#pragma once

#include "dsl/tensor.hpp"

namespace tessera::detail {

/// Records Op of x; any shape is taken.
template <graph::Op Op, class X>
auto unary(const X& x) {
  if constexpr (poisoned<X>)
    return Poison{};
  else
    return TensorOf<typename X::dims>(recorder().unary(Op, node_of(x)));
}

}  // namespace tessera::detail
