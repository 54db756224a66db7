// A training run: all that the emitted training loop needs around the model's own functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/batches.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/communicator.hpp"
#include "runtime/evaluate.hpp"
#include "runtime/folder_lock.hpp"
#include "runtime/gpu_training.hpp"
#include "runtime/gradient_sums.hpp"
#include "runtime/model.hpp"
#include "runtime/progress.hpp"
#include "runtime/run_start.hpp"
#include "runtime/stop_signals.hpp"
#include "runtime/train_options.hpp"
#include "runtime/tree_reduce.hpp"

namespace tessera::runtime {

/// Holds the data, the memory and the place in the run; counts, shows, evaluates and saves. The emitted loop is
///
///     if (run.is_new()) run.check(vit_init(run.parameters(), recipe.seed));
///     run.check(vit_pack(run.parameters(), run.packed()));
///     for (std::int64_t epoch = run.epoch(); epoch < recipe.epochs; ++epoch) {
///       run.begin_epoch();
///       while (const Batch* batch = run.next_batch()) {
///         float loss = 0;
///         run.check(vit_loss_and_gradients(..., &loss, run.gradients(), ...));
///         run.count(loss);
///         run.check(vit_update(run.parameters(), run.packed(), run.gradients(), run.optimizer(), ...));
///         if (!run.record()) return run.stop();
///       }
///       run.end_epoch();
///     }
///     return run.finish();
///
/// and where several batches make one step:
///
///         run.check(vit_loss_and_gradients(..., run.part(), ..., &loss, run.gradients(), ...));
///         if (!run.gather(loss)) continue;
///         run.check(vit_update(run.parameters(), run.packed(), run.gathered(), run.optimizer(), ...));
///         if (!run.record()) return run.stop();
///
/// On a GPU, `pack` is left out, and all of a step is
///
///         if (!run.step_on_gpu(learning_rate)) continue;
///
/// Of several ranks each goes through this loop. A batch is one part of a step, and next_batch gives those of this
/// rank's share; what `gather` leaves, and all that `record` and `end_epoch` decide, is the same on all ranks.
class Session {
 public:
  /// Reads or draws the images, makes the folder, takes the memory and, for a resumed run, reads the checkpoint. Throws
  /// an Error when any of that cannot be done, or when the options contradict the checkpoint.
  Session(const Model& model, const Recipe& declared, const TrainOptions& options);

  const Recipe& recipe() const { return state_.recipe; }  ///< the declared one with the command line's changes
  bool is_new() const { return !started_; }               ///< the parameters have to be given their starting values
  std::int64_t epoch() const { return state_.epoch; }     ///< epochs done: the number of the one to go on with, from 0
  std::int64_t step() const { return state_.step + 1; }   ///< the number of the step to do next, from 1
  std::int64_t steps() const { return state_.recipe.epochs * steps_per_epoch(); }
  std::int64_t steps_per_epoch() const;
  /// False when the test loss has not been better for as many epochs as the recipe has patience.
  bool improves() const;

  float* parameters() { return parameters_.floats(); }
  float* packed() { return packed_.floats(); }  ///< room for the packed parameters
  float* gradients() { return gradients_.floats(); }
  float* optimizer() { return optimizer_.floats(); }
  float* outputs() { return outputs_->floats(); }    ///< [batch, classes]
  void* scratch() { return scratch_->data(); }       ///< as large as a training step needs
  std::int64_t at_once() const { return at_once_; }  ///< so many images of a batch `scratch` is for

  /// Throws an Error in the model's words unless `code` is 0.
  void check(int code) const { runtime::check(model_, code); }

  void begin_epoch();
  /// The next batch of the epoch, or nullptr at its end.
  const Batch* next_batch();
  /// Counts the loss and the right answers in outputs(). Throws an Error when the loss or a gradient is not a number:
  /// it names the first such layer. So this stands before the update, while the parameters are those that led there;
  /// the last checkpoint stays.
  void count(float loss);
  /// After each step: shows progress, saves when it is time to. False when the run shall stop.
  bool record();

  /// The number of the batch to do next, from 1, where several make one step.
  std::int64_t part() const { return state_.step * state_.recipe.accumulate + part_ + 1; }
  /// Counts as `count` does, adds gradients() to those of the step's other batches, along the tree over their numbers,
  /// and answers whether a step is due: enough batches are in, or the epoch is over. gathered() is then the mean over
  /// all their images, those of the other ranks too.
  bool gather(float loss);
  float* gathered() { return gathered_; }
  /// What the model calls while it computes the last part of this rank's share, with the session for a context: adds a
  /// range of gradients() that is final to the sums, and begins to exchange it. Null: `gather` does so with all of
  /// them.
  using RangeReady = void (*)(void* session, std::int64_t from, std::int64_t to);
  RangeReady ready();

  // Of a program that can run as several ranks. Each rank updates its slice of the parameters, by its slice of
  // gathered() and the optimiser's state of that slice, which is all that optimizer() holds:
  //
  //         run.check(vit_squares(run.gathered(), run.slice().first_chunk, run.slice().last_chunk, run.squares()));
  //         run.share_squares();
  //         run.check(vit_update_range(run.parameters(), run.gathered(), run.optimizer(), run.slice().first,
  //                                    run.slice().last, run.squares(), run.step(), learning_rate));
  //         run.share_parameters();
  //         run.check(vit_pack(run.parameters(), run.packed()));
  //
  // Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020,
  // stage 1.
  Slice slice() const { return slice_of(model_.parameter_floats, ranks_.rank(), ranks_.size()); }
  double* squares() { return squares_; }  ///< [64]: of the chunks of gathered()
  void share_squares();                   ///< every rank's to every rank
  void share_parameters();                ///< those that it has updated

  bool on_gpu() const { return gpu_ != nullptr; }
  /// What `count` or `gather` and the model's own functions do on the CPU, for the batch that `next_batch` gave: false
  /// where more batches belong to the step. parameters() and optimizer() are brought here only for what reads them.
  bool step_on_gpu(float learning_rate);

  /// Evaluates on the test images, writes the curve and a checkpoint.
  void end_epoch();
  /// Saves after `record` returned false and tells how to go on. Returns the program's exit code, 130.
  int stop();
  /// Saves, draws the curve and sample predictions, writes the report. Returns the program's exit code, 0.
  int finish();

  std::filesystem::path checkpoint() const { return checkpoint_in(out_); }

 private:
  /// What a part of a step adds to the sums.
  struct Part {
    float loss;  ///< mean over its images
    std::int32_t correct;
    std::int64_t images;
  };
  std::string last_good() const;
  std::string kernels() const;
  /// The moving average of the parameters or, where there is none, the parameters.
  const float* evaluated();
  /// Evaluates on the test images.
  void evaluate_now();
  void demand_numbers(float loss) const;
  void demand_own_numbers(float loss);
  Part measured(float loss);
  void tally(const Part& part);
  void end_parts();
  void exchange_counts(const std::vector<Part>& own);
  void fetch();
  void share_start(const Recipe& declared);
  void open_data();
  void add_row(const Evaluation* test);
  bool save_is_due(std::int64_t step) const;
  void save(bool best = false);  ///< `best`: as the best epoch's, too
  std::int64_t batches_per_epoch() const;
  std::int64_t parts_of_step() const;
  PartGradients gradients_of_part() { return {part_, gradients(), static_cast<float>(batch_->size)}; }
  /// Of several ranks: optimizer() and gathered() are of a slice.
  bool has_slice() const { return !ranks_.alone(); }
  bool is_followed() const { return own_.size() > 0 && part_ + 1 < own_.last; }  ///< by a part of the same share

  const Model& model_;
  const Communicator& ranks_;
  TrainingState state_;
  std::filesystem::path out_;
  std::string command_;
  std::int64_t checkpoint_every_;
  std::optional<FolderLock> lock_;
  std::optional<UnsavedRun> unsaved_;
  StopSignals signals_;
  Dataset train_, test_;
  Arena parameters_, packed_, gradients_, optimizer_;
  std::optional<Arena> outputs_, scratch_;
  std::optional<GradientSums> sums_;  ///< on the CPU
  bool overlaps_ = false;             ///< as the command line asks
  float* gathered_ = nullptr;
  std::int64_t at_once_ = 0;
  std::int64_t part_ = 0;             ///< of the step that is not yet done: the one to do next, from 0
  PartRange own_;                     ///< those of this rank; none: it computes one of others, for nothing
  std::int64_t gathered_images_ = 0;  ///< of the step
  std::vector<Part> counts_;          ///< of this rank's parts so far
  std::string failure_;               ///< why this rank cannot go on
  bool begins_step_ = true;
  std::string sent_;              ///< how many ranks there are, and what they have sent; empty of one
  std::optional<Arena> average_;  ///< of all ranks
  double squares_[Slice::chunks] = {};
  bool stops_ = false, saves_ = false;  ///< after this step, as all ranks have agreed
  const Gpu* gpu_;
  bool loaded_ = false;  ///< the GPU has the parameters
  bool fetched_ = true;  ///< and they are no newer than those here
  std::optional<Batches> batches_;
  std::optional<GpuTraining> training_;  // pins the batches' memory
  const Batch* batch_ = nullptr;
  bool begun_ = false;    ///< by a process that was killed before it saved
  bool started_ = false;  ///< the parameters are those of a checkpoint or of a file
  std::optional<Progress> progress_;
  std::optional<Evaluation> tested_;  ///< of the parameters as they are, right after an epoch
  std::optional<std::int64_t> saved_step_;
  std::filesystem::path previous_;  ///< where the checkpoint of a run before goes, until this run saves
  std::chrono::steady_clock::time_point saved_at_;
};

}  // namespace tessera::runtime
