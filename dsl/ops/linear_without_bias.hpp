// LinearWithoutBias: a learned linear map of the last axis.
#pragma once

#include <type_traits>

#include "dsl/ops/linear.hpp"

namespace tessera {

/// y = x W^T over the last axis: [..., In] -> [..., Out]. Key: weight [Out, In], which starts uniform in +-1/sqrt(In)
/// and decays. Sentence: [linear-input]. PyTorch equivalent: torch.nn.Linear(In, Out, bias=False).
template <auto In, auto Out>
struct LinearWithoutBias : Module {
  static double bound() { return detail::fan_in_bound<std::remove_cv_t<decltype(In)>>(); }

  Parameter<Out, In> weight{with_decay(uniform(-bound(), bound()))};
  TESSERA_MEMBERS(LinearWithoutBias, weight)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return linear(x, weight);
  }
};

}  // namespace tessera
