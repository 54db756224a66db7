// The sum of all ranks' gradients: each rank owns a slice of them and adds, along the tree over the parts of a step,
// what the others send of it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/communicator.hpp"
#include "runtime/part_tree.hpp"

namespace tessera::runtime {

/// Parts from `first` to `last`.
struct PartRange {
  std::int64_t first = 0, last = 0;
  std::int64_t size() const { return last - first; }
};

/// A rank's share of the parts of a step; none where there are fewer parts than ranks and others have them.
inline PartRange share_of_parts(std::int64_t parts, int rank, int ranks) {
  return {rank * parts / ranks, (rank + 1) * parts / ranks};
}

/// The subtrees that a rank sums alone.
std::vector<Subtree> subtrees(PartRange share, std::int64_t parts);

/// What a rank owns of the parameters, their gradients and the optimiser's state: whole chunks of the 64 whose sums of
/// squares clipping adds up, so that their sum is the same for any number of ranks.
struct Slice {
  static constexpr std::int64_t chunks = 64;
  std::int64_t first_chunk = 0, last_chunk = chunks;
  std::int64_t first = 0, last = 0;  ///< floats
  std::int64_t size() const { return last - first; }
};

/// That of a rank, of an arena of `floats`, a multiple of 16.
Slice slice_of(std::int64_t floats, int rank, int ranks);

/// The bytes that a rank sends in a step: of each of its subtrees the slices of the others, and its slice to them.
std::int64_t bytes_of_step(std::int64_t floats, std::int64_t parts, int rank, int ranks);

class TreeReduce {
 public:
  /// `ranks` must outlive this.
  TreeReduce(const Communicator& ranks, std::int64_t floats, std::int64_t alignment);

  Slice slice(int rank) const { return slice_of(floats_, rank, ranks_.size()); }
  Slice slice() const { return slice(ranks_.rank()); }  ///< this rank's

  /// This rank's slice of the sum over a step of `parts` parts, times `share`, into the same slice of `to`. `nodes` are
  /// the sums of this rank's parts, [floats] each, in `sums`, which are not whole afterwards.
  void reduce(const std::vector<Subtree>& nodes, const std::vector<Arena>& sums, std::int64_t parts, float share,
              float* to);
  /// Of `all`, [floats], every rank's slice to every rank.
  void all_gather(float* all);

  std::int64_t sent() const { return sent_; }  ///< bytes, by this rank, of all steps so far

 private:
  const Communicator& ranks_;
  std::int64_t floats_;
  [[maybe_unused]] std::int64_t alignment_;  // by tree_reduce.cpp, and not by what tests link in its place
  std::vector<Arena> received_;
  std::int64_t sent_ = 0;
};

}  // namespace tessera::runtime
