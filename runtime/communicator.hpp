// Ranks: processes that train or evaluate one model together, each on its share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/model.hpp"
#include "runtime/rendezvous.hpp"

namespace tessera::runtime {

/// How many ranks a launcher (mpirun, srun) says that it has started, from what Open MPI, MPICH or Slurm put into the
/// environment, or TESSERA_RANKS; 1 where none did.
std::int64_t launched_ranks();
/// Which of them this process is, and which of those on its machine.
std::int64_t launched_rank();
std::int64_t launched_rank_of_machine();

/// This process among the ranks. All functions but `send` and `receive` are called by all ranks, in the same order.
/// A single process is a rank too, alone: nothing is sent then. MPI, the engine, only moves bytes: what is computed of
/// them, and in which order, is decided here.
///
/// A wait that takes longer than the time limit ends the process with code 1, and all others that it reaches. Whose
/// fault it is, a failure detector finds out: a rank that waits acknowledges pings, one that is stopped, dead or cut
/// off does not; who owes bytes proves nothing, as a rank that waits for the stopped one owes some too. The lowest of
/// the ranks that answer says which do not and tells the others to end without a word: one sentence, or one on each
/// side of a cut cable. It names every rank that had stopped before the last ping, half of the limit ago. It names
/// another one only where that has not waited at any time since: it was computing or writing all the while.
class Communicator {
 public:
  /// Alone.
  Communicator() = default;
  /// Joins the others, where a launcher has started several, within so many seconds. Throws an Error where the program
  /// was built to run alone.
  ///
  /// Where TESSERA_RENDEZVOUS names a file, the ranks find each other by it and not by MPI (rendezvous.hpp), and the
  /// engine between their GPUs moves all bytes. They are numbered by TESSERA_RANKS and TESSERA_RANK, or by srun.
  void open(const Model& model, double timeout = 600);
  /// Leaves, after the others have come here too, for whom it waits as for anything else.
  void close();
  /// One that is alone, for whoever needs one.
  static const Communicator& single();

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool alone() const { return size_ == 1; }
  bool by_file() const { return rendezvous_ && rendezvous_->met(); }  ///< they found each other so
  bool leads() const { return rank_ == 0; }  ///< it alone reads and writes the run's folder, and speaks
  void set_timeout(double seconds) { timeout_ = seconds; }
  /// Of ranks by a file that have met: ends the process, and the others, which no launcher does. One of them, the
  /// first, says its sentence.
  [[noreturn]] void end_unless_said(const std::string& sentence) const;

  /// Begins to send or to receive; the bytes have to stay until `wait` has returned.
  void send(const void* from, std::int64_t bytes, int to) const;
  void receive(void* to, std::int64_t bytes, int from) const;
  /// Until all that was begun is done.
  void wait() const;
  /// Until another engine, which moves bytes between GPUs, is done.
  void wait_until(const std::function<bool()>& done) const;
  /// Lets the engine go on with what was begun, as far as it can without waiting: some move bytes only when called.
  void progress() const {
    if (ranks_) ranks_->pending();
  }

  /// Rank r has the bytes from begins[r] to begins[r + 1] of `all`: afterwards every rank has all of them.
  void all_gather(void* all, std::span<const std::int64_t> begins) const;
  /// Every rank's text, by rank.
  std::vector<std::string> all_gather(const std::string& own) const;
  /// Rank 0's bytes to all.
  void broadcast(void* data, std::int64_t bytes) const;
  std::string broadcast(const std::string& text) const;

  /// Does it, and throws on all ranks, as an AgreedError, what it threw on any of them. It may not wait for other
  /// ranks.
  void agree(const std::function<void()>& action) const;
  /// Throws an AgreedError unless `value` is the same on all ranks: "rank 1 WHAT than rank 0 (value, not value)".
  void demand_same(const std::string& value, const char* what) const;
  /// Chooses the widest instruction set that all ranks have, or have been told to use: only equal kernels give equal
  /// bits. Throws an AgreedError where there is none.
  void agree_on_isa(const Model& model) const;

 private:
  /// Polls against the limit. `missing` tells a rank that owes something, -1 where nothing is missing, or -2 where it
  /// is unknown which.
  void poll(const std::function<int()>& missing) const;
  /// Sends a ping or an end to all others, which from then on have not answered.
  void tell_others(Notice::Kind kind) const;
  /// Receives the notices that have arrived and acknowledges them. Ends the process at an end.
  void hear() const;
  /// Which ranks have not answered the last ping, "rank 2 has not answered"; empty where all have, or where a lower
  /// rank has, which finds the same and says it.
  std::string unanswered() const;
  /// Ends the process: says the sentence, then tells the others to end without one, and waits a moment until they know.
  [[noreturn]] void end(const std::string& sentence) const;
  void meet(const Model& model, const char* file, double timeout);
  void tell(const Notice& notice, int rank) const;
  bool next(Notice& notice, int& rank) const;

  const Ranks* ranks_ = nullptr;
  mutable std::optional<Rendezvous> rendezvous_;
  int rank_ = 0, size_ = 1;
  double timeout_ = 600;
  std::string program_;  ///< whose name a sentence begins with
  // Of the last ping or end.
  mutable std::int64_t number_ = 0;
  mutable std::vector<bool> answered_;
};

}  // namespace tessera::runtime
