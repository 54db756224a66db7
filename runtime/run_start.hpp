// Where a training run starts: at its beginning, or where its folder says that it was stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "runtime/checkpoint.hpp"
#include "runtime/model.hpp"
#include "runtime/train_options.hpp"

namespace tessera::runtime {

struct RunStart {
  TrainingState state;
  std::optional<std::int64_t> saved_step;  ///< that the checkpoint holds
  bool begun = false;                      ///< by a process that was killed before it saved
  bool started = false;                    ///< the parameters are those of a checkpoint or of a file
  std::filesystem::path previous;          ///< where the checkpoint of a run before goes, until this run saves
};

inline std::filesystem::path checkpoint_in(const std::filesystem::path& out) { return out / "checkpoint.safetensors"; }
/// What an unsaved run was started with.
inline std::filesystem::path start_file_in(const std::filesystem::path& out) { return out / "start.safetensors"; }

/// Decides on it by what lies in `options.out`, whose lock the caller holds, and reads the parameters and the
/// optimiser's state, [Model::parameter_floats] and [Model::optimizer_floats()] of zeros, where there are any to go on
/// with. Throws an Error where the options contradict the run that they resume.
RunStart start_run(const Model& model, const Recipe& declared, const TrainOptions& options, float* parameters,
                   float* optimizer);

/// Throws an Error where a checkpoint could not say the path that the option names: no resumed run would find it.
void demand_text(const char* option, const std::filesystem::path& path);

/// Of a resumed run's recipe: what the command line cannot change, and no checkpoint says, is as declared.
void restore_recipe(TrainingState& state, const Recipe& declared);

/// Tells how a run was started until it saves for the first time: one that is killed before is then started once more,
/// and not another in its place. What a run that ends in another way was started with is forgotten, unless another
/// process wrote it.
class UnsavedRun {
 public:
  /// Writes it, or takes over what is there.
  UnsavedRun(const std::filesystem::path& path, const Model& model, const TrainingState& state, bool there);
  ~UnsavedRun();
  UnsavedRun(const UnsavedRun&) = delete;
  UnsavedRun& operator=(const UnsavedRun&) = delete;
  void saved() { there_ = false; }  ///< it goes, whoever wrote it

 private:
  std::filesystem::path path_;
  bool there_;
};

}  // namespace tessera::runtime
