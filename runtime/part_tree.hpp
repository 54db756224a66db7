// The order in which the gradients of a step's parts are summed: a fixed binary tree over the parts' numbers. Which
// sums are made depends on how many parts the step has, and not on who has which of them, or when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::runtime {

/// The sum of the parts (index << level) up to ((index + 1) << level), as far as the step has them.
struct Subtree {
  int level = 0;
  std::int64_t index = 0;
  int buffer = 0;  ///< where it lies: a number of the caller's
};

/// Adds siblings as long as there are two. `nodes` are disjoint, in the order of their parts, and of a step of `parts`
/// parts; the last of a level, whose sibling would have no part, is its parent. `add(into, from)` adds the sum in
/// buffer `from` to that in `into`.
template <class Add>
void add_siblings(std::vector<Subtree>& nodes, std::int64_t parts, Add add) {
  for (int level = 0; (std::int64_t{1} << level) < parts; ++level) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Subtree node = nodes[i];
      if (node.level == level && node.index % 2 == 0) {
        const bool sibling =
            i + 1 < nodes.size() && nodes[i + 1].level == level && nodes[i + 1].index == node.index + 1;
        if (sibling) add(node.buffer, nodes[++i].buffer);
        if (sibling || ((node.index + 1) << level) >= parts) node = {level + 1, node.index / 2, node.buffer};
      }
      nodes[kept++] = node;
    }
    nodes.resize(kept);
  }
}

/// Sums parts that come in the order of their numbers, as a binary counter does: sibling after sibling, so that as few
/// sums wait as their numbers have binary digits.
class PartTree {
 public:
  static constexpr int fresh = -1;  ///< the part that comes, in a buffer's place

  /// The next part of a step that has `parts`. `sum(into, from, kept)` adds what lies in `from`, a buffer or the fresh
  /// part, to buffer `into`, or, where it is not kept, puts it there.
  template <class Sum>
  void add(std::int64_t part, std::int64_t parts, Sum sum) {
    if (part % 2 == 1 && !nodes_.empty() && nodes_.back().level == 0) {
      sum(nodes_.back().buffer, fresh, true);  // beside its sibling: it needs no buffer of its own
      nodes_.back() = {1, part / 2, nodes_.back().buffer};
    } else {
      int buffer = buffers_;
      if (free_.empty())
        ++buffers_;
      else
        buffer = free_.back(), free_.pop_back();
      sum(buffer, fresh, false);
      nodes_.push_back({0, part, buffer});
    }
    add_siblings(nodes_, parts, [&](int into, int from) {
      sum(into, from, true);
      free_.push_back(from);
    });
  }

  /// The sums so far; after all parts of a step one.
  const std::vector<Subtree>& nodes() const { return nodes_; }
  /// Forgets them, for the next step.
  void clear() {
    for (const Subtree& node : nodes_) free_.push_back(node.buffer);
    nodes_.clear();
  }

  /// How many buffers the parts from `first` to `last` of a step of `parts` take.
  static int buffers(std::int64_t first, std::int64_t last, std::int64_t parts) {
    PartTree tree;
    for (std::int64_t part = first; part < last; ++part) tree.add(part, parts, [](int, int, bool) {});
    return tree.buffers_;
  }

 private:
  std::vector<Subtree> nodes_;
  std::vector<int> free_;
  int buffers_ = 0;
};

}  // namespace tessera::runtime
