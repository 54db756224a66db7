#include "runtime/tree_reduce.hpp"

#include <algorithm>

namespace tessera::runtime {

std::vector<Subtree> subtrees(PartRange share, std::int64_t parts) {
  PartTree tree;
  for (std::int64_t part = share.first; part < share.last; ++part) tree.add(part, parts, [](int, int, bool) {});
  return tree.nodes();
}

Slice slice_of(std::int64_t floats, int rank, int ranks) {
  const auto chunk = [&](int of_rank) { return Slice::chunks * of_rank / ranks; };
  const auto at = [&](int of_rank) { return floats / 16 * chunk(of_rank) / Slice::chunks * 16; };
  return {chunk(rank), chunk(rank + 1), at(rank), at(rank + 1)};
}

std::int64_t bytes_of_step(std::int64_t floats, std::int64_t parts, int rank, int ranks) {
  const std::int64_t own = slice_of(floats, rank, ranks).size();
  const auto nodes = static_cast<std::int64_t>(subtrees(share_of_parts(parts, rank, ranks), parts).size());
  return 4 * (nodes * (floats - own) + own * (ranks - 1));
}

TreeReduce::TreeReduce(const Communicator& ranks, std::int64_t floats, std::int64_t alignment)
    : ranks_(ranks), floats_(floats), alignment_(alignment) {}

void TreeReduce::begin(const std::vector<Subtree>& nodes, const std::vector<Arena>& sums, std::int64_t parts) {
  const int here = ranks_.rank();
  parts_ = parts;
  nodes_.clear();
  slices_.clear();
  sends_.clear();
  receives_.clear();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    for (Subtree node : rank == here ? nodes : subtrees(share_of_parts(parts, rank, ranks_.size()), parts)) {
      if (rank == here) {
        float* const sum = sums[static_cast<std::size_t>(node.buffer)].floats();
        sends_.push_back({sum, here});
        slices_.push_back(sum + slice().first);
      } else {
        const std::size_t which = receives_.size();
        if (which == received_.size()) received_.push_back(Arena::of_floats(slice().size(), alignment_));
        receives_.push_back({received_[which].floats(), rank});
        slices_.push_back(received_[which].floats());
      }
      node.buffer = static_cast<int>(slices_.size()) - 1;
      nodes_.push_back(node);
    }
  }
}

void TreeReduce::ready(std::int64_t from, std::int64_t to) {
  constexpr std::int64_t message = 1 << 14;  // floats: of less, the message itself costs more than its bytes
  if (from != to_) end_ranges();
  if (from_ == to_) from_ = from;
  to_ = to;
  if (to_ - from_ >= message) end_ranges();
}

void TreeReduce::end_ranges() {
  const auto exchanged = [&](const Slice& of, auto each) {
    const std::int64_t first = std::max(from_, of.first), last = std::min(to_, of.last);
    if (first < last) each(first, last - first);
  };
  for (const Node& node : receives_)
    exchanged(slice(), [&](std::int64_t first, std::int64_t count) {
      ranks_.receive(node.sum + first - slice().first, 4 * count, node.rank);
    });
  for (int step = 1; step < ranks_.size(); ++step) {
    const int rank = (ranks_.rank() + step) % ranks_.size();
    exchanged(slice(rank), [&](std::int64_t first, std::int64_t count) {
      for (const Node& node : sends_) {
        ranks_.send(node.sum + first, 4 * count, rank);
        sent_ += 4 * count;
      }
    });
  }
  from_ = to_ = 0;
  ranks_.progress();
}

void TreeReduce::finish(float share, float* to) {
  ranks_.wait();
  const std::int64_t begin = slice().first, own = slice().size();
  add_siblings(nodes_, parts_, [&](int into, int from) {
    float* const sum = slices_[static_cast<std::size_t>(into)];
    const float* const other = slices_[static_cast<std::size_t>(from)];
    for (std::int64_t i = 0; i < own; ++i) sum[i] += other[i];
  });
  const float* const sum = slices_[static_cast<std::size_t>(nodes_.front().buffer)];
  for (std::int64_t i = 0; i < own; ++i) to[begin + i] = sum[i] * share;
}

void TreeReduce::all_gather(float* all) {
  std::vector<std::int64_t> begins;
  for (int rank = 0; rank <= ranks_.size(); ++rank) begins.push_back(4 * slice(rank).first);
  ranks_.all_gather(all, begins);
  sent_ += 4 * slice().size() * (ranks_.size() - 1);
}

}  // namespace tessera::runtime
