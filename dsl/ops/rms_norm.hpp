// RmsNorm: a root mean square of one over the last axes, then a learned scale.
#pragma once

#include <vector>

#include "dsl/ops/layer_norm.hpp"
#include "dsl/ops/reductions.hpp"

namespace tessera {

/// x / sqrt(mean(x^2) + epsilon) * weight over the last axes, which have to be Ds (Zhang, Sennrich 2019). Key: weight
/// [Ds...], which starts at one. Sentence: [rms-norm-axis].
/// PyTorch equivalent: torch.nn.RMSNorm((Ds...), eps=epsilon).
template <auto... Ds>
struct RmsNorm : Module {
  static_assert(sizeof...(Ds) > 0, "RmsNorm needs the axes it normalises over");

  double epsilon;
  Parameter<Ds...> weight{constant(1)};
  TESSERA_MEMBERS(RmsNorm, weight)

  explicit RmsNorm(double eps = 1e-6) : epsilon(eps) {}

  template <AnyTensor X>
  auto forward(const X& x) const {
    using Over = typename Tensor<Ds...>::dims;
    if constexpr (Over::poisoned) {
      return Poison{};
    } else {
      constexpr auto problem = [] {
        return detail::norm_problem({"rms norm", "RmsNorm", "[rms-norm-axis]"}, X::shape, Over::shape);
      };
      if constexpr (!fits<decltype(problem)>) {
        return Refusal<decltype(problem)>::poison();
      } else {
        graph::Builder& r = recorder();
        const std::vector<Dim> shape = X::shape.dims();
        std::vector<int> others, axes;
        for (int i = 0; i < X::shape.rank; ++i) (i < X::shape.rank - Over::rank ? others : axes).push_back(i);
        const graph::NodeId square = r.multiply(node_of(x), node_of(x));
        const graph::NodeId mean = detail::reduced(detail::Reduction::mean, square, axes);
        const graph::NodeId inverse = r.unary(graph::Op::rsqrt, r.add(mean, r.constant(epsilon)));
        const graph::NodeId value = r.multiply(node_of(x), r.broadcast(inverse, shape, others));
        return TensorOf<typename X::dims>(r.multiply(value, r.broadcast(node_of(weight), shape, axes)));
      }
    }
  }
};

}  // namespace tessera
