// Training steps on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "runtime/batches.hpp"
#include "runtime/gpu.hpp"
#include "runtime/gpu_tree_reduce.hpp"
#include "runtime/model.hpp"
#include "runtime/part_tree.hpp"

namespace tessera::runtime {

/// Parameters, gradients and the optimiser's state in a GPU's memory, and the steps that change them. A batch goes
/// through `put`, `start` and `answer`. Where the recipe makes a step of several batches, `gather` follows each, and
/// `update` the last; else `start` updates too, and all that it does is one CUDA graph. `model`, `gpu` must outlive
/// this.
class GpuTraining {
 public:
  /// Takes memory for batches of `recipe.batch` images and, where several make one step, for `sums` sums of their
  /// gradients. Of the optimiser's state it holds the slice of this rank. Throws an Error where the images are too
  /// many.
  GpuTraining(const Model& model, const Recipe& recipe, const Gpu& gpu, int sums = 0,
              const Communicator& ranks = Communicator::single());

  /// Parameters and the optimiser's state, of several ranks this one's slice, from the CPU's memory, and back.
  void load(const float* parameters, const float* optimizer) const;
  void store(float* parameters, float* optimizer) const;
  void store_gradients(float* gradients) const;

  ~GpuTraining();
  GpuTraining(const GpuTraining&) = delete;
  GpuTraining& operator=(const GpuTraining&) = delete;

  /// Copies the batch to the GPU, unless put_ahead did. `number` is that of the step, or of the batch where several
  /// make one: what dropout drops depends on it and the seed.
  void put(const Batch& batch, std::uint64_t seed, std::int64_t number, float learning_rate);
  /// Begins to copy the next batch, beside what `start` began. Its memory is pinned when it is first seen: it has to
  /// outlive this, and stays as it is until the `answer` behind the batch's own `start`.
  void put_ahead(const Batch& batch);
  void start();
  struct Answer {
    float loss = 0;
    bool stopped = false;  ///< the loss or a gradient is not a number: nothing was updated
  };
  /// Waits for what `start` began. outputs [batch, classes]
  Answer answer(float* outputs) const;

  /// Adds the gradients of the batch, number `part` (from 0) of the `parts` of a step, weighted by its images, to those
  /// gathered since the last update, along the tree over these numbers.
  void gather(std::int64_t part, std::int64_t parts);
  /// Updates by the mean of the gradients gathered, `share` times their sum, which is that of all ranks: each updates
  /// its slice of the parameters, and gets those of the others. `step` is its number, from 1.
  void update(std::int64_t step, std::int64_t parts, float share, float learning_rate);

  /// Joins the GPUs of the ranks, which share a step from here on. All of them call it.
  void join() { reduce_.emplace(ranks_, model_, gpu_); }
  std::int64_t sent() const { return reduce_ ? reduce_->sent() : 0; }  ///< bytes, by this rank, of all steps so far

 private:
  /// What a batch's answer lies in, so that one copy brings it: the step, the loss, and `outputs_at` bytes from its
  /// start the outputs.
  static constexpr std::int64_t loss_at = sizeof(tessera_cuda_step), outputs_at = 64;
  tessera_cuda_step* step() const { return static_cast<tessera_cuda_step*>(answer_.data()); }
  float* loss() const { return answer_.floats() + loss_at / 4; }
  float* outputs() const { return answer_.floats() + outputs_at / 4; }
  /// Images and what the loss compares, of one of two batches.
  struct Inputs {
    Inputs(const Model& model, const Recipe& recipe, const Gpu& gpu);
    GpuMemory images, labels, targets;
    std::unique_ptr<void, void (*)(void*)> graph;  ///< of a batch of the recipe's size that lies here
  };
  /// Copies a batch in the order of a stream.
  void copy(const Inputs& inputs, const Batch& batch, void* stream) const;
  void pin(const void* memory, std::int64_t bytes);
  void update_slice(std::int64_t parts, float share);
  void kernels() const;

  const Model& model_;
  const Gpu& gpu_;
  const Cuda& cuda_;
  const Communicator& ranks_;
  Recipe recipe_;
  std::int64_t state_floats_;  ///< of the optimiser's state, here
  GpuParameters parameters_;
  GpuMemory gradients_, optimizer_, answer_, scratch_;
  PartTree tree_;
  std::vector<GpuMemory> sums_;  ///< its buffers
  Inputs inputs_[2];
  int which_ = 0;                                  ///< of them has the batch at hand
  std::unique_ptr<void, void (*)(void*)> copies_;  ///< a stream
  const float* ahead_ = nullptr;                   ///< images that are on their way into the other ones
  std::set<const void*> seen_, pinned_;            ///< of put_ahead
  tessera_cuda_step given_{};                      ///< what `put` wrote
  bool warm_ = false;                              ///< a batch of the recipe's size was there before
  std::int64_t size_ = 0;                          ///< of the batch that is there
  std::optional<GpuTreeReduce> reduce_;
};

}  // namespace tessera::runtime
