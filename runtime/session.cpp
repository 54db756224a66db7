#include "runtime/session.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/curve.hpp"
#include "runtime/divergence.hpp"
#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/numbers.hpp"
#include "runtime/optimizer_slices.hpp"
#include "runtime/predictions.hpp"
#include "runtime/run_report.hpp"

namespace tessera::runtime {
namespace {

constexpr double seconds_between_checkpoints = 20;
constexpr std::int64_t rows_per_epoch = 20;

}  // namespace

Session::Session(const Model& model, const Recipe& declared, const TrainOptions& options)
    : model_(model),
      ranks_(*options.ranks),
      out_(options.out),
      command_(options.command),
      checkpoint_every_(options.checkpoint_every),
      parameters_(Arena::of_floats(model.parameter_floats, model.alignment)),
      packed_(Arena::of_floats(model.packed_floats, model.alignment)),
      gradients_(Arena::of_floats(model.parameter_floats, model.alignment)),
      optimizer_(Arena::of_floats(options.ranks->leads() ? model.optimizer_floats() : 0, model.alignment)),
      overlaps_(options.overlap),
      gpu_(options.gpu) {
  ranks_.agree([&] {
    if (!ranks_.leads()) return;
    // Two runs in one folder would overwrite each other's checkpoint.
    lock_.emplace(out_);
    const RunStart start = start_run(model_, declared, options, parameters(), optimizer());
    state_ = start.state;
    saved_step_ = start.saved_step;
    begun_ = start.begun;
    started_ = start.started;
    previous_ = start.previous;
  });
  if (!ranks_.alone()) share_start(declared);
  const std::int64_t batch = state_.recipe.batch, parts = state_.recipe.accumulate;
  ranks_.agree([&] {
    if (ranks_.size() > parts) fail(ranks_.size(), " ranks cannot share ", parts, " parts of a step (--accumulate)");
    if (gpu_ && parts > 1 && !gpu_->cuda().gather)
      fail("the kernels for GPUs were emitted without sums over parts of a step: --accumulate is for the CPU");
    open_data();
    outputs_.emplace(Arena::of_floats(size_product({batch, model_.classes}), model_.alignment));
    int sums = 0;
    if (parts > 1)  // also where a step at the end of an epoch has one
      for (const std::int64_t of_step : {parts, batches_per_epoch() % parts}) {
        const PartRange share = share_of_parts(of_step, ranks_.rank(), ranks_.size());
        sums = std::max(sums, PartTree::buffers(share.first, share.last, of_step));
      }
    if (gpu_) {
      training_.emplace(model_, state_.recipe, *gpu_, sums, ranks_);
    } else {
      at_once_ = model_.images_at_once(batch);
      scratch_.emplace(model_.train_scratch_bytes(at_once_), model_.alignment);
      sums_.emplace(model_, ranks_, sums);
    }
    batches_.emplace(train_, state_.recipe, model_.classes, model_.alignment);
  });
  ranks_.demand_same(text(state_.fingerprint), "has other training images");
  ranks_.demand_same(text(state_.test_fingerprint.value_or(0)), "has other test images");
  if (!ranks_.alone() && gpu_) training_->join();
  const std::int64_t left = (state_.recipe.epochs - state_.epoch) * train_.size() - state_.position;
  const char* const kind = std::getenv("TERM");
  const bool terminal = ::isatty(STDOUT_FILENO) != 0 && !(kind && std::string_view(kind) == "dumb");
  progress_.emplace(std::max<std::int64_t>(left, 0), terminal);
  progress_->line(text(model_.name, ": ", grouped(train_.size()), " training and ", grouped(test_.size()),
                       " test images (", train_.source, "), ", state_.recipe.epochs, " epochs of ", steps_per_epoch(),
                       " steps, batch ", batch, ", learning rate ", shortest(state_.recipe.learning_rate), ", seed ",
                       state_.recipe.seed, ", kernels ", kernels()));
  if (!ranks_.alone())
    progress_->line(
        text(ranks_.size(), " ranks share the ", parts, " parts of a step; this many give the same bits as any other"));
  if (saved_step_) progress_->line(text("going on after step ", state_.step, " of ", checkpoint().string()));
  saved_at_ = std::chrono::steady_clock::now();
  ranks_.agree([&] {
    if (ranks_.leads() && (!saved_step_ || begun_)) unsaved_.emplace(start_file_in(out_), model_, state_, begun_);
  });
}

/// Gives all ranks what the first one has settled and read.
void Session::share_start(const Recipe& declared) {
  struct {
    std::int64_t saved_step;
    std::int32_t begun, started;
  } start{saved_step_.value_or(-1), begun_, started_};
  ranks_.broadcast(&start, sizeof start);
  const std::string state = ranks_.broadcast(ranks_.leads() ? packed_state(model_, state_) : std::string());
  if (!ranks_.leads()) {
    state_ = unpacked_state(state);
    restore_recipe(state_, declared);
    if (start.saved_step >= 0) saved_step_ = start.saved_step;
    begun_ = start.begun;
    started_ = start.started;
  }
  if (started_) ranks_.broadcast(parameters(), 4 * model_.parameter_floats);
  optimizer_ = scatter_slices(ranks_, model_, optimizer());  // of the optimiser's state each rank keeps its slice
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
  const std::int64_t images_per_step = size_product({state_.recipe.batch, state_.recipe.accumulate});
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

/// Of the step that is under way: fewer than of others where the epoch ends.
std::int64_t Session::parts_of_step() const {
  return std::min(state_.recipe.accumulate, batches_per_epoch() - state_.position / state_.recipe.batch);
}

std::int64_t Session::steps_per_epoch() const {
  const std::int64_t accumulate = state_.recipe.accumulate;
  return (batches_per_epoch() + accumulate - 1) / accumulate;
}

bool Session::improves() const {
  return state_.recipe.patience == 0 || state_.epoch - state_.best_epoch < state_.recipe.patience;
}

std::string Session::kernels() const { return gpu_ ? "CUDA on " + gpu_->name() : model_.isa(); }

void Session::share_squares() {
  std::vector<std::int64_t> begins;
  for (int rank = 0; rank <= ranks_.size(); ++rank)
    begins.push_back(slice_of(model_.parameter_floats, rank, ranks_.size()).first_chunk * std::int64_t{sizeof(double)});
  ranks_.all_gather(squares_, begins);
}

void Session::share_parameters() {
  if (has_slice()) sums_->all_gather(parameters());
}

const float* Session::evaluated() {
  const std::optional<std::int64_t> average = model_.average_offset();
  if (!average || state_.step == 0) return parameters();
  if (!has_slice()) return optimizer() + *average;
  if (!average_) average_.emplace(Arena::of_floats(model_.parameter_floats, model_.alignment));
  all_gather_state(ranks_, model_, optimizer(), *average / model_.parameter_floats, average_->floats());
  return average_->floats();
}

void Session::begin_epoch() {
  batches_->begin(state_.epoch, state_.position);
  if (training_ && !std::exchange(loaded_, true)) training_->load(parameters(), optimizer());
  progress_->resume();
}

const Batch* Session::next_batch() {
  if (begins_step_) {
    if (state_.position >= train_.size()) return batch_ = nullptr;
    begins_step_ = false;
    own_ = share_of_parts(parts_of_step(), ranks_.rank(), ranks_.size());
    part_ = own_.size() > 0 ? own_.first : 0;
    // A rank without a part has to go through the step all the same.
    counts_.clear();
  }
  batches_->skip_to(state_.position + part_ * state_.recipe.batch);
  return batch_ = batches_->next();
}

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

/// As demand_numbers; where there are other ranks, which have to hear of it, exchange_counts throws.
void Session::demand_own_numbers(float loss) {
  try {
    demand_numbers(loss);
  } catch (const Error& error) {
    if (ranks_.alone()) throw;
    if (failure_.empty() && own_.size() > 0) failure_ = error.what();
  }
}

/// What outputs() and the loss of the batch at hand say.
Session::Part Session::measured(float loss) {
  Part part{loss, 0, batch_->size};
  const auto classes = static_cast<std::size_t>(model_.classes);
  for (std::int64_t i = 0; i < batch_->size; ++i)
    part.correct += largest({outputs() + i * model_.classes, classes}) == batch_->labels[i];
  return part;
}

void Session::tally(const Part& part) {
  ++state_.batches;
  state_.loss_sum += static_cast<double>(part.loss) * static_cast<double>(part.images);
  state_.seen += part.images;
  state_.correct += part.correct;
  gathered_images_ += part.images;
}

/// All parts of the step have been counted.
void Session::end_parts() {
  state_.position += gathered_images_;
  begins_step_ = true;
}

void Session::count(float loss) {
  demand_numbers(loss);
  tally(measured(loss));
  end_parts();
}

Session::RangeReady Session::ready() {
  if (!overlaps_ || !has_slice() || is_followed()) return nullptr;
  sums_->begin_ranges(own_.size() > 0 ? std::optional(gradients_of_part()) : std::nullopt, parts_of_step());
  return [](void* session, std::int64_t from, std::int64_t to) {
    static_cast<Session*>(session)->sums_->range_ready(from, to);
  };
}

bool Session::gather(float loss) {
  if (state_.recipe.accumulate == 1) {
    count(loss);
    gathered_ = gradients();
    return true;
  }
  const std::int64_t parts = parts_of_step();
  if (own_.size() > 0) {
    demand_own_numbers(loss);
    counts_.push_back(measured(loss));
    sums_->add(gradients_of_part(), parts);
    if (++part_ < own_.last) return false;
  }
  sums_->exchange(parts);
  exchange_counts(counts_);
  end_parts();
  gathered_ = sums_->mean(1 / static_cast<float>(gathered_images_), gradients());
  return true;
}

/// Counts the step's parts on all ranks in the order of their numbers, and agrees on what is to happen after it.
void Session::exchange_counts(const std::vector<Part>& own) {
  if (ranks_.alone()) {
    for (const Part& part : own) tally(part);
    return;
  }
  struct Flags {
    std::int64_t failed, stops, saves;
  };
  const std::int64_t parts = parts_of_step();
  std::vector<std::int64_t> begins{0};
  for (int rank = 0; rank < ranks_.size(); ++rank)
    begins.push_back(begins.back() + std::int64_t{sizeof(Flags)} +
                     share_of_parts(parts, rank, ranks_.size()).size() * std::int64_t{sizeof(Part)});
  std::vector<std::byte> all(static_cast<std::size_t>(begins.back()));
  const auto at = [&](int rank) { return all.data() + begins[static_cast<std::size_t>(rank)]; };
  const Flags flags{!failure_.empty(), StopSignals::raised(), save_is_due(state_.step + 1)};
  std::memcpy(at(ranks_.rank()), &flags, sizeof flags);
  std::memcpy(at(ranks_.rank()) + sizeof flags, own.data(), own.size() * sizeof(Part));
  ranks_.all_gather(all.data(), begins);
  bool failed = false;
  stops_ = false;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    Flags of_rank{};
    std::memcpy(&of_rank, at(rank), sizeof of_rank);
    failed = failed || of_rank.failed;
    stops_ = stops_ || of_rank.stops;
    if (rank == 0) saves_ = of_rank.saves;  // by its clock
    for (const std::byte* from = at(rank) + sizeof(Flags); from != at(rank + 1); from += sizeof(Part)) {
      Part part{};
      std::memcpy(&part, from, sizeof part);
      tally(part);
    }
  }
  if (!failed) return;
  for (const std::string& said : ranks_.all_gather(failure_))
    if (!said.empty()) throw AgreedError(said);
}

bool Session::step_on_gpu(float learning_rate) {
  const bool gathers = state_.recipe.accumulate > 1;
  const std::int64_t parts = parts_of_step();
  training_->put(*batch_, state_.recipe.seed, gathers ? part() : step(), learning_rate);
  training_->start();
  // While the GPU computes; what follows the last part of this rank's share is another rank's.
  if (ranks_.alone() || is_followed())
    if (const Batch* const next = batches_->prepare()) training_->put_ahead(*next);
  fetched_ = false;
  const auto [loss, stopped] = training_->answer(outputs());
  if (stopped) {  // before any update: what led there is still there
    fetch();
    training_->store_gradients(gradients());
    demand_own_numbers(loss);
  }
  if (!gathers) {
    tally(measured(loss));
    end_parts();
    return true;
  }
  if (own_.size() > 0) {
    counts_.push_back(measured(loss));
    training_->gather(part_, parts);
    if (++part_ < own_.last) return false;
  }
  exchange_counts(counts_);
  end_parts();
  training_->update(step(), parts, 1 / static_cast<float>(gathered_images_), learning_rate);
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
  gathered_images_ = 0;
  // The last row of an epoch waits for the test.
  const std::int64_t interval = std::max<std::int64_t>(1, batches_per_epoch() / rows_per_epoch);
  if (state_.batches >= interval && state_.position < train_.size()) add_row(nullptr);

  if (ranks_.alone() ? StopSignals::raised() : stops_) return false;
  if (ranks_.alone() ? save_is_due(state_.step) : saves_) save();
  return true;
}

bool Session::save_is_due(std::int64_t step) const {
  if (checkpoint_every_ > 0) return step % checkpoint_every_ == 0;
  const auto now = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(now - saved_at_).count() > seconds_between_checkpoints;
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
  tested_ = evaluate(model_, state_.recipe, Inference(model_, evaluated(), batch, gpu_), test_, batch, ranks_);
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
  save(best && state_.recipe.patience > 0);
  if (state_.recipe.patience > 0 && !improves())
    progress_->line(text("the test loss has not been better for ", state_.recipe.patience, " epochs: training stops; ",
                         (out_ / "best.safetensors").string(), " holds epoch ", state_.best_epoch));
}

void Session::save(bool best) {
  fetch();
  // Nothing where one rank has all.
  const std::optional<Arena> whole = has_slice() ? gather_slices(ranks_, model_, optimizer()) : std::nullopt;
  const float* const of_all = whole ? whole->floats() : optimizer();
  ranks_.agree([&] {
    // The loss of a step is that before its update: an update can break the parameters that the next loss would show.
    const std::string broken = first_not_finite(model_, parameters());
    const auto states = static_cast<std::int64_t>(model_.optimizer_state.size());
    if (!broken.empty() || !finite(optimizer(), has_slice() ? states * slice().size() : model_.optimizer_floats()))
      fail("training diverged: after step ", state_.step, " some parameters are not numbers",
           broken.empty() ? "" : ", first " + broken, "; ", last_good());
    if (!ranks_.leads()) return;
    save_checkpoint(checkpoint(), model_, parameters(), of_all, state_, previous_);
    if (best) save_checkpoint(out_ / "best.safetensors", model_, parameters(), of_all, state_);
    if (!previous_.empty()) progress_->line("the checkpoint of the run before is kept as " + previous_.string());
    previous_.clear();
    if (unsaved_) unsaved_->saved();
    unsaved_.reset();
    write_file(out_ / "curve.csv", curve_csv(state_.curve));
  });
  saved_step_ = state_.step;
  saved_at_ = std::chrono::steady_clock::now();
}

int Session::stop() {
  save();
  progress_->line(text("stopped after step ", state_.step, ", which ", checkpoint().string(),
                       " holds; go on with: ", command_, " train --resume --out ", out_.string()));
  return 130;
}

int Session::finish() {
  save();
  if (!ranks_.alone()) {
    std::int64_t all = 0, most = 0;
    for (const std::string& sent : ranks_.all_gather(text(sums_ ? sums_->sent() : training_->sent()))) {
      all += std::stoll(sent);
      most = std::max<std::int64_t>(most, std::stoll(sent));
    }
    sent_ = text(ranks_.size(), ", which have sent ", grouped(all), " bytes of gradients and parameters, ",
                 grouped(most), " the one that sent most");
  }
  if (!tested_) evaluate_now();
  const Evaluation& test = *tested_;
  const std::string result = text("test loss ", fixed(test.loss, 4), ", accuracy ", percent(test.accuracy()));
  const std::string title = model_.name + ": " + result;
  ranks_.agree([&] {
    if (!ranks_.leads()) return;
    write_file(out_ / "curve.svg", curve_svg(state_.curve, title, batches_per_epoch()));
    write_file(out_ / "predictions.svg", predictions_svg(test_, test, title));
    write_report(
        out_, model_,
        {state_, train_, test_, test, kernels(), sent_, batches_per_epoch(), progress_->rate(), progress_->seconds()},
        result);
  });
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

}  // namespace tessera::runtime
