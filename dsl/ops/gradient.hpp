// gradient: a derivative within the declaration, as of a loss that weighs another by the norm of its gradient.
#pragma once

#include "dsl/tensor.hpp"

namespace tessera {

/// The gradient of y, one number, with respect to x, on which y depends: a parameter or what was computed on the way.
/// It is a value like others, and gradients flow through it: stop_gradient(gradient(y, x)) is the one that does not.
/// PyTorch equivalent: torch.autograd.grad(y, x, create_graph=True)[0].
template <auto... Ds>
Tensor<Ds...> gradient(const Tensor<>& y, const Tensor<Ds...>& x) {
  return Tensor<Ds...>(recorder().gradient(node_of(y), node_of(x)));
}

}  // namespace tessera
