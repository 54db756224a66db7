// No checkpoint may do more than draw an Error: whatever is accepted has fields within their bounds, evaluates, and
// goes on training.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/error.hpp"
#include "runtime/safetensors.hpp"
#include "tests/fuzz/called_program.hpp"
#include "tests/fuzz/safetensors_mutator.hpp"
#include "tests/runtime/sample_table.hpp"

#define main sample_program  // which is called as a function
#include "tests/runtime/sample_program.cpp"
#undef main

namespace {

const char* const fields[] = {"batch",
                              "batches",
                              "best_epoch",
                              "best_loss",
                              "correct",
                              "curve",
                              "data",
                              "digits",
                              "epoch",
                              "declaration_hash",
                              "epochs",
                              "fingerprint",
                              "test_fingerprint",
                              "format",
                              "input_crop",
                              "input_interpolation",
                              "input_squash",
                              "input_pad",
                              "input_deviation.0",
                              "input_mean.2",
                              "learning_rate",
                              "limit",
                              "loss_sum",
                              "model",
                              "position",
                              "seed",
                              "seen",
                              "step",
                              "kernels",
                              "init",
                              "skip",
                              "classes",
                              "class_names",
                              "patches"};

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return tessera::test::mutate_safetensors(data, size, most, seed, fields);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tessera::test::CallFolder folder;
  static const Model sample = sample_model();
  static const Arena parameters = Arena::of_floats(sample.parameter_floats, 64),
                     optimizer = Arena::of_floats(sample.optimizer_floats(), 64);
  const std::filesystem::path file = folder.path() / "checkpoint.safetensors";
  std::filesystem::remove_all(folder.path() / "start.safetensors");
  folder.write("checkpoint.safetensors", data, size);
  std::ostringstream notes;
  try {
    read_metadata(file);
    start_from(file, sample, {"head.*"}, parameters.floats(), notes);
  } catch (const Error&) {
  }
  try {
    read_start(file, sample);
  } catch (const Error&) {
  }
  bool resumes = false;
  try {
    const Loaded loaded = load_parameters(file, sample, parameters.floats(), notes);
    for (std::int64_t i = 0; i < sample.parameter_floats; ++i)
      if (!std::isfinite(parameters.floats()[i])) std::abort();
    const TrainingState state = resume_checkpoint(file, sample, parameters.floats(), optimizer.floats());
    if (!loaded.state) std::abort();
    const Recipe& r = state.recipe;
    if (r.batch < 1 || r.batch > most_batch || r.epochs < 0 || r.epochs > most_epochs || state.epoch < 0 ||
        state.position < 0 || state.step < 0 || state.seen < 0 || state.correct < 0 || state.correct > state.seen ||
        !std::isfinite(state.loss_sum) || !std::isfinite(r.learning_rate) || state.data.digits < 1 ||
        state.data.digits > most_digits)
      std::abort();
    // What takes a moment, and reads no folder that the input names.
    resumes = state.data.folder.empty() && state.data.digits <= 60 && r.batch <= 1000 && r.epochs - state.epoch <= 2;
  } catch (const Error&) {
  }
  if (!resumes) return 0;
  const auto run = [](std::vector<std::string> arguments) {
    return tessera::test::call(sample_program, std::move(arguments));
  };
  run({"eval", "--checkpoint", file.string(), "--digits", "6"});
  const std::string out = folder.path().string();
  if (run({"train", "--resume", "--isa-change", "--out", out}) == 0)
    resume_checkpoint(file, sample, parameters.floats(), optimizer.floats());
  return 0;
}
