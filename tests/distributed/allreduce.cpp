// In the place of runtime/tree_reduce.cpp: sums of the ranks by MPI_Allreduce, whose order is the engine's.
#include "runtime/tree_reduce.hpp"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

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

std::int64_t bytes_of_step(std::int64_t, std::int64_t, int, int) { return 0; }

TreeReduce::TreeReduce(const Communicator& ranks, std::int64_t floats, std::int64_t alignment)
    : ranks_(ranks), floats_(floats), alignment_(alignment) {}

void TreeReduce::begin(const std::vector<Subtree>& nodes, const std::vector<Arena>& sums, std::int64_t) {
  from_ = to_ = 0;
  sends_.clear();
  for (const Subtree& node : nodes) sends_.push_back({sums[static_cast<std::size_t>(node.buffer)].floats(), 0});
}

void TreeReduce::ready(std::int64_t, std::int64_t) {}

void TreeReduce::end_ranges() {}

void TreeReduce::finish(float share, float* to) {
  std::vector<float> own(static_cast<std::size_t>(floats_)), all(own.size());
  for (const Node& node : sends_)
    for (std::size_t i = 0; i < own.size(); ++i) own[i] += node.sum[i];
  MPI_Allreduce(own.data(), all.data(), static_cast<int>(floats_), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (std::size_t i = 0; i < all.size(); ++i) to[i] = all[i] * share;
}

void TreeReduce::all_gather(float* all) {
  std::vector<std::int64_t> begins;
  for (int rank = 0; rank <= ranks_.size(); ++rank) begins.push_back(4 * slice(rank).first);
  ranks_.all_gather(all, begins);
}

}  // namespace tessera::runtime
