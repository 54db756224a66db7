// Ranks: processes that train or evaluate one model together, each on its share.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// What went wrong on one rank, thrown on all of them: it has to be said but once.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// How many ranks a launcher (mpirun, srun) says that it has started, from what Open MPI, MPICH or Slurm put into the
/// environment; 1 where none did.
std::int64_t launched_ranks();
/// Which of them this process is, and which of those on its machine.
std::int64_t launched_rank();
std::int64_t launched_rank_of_machine();

/// This process among the ranks. All functions but `send` and `receive` are called by all ranks, in the same order.
/// A single process is a rank too, alone: nothing is sent then. A rank that does not answer within the time limit
/// throws an Error on those who wait for it. MPI, the engine, only moves bytes: what is computed of them, and in which
/// order, is decided here.
class Communicator {
 public:
  /// Alone.
  Communicator() = default;
  /// Joins the others, where a launcher has started several. Throws an Error where the program was built to run alone.
  void open(const Model& model);
  /// Leaves, after the others have come here too.
  void close();
  /// One that is alone, for whoever needs one.
  static const Communicator& single();

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool alone() const { return size_ == 1; }
  bool leads() const { return rank_ == 0; }  ///< it alone reads and writes the run's folder, and speaks
  void set_timeout(double seconds) { timeout_ = seconds; }

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
  /// Polls against the limit. `missing` tells the rank that has not answered, -1 where nothing is missing, or -2 where
  /// it is unknown which.
  void poll(const std::function<int()>& missing) const;

  const Ranks* ranks_ = nullptr;
  int rank_ = 0, size_ = 1;
  double timeout_ = 600;
};

}  // namespace tessera::runtime
