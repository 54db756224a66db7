// Training whose step has two phases, each an emitted program with an optimiser and keys of its own: generator and
// discriminator. Both are over one set of parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// The emitted C API of a phase, as a table. Functions return 0 or an error code that `error` puts into words.
struct TrainingPhase {
  std::string name;  ///< what errors call it: "generator"
  std::uint64_t declaration_hash = 0;
  std::span<const tessera_parameter> parameters;
  std::span<const char* const> losses;  ///< what the numbers of `losses` are
  std::int64_t parameter_floats = 0, packed_floats = 0, optimizer_floats = 0, image_floats = 0, output_floats = 0,
               alignment = 64;
  std::int64_t (*scratch_bytes)(std::int64_t batch) = nullptr;
  const char* (*error)(int code) = nullptr;
  const char* (*isa)() = nullptr;
  int (*init)(float* parameters, std::uint64_t seed) = nullptr;
  int (*pack)(const float* parameters, float* packed) = nullptr;
  int (*loss_and_gradients)(const float* parameters, const float* packed, const float* images, const float* factor,
                            std::int64_t batch, std::int64_t at_once, std::uint64_t seed, std::int64_t step,
                            float* outputs, float* losses, float* loss, float* gradients, void* scratch) = nullptr;
  int (*update)(float* parameters, float* packed, const float* gradients, float* optimizer, std::int64_t step,
                float learning_rate) = nullptr;
  const Cuda* cuda = nullptr;  ///< the same phase on a GPU; null: the program was built without
};

/// The phases in turns: gradients of the first, its update, gradients of the second with what the first has become, its
/// update. Each counts its own steps, which are the same for both. Bits do not depend on the number of threads.
class AlternatingPhases {
 public:
  /// For batches of at most `batch` images; `on_gpu`: its memory holds all, and computes. Throws an Error where the
  /// phases are not over the same parameters, or where a GPU is asked for and there is none, or has no room.
  AlternatingPhases(const TrainingPhase& first, const TrainingPhase& second, std::int64_t batch, bool on_gpu = false);
  ~AlternatingPhases();
  AlternatingPhases(AlternatingPhases&&) noexcept;

  /// On the CPU. Those that a GPU computes with are these until its first step, from which on these are copies.
  float* parameters() const;
  /// The moments of both phases: their keys are disjoint, so that they lie in one array, zero at the start.
  float* optimizer() const;
  std::int64_t optimizer_floats() const { return phases_[0].optimizer_floats; }

  /// Starting values as declared.
  void init(std::uint64_t seed);

  /// Both phases of step `step`, counted from 1, of images [batch, ...]. `factor` is that of the adversarial losses.
  /// Throws an Error that names the phase and the parameter where a loss or a gradient is not a number; that phase has
  /// then changed nothing.
  void step(const float* images, std::int64_t batch, std::int64_t step, float factor, const float (&learning_rate)[2]);

  /// What the first phase (0) or the second (1) gave in the last step.
  std::span<const float> outputs(int phase) const { return outputs_[phase]; }
  /// A number of either phase's table of losses, in the last step.
  float loss(std::string_view name) const;
  std::span<const float> losses(int phase) const { return losses_[phase]; }
  const TrainingPhase& phase(int which) const { return phases_[which]; }

 private:
  struct OnGpu;
  void run(int which, const float* images, std::int64_t batch, std::int64_t step, float factor, float learning_rate);
  void run_on_gpu(int which, std::int64_t batch, std::int64_t step, float factor, float learning_rate);
  void check(int which, int code) const;
  /// Throws an Error that names what is not a number among what `which` gave; nothing where all are.
  void demand_numbers(int which, std::int64_t step, float loss, const float* gradients) const;

  TrainingPhase phases_[2];
  std::int64_t batch_;
  Arena parameters_, gradients_, optimizer_, packed_[2], scratch_;
  std::vector<float> outputs_[2], losses_[2];
  std::unique_ptr<OnGpu> gpu_;
};

}  // namespace tessera::runtime

/// The table of the phase whose functions begin with `model` and whose macros begin with `MODEL`.
#define TESSERA_TRAINING_PHASE(model, MODEL, said)                                                                  \
  ::tessera::runtime::TrainingPhase {                                                                               \
    .name = said, .declaration_hash = MODEL##_DECLARATION_HASH, .parameters = model##_parameters,                   \
    .losses = model##_losses, .parameter_floats = MODEL##_PARAMETER_FLOATS, .packed_floats = MODEL##_PACKED_FLOATS, \
    .optimizer_floats = MODEL##_OPTIMIZER_FLOATS, .image_floats = MODEL##_IMAGE_FLOATS,                             \
    .output_floats = MODEL##_OUTPUT_FLOATS, .alignment = MODEL##_ALIGNMENT,                                         \
    .scratch_bytes = [](std::int64_t batch) -> std::int64_t { return MODEL##_TRAIN_SCRATCH_BYTES(batch); },         \
    .error = model##_error, .isa = model##_isa, .init = model##_init, .pack = model##_pack,                         \
    .loss_and_gradients = model##_loss_and_gradients, .update = model##_update                                      \
  }
