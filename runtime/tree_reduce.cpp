#include "runtime/tree_reduce.hpp"

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

void TreeReduce::reduce(const std::vector<Subtree>& nodes, const std::vector<Arena>& sums, std::int64_t parts,
                        float share, float* to) {
  const int here = ranks_.rank(), ranks = ranks_.size();
  const std::int64_t begin = slice().first, own = slice().size();
  std::vector<Subtree> all;
  std::vector<float*> slices;
  std::size_t received = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (Subtree node : rank == here ? nodes : subtrees(share_of_parts(parts, rank, ranks), parts)) {
      if (rank == here) {
        slices.push_back(sums[static_cast<std::size_t>(node.buffer)].floats() + begin);
      } else {
        if (received == received_.size()) received_.push_back(Arena::of_floats(own, alignment_));
        slices.push_back(received_[received++].floats());
        ranks_.receive(slices.back(), 4 * own, rank);
      }
      node.buffer = static_cast<int>(slices.size()) - 1;
      all.push_back(node);
    }
  }
  for (int step = 1; step < ranks; ++step) {
    const int rank = (here + step) % ranks;
    const Slice theirs = slice(rank);
    for (const Subtree& node : nodes) {
      ranks_.send(sums[static_cast<std::size_t>(node.buffer)].floats() + theirs.first, 4 * theirs.size(), rank);
      sent_ += 4 * theirs.size();
    }
  }
  ranks_.wait();
  add_siblings(all, parts, [&](int into, int from) {
    float* const sum = slices[static_cast<std::size_t>(into)];
    const float* const other = slices[static_cast<std::size_t>(from)];
    for (std::int64_t i = 0; i < own; ++i) sum[i] += other[i];
  });
  const float* const sum = slices[static_cast<std::size_t>(all.front().buffer)];
  for (std::int64_t i = 0; i < own; ++i) to[begin + i] = sum[i] * share;
}

void TreeReduce::all_gather(float* all) {
  std::vector<std::int64_t> begins;
  for (int rank = 0; rank <= ranks_.size(); ++rank) begins.push_back(4 * slice(rank).first);
  ranks_.all_gather(all, begins);
  sent_ += 4 * slice().size() * (ranks_.size() - 1);
}

}  // namespace tessera::runtime
