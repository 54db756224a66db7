// argmax: where the largest number of an axis stands.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dsl/axis_ref.hpp"
#include "dsl/ops/reordered.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// The position of the largest number of an axis, which goes away, as an exact integer; of equal ones the first.
/// It has no gradient. Made of what the generator knows: with n positions, n - max over j of (x[j] is the largest) * (n
/// - j). The axis has to have a known size, else [dim-unknown]. Sentences: [axis-index], [axis-name]. PyTorch
/// equivalent: torch.argmax(x, dim=axis), but for nan.
template <AxisRef axis, AnyTensor X>
auto argmax(const X& x) {
  if constexpr (poisoned<X> || axis.poisoned) {
    return Poison{};
  } else {
    constexpr int at = axis_index(axis, X::shape);
    constexpr auto problem = [] {
      Text t;
      explain_axis(t, "argmax", axis, X::shape);
      if (t.size || X::shape[at].known()) return t;
      t.put("argmax<");
      axis.print(t);
      t.put("> of ");
      X::shape.print(t);
      t.put(" needs the size of ");
      X::shape[at].print(t);
      t.put(", which is known only when the program runs [dim-unknown]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      graph::Builder& r = recorder();
      const std::vector<Dim> shape = X::shape.dims();
      const std::int64_t n = X::shape[at].value();
      std::vector<double> left;
      for (std::int64_t j = 0; j < n; ++j) left.push_back(static_cast<double>(n - j));
      const graph::NodeId largest = r.reduce(graph::Op::reduce_max, node_of(x), {at});
      const graph::NodeId spread = r.broadcast(largest, shape, detail::axes_but(at, X::shape.rank));
      const graph::NodeId reached = r.binary(graph::Op::equal, node_of(x), spread);
      const graph::NodeId table = r.table("argmax_" + std::to_string(n), {X::shape[at]}, std::move(left));
      const graph::NodeId rank = r.multiply(reached, r.broadcast(table, shape, {at}));
      const graph::NodeId first = r.reduce(graph::Op::reduce_max, rank, {at});
      return TensorOf<remove_axis<typename X::dims, at>>(
          r.binary(graph::Op::subtract, r.constant(static_cast<double>(n)), first));
    }
  }
}

}  // namespace tessera
