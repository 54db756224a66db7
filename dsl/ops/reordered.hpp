// How permute, take, stack and expand record that axes change places, go away or are new.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "dsl/recorder.hpp"

namespace tessera::detail {

/// Axis i of the result is axis order[i] of x, or, where that is -1, a new one of size 1. An axis of x that stands
/// nowhere in the order has size 1 and goes away.
inline graph::NodeId reordered(graph::NodeId x, const std::vector<int>& order) {
  const std::vector<Dim> shape = recorder().shape(x);
  std::vector<Dim> to;
  graph::Rearrangement r;
  r.from.resize(shape.size());
  r.to.resize(order.size());
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i] != static_cast<int>(axis)) continue;
      const int atom = static_cast<int>(r.atoms.size());
      r.atoms.push_back(shape[axis]);
      r.from[axis].push_back(atom);
      r.to[i].push_back(atom);
    }
  for (const int axis : order) to.push_back(axis < 0 ? Dim::constant(1) : shape[static_cast<std::size_t>(axis)]);
  return recorder().rearrange(x, std::move(r), std::move(to));
}

/// 0, 1, ..., rank - 1 without `axis`.
inline std::vector<int> axes_but(int axis, int rank) {
  std::vector<int> rest;
  for (int i = 0; i < rank; ++i)
    if (i != axis) rest.push_back(i);
  return rest;
}

}  // namespace tessera::detail
