// softplus: a smooth rectified linear unit.
#pragma once

#include "dsl/module.hpp"
#include "dsl/ops/abs.hpp"
#include "dsl/ops/exp.hpp"
#include "dsl/ops/log.hpp"
#include "dsl/ops/scale.hpp"

namespace tessera {

/// log(1 + exp(x)), elementwise, as max(x, 0) + log(1 + exp(-|x|)), which overflows nowhere; its derivative is
/// sigmoid(x).
/// PyTorch equivalent: torch.logaddexp(x, torch.zeros(())); torch.nn.functional.softplus(x) is x itself above 20.
template <AnyTensor X>
auto softplus(const X& x) {
  const auto positive = detail::with_number<graph::Op::maximum>(x, 0);
  const auto small = exp(-abs(x));
  return positive + log(small + 1.0);
}

/// softplus as a module, for Sequential. PyTorch equivalent: torch.nn.Softplus().
struct Softplus : Module {
  TESSERA_MEMBERS(Softplus)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return softplus(x);
  }
};

}  // namespace tessera
