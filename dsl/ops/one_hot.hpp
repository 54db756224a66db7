// one_hot: integers as rows of zeros with a one.
#pragma once

#include "dsl/ops/embedding.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// 1 where the last index equals the number, else 0: one_hot<J>(labels) of [B] is [B, J]. The labels are an input of
/// integers.
/// PyTorch equivalent: torch.nn.functional.one_hot(labels, j).float().
template <DimExpression auto J, AnyTensor Labels>
auto one_hot(const Labels& labels) {
  using Classes = typename Tensor<J>::dims;
  if constexpr (poisoned<Labels> || Classes::poisoned)
    return Poison{};
  else
    return TensorOf<typename detail::JoinDims<typename Labels::dims, Classes>::type>(
        recorder().one_hot(node_of(labels), Classes::shape[0]));
}

}  // namespace tessera
