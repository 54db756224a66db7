#include "runtime/run_start.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/exchange.hpp"
#include "runtime/file.hpp"
#include "runtime/inference.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

/// What a resumed run must not change: the rest of the run would not be the rest of the same run.
template <class Value>
void same(const std::optional<Value>& asked, const Value& started, const char* option,
          const std::filesystem::path& out) {
  if (asked && *asked != started)
    fail("the run in ", out.string(), " was started with ", option, " ", started, ", it cannot go on with ", option,
         " ", *asked);
}

/// Whether something has the name, be it a link to nothing.
bool is_there(const std::filesystem::path& path) {
  std::error_code unknown;
  return std::filesystem::symlink_status(path, unknown).type() != std::filesystem::file_type::not_found;
}

/// Whether two runs, from the beginning, are one and the same.
bool same_start(const TrainingState& a, const TrainingState& b) {
  return a.recipe.batch == b.recipe.batch && a.recipe.accumulate == b.recipe.accumulate &&
         a.recipe.epochs == b.recipe.epochs && a.recipe.learning_rate == b.recipe.learning_rate &&
         a.recipe.seed == b.recipe.seed && a.data == b.data && a.fingerprint == b.fingerprint &&
         a.test_fingerprint == b.test_fingerprint && a.init == b.init && a.skip == b.skip;
}

void check_options(const Model& model, const TrainingState& state, const TrainOptions& options) {
  const auto name = [](const std::filesystem::path& path) { return path.empty() ? "(none)" : path.string(); };
  same(options.seed, state.recipe.seed, "--seed", options.out);
  same(options.batch, state.recipe.batch, "--batch", options.out);
  same(options.accumulate, state.recipe.accumulate, "--accumulate", options.out);
  same(options.digits, state.data.digits, "--digits", options.out);
  same(options.limit, state.data.limit, "--limit", options.out);
  // A folder may have moved: whether its images are the same is seen when they are read.
  if (options.data && (options.data->empty() || state.data.folder.empty()))
    same(std::optional(name(*options.data)), name(state.data.folder), "--data", options.out);
  if (!options.data && !state.data.folder.empty() && !is_there(state.data.folder))
    fail("the images of the run in ", options.out.string(), " are no longer in ", state.data.folder.string(),
         ": --data says where they are now");
  if (!options.init.empty()) {
    if (!state.init)
      fail("the run in ", options.out.string(), " goes on with its own parameters: --init is for a run that starts");
    same(std::optional(name(options.init)), name(*state.init), "--init", options.out);
    if (options.skip != state.skip) fail("the run in ", options.out.string(), " was started with another --skip");
  }
  if (options.epochs && *options.epochs < state.epoch)
    fail("the run in ", options.out.string(), " has done ", state.epoch, " epochs already, more than --epochs ",
         *options.epochs);
  // Another device is asked for on the command line, another instruction set by nobody.
  const std::string isa = model.isa();
  // Without a name, TESSERA_ISA has one that is not known here, which kernels refuse.
  if (!options.gpu && !options.isa_change && !isa.empty() && !state.kernels.empty() && state.kernels != "cuda" &&
      state.kernels != isa)
    fail("the run in ", options.out.string(), " was trained with kernels for ", state.kernels, ", those for ", isa,
         " give other last bits: --isa-change goes on with them, TESSERA_ISA=", state.kernels,
         " with the same where this machine has it");
}

}  // namespace

void demand_text(const char* option, const std::filesystem::path& path) {
  if (!can_hold(path.string()))
    fail(option, " ", path.string(),
         " cannot be kept in a checkpoint, whose texts are UTF-8: give it such a name, or a link that has one");
}

void restore_recipe(TrainingState& state, const Recipe& declared) {
  Recipe recipe = declared;
  recipe.batch = state.recipe.batch;
  recipe.epochs = state.recipe.epochs;
  recipe.learning_rate = state.recipe.learning_rate;
  recipe.seed = state.recipe.seed;
  recipe.input = state.recipe.input;
  if (state.recipe.accumulate > 0) recipe.accumulate = state.recipe.accumulate;  // 0.1 does not say it
  state.recipe = recipe;
}

RunStart start_run(const Model& model, const Recipe& declared, const TrainOptions& options, float* parameters,
                   float* optimizer) {
  RunStart start;
  TrainingState& state = start.state;
  const std::filesystem::path checkpoint = checkpoint_in(options.out);
  check_target(checkpoint);
  const bool saved = options.resume && is_there(checkpoint);
  start.begun = options.resume && is_there(start_file_in(options.out));
  TrainingState begun;
  if (start.begun) begun = read_start(start_file_in(options.out), model);
  if (saved) {
    state = resume_checkpoint(checkpoint, model, parameters, optimizer);
    start.saved_step = state.step;
  }
  // A checkpoint beside what an unsaved run was started with is of the run before or, where that is the same, as good.
  if (start.begun && !(saved && same_start(state, begun))) {
    if (saved) {
      std::fill_n(parameters, model.parameter_floats, 0.0f);
      std::fill_n(optimizer, model.optimizer_floats(), 0.0f);
    }
    state = begun;
    start.saved_step.reset();
  }
  if (start.saved_step || start.begun) {
    restore_recipe(state, declared);
    check_options(model, state, options);
    if (options.data) state.data.folder = *options.data;
  } else {
    state.recipe = declared;
    state.recipe.seed = options.seed.value_or(declared.seed);
    state.recipe.batch = options.batch.value_or(declared.batch);
    state.recipe.accumulate = options.accumulate.value_or(declared.accumulate);
    state.data.digits = options.digits.value_or(state.data.digits);
    state.data.limit = options.limit.value_or(0);
    state.data.folder = options.data.value_or("");
    state.init = options.init;
    state.skip = options.skip;
  }
  for (const auto& [option, path] : {std::pair{"--data", state.data.folder}, {"--init", state.init.value_or("")}})
    demand_text(option, path);
  if (start.saved_step) {
    start.started = true;
  } else {
    // Not an error: a run that was killed before its first checkpoint is resumed by the same command as any other.
    if (start.begun)
      std::cout << "the run in " << options.out.string() << " ended before it saved: starting it from the beginning"
                << std::endl;
    else if (options.resume)
      std::cout << "there is no checkpoint in " << options.out.string() << " yet: starting from the beginning"
                << std::endl;
    if (state.init && !state.init->empty()) {
      check(model, model.init(parameters, state.recipe.seed));
      start_from(*state.init, model, state.skip, parameters);
      std::cout << "starting from the parameters of " << state.init->string() << std::endl;
      start.started = true;
    }
    start.previous = name_of_previous(options.out);
  }
  state.kernels = options.gpu ? "cuda" : model.isa();
  state.recipe.epochs = options.epochs.value_or(state.recipe.epochs);
  state.recipe.learning_rate = options.learning_rate.value_or(state.recipe.learning_rate);
  return start;
}

UnsavedRun::UnsavedRun(const std::filesystem::path& path, const Model& model, const TrainingState& state, bool there)
    : path_(path), there_(there) {
  if (!there) write_start(path, model, state);
}

UnsavedRun::~UnsavedRun() {
  if (!there_) ::unlink(path_.c_str());
}

}  // namespace tessera::runtime
