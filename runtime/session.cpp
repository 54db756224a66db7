#include "runtime/session.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
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
  return a.recipe.batch == b.recipe.batch && a.recipe.accumulate == b.recipe.accumulate &&
         a.recipe.epochs == b.recipe.epochs && a.recipe.learning_rate == b.recipe.learning_rate &&
         a.recipe.seed == b.recipe.seed && a.data == b.data && a.fingerprint == b.fingerprint &&
         a.test_fingerprint == b.test_fingerprint && a.init == b.init && a.skip == b.skip;
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
      ranks_(*options.ranks),
      out_(options.out),
      command_(options.command),
      checkpoint_every_(options.checkpoint_every),
      parameters_(Arena::of_floats(model.parameter_floats, model.alignment)),
      packed_(Arena::of_floats(model.packed_floats, model.alignment)),
      gradients_(Arena::of_floats(model.parameter_floats, model.alignment)),
      optimizer_(
          Arena::of_floats(options.ranks->leads() || options.gpu ? model.optimizer_floats() : 0, model.alignment)),
      overlaps_(options.overlap),
      gpu_(options.gpu) {
  ranks_.agree([&] {
    if (!ranks_.leads()) return;
    make_folder(out_);
    // Two runs in one folder would overwrite each other's checkpoint.
    lock_.emplace(out_);
    settle(declared, options);
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
      training_.emplace(model_, state_.recipe, *gpu_, sums);
    } else {
      at_once_ = model_.images_at_once(batch);
      scratch_.emplace(model_.train_scratch_bytes(at_once_), model_.alignment);
      for (int i = 0; i < sums; ++i) sums_.push_back(Arena::of_floats(model_.parameter_floats, model_.alignment));
    }
    batches_.emplace(train_, state_.recipe, model_.classes, model_.alignment);
  });
  ranks_.demand_same(text(state_.fingerprint), "has other training images");
  ranks_.demand_same(text(state_.test_fingerprint.value_or(0)), "has other test images");
  if (!ranks_.alone() && gpu_)
    training_->share_with(ranks_);
  else if (!ranks_.alone())
    reduce_.emplace(ranks_, model_.parameter_floats, model_.alignment);
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
    if (ranks_.leads() && (!saved_step_ || begun_)) unsaved_.emplace(start(), model_, state_, begun_);
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
    restore(declared);
    if (start.saved_step >= 0) saved_step_ = start.saved_step;
    begun_ = start.begun;
    started_ = start.started;
  }
  if (started_) ranks_.broadcast(parameters(), 4 * model_.parameter_floats);
  if (gpu_) return ranks_.broadcast(optimizer(), 4 * model_.optimizer_floats());  // each GPU updates all parameters
  // Of the optimiser's state each rank keeps its slice.
  const std::int64_t floats = model_.parameter_floats;
  const auto states = static_cast<std::int64_t>(model_.optimizer_state.size());
  Arena own = Arena::of_floats(states * slice().size(), model_.alignment);
  for (std::int64_t state_number = 0; state_number < states; ++state_number) {
    float* const to = own.floats() + state_number * slice().size();
    if (!ranks_.leads()) {
      ranks_.receive(to, 4 * slice().size(), 0);
      continue;
    }
    const float* const all = optimizer() + state_number * floats;
    std::copy_n(all + slice().first, slice().size(), to);
    for (int rank = 1; rank < ranks_.size(); ++rank) {
      const Slice theirs = slice_of(floats, rank, ranks_.size());
      ranks_.send(all + theirs.first, 4 * theirs.size(), rank);
    }
  }
  ranks_.wait();
  optimizer_ = std::move(own);
}

/// What the command line cannot change, and no checkpoint says, is as declared.
void Session::restore(const Recipe& declared) {
  Recipe recipe = declared;
  recipe.batch = state_.recipe.batch;
  recipe.epochs = state_.recipe.epochs;
  recipe.learning_rate = state_.recipe.learning_rate;
  recipe.seed = state_.recipe.seed;
  recipe.input = state_.recipe.input;
  if (state_.recipe.accumulate > 0) recipe.accumulate = state_.recipe.accumulate;  // 0.1 does not say it
  state_.recipe = recipe;
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
    restore(declared);
    check_options(options);
    if (options.data) state_.data.folder = *options.data;
  } else {
    state_.recipe = declared;
    state_.recipe.seed = options.seed.value_or(declared.seed);
    state_.recipe.batch = options.batch.value_or(declared.batch);
    state_.recipe.accumulate = options.accumulate.value_or(declared.accumulate);
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
  same(options.accumulate, state_.recipe.accumulate, "--accumulate", out_);
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
  if (reduce_) reduce_->all_gather(parameters());
}

std::optional<Arena> Session::whole_optimizer() const {
  if (!reduce_) return {};
  const std::int64_t floats = model_.parameter_floats;
  const auto states = static_cast<std::int64_t>(model_.optimizer_state.size());
  std::optional<Arena> whole;
  if (ranks_.leads()) whole.emplace(Arena::of_floats(model_.optimizer_floats(), model_.alignment));
  for (std::int64_t state = 0; state < states; ++state) {
    const float* const own = optimizer_.floats() + state * slice().size();
    if (!ranks_.leads()) {
      ranks_.send(own, 4 * slice().size(), 0);
      continue;
    }
    std::copy_n(own, slice().size(), whole->floats() + state * floats + slice().first);
    for (int rank = 1; rank < ranks_.size(); ++rank) {
      const Slice theirs = slice_of(floats, rank, ranks_.size());
      ranks_.receive(whole->floats() + state * floats + theirs.first, 4 * theirs.size(), rank);
    }
  }
  ranks_.wait();
  return whole;
}

const float* Session::evaluated() {
  const std::optional<std::int64_t> average = model_.average_offset();
  if (!average || state_.step == 0) return parameters();
  if (!reduce_) return optimizer() + *average;
  if (!average_) average_.emplace(Arena::of_floats(model_.parameter_floats, model_.alignment));
  const std::int64_t state = *average / model_.parameter_floats;
  std::copy_n(optimizer() + state * slice().size(), slice().size(), average_->floats() + slice().first);
  std::vector<std::int64_t> begins;
  for (int rank = 0; rank <= ranks_.size(); ++rank)
    begins.push_back(4 * slice_of(model_.parameter_floats, rank, ranks_.size()).first);
  ranks_.all_gather(average_->floats(), begins);
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

/// Looks up what the part at hand adds to which sum.
void Session::begin_sums() {
  part_sums_.clear();
  tree_.add(part_, parts_of_step(), [&](int into, int from, bool kept) { part_sums_.push_back({into, from, kept}); });
}

void Session::add_range(std::int64_t from, std::int64_t to) {
  for (const Sum& each : part_sums_) {
    const bool of_part = each.from == PartTree::fresh;
    float* const sum = sums_[static_cast<std::size_t>(each.into)].floats();
    const float* const fresh = of_part ? gradients() : sums_[static_cast<std::size_t>(each.from)].floats();
    const float weight = of_part ? static_cast<float>(batch_->size) : 1;
    for (std::int64_t i = from; i < to; ++i) sum[i] = (each.kept ? sum[i] : 0) + weight * fresh[i];
  }
}

Session::RangeReady Session::ready() {
  if (!overlaps_ || !reduce_ || is_followed()) return nullptr;
  by_range_ = true;
  part_sums_.clear();
  if (own_.size() > 0) begin_sums();  // else others' sums are received all the same
  reduce_->begin(tree_.nodes(), sums_, parts_of_step());
  return [](void* session, std::int64_t from, std::int64_t to) {
    Session& run = *static_cast<Session*>(session);
    if (run.broken_) return;
    try {
      run.add_range(from, to);
      run.reduce_->ready(from, to);
    } catch (...) {
      run.broken_ = std::current_exception();
    }
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
    if (!by_range_) {
      begin_sums();
      add_range(0, model_.parameter_floats);
    }
    if (++part_ < own_.last) return false;
  }
  if (broken_) std::rethrow_exception(broken_);
  if (reduce_) {
    if (!by_range_) {
      reduce_->begin(tree_.nodes(), sums_, parts);
      reduce_->ready(0, model_.parameter_floats);
    }
    reduce_->end_ranges();  // before other messages: each rank has them in the same order
  }
  by_range_ = false;
  exchange_counts(counts_);
  end_parts();
  const float share = 1 / static_cast<float>(gathered_images_);
  if (reduce_) {
    gathered_ = gradients();
    reduce_->finish(share, gathered_);
  } else {
    gathered_ = sums_[static_cast<std::size_t>(tree_.nodes().front().buffer)].floats();
    for (std::int64_t i = 0; i < model_.parameter_floats; ++i) gathered_[i] *= share;
  }
  tree_.clear();
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
  const std::optional<Arena> whole = whole_optimizer();
  const float* const of_all = whole ? whole->floats() : optimizer();
  ranks_.agree([&] {
    // The loss of a step is that before its update: an update can break the parameters that the next loss would show.
    const std::string broken = first_not_finite(model_, parameters());
    const auto states = static_cast<std::int64_t>(model_.optimizer_state.size());
    if (!broken.empty() || !finite(optimizer(), reduce_ ? states * slice().size() : model_.optimizer_floats()))
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
    for (const std::string& sent : ranks_.all_gather(text(reduce_ ? reduce_->sent() : training_->sent()))) {
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
    write_report(test, result);
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

void Session::write_report(const Evaluation& test, const std::string& result) const {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto counted = [](double share, std::int64_t right, std::int64_t all) {
    return text(percent(share), " (", grouped(right), " of ", grouped(all), ")");
  };
  const Section run{"Run",
                    {{"Data", text(grouped(train_.size()), " training and ", grouped(test_.size()), " test images (",
                                   train_.source, ")")},
                     {"Ranks", sent_},
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
