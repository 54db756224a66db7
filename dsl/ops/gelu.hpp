// gelu: the Gaussian error linear unit.
#pragma once

#include "dsl/module.hpp"
#include "dsl/ops/unary.hpp"

namespace tessera {

/// x * Phi(x) with the exact error function, elementwise: Hendrycks and Gimpel 2016.
/// PyTorch equivalent: torch.nn.functional.gelu(x).
template <AnyTensor X>
auto gelu(const X& x) {
  return detail::unary<graph::Op::gelu>(x);
}

/// gelu as a module, for Sequential. PyTorch equivalent: torch.nn.GELU().
struct Gelu : Module {
  TESSERA_MEMBERS(Gelu)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return gelu(x);
  }
};

}  // namespace tessera
