// Identity: a module that does nothing, in the place of one that a variant of a model does not have.
#pragma once

#include <type_traits>

#include "dsl/module.hpp"

namespace tessera {

/// What it is given, of any shape; records nothing and has no checkpoint keys. It takes and ignores what the module
/// that it stands for would be made from.
/// PyTorch equivalent: torch.nn.Identity.
struct Identity : Module {
  TESSERA_MEMBERS(Identity)

  Identity() = default;
  template <class X>
  explicit Identity(const X&) {}

  template <AnyTensor X>
  X forward(const X& x) const {
    return x;
  }
};

/// M where a variant of a model has it, else Identity: If<S.layer_scale, LayerScale> ls1.
template <bool present, class M>
using If = std::conditional_t<present, M, Identity>;

}  // namespace tessera
