// gelu_tanh: the Gaussian error linear unit, approximated by tanh.
#pragma once

#include <cmath>
#include <numbers>

#include "dsl/module.hpp"
#include "dsl/ops/arithmetic.hpp"
#include "dsl/ops/scale.hpp"
#include "dsl/ops/tanh.hpp"

namespace tessera {

/// x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), elementwise: Hendrycks and Gimpel 2016, section 2.
/// PyTorch equivalent: torch.nn.functional.gelu(x, approximate="tanh").
template <AnyTensor X>
auto gelu_tanh(const X& x) {
  const auto inner = x * (x * x * 0.044715 + 1) * std::sqrt(2 / std::numbers::pi);
  return x * (tanh(inner) * 0.5 + 0.5);
}

/// gelu_tanh as a module, for Sequential. PyTorch equivalent: torch.nn.GELU(approximate="tanh").
struct GeluTanh : Module {
  TESSERA_MEMBERS(GeluTanh)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return gelu_tanh(x);
  }
};

}  // namespace tessera
