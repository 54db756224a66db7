// Checkpoints: a training run as one safetensors file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "runtime/curve.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/model.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {

/// Everything beside the numbers of the model and of its optimiser that decides how a run goes on. Nothing in it
/// depends on the clock: a run that was killed and resumed ends in the same bytes as one that was not.
struct TrainingState {
  Recipe recipe;
  DataChoice data;
  std::uint32_t fingerprint = 0;  ///< of the training images
  // What checkpoints of 0.1 do not say is absent.
  std::optional<std::uint32_t> test_fingerprint;  ///< of the test images
  std::string kernels;                            ///< the instruction set, whose sums decide the last bits, or "cuda"
  std::optional<std::filesystem::path> init;      ///< parameters that the run started from; empty: the declared ones
  std::vector<std::string> skip;                  ///< keys that `init` did not set
  std::int64_t step = 0;                          ///< steps done
  std::int64_t epoch = 0;                         ///< epochs done
  std::int64_t position = 0;                      ///< images of the running epoch done
  // Sums since the last row of the curve
  double loss_sum = 0;  ///< of loss * images
  std::int64_t correct = 0;
  std::int64_t seen = 0;  ///< images
  std::int64_t batches = 0;
  std::int64_t best_epoch = 0;  ///< after which the test loss was lowest, counted from 1; 0: not tested yet
  double best_loss = 0;
  Curve curve;
  std::vector<std::string> classes;  ///< their names; none: they have only their numbers
};

/// What those who use parameters have to know beside the model: it travels with them, in the metadata of every file.
struct Usage {
  Preprocessing input;               ///< what the pictures were made of that the parameters were trained on
  std::vector<std::string> classes;  ///< as in TrainingState

  /// As metadata, with the model's grid of patches, from which position tables are resampled to another.
  void write(Safetensors& file, const Model& model) const;
};

/// Writes parameters under their keys, the optimiser's state as "optimizer.m.<key>" and the like, and the rest as
/// metadata; all or nothing. What the file was before stays as `keep`, unless that is empty.
void save_checkpoint(const std::filesystem::path& path, const Model& model, const float* parameters,
                     const float* optimizer, const TrainingState& state, const std::filesystem::path& keep = {});

/// Writes the parameters as a checkpoint that has no training run: it can be evaluated and started from, not resumed.
void save_model(const std::filesystem::path& path, const Model& model, const float* parameters,
                const std::optional<Usage>& usage, const std::filesystem::path& keep = {});

/// Reads a checkpoint to go on training from. Throws an Error for a file that lacks the optimiser or the state, and for
/// all that load_parameters refuses.
TrainingState resume_checkpoint(const std::filesystem::path& path, const Model& model, float* parameters,
                                float* optimizer);

/// Writes what a run that has not saved yet was started with: a file without tensors, which `read_start` reads as
/// resume_checkpoint reads a checkpoint.
void write_start(const std::filesystem::path& path, const Model& model, const TrainingState& state);
TrainingState read_start(const std::filesystem::path& path, const Model& model);

/// The state as text, for another process of the same program.
std::string packed_state(const Model& model, const TrainingState& state);
TrainingState unpacked_state(const std::string& text);

/// What is about to be written to a path of the user's choice.
enum class Output { parameters, other };

/// Throws an Error where the output would take the place of a model: of a checkpoint with a training run, whose
/// optimiser parameters alone would lose, or, unless it holds parameters itself, of any safetensors file; or of what is
/// read (spare_inputs).
void spare_models(const std::filesystem::path& path, Output output,
                  const std::vector<std::filesystem::path>& inputs = {});

/// What a file of parameters says beside them, as far as it does.
struct Loaded {
  std::optional<TrainingState> state;
  std::optional<Usage> usage;
};

/// Reads the parameters that are to be used: of a checkpoint (the averaged ones where it has them), or of any
/// safetensors file with the model's keys, in F32, F16, BF16 or F64. What lies between them in `parameters` stays as it
/// is. A position table of another grid is resampled; `notes` then says so. Throws an Error that tells every
/// difference: tensors that are missing, of another shape or type, or unknown to the model; a model of another name or
/// declaration.
Loaded load_parameters(const std::filesystem::path& path, const Model& model, float* parameters,
                       std::ostream& notes = std::cout);

/// How the parameters in a file are used, as far as it says so, without reading them.
std::optional<Usage> read_usage(const std::filesystem::path& path);

/// Reads parameters to start from, of a file as for load_parameters, but of any model and declaration with these keys.
/// `skip` are keys that keep what `parameters` hold already ("head.*" is all that begin with "head."); `notes` says
/// which. Throws an Error that tells every difference in what is not skipped.
std::optional<Usage> start_from(const std::filesystem::path& path, const Model& model,
                                const std::vector<std::string>& skip, float* parameters,
                                std::ostream& notes = std::cout);

}  // namespace tessera::runtime
