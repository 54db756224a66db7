// tanh: the hyperbolic tangent.
#pragma once

#include "dsl/module.hpp"
#include "dsl/ops/unary.hpp"

namespace tessera {

/// tanh(x), elementwise.
/// PyTorch equivalent: torch.tanh(x).
template <AnyTensor X>
auto tanh(const X& x) {
  return detail::unary<graph::Op::tanh>(x);
}

/// tanh as a module, for Sequential. PyTorch equivalent: torch.nn.Tanh().
struct Tanh : Module {
  TESSERA_MEMBERS(Tanh)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return tanh(x);
  }
};

}  // namespace tessera
