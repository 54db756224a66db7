// causal_mask and mask_scores: which keys a query may look at.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "dsl/ops/shared_table.hpp"
#include "dsl/ops/where.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// The table [Queries, Keys] that is 1 where the key does not come after the query, else 0: causal_mask<T, J>(), where
/// J is an alias of T or another axis. Sentence: [dim-unknown]. PyTorch equivalent: torch.ones(t, j).tril().
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
      const std::int64_t queries = Table::shape[0].value(), keys = Table::shape[1].value();
      return detail::shared_table<Table>("causal_" + std::to_string(queries) + "x" + std::to_string(keys), [&] {
        std::vector<double> data;
        for (std::int64_t i = 0; i < queries; ++i)
          for (std::int64_t j = 0; j < keys; ++j) data.push_back(j <= i ? 1 : 0);
        return data;
      });
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
