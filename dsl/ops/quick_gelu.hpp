// quick_gelu: the Gaussian error linear unit, approximated by the logistic function.
#pragma once

#include "dsl/module.hpp"
#include "dsl/ops/arithmetic.hpp"
#include "dsl/ops/sigmoid.hpp"

namespace tessera {

/// x * sigmoid(1.702 x), elementwise: Hendrycks and Gimpel 2016, section 2; the activation of OpenAI's CLIP.
/// PyTorch equivalent: x * torch.sigmoid(1.702 * x).
template <AnyTensor X>
auto quick_gelu(const X& x) {
  return x * sigmoid(x * 1.702);
}

/// quick_gelu as a module, for Sequential. PyTorch equivalent: timm.layers.QuickGELU().
struct QuickGelu : Module {
  TESSERA_MEMBERS(QuickGelu)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return quick_gelu(x);
  }
};

}  // namespace tessera
