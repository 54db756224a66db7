// causal_mask and mask_scores: which keys a query may look at.
#pragma once

#include <limits>

#include "dsl/ops/shared_table.hpp"
#include "dsl/ops/where.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// [Queries, Keys]: 1 where the key does not come after the query, else 0: causal_mask<T, J>(), where J is an alias of
/// T or another axis. It is compared where it is read, and takes no memory. Sentence: [dim-unknown]. PyTorch
/// equivalent: torch.ones(t, j).tril().
template <DimExpression auto Queries, DimExpression auto Keys>
auto causal_mask() {
  using Table = Tensor<Queries, Keys>;
  if constexpr (Table::dims::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::table_problem("causal_mask", Table::shape); };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      graph::Builder& r = recorder();
      const graph::NodeId behind = r.add(r.arange(Table::shape[0]), r.constant(1));  // the first key that is not seen
      const graph::NodeId of_query = r.broadcast(behind, Table::shape.dims(), {0});
      const graph::NodeId of_key = r.broadcast(r.arange(Table::shape[1]), Table::shape.dims(), {1});
      return Table(r.unary(graph::Op::step, r.subtract(of_query, of_key)));
    }
  }
}

/// The scores where the mask is above 0, elsewhere the lowest float, whose softmax is 0. The mask is the end of the
/// scores' shape, as [T, J] of [B, H, T, J]; a mask of keys, [B, J], is widened by name: mask_scores(scores,
/// expand_as(mask, scores)). A row without any key becomes uniform, not nan. Sentence: [where-shape].
/// PyTorch equivalent: scores.masked_fill(mask <= 0, torch.finfo(torch.float).min).
template <AnyTensor Scores, AnyTensor Mask>
auto mask_scores(const Scores& scores, const Mask& mask) {
  return where(mask, scores, static_cast<double>(std::numeric_limits<float>::lowest()));
}

}  // namespace tessera
