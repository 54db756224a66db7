#include "runtime/communicator.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <thread>

#include "runtime/gpu.hpp"

namespace tessera::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// The first of these variables of the environment that is a number.
std::int64_t from_environment(std::initializer_list<const char*> names, std::int64_t otherwise) {
  for (const char* const name : names) {
    const char* const given = std::getenv(name);
    std::int64_t number = 0;
    if (given && std::from_chars(given, given + std::strlen(given), number).ec == std::errc{}) return number;
  }
  return otherwise;
}

/// Rank 0 speaks for all: the others no more.
void be_silent() {
  if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::close(nowhere);
  }
  std::cerr.setstate(std::ios::failbit);
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

std::int64_t launched_ranks() {
  return from_environment({"TESSERA_RANKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 1);
}

std::int64_t launched_rank_of_machine() {
  return from_environment({"TESSERA_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"},
                          from_environment({"TESSERA_RANK"}, 0));
}

std::int64_t launched_rank() {
  return from_environment({"TESSERA_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, 0);
}

const Communicator& Communicator::single() {
  static const Communicator alone;
  return alone;
}

void Communicator::open(const Model& model, double timeout) {
  const std::int64_t launched = launched_ranks();
  const char* const file = std::getenv("TESSERA_RENDEZVOUS");
  const bool meets = file && *file;
  if (!meets && std::getenv("TESSERA_RANKS"))
    fail("TESSERA_RANKS is for ranks that find each other by a file, which TESSERA_RENDEZVOUS names");
  if (meets && from_environment({"TESSERA_RANKS", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 0) < 1)
    fail("TESSERA_RENDEZVOUS names a file for ranks, but neither TESSERA_RANKS nor srun says how many there are");
  if (launched <= 1) return;
  if (meets) return meet(model, file, timeout);
  if (!model.ranks)
    fail("this program was built without DISTRIBUTED and cannot run as ", launched,
         " ranks (DISTRIBUTED mpi in tessera_add_model)");
  model.ranks->open(rank_, size_);
  if (size_ != launched) {
    size_ = 1;
    model.ranks->close();
    fail("the launcher has started ", launched,
         " ranks of this program, but it is linked with another MPI than that of the launcher");
  }
  ranks_ = model.ranks;
  program_ = model.name;
  if (!leads()) be_silent();
}

void Communicator::meet(const Model& model, const char* file, double timeout) {
  const std::int64_t rank = launched_rank(), count = launched_ranks();
  constexpr std::int64_t most = 100'000;
  if (!model.gpu_ranks)
    fail(
        "this program was built without NCCL, by which ranks exchange bytes that find each other by a file "
        "(DISTRIBUTED mpi nccl in tessera_add_model)");
  if (count > most) fail("TESSERA_RANKS asks for ", count, " ranks, more than the ", most, " that there can be");
  if (rank < 0 || rank >= count)
    fail("TESSERA_RANK=", rank, " is none of ", count, " ranks (TESSERA_RANKS), which count from 0");
  const GpuRanks& engine = *model.gpu_ranks;
  engine.choose(static_cast<int>(launched_rank_of_machine()));
  static_cast<void>(Gpu(model));  // says it where there is none
  rendezvous_.emplace(file, static_cast<int>(rank), static_cast<int>(count));
  rank_ = static_cast<int>(rank);
  size_ = static_cast<int>(count);
  program_ = model.name;
  // Rank 0 gives up first, and tells the others.
  const double limit = leads() ? timeout : 1.5 * timeout;
  const Clock::time_point begin = Clock::now();
  const auto until = [&](const std::function<bool()>& done) {
    while (!done()) {
      if (seconds_since(begin) > limit) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  };
  std::array<std::byte, GpuRanks::id_bytes> id{};
  if (leads()) engine.make_id(id.data());
  const auto met = [&] { return leads() ? rendezvous_->give(id) : rendezvous_->take(id); };
  if (!until(met)) {
    if (leads()) rendezvous_->give_up();
    fail(rendezvous_->missing(), " for ", limit, " s (--rank-timeout)");
  }
  try {
    engine.join(id.data(), rank_, size_);
    const bool joined = until([&] {
      met();  // rank 0 may have read an earlier launch's file of a rank that comes later
      hear();
      return engine.done(nullptr);
    });
    if (!joined) fail("the GPUs of the ranks have not joined for ", limit, " s (--rank-timeout)");
    met();
  } catch (const std::exception&) {
    end_unless_said(sentence_of_error());
  }
  ranks_ = engine.ranks;
  if (!leads()) be_silent();
}

void Communicator::close() {
  if (!ranks_) return;
  try {
    // Whoever waits elsewhere for a rank that has stopped shall get answers, which MPI_Finalize does not give.
    all_gather(std::string());
    hear();
  } catch (const std::exception&) {  // who cannot be reached is not waited for
  }
  ranks_->close();
  ranks_ = nullptr;
  rendezvous_.reset();
}

void Communicator::tell(const Notice& notice, int rank) const {
  rendezvous_ ? rendezvous_->tell(notice, rank) : ranks_->tell(notice, rank);
}

bool Communicator::next(Notice& notice, int& rank) const {
  return rendezvous_ ? rendezvous_->hear(notice, rank) : ranks_->hear(notice, rank);
}

void Communicator::send(const void* from, std::int64_t bytes, int to) const {
  if (bytes > 0) ranks_->send(from, bytes, to);
}

void Communicator::receive(void* to, std::int64_t bytes, int from) const {
  if (bytes > 0) ranks_->receive(to, bytes, from);
}

void Communicator::poll(const std::function<int()>& missing) const {
  const auto next = [&] {
    try {
      return missing();
    } catch (const std::exception&) {
      hear();                                                 // whoever has told and ended is the cause
      if (rendezvous_) end_unless_said(sentence_of_error());  // no launcher ends the others
      throw;
    }
  };
  // The time in which this rank itself was stopped does not count: it would wake up and suspect the others.
  double waited = 0;
  int pings = 0;
  Clock::time_point last = Clock::now();
  for (int rank = next(); rank != -1; rank = next()) {
    waited += std::min(seconds_since(last), 0.1);
    last = Clock::now();
    // Ranks may have to share a core: the one that computes shall have it.
    if (waited < 1e-3) {
      std::this_thread::yield();
      continue;
    }
    hear();
    // A ping at half of the limit and one a half later each; from the limit on, what the last one has found out counts.
    if (waited > timeout_ / 2 * (pings + 1)) {
      const char* const ends = " (--rank-timeout): the run ends, its checkpoint holds what was saved last";
      if (const std::string silent = pings > 0 ? unanswered() : ""; !silent.empty())
        end(text(silent, " for ", timeout_, " s", ends));
      // One that has answered may have stopped since, so that it takes two pings to say that all are alive.
      if (pings > 1 && leads())
        end(text("the exchange with ", rank >= 0 ? text("rank ", rank) : "the GPUs of other ranks",
                 " has not ended for ", timeout_, " s, though all ranks answer", ends));
      tell_others(Notice::Kind::ping);
      ++pings;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Communicator::tell_others(Notice::Kind kind) const {
  answered_.assign(static_cast<std::size_t>(size_), false);
  answered_[static_cast<std::size_t>(rank_)] = true;
  ++number_;
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_) tell({kind, number_}, rank);
}

void Communicator::hear() const {
  Notice notice;
  for (int rank = 0; next(notice, rank);) {
    if (notice.kind == Notice::Kind::ack) {
      if (notice.number == number_) answered_[static_cast<std::size_t>(rank)] = true;
      continue;
    }
    tell({Notice::Kind::ack, notice.number}, rank);
    if (notice.kind == Notice::Kind::end) std::_Exit(1);
  }
}

std::string Communicator::unanswered() const {
  const auto answered = [&](int rank) { return answered_[static_cast<std::size_t>(rank)]; };
  for (int rank = 0; rank < rank_; ++rank)
    if (answered(rank)) return "";
  std::string silent;
  int count = 0;
  for (int rank = 0; rank < size_; ++rank)
    if (!answered(rank)) silent += text(count++ ? ", " : "", rank);
  return count == 0 ? ""
                    : text(count == 1 ? "rank " : "ranks ", silent, count == 1 ? " has" : " have", " not answered");
}

void Communicator::end(const std::string& sentence) const {
  // Said here and now: an exception would free what MPI still receives into while the others are told.
  std::fputs(text(program_, ": ", sentence, "\n").c_str(), stderr);
  const std::vector<bool> alive = answered_;
  const auto untold = [&] {
    for (std::size_t rank = 0; rank < alive.size(); ++rank)
      if (alive[rank] && !answered_[rank]) return true;
    return false;
  };
  tell_others(Notice::Kind::end);
  // The launcher may take seconds to end the others, which would find this rank silent in the meantime.
  for (const Clock::time_point begin = Clock::now(); untold() && seconds_since(begin) < 1;) {
    hear();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  std::_Exit(1);
}

void Communicator::end_unless_said(const std::string& sentence) const {
  if (!rendezvous_->claim()) std::_Exit(1);
  answered_.assign(static_cast<std::size_t>(size_), true);
  end(sentence);
}

void Communicator::wait() const {
  if (ranks_) poll([this] { return ranks_->pending(); });
}

void Communicator::wait_until(const std::function<bool()>& done) const {
  poll([&] { return done() ? -1 : -2; });
}

void Communicator::all_gather(void* all, std::span<const std::int64_t> begins) const {
  if (alone()) return;
  auto* const bytes = static_cast<std::byte*>(all);
  const auto at = [&](int rank) { return begins[static_cast<std::size_t>(rank)]; };
  const auto length = [&](int rank) { return at(rank + 1) - at(rank); };
  // Each begins with its neighbour: not all with rank 0.
  for (int step = 1; step < size_; ++step) {
    const int from = (rank_ + size_ - step) % size_, to = (rank_ + step) % size_;
    receive(bytes + at(from), length(from), from);
    send(bytes + at(rank_), length(rank_), to);
  }
  wait();
}

std::vector<std::string> Communicator::all_gather(const std::string& own) const {
  if (alone()) return {own};
  const auto ranks = static_cast<std::size_t>(size_), here = static_cast<std::size_t>(rank_);
  std::vector<std::int64_t> lengths(ranks), begins(ranks + 1);
  lengths[here] = static_cast<std::int64_t>(own.size());
  for (std::size_t rank = 0; rank <= ranks; ++rank) begins[rank] = static_cast<std::int64_t>(rank * sizeof lengths[0]);
  all_gather(lengths.data(), begins);
  for (std::size_t rank = 0; rank < ranks; ++rank) begins[rank + 1] = begins[rank] + lengths[rank];
  std::string all(static_cast<std::size_t>(begins.back()), '\0');
  all.replace(static_cast<std::size_t>(begins[here]), own.size(), own);
  all_gather(all.data(), begins);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    texts.push_back(all.substr(static_cast<std::size_t>(begins[rank]), static_cast<std::size_t>(lengths[rank])));
  return texts;
}

void Communicator::broadcast(void* data, std::int64_t bytes) const {
  if (alone()) return;
  std::vector<std::int64_t> begins(static_cast<std::size_t>(size_) + 1, bytes);
  begins[0] = 0;
  all_gather(data, begins);
}

std::string Communicator::broadcast(const std::string& text) const {
  return all_gather(leads() ? text : std::string())[0];
}

void Communicator::agree(const std::function<void()>& action) const {
  if (alone()) return action();
  std::string said;
  try {
    action();
  } catch (const std::exception&) {
    said = sentence_of_error();
  }
  const std::vector<std::string> all = all_gather(said);
  std::size_t first = 0;
  while (first < all.size() && all[first].empty()) ++first;
  if (first == all.size()) return;
  throw AgreedError(first == 0 ? all[0] : text("rank ", first, ": ", all[first]));
}

void Communicator::demand_same(const std::string& value, const char* what) const {
  const std::vector<std::string> all = all_gather(value);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw AgreedError(text("rank ", rank, " ", what, " than rank 0 (", all[rank], ", not ", all[0], ")"));
}

void Communicator::agree_on_isa(const Model& model) const {
  if (alone()) return;
  const char* const given = std::getenv("TESSERA_ISA");
  const std::string asked = given ? given : "";
  std::string able;
  for (const char* const isa : model.isas) {
    if (!asked.empty() && asked != isa) continue;
    ::setenv("TESSERA_ISA", isa, 1);  // no thread runs yet
    if (*model.isa()) able += text(isa, " ");
  }
  const std::vector<std::string> all = all_gather(able);
  for (std::size_t i = model.isas.size(); i-- > 0;) {
    bool common = true;
    for (const std::string& one : all)
      common = common && (" " + one).find(text(" ", model.isas[i], " ")) != std::string::npos;
    if (!common) continue;
    ::setenv("TESSERA_ISA", model.isas[i], 1);
    std::cout << size_ << " ranks, kernels for " << model.isas[i]
              << ", the widest instruction set that all of them have" << std::endl;
    return;
  }
  std::string lists;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    lists += text(rank ? "; " : "", "rank ", rank, ": ",
                  all[rank].empty() ? "none" : all[rank].substr(0, all[rank].size() - 1));
  throw AgreedError("the ranks have no instruction set in common, and only equal kernels give equal bits (" + lists +
                    ")");
}

}  // namespace tessera::runtime
