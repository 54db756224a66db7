// sigmoid: the logistic function.
#pragma once

#include "dsl/module.hpp"
#include "dsl/ops/scale.hpp"
#include "dsl/ops/tanh.hpp"

namespace tessera {

/// 1 / (1 + exp(-x)), elementwise, as (1 + tanh(x/2)) / 2, which cannot overflow.
/// PyTorch equivalent: torch.sigmoid(x).
template <AnyTensor X>
auto sigmoid(const X& x) {
  return tanh(x * 0.5) * 0.5 + 0.5;
}

/// sigmoid as a module, for Sequential. PyTorch equivalent: torch.nn.Sigmoid().
struct Sigmoid : Module {
  TESSERA_MEMBERS(Sigmoid)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return sigmoid(x);
  }
};

}  // namespace tessera
