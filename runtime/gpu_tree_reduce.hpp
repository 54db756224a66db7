// The sum of the gradients on all ranks' GPUs, along the tree over the parts of a step: see tree_reduce.hpp. Each owns
// a slice of it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/communicator.hpp"
#include "runtime/gpu.hpp"
#include "runtime/tree_reduce.hpp"

namespace tessera::runtime {

class GpuTreeReduce {
 public:
  /// Joins the GPUs of all ranks. Both must outlive this. Throws an Error where the program is not linked with NCCL.
  GpuTreeReduce(const Communicator& ranks, const Model& model, const Gpu& gpu);
  ~GpuTreeReduce();
  GpuTreeReduce(const GpuTreeReduce&) = delete;
  GpuTreeReduce& operator=(const GpuTreeReduce&) = delete;

  Slice slice() const { return own_; }  ///< this rank's
  /// This rank's slice of the sum over a step of `parts` parts, times `share`, into the same slice of `to`: added by
  /// the kernel that adds on one GPU. `nodes` are the sums of this rank's parts, in `sums`, which are not whole
  /// afterwards.
  void reduce(const std::vector<Subtree>& nodes, const std::vector<GpuMemory>& sums, std::int64_t parts, float share,
              float* to);
  /// Of `all`, as long as the parameters, every rank's slice to every rank.
  void all_gather(float* all);
  /// [64] Sums of squares of chunks, of which `all_gather_squares` gives every rank's to every rank.
  double* squares() const { return static_cast<double*>(squares_.data()); }
  void all_gather_squares();

  std::int64_t sent() const { return sent_; }  ///< bytes, by this rank, of all steps so far

 private:
  /// Rank r has the bytes from begins[r] to begins[r + 1] of `all`: afterwards every rank has all of them.
  void all_gather(void* all, const std::vector<std::int64_t>& begins);
  void wait() const;

  const Communicator& ranks_;
  const Model& model_;
  const Gpu& gpu_;
  const GpuRanks& engine_;
  Slice own_;
  std::vector<GpuMemory> received_;
  GpuMemory squares_;
  std::int64_t sent_ = 0;
};

}  // namespace tessera::runtime
