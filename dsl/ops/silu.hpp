// silu: the sigmoid linear unit, also called swish.
#pragma once

#include "dsl/module.hpp"
#include "dsl/ops/arithmetic.hpp"
#include "dsl/ops/sigmoid.hpp"

namespace tessera {

/// x * sigmoid(x), elementwise: Hendrycks and Gimpel 2016, Ramachandran et al. 2017.
/// PyTorch equivalent: torch.nn.functional.silu(x).
template <AnyTensor X>
auto silu(const X& x) {
  return x * sigmoid(x);
}

/// silu as a module, for Sequential. PyTorch equivalent: torch.nn.SiLU().
struct Silu : Module {
  TESSERA_MEMBERS(Silu)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return silu(x);
  }
};

}  // namespace tessera
