// GroupNorm: mean 0 and variance 1 over groups of channels, then a learned scale and shift of each channel.
#pragma once

#include <cstdint>
#include <vector>

#include "dsl/mismatch.hpp"
#include "dsl/module.hpp"
#include "dsl/ops/reductions.hpp"

namespace tessera {

namespace detail {

constexpr void put_group_norm(Text& t, const Dim& groups, const Dim& channels) {
  t.put("group norm of ");
  channels.print(t);
  t.put(" channels in ");
  groups.print(t);
  t.put(" groups");
}

constexpr Text groups_problem(const Dim& groups, const Dim& channels) {
  Text t;
  const bool known = groups.known() && channels.known();
  if (known && groups.value() > 0 && channels.value() % groups.value() == 0) return t;
  put_group_norm(t, groups, channels);
  if (!known) {
    t.put(" needs sizes that are known when the program is compiled [dim-unknown]");
    return t;
  }
  if (groups.value() < 1) {
    t.put(": there is at least one [group-norm-groups]");
    return t;
  }
  std::int64_t fewer = groups.value();
  while (channels.value() % fewer != 0) --fewer;
  t.put(": ").put(channels.value() % groups.value()).put(" channels are left over; ");
  t.put(fewer).put(fewer == 1 ? " group divides them [group-norm-groups]" : " groups divide them [group-norm-groups]");
  return t;
}

constexpr Text group_norm_problem(const Shape& x, const Dim& groups, const Dim& channels) {
  Text t;
  if (x.rank >= 2 && x[1] == channels) return t;
  put_group_norm(t, groups, channels);
  t.put(" cannot take ");
  x.print(t);
  t.put(": ");
  if (x.rank < 2) {
    t.put("it has no axis of channels, needs [B, C, ...]");
  } else {
    t.put("axis 1 is ");
    x[1].print(t);
    t.put(", needs ");
    channels.print(t);
    Shape moved{2, {x.dim[0], &channels}};  // with the channels second
    for (int i = 1; i + 1 < x.rank; ++i) moved.dim[moved.rank++] = x.dim[i];
    if (x.back() == channels && suggest_rearrange(t, " (", x, moved))
      t.put(")");
    else
      suggest(t, x[1], channels, 1);
  }
  t.put(" [group-norm-axis]");
  return t;
}

/// x [B, C, ...] with mean 0 and variance 1 over each of `groups` groups of neighbouring channels and all that follows.
inline graph::NodeId record_group_norm(graph::NodeId x, std::int64_t groups, double epsilon) {
  graph::Builder& r = recorder();
  const std::vector<Dim> shape = r.shape(x);
  const std::int64_t channels = shape[1].value();
  // Channels as a number, of which groups are a factor whatever the axis is called.
  std::vector<Dim> plain = shape, apart = shape;
  plain[1] = Dim::constant(channels);
  apart[1] = Dim::constant(groups);
  apart.insert(apart.begin() + 2, Dim::constant(channels / groups));
  graph::Rearrangement split;
  split.atoms = apart;
  split.from = {{0}, {1, 2}};
  for (int atom = 0; atom < static_cast<int>(apart.size()); ++atom) {
    split.to.push_back({atom});
    if (atom > 2) split.from.push_back({atom});
  }
  const graph::NodeId grouped = r.rearrange(r.slice(x, 1, 0, plain[1]), split, apart);
  std::vector<int> axes;
  for (int axis = 2; axis < static_cast<int>(apart.size()); ++axis) axes.push_back(axis);
  const std::vector<Dim> over(apart.begin() + 2, apart.end());
  const graph::NodeId one = r.broadcast(r.constant(1), over, {});
  const graph::NodeId zero = r.broadcast(r.constant(0), over, {});
  // The norm takes the mean of what is left, so that of a mean far from zero no rounding stays; a shift has no
  // gradient.
  const graph::NodeId mean = r.unary(graph::Op::stop_gradient, reduced(Reduction::mean, grouped, axes));
  const graph::NodeId left = r.subtract(grouped, r.broadcast(mean, apart, {0, 1}));
  const graph::NodeId normed = r.layer_norm(left, one, zero, axes, epsilon);
  return r.slice(r.rearrange(normed, {apart, split.to, split.from}, plain), 1, 0, shape[1]);
}

}  // namespace detail

/// (x - mean) / sqrt(variance + epsilon) * weight + bias of [B, C, ...]: mean and biased variance over each of G groups
/// of neighbouring channels, with all positions, of one image; weight and bias of a channel (Wu, He 2018). The variance
/// is that of what is left without the mean, so that a mean far from zero cancels nothing. G has to divide C. Keys:
/// weight [C], bias [C], which start at one and zero. Sentences: [group-norm-axis], [group-norm-groups], [dim-unknown].
/// PyTorch equivalent: torch.nn.GroupNorm(G, C, eps=epsilon).
template <DimExpression auto G, DimExpression auto C>
struct GroupNorm : Module {
  double epsilon;
  Parameter<C> weight{constant(1)};
  Parameter<C> bias{constant(0)};
  TESSERA_MEMBERS(GroupNorm, weight, bias)

  explicit GroupNorm(double eps = 1e-5) : epsilon(eps) {}

  template <AnyTensor X>
  auto forward(const X& x) const {
    using Of = typename Tensor<G, C>::dims;
    if constexpr (Of::poisoned) {
      return Poison{};
    } else {
      constexpr auto groups_fit = [] { return detail::groups_problem(Of::shape[0], Of::shape[1]); };
      constexpr auto problem = [] { return detail::group_norm_problem(X::shape, Of::shape[0], Of::shape[1]); };
      if constexpr (!fits<decltype(groups_fit)>) {
        return Refusal<decltype(groups_fit)>::poison();
      } else if constexpr (!fits<decltype(problem)>) {
        return Refusal<decltype(problem)>::poison();
      } else {
        graph::Builder& r = recorder();
        const std::vector<Dim> shape = X::shape.dims();
        const graph::NodeId value = detail::record_group_norm(node_of(x), Of::shape[0].value(), epsilon);
        const graph::NodeId scaled = r.multiply(value, r.broadcast(node_of(weight), shape, {1}));
        return TensorOf<typename X::dims>(r.add(scaled, r.broadcast(node_of(bias), shape, {1})));
      }
    }
  }
};

}  // namespace tessera
