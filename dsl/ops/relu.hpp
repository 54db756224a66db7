// relu: the rectified linear unit.
#pragma once

#include "dsl/module.hpp"
#include "dsl/ops/unary.hpp"

namespace tessera {

/// max(x, 0), elementwise.
/// PyTorch equivalent: torch.relu(x).
template <AnyTensor X>
auto relu(const X& x) {
  return detail::unary<graph::Op::relu>(x);
}

/// relu as a module, for Sequential. PyTorch equivalent: torch.nn.ReLU().
struct Relu : Module {
  TESSERA_MEMBERS(Relu)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return relu(x);
  }
};

}  // namespace tessera
