// Runs the structural nodes of a graph (rearrange, broadcast, slice, concat) on plain arrays, straight from their
// definition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <vector>

#include "dsl/graph/graph.hpp"

namespace tessera::test {

/// Row-major numbers and their sizes.
struct Array {
  std::vector<std::int64_t> size;
  std::vector<double> data;

  bool operator==(const Array&) const = default;
};

inline std::int64_t count(const std::vector<std::int64_t>& size) {
  std::int64_t n = 1;
  for (const std::int64_t s : size) n *= s;
  return n;
}

inline std::vector<std::int64_t> sizes(const std::vector<Dim>& dims, std::int64_t batch) {
  std::vector<std::int64_t> s;
  for (const Dim& d : dims) s.push_back(d.value(batch));
  return s;
}

/// 0, 1, 2, ... in an array of this size.
inline Array iota(std::vector<std::int64_t> size) {
  Array a{std::move(size), {}};
  for (std::int64_t i = 0; i < count(a.size); ++i) a.data.push_back(static_cast<double>(i));
  return a;
}

inline std::vector<std::int64_t> unravel(std::int64_t flat, const std::vector<std::int64_t>& size) {
  std::vector<std::int64_t> index(size.size());
  for (std::size_t i = size.size(); i-- > 0; flat /= size[i]) index[i] = flat % size[i];
  return index;
}

inline std::int64_t ravel(const std::vector<std::int64_t>& index, const std::vector<std::int64_t>& size) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < size.size(); ++i) flat = flat * size[i] + index[i];
  return flat;
}

/// The position in operand `which` that a result index of `node` comes from; -1: another operand's.
inline std::int64_t source(const graph::Node& node, const std::vector<std::int64_t>& index, std::int64_t& offset,
                           const std::vector<std::int64_t>& from, std::int64_t batch) {
  std::vector<std::int64_t> at(from.size());
  if (node.op == graph::Op::broadcast) {
    for (std::size_t i = 0; i < from.size(); ++i) at[i] = index[static_cast<std::size_t>(node.axes[i])];
  } else if (node.op == graph::Op::slice) {
    at = index;
    at[static_cast<std::size_t>(node.axes[0])] += node.offset;
  } else if (node.op == graph::Op::concat) {
    at = index;
    const auto axis = static_cast<std::size_t>(node.axes[0]);
    at[axis] -= offset;
    offset += from[axis];
    if (at[axis] < 0 || at[axis] >= from[axis]) return -1;
  } else if (node.op == graph::Op::rearrange) {
    const graph::Rearrangement& r = node.rearrangement;
    const std::vector<std::int64_t> atoms = sizes(r.atoms, batch);
    std::vector<std::int64_t> atom(atoms.size());
    for (std::size_t d = 0; d < index.size(); ++d) {
      std::int64_t rest = index[d];
      for (std::size_t i = r.to[d].size(); i-- > 0;) {
        const auto a = static_cast<std::size_t>(r.to[d][i]);
        atom[a] = rest % atoms[a];
        rest /= atoms[a];
      }
    }
    for (std::size_t d = 0; d < from.size(); ++d)
      for (const int a : r.from[d])
        at[d] = at[d] * atoms[static_cast<std::size_t>(a)] + atom[static_cast<std::size_t>(a)];
  } else {
    throw std::logic_error("not a structural node");
  }
  return ravel(at, from);
}

/// What `wanted` is, given the leaves.
inline Array run(const graph::Graph& g, graph::NodeId wanted, std::map<graph::NodeId, Array> known,
                 std::int64_t batch) {
  for (graph::NodeId id = 0; id <= wanted; ++id) {
    if (known.count(id)) continue;
    const graph::Node& node = g[id];
    Array result{sizes(node.shape, batch), {}};
    for (std::int64_t i = 0; i < count(result.size); ++i) {
      std::int64_t offset = 0;
      for (const graph::NodeId operand : node.operands) {
        const Array& x = known.at(operand);
        const std::int64_t at = source(node, unravel(i, result.size), offset, x.size, batch);
        if (at < 0) continue;
        result.data.push_back(x.data.at(static_cast<std::size_t>(at)));
        break;
      }
    }
    known[id] = std::move(result);
  }
  return known.at(wanted);
}

}  // namespace tessera::test
