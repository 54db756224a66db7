// What repeat and reduce record around their own node: brackets opened on the left, and closed on the right.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "dsl/ops/reordered.hpp"
#include "dsl/pattern.hpp"
#include "dsl/recorder.hpp"

namespace tessera::detail {

/// x with one dim a name of `side`, whose groups are x's axes; `all`: the dim of every name.
inline graph::NodeId opened(graph::NodeId x, const PatternSide& side, const std::vector<Dim>& all) {
  bool split = false;
  for (int g = 0; g < side.groups; ++g) split |= side.count[g] != 1;
  if (!split) return x;
  graph::Rearrangement r;
  std::vector<Dim> to;
  for (int i = 0; i < side.names; ++i) {
    to.push_back(all[static_cast<std::size_t>(side.name[i])]);
    r.to.push_back({i});
  }
  r.atoms = to;
  for (int g = 0, i = 0; g < side.groups; ++g) {
    r.from.emplace_back();
    for (int k = 0; k < side.count[g]; ++k) r.from.back().push_back(i++);
  }
  return recorder().rearrange(x, std::move(r), std::move(to));
}

/// x, which has one dim a name of `side`, with its groups as axes; `to`: their dims.
inline graph::NodeId closed(graph::NodeId x, const PatternSide& side, std::vector<Dim> to) {
  bool merged = false;
  for (int g = 0; g < side.groups; ++g) merged |= side.count[g] != 1;
  if (!merged) return x;
  graph::Rearrangement r;
  r.atoms = recorder().shape(x);
  for (int i = 0; i < side.names; ++i) r.from.push_back({i});
  for (int g = 0, i = 0; g < side.groups; ++g) {
    r.to.emplace_back();
    for (int k = 0; k < side.count[g]; ++k) r.to.back().push_back(i++);
  }
  return recorder().rearrange(x, std::move(r), std::move(to));
}

/// x with its axes in this order, where it is another one.
inline graph::NodeId in_order(graph::NodeId x, const std::vector<int>& order) {
  bool permuted = false;
  for (std::size_t i = 0; i < order.size(); ++i) permuted |= order[i] != static_cast<int>(i);
  return permuted ? reordered(x, order) : x;
}

}  // namespace tessera::detail
