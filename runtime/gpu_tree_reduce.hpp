// The sum of the gradients on all ranks' GPUs, along the tree over the parts of a step: see tree_reduce.hpp.
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

  /// The sum over a step of `parts` parts, times `share`, into `to`, on every GPU: each adds its slice, by the kernel
  /// that adds on one GPU, and gives it to the others. `nodes` are the sums of this rank's parts, in `sums`, which are
  /// not whole afterwards.
  void reduce(const std::vector<Subtree>& nodes, const std::vector<GpuMemory>& sums, std::int64_t parts, float share,
              float* to);

  std::int64_t sent() const { return sent_; }  ///< bytes, by this rank, of all steps so far

 private:
  void wait() const;

  const Communicator& ranks_;
  const Model& model_;
  const Gpu& gpu_;
  const GpuRanks& engine_;
  Slice own_;
  std::vector<GpuMemory> received_;
  std::int64_t sent_ = 0;
};

}  // namespace tessera::runtime
