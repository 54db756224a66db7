// leaky_relu: a rectified linear unit that lets a share of what is negative through.
#pragma once

#include "dsl/module.hpp"
#include "dsl/ops/scale.hpp"
#include "dsl/ops/where.hpp"

namespace tessera {

/// x where it is above 0, else slope * x, elementwise: leaky_relu<0.2>(x) (Maas et al. 2013). At 0 the derivative is
/// the slope.
/// PyTorch equivalent: torch.nn.functional.leaky_relu(x, slope).
template <double slope, AnyTensor X>
auto leaky_relu(const X& x) {
  return where(x, x, x * slope);
}

/// leaky_relu as a module, for Sequential. PyTorch equivalent: torch.nn.LeakyReLU(slope).
template <double slope>
struct LeakyRelu : Module {
  TESSERA_MEMBERS(LeakyRelu)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return leaky_relu<slope>(x);
  }
};

}  // namespace tessera
