// cross_entropy: how far logits are from the labels.
#pragma once

#include "dsl/tensor.hpp"

namespace tessera {

/// The mean over B of logsumexp(row) - row[label], for logits [B, J] and integer labels [B]. Probabilities may be given
/// as logits; they are then normalised a second time. Sentence: [cross-entropy-shape]. PyTorch equivalent:
/// torch.nn.functional.cross_entropy(logits, labels).
template <AnyTensor Logits, AnyTensor Labels>
auto cross_entropy(const Logits& logits, const Labels& labels) {
  if constexpr (poisoned<Logits, Labels>) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      constexpr const Shape &x = Logits::shape, &y = Labels::shape;
      Text t;
      if (x.rank == 2 && y.rank == 1 && x[0] == y[0]) return t;
      t.put("cross entropy of ");
      x.print(t);
      t.put(" and labels ");
      y.print(t);
      t.put(": it needs one row of logits a label, [");
      if (y.rank) y[0].print(t);
      t.put(", J] and [");
      if (y.rank) y[0].print(t);
      t.put("] [cross-entropy-shape]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>)
      return refuse<decltype(problem)>();
    else
      return Tensor<>(recorder().cross_entropy(node_of(logits), node_of(labels)));
  }
}

}  // namespace tessera
