#include "runtime/session.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

#include "runtime/confusion.hpp"
#include "runtime/curve.hpp"
#include "runtime/divergence.hpp"
#include "runtime/error.hpp"
#include "runtime/exchange.hpp"
#include "runtime/file.hpp"
#include "runtime/html.hpp"
#include "runtime/numbers.hpp"
#include "runtime/predictions.hpp"
#include "runtime/report.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

constexpr double seconds_between_checkpoints = 20;
constexpr std::int64_t rows_per_epoch = 20;

volatile std::sig_atomic_t stop_raised = 0;

void raise_stop(int) { stop_raised = 1; }

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
  return a.recipe.batch == b.recipe.batch && a.recipe.epochs == b.recipe.epochs &&
         a.recipe.learning_rate == b.recipe.learning_rate && a.recipe.seed == b.recipe.seed && a.data == b.data &&
         a.fingerprint == b.fingerprint && a.test_fingerprint == b.test_fingerprint && a.init == b.init &&
         a.skip == b.skip;
}

std::string percent(double part) { return fixed(100 * part, 2) + "%"; }

}  // namespace

UnsavedRun::UnsavedRun(const std::filesystem::path& path, const Model& model, const TrainingState& state, bool there)
    : path_(path), there_(there) {
  if (!there) write_start(path, model, state);
}

UnsavedRun::~UnsavedRun() {
  if (!there_) ::unlink(path_.c_str());
}

StopSignals::StopSignals() {
  stop_raised = 0;
  struct sigaction action{};
  action.sa_handler = raise_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigaction(SIGINT, &action, &interrupt_);
  ::sigaction(SIGTERM, &action, &terminate_);
}

StopSignals::~StopSignals() {
  ::sigaction(SIGINT, &interrupt_, nullptr);
  ::sigaction(SIGTERM, &terminate_, nullptr);
}

bool StopSignals::raised() { return stop_raised != 0; }

Session::Session(const Model& model, const Recipe& declared, const TrainOptions& options)
    : model_(model),
      out_(options.out),
      command_(options.command),
      checkpoint_every_(options.checkpoint_every),
      parameters_(Arena::of_floats(model.parameter_floats, model.alignment)),
      packed_(Arena::of_floats(model.packed_floats, model.alignment)),
      gradients_(Arena::of_floats(model.parameter_floats, model.alignment)),
      optimizer_(Arena::of_floats(model.optimizer_floats(), model.alignment)),
      gpu_(options.gpu) {
  make_folder(out_);
  // Two runs in one folder would overwrite each other's checkpoint.
  lock_.emplace(out_);
  settle(declared, options);
  open_data();
  const std::int64_t batch = state_.recipe.batch;
  outputs_.emplace(Arena::of_floats(size_product({batch, model_.classes}), model_.alignment));
  if (gpu_) {
    training_.emplace(model_, state_.recipe, *gpu_);
  } else {
    at_once_ = model_.images_at_once(batch);
    scratch_.emplace(model_.train_scratch_bytes(at_once_), model_.alignment);
    if (state_.recipe.accumulate > 1) gathered_.emplace(Arena::of_floats(model_.parameter_floats, model_.alignment));
  }
  batches_.emplace(train_, state_.recipe, model_.classes, model_.alignment);
  const std::int64_t left = (state_.recipe.epochs - state_.epoch) * train_.size() - state_.position;
  const char* const kind = std::getenv("TERM");
  const bool terminal = ::isatty(STDOUT_FILENO) != 0 && !(kind && std::string_view(kind) == "dumb");
  progress_.emplace(std::max<std::int64_t>(left, 0), terminal);
  progress_->line(text(model_.name, ": ", grouped(train_.size()), " training and ", grouped(test_.size()),
                       " test images (", train_.source, "), ", state_.recipe.epochs, " epochs of ", steps_per_epoch(),
                       " steps, batch ", batch, ", learning rate ", shortest(state_.recipe.learning_rate), ", seed ",
                       state_.recipe.seed, ", kernels ", kernels()));
  if (saved_step_) progress_->line(text("going on after step ", state_.step, " of ", checkpoint().string()));
  saved_at_ = std::chrono::steady_clock::now();
  if (!saved_step_ || begun_) unsaved_.emplace(start(), model_, state_, begun_);
}

void Session::settle(const Recipe& declared, const TrainOptions& options) {
  check_target(checkpoint());
  const bool saved = options.resume && is_there(checkpoint());
  begun_ = options.resume && is_there(start());
  TrainingState begun;
  if (begun_) begun = read_start(start(), model_);
  if (saved) {
    state_ = resume_checkpoint(checkpoint(), model_, parameters(), optimizer());
    saved_step_ = state_.step;
  }
  // A checkpoint beside what an unsaved run was started with is of the run before or, where that is the same, as good.
  if (begun_ && !(saved && same_start(state_, begun))) {
    if (saved) {
      std::fill_n(parameters(), model_.parameter_floats, 0.0f);
      std::fill_n(optimizer(), model_.optimizer_floats(), 0.0f);
    }
    state_ = begun;
    saved_step_.reset();
  }
  if (saved_step_ || begun_) {
    // What the command line cannot change is as declared.
    Recipe recipe = declared;
    recipe.batch = state_.recipe.batch;
    recipe.epochs = state_.recipe.epochs;
    recipe.learning_rate = state_.recipe.learning_rate;
    recipe.seed = state_.recipe.seed;
    recipe.input = state_.recipe.input;
    state_.recipe = recipe;
    check_options(options);
    if (options.data) state_.data.folder = *options.data;
  } else {
    state_.recipe = declared;
    state_.recipe.seed = options.seed.value_or(declared.seed);
    state_.recipe.batch = options.batch.value_or(declared.batch);
    state_.data.digits = options.digits.value_or(state_.data.digits);
    state_.data.limit = options.limit.value_or(0);
    state_.data.folder = options.data.value_or("");
    state_.init = options.init;
    state_.skip = options.skip;
  }
  for (const auto& [option, path] : {std::pair{"--data", state_.data.folder}, {"--init", state_.init.value_or("")}})
    if (!can_hold(path.string()))
      fail(option, " ", path.string(),
           " cannot be kept in a checkpoint, whose texts are UTF-8: give it such a name, or a link that has one");
  if (saved_step_) {
    started_ = true;
  } else {
    // Not an error: a run that was killed before its first checkpoint is resumed by the same command as any other.
    if (begun_)
      std::cout << "the run in " << out_.string() << " ended before it saved: starting it from the beginning"
                << std::endl;
    else if (options.resume)
      std::cout << "there is no checkpoint in " << out_.string() << " yet: starting from the beginning" << std::endl;
    if (state_.init && !state_.init->empty()) {
      check(model_.init(parameters(), state_.recipe.seed));
      start_from(*state_.init, model_, state_.skip, parameters());
      std::cout << "starting from the parameters of " << state_.init->string() << std::endl;
      started_ = true;
    }
    previous_ = name_of_previous(out_);
  }
  state_.kernels = gpu_ ? "cuda" : model_.isa();
  state_.recipe.epochs = options.epochs.value_or(state_.recipe.epochs);
  state_.recipe.learning_rate = options.learning_rate.value_or(state_.recipe.learning_rate);
}

void Session::check_options(const TrainOptions& options) const {
  const auto name = [](const std::filesystem::path& path) { return path.empty() ? "(none)" : path.string(); };
  same(options.seed, state_.recipe.seed, "--seed", out_);
  same(options.batch, state_.recipe.batch, "--batch", out_);
  same(options.digits, state_.data.digits, "--digits", out_);
  same(options.limit, state_.data.limit, "--limit", out_);
  // A folder may have moved: whether its images are the same is seen when they are read.
  if (options.data && (options.data->empty() || state_.data.folder.empty()))
    same(std::optional(name(*options.data)), name(state_.data.folder), "--data", out_);
  if (!options.data && !state_.data.folder.empty() && !is_there(state_.data.folder))
    fail("the images of the run in ", out_.string(), " are no longer in ", state_.data.folder.string(),
         ": --data says where they are now");
  if (!options.init.empty()) {
    if (!state_.init)
      fail("the run in ", out_.string(), " goes on with its own parameters: --init is for a run that starts");
    same(std::optional(name(options.init)), name(*state_.init), "--init", out_);
    if (options.skip != state_.skip) fail("the run in ", out_.string(), " was started with another --skip");
  }
  if (options.epochs && *options.epochs < state_.epoch)
    fail("the run in ", out_.string(), " has done ", state_.epoch, " epochs already, more than --epochs ",
         *options.epochs);
  // Another device is asked for on the command line, another instruction set by nobody.
  const std::string isa = model_.isa();
  if (!gpu_ && !options.isa_change && !state_.kernels.empty() && state_.kernels != "cuda" && state_.kernels != isa)
    fail("the run in ", out_.string(), " was trained with kernels for ", state_.kernels, ", those for ", isa,
         " give other last bits: --isa-change goes on with them, TESSERA_ISA=", state_.kernels,
         " with the same where this machine has it");
}

void Session::open_data() {
  train_ = load(state_.data, Split::train, model_, state_.recipe.input);
  test_ = load(state_.data, Split::test, model_, state_.recipe.input);
  check_fit(model_, train_);
  check_fit(model_, test_);
  const std::uint32_t fingerprint = train_.fingerprint(), test_fingerprint = test_.fingerprint();
  const auto demand_same = [&](bool same, const char* which, const Dataset& data) {
    if (!same)
      fail("the ", which, " images (", data.source, ") are not those that the run in ", out_.string(),
           " was started with");
  };
  if (saved_step_ || begun_) {
    demand_same(fingerprint == state_.fingerprint, "training", train_);
    demand_same(test_fingerprint == state_.test_fingerprint.value_or(test_fingerprint), "test", test_);
  }
  const std::int64_t images_per_step = state_.recipe.batch * state_.recipe.accumulate;
  const auto demand = [&](bool sound, const char* key) {
    if (!sound) fail(checkpoint().string(), ": the checkpoint's '", key, "' is damaged");
  };
  demand(
      state_.position == train_.size() || (state_.position < train_.size() && state_.position % images_per_step == 0),
      "position");
  const std::int64_t steps_of_epoch = (state_.position + images_per_step - 1) / images_per_step;
  demand(state_.step == state_.epoch * steps_per_epoch() + steps_of_epoch, "step");
  state_.fingerprint = fingerprint;
  state_.test_fingerprint = test_fingerprint;
  state_.classes = train_.names;
}

std::int64_t Session::batches_per_epoch() const {
  return (train_.size() + state_.recipe.batch - 1) / state_.recipe.batch;
}

std::int64_t Session::steps_per_epoch() const {
  const std::int64_t accumulate = state_.recipe.accumulate;
  return (batches_per_epoch() + accumulate - 1) / accumulate;
}

bool Session::improves() const {
  return state_.recipe.patience == 0 || state_.epoch - state_.best_epoch < state_.recipe.patience;
}

std::string Session::kernels() const { return gpu_ ? "CUDA on " + gpu_->name() : model_.isa(); }

float* Session::evaluated() {
  const std::optional<std::int64_t> average = model_.average_offset();
  return average && state_.step > 0 ? optimizer() + *average : parameters();
}

void Session::begin_epoch() {
  batches_->begin(state_.epoch, state_.position);
  if (training_ && !std::exchange(loaded_, true)) training_->load(parameters(), optimizer());
  progress_->resume();
}

const Batch* Session::next_batch() { return batch_ = batches_->next(); }

std::string Session::last_good() const {
  return saved_step_ ? text(checkpoint().string(), " still holds step ", *saved_step_)
                     : std::string("no checkpoint was written before");
}

void Session::demand_numbers(float loss) const {
  if (!std::isfinite(loss))
    fail("training diverged: the loss of step ", step(),
         " is not a number: ", cause_of_loss(model_, parameters_.floats(), *batch_), "; ", last_good(),
         " (a smaller --lr may help)");
  if (const std::string cause = cause_of_gradients(model_, gradients_.floats()); !cause.empty())
    fail("training diverged: the loss of step ", step(), " is ", shortest(loss), ", but ", cause, "; ", last_good(),
         " (a smaller --lr may help)");
}

void Session::tally(float loss) {
  ++state_.batches;
  state_.position = batches_->position();
  state_.loss_sum += static_cast<double>(loss) * static_cast<double>(batch_->size);
  state_.seen += batch_->size;
  gathered_images_ += batch_->size;
  const auto classes = static_cast<std::size_t>(model_.classes);
  for (std::int64_t i = 0; i < batch_->size; ++i)
    state_.correct += largest({outputs() + i * model_.classes, classes}) == batch_->labels[i];
}

void Session::count(float loss) {
  demand_numbers(loss);
  tally(loss);
}

bool Session::step_is_due() {
  ++parts_;
  return parts_ == state_.recipe.accumulate || state_.position == train_.size();
}

bool Session::gather(float loss) {
  count(loss);
  float* const sum = gathered();
  const float* const fresh = gradients();
  const auto weight = static_cast<float>(batch_->size);
  for (std::int64_t i = 0; i < model_.parameter_floats; ++i) sum[i] = (parts_ ? sum[i] : 0) + weight * fresh[i];
  if (!step_is_due()) return false;
  const float share = 1 / static_cast<float>(gathered_images_);
  for (std::int64_t i = 0; i < model_.parameter_floats; ++i) sum[i] *= share;
  return true;
}

bool Session::step_on_gpu(float learning_rate) {
  const bool gathers = state_.recipe.accumulate > 1;
  training_->put(*batch_, state_.recipe.seed, gathers ? part() : step(), learning_rate);
  training_->start();
  if (const Batch* const next = batches_->prepare()) training_->put_ahead(*next);  // while the GPU computes
  fetched_ = false;
  const auto [loss, stopped] = training_->answer(outputs());
  if (stopped) {  // before any update: what led there is still there
    fetch();
    training_->store_gradients(gradients());
    demand_numbers(loss);
  }
  tally(loss);
  if (!gathers) return true;
  training_->gather();
  if (!step_is_due()) return false;
  training_->update(step(), learning_rate);
  return true;
}

void Session::fetch() {
  if (training_ && !std::exchange(fetched_, true)) training_->store(parameters(), optimizer());
}

bool Session::record() {
  ++state_.step;
  const auto seen = static_cast<double>(state_.seen);
  progress_->step(gathered_images_,
                  {state_.epoch + 1, state_.recipe.epochs, state_.position, train_.size(), state_.step,
                   state_.loss_sum / seen, static_cast<double>(state_.correct) / seen, state_.curve});
  parts_ = gathered_images_ = 0;
  // The last row of an epoch waits for the test.
  const std::int64_t interval = std::max<std::int64_t>(1, batches_per_epoch() / rows_per_epoch);
  if (state_.batches >= interval && state_.position < train_.size()) add_row(nullptr);

  if (StopSignals::raised()) return false;
  const auto now = std::chrono::steady_clock::now();
  const bool due = checkpoint_every_ > 0
                       ? state_.step % checkpoint_every_ == 0
                       : std::chrono::duration<double>(now - saved_at_).count() > seconds_between_checkpoints;
  if (due) save();
  return true;
}

void Session::add_row(const Evaluation* test) {
  const auto seen = static_cast<double>(std::max<std::int64_t>(state_.seen, 1));
  CurveRow row{state_.step,
               state_.epoch + 1,
               rounded(state_.loss_sum / seen),
               rounded(static_cast<double>(state_.correct) / seen),
               {},
               {}};
  if (test) {
    row.test_loss = rounded(test->loss);
    row.test_accuracy = rounded(test->accuracy());
  }
  state_.curve.push_back(row);
  state_.loss_sum = 0;
  state_.correct = state_.seen = state_.batches = 0;
}

void Session::evaluate_now() {
  const std::int64_t batch = state_.recipe.batch;
  tested_ = evaluate(model_, state_.recipe, Inference(model_, evaluated(), batch, gpu_), test_, batch);
}

void Session::end_epoch() {
  fetch();
  evaluate_now();
  const Evaluation& test = *tested_;
  add_row(&test);
  const CurveRow& row = state_.curve.back();
  ++state_.epoch;
  state_.position = 0;
  progress_->line(text("epoch ", state_.epoch, "/", state_.recipe.epochs, "  step ", state_.step, "  training loss ",
                       fixed(row.train_loss, 4), "  test loss ", fixed(test.loss, 4), "  test accuracy ",
                       percent(test.accuracy()), "  ", grouped(static_cast<std::int64_t>(progress_->rate())),
                       " images/s"));
  const bool best = std::isfinite(test.loss) && (state_.best_epoch == 0 || test.loss < state_.best_loss);
  if (best) {
    state_.best_epoch = state_.epoch;
    state_.best_loss = test.loss;
  }
  save();
  if (state_.recipe.patience == 0) return;
  if (best) save_checkpoint(out_ / "best.safetensors", model_, parameters(), optimizer(), state_);
  if (!improves())
    progress_->line(text("the test loss has not been better for ", state_.recipe.patience, " epochs: training stops; ",
                         (out_ / "best.safetensors").string(), " holds epoch ", state_.best_epoch));
}

void Session::save() {
  fetch();
  // The loss of a step is that before its update: an update can break the parameters that the next loss would show.
  const std::string broken = first_not_finite(model_, parameters());
  if (!broken.empty() || !finite(optimizer(), model_.optimizer_floats()))
    fail("training diverged: after step ", state_.step, " some parameters are not numbers",
         broken.empty() ? "" : ", first " + broken, "; ", last_good());
  save_checkpoint(checkpoint(), model_, parameters(), optimizer(), state_, previous_);
  if (!previous_.empty()) progress_->line("the checkpoint of the run before is kept as " + previous_.string());
  previous_.clear();
  if (unsaved_) unsaved_->saved();
  unsaved_.reset();
  saved_step_ = state_.step;
  saved_at_ = std::chrono::steady_clock::now();
  write_file(out_ / "curve.csv", curve_csv(state_.curve));
}

int Session::stop() {
  save();
  progress_->line(text("stopped after step ", state_.step, ", which ", checkpoint().string(),
                       " holds; go on with: ", command_, " train --resume --out ", out_.string()));
  return 130;
}

int Session::finish() {
  save();
  if (!tested_) evaluate_now();
  const Evaluation& test = *tested_;
  const std::string result = text("test loss ", fixed(test.loss, 4), ", accuracy ", percent(test.accuracy()));
  const std::string title = model_.name + ": " + result;
  const std::string curves = curve_svg(state_.curve, title, batches_per_epoch());
  write_file(out_ / "curve.svg", curves);
  write_file(out_ / "predictions.svg", predictions_svg(test_, test, title));
  write_report(test, result);
  if (!state_.curve.empty())
    progress_->leave({state_.epoch, state_.recipe.epochs, train_.size(), train_.size(), state_.step,
                      state_.curve.back().train_loss, state_.curve.back().train_accuracy, state_.curve});
  progress_->line(
      text("done: ", result, " after ", state_.step, " steps; training took ", duration(progress_->seconds())));
  for (const char* file :
       {"checkpoint.safetensors", "curve.csv", "curve.svg", "predictions.svg", "report.txt", "report.html"})
    progress_->line("  " + (out_ / file).string());
  return 0;
}

void Session::write_report(const Evaluation& test, const std::string& result) const {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto counted = [](double share, std::int64_t right, std::int64_t all) {
    return text(percent(share), " (", grouped(right), " of ", grouped(all), ")");
  };
  const Section run{"Run",
                    {{"Data", text(grouped(train_.size()), " training and ", grouped(test_.size()), " test images (",
                                   train_.source, ")")},
                     {"Steps", text(state_.step)},
                     {"Among first 5", counted(test.accuracy_of_five(), test.among_five, test_.size())},
                     {"Confidence", text(probability(test.mean_confidence()), " on average, where ",
                                         percent(test.accuracy()), " of the answers are right")},
                     {"Speed", text(grouped(static_cast<std::int64_t>(progress_->rate())), " images/s, ",
                                    fixed(progress_->seconds(), 1), " s of training in this run")},
                     {"Peak memory", bytes(std::int64_t{usage.ru_maxrss} * 1024)},
                     {"Checkpoint", std::filesystem::absolute(checkpoint()).lexically_normal().string()}},
                    {},
                    ""};
  const Section recipe{"Recipe", recipe_rows(model_, state_.recipe), {}, ""};
  Section machine{"Machine", machine_rows(), {}, ""};
  machine.rows.emplace_back("Kernels", kernels());
  const Section shapes{"Shapes", {}, {}, model_.summary};

  std::string plain = model_.name + ": " + result + "\n";
  for (const Section& section : {run, recipe, machine, shapes}) {
    plain += '\n';
    for (const auto& [name, value] : section.rows) plain += padded(name, -18) + value + '\n';
    plain += section.text;
  }
  if (plain.back() != '\n') plain += '\n';
  write_file(out_ / "report.txt", plain);
  write_file(out_ / "report.html", html_report(model_.name, result,
                                               {run,
                                                {"Curves", {}, curve_panels(state_.curve, batches_per_epoch()), ""},
                                                {"Confusion", {}, {confusion_svg(confusion(test_, test), "")}, ""},
                                                {"Samples", {}, {}, "", prediction_tiles(test_, test)},
                                                recipe,
                                                machine,
                                                shapes}));
}

}  // namespace tessera::runtime
