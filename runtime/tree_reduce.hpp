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

  /// Begins the sum over a step of `parts` parts. `nodes` are the sums of this rank's parts, [floats] each, in `sums`;
  /// both stay until `finish`.
  void begin(const std::vector<Subtree>& nodes, const std::vector<Arena>& sums, std::int64_t parts);
  /// These floats of the sums of this rank are final: begins to exchange them, once they are enough for a message.
  /// Together the ranges are all floats, each once, and the same, in the same order, on all ranks.
  void ready(std::int64_t from, std::int64_t to);
  /// Begins to exchange what is left. After this, other messages may be sent.
  void end_ranges();
  /// This rank's slice of the sum, times `share`, into the same slice of `to`. The sums are not whole afterwards.
  void finish(float share, float* to);
  /// Of `all`, [floats], every rank's slice to every rank.
  void all_gather(float* all);

  std::int64_t sent() const { return sent_; }  ///< bytes, by this rank, of all steps so far

 private:
  const Communicator& ranks_;
  std::int64_t floats_;
  // By tree_reduce.cpp, and not by what tests link in its place.
  [[maybe_unused]] std::int64_t alignment_;
  [[maybe_unused]] std::int64_t parts_ = 0;
  std::vector<Subtree> nodes_;  ///< of all ranks: their buffers are numbers of `slices_`
  std::vector<float*> slices_;  ///< this rank's slice of each
  struct Node {
    float* sum;
    int rank;
  };
  std::vector<Node> sends_, receives_;  ///< whole sums of this rank; slices that other ranks' are received into
  std::int64_t from_ = 0, to_ = 0;      ///< what waits for the rest of its message
  std::vector<Arena> received_;
  std::int64_t sent_ = 0;
};

}  // namespace tessera::runtime
