// cross_entropy: how far logits, or probabilities, are from the labels.
#pragma once

#include "dsl/mismatch.hpp"
#include "dsl/ops/dropout.hpp"
#include "dsl/ops/log.hpp"
#include "dsl/ops/log_softmax.hpp"
#include "dsl/ops/negate.hpp"
#include "dsl/ops/one_hot.hpp"
#include "dsl/ops/reductions.hpp"
#include "dsl/ops/scale.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// Whether y is x without its last axis.
constexpr bool one_label_a_row(const Shape& x, const Shape& y) {
  if (x.rank < 2 || y.rank != x.rank - 1) return false;
  for (int i = 0; i < y.rank; ++i)
    if (!(x[i] == y[i])) return false;
  return true;
}

/// One row a label, or one target a logit.
constexpr Text cross_entropy_problem(const Shape& x, const Shape& y, bool soft) {
  Text t;
  const bool targets = soft && x.rank == 2 && y.rank == 2;
  if (one_label_a_row(x, y) || (targets && x == y)) return t;
  const auto put_rows = [&] {  // the axes of labels: targets are of one row an image
    for (int i = 0; i < (targets ? 1 : y.rank); ++i) {
      if (i) t.put(", ");
      y[i].print(t);
    }
  };
  t.put("cross entropy of ");
  x.print(t);
  t.put(targets ? " and targets " : " and labels ");
  y.print(t);
  t.put(": it needs one row of logits a label, [");
  put_rows();
  t.put(", J] and [");
  put_rows();
  t.put("]");
  if (targets) t.put(", or targets of the shape of the logits");
  Shape needed = y;
  if (x.rank) needed.dim[needed.rank++] = x.dim[x.rank - 1];
  if (one_label_a_row(y, x))
    t.put(" (did you mean cross_entropy(logits, labels), the logits first?)");
  else
    suggest_pooling(t, x, needed);
  t.put(" [cross-entropy-shape]");
  return t;
}

}  // namespace detail

/// The mean of logsumexp(row) - row[label], for logits [B, ..., J] and integer labels [B, ...]; or of the sum of
/// -target * log_softmax(row) for targets and logits [B, J], which are probabilities. Probabilities may be given as
/// logits; they are then normalised a second time. Sentence: [cross-entropy-shape]. PyTorch equivalent:
/// torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten()).
template <AnyTensor Logits, AnyTensor Labels>
auto cross_entropy(const Logits& logits, const Labels& labels) {
  if constexpr (poisoned<Logits, Labels>) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::cross_entropy_problem(Logits::shape, Labels::shape, true); };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else if constexpr (Labels::shape.rank == Logits::shape.rank)
      return -mean(sum<1>(labels * log_softmax<1>(logits)));
    else
      return Tensor<>(recorder().cross_entropy(node_of(logits), node_of(labels)));
  }
}

/// cross_entropy with the label's target lowered to 1 - smoothing + smoothing/J, and all others raised to smoothing/J:
/// cross_entropy<0.1>(logits, labels), for logits [B, ..., J] and integer labels [B, ...]. Szegedy et al. 2016,
/// section 7. Sentences: [cross-entropy-shape], [label-smoothing]. PyTorch equivalent:
/// torch.nn.functional.cross_entropy(logits, labels, label_smoothing=smoothing).
template <double smoothing, AnyTensor Logits, AnyTensor Labels>
auto cross_entropy(const Logits& logits, const Labels& labels) {
  if constexpr (poisoned<Logits, Labels>) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      Text t = detail::cross_entropy_problem(Logits::shape, Labels::shape, false);
      if (t.size || (smoothing >= 0 && smoothing <= 1)) return t;
      t.put("cross entropy with a label smoothing of ");
      detail::put_decimal(t, smoothing);
      t.put(": it is the share that goes to all classes alike, from 0 to 1 [label-smoothing]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      const auto exact = cross_entropy(logits, labels);
      const auto even = -mean(log_softmax<-1>(logits));
      const auto share = even * smoothing;
      return exact * (1 - smoothing) + share;
    }
  }
}

/// The mean of -log(row[label]), for probabilities [B, ..., J] and integer labels [B, ...]. Sentence:
/// [cross-entropy-shape].
/// PyTorch equivalent: torch.nn.functional.nll_loss(probabilities.log(), labels).
template <AnyTensor Probabilities, AnyTensor Labels>
auto cross_entropy_of_probabilities(const Probabilities& probabilities, const Labels& labels) {
  if constexpr (poisoned<Probabilities, Labels>) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::cross_entropy_problem(Probabilities::shape, Labels::shape, false); };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      // The row's number is picked before the logarithm, which may be infinite for the others.
      constexpr int last = Probabilities::shape.rank - 1;
      const auto picked = sum<-1>(one_hot<typename Probabilities::dims::template at<last>{}>(labels) * probabilities);
      return -mean(log(picked));
    }
  }
}

}  // namespace tessera
