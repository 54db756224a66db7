// Where ranks that no MPI has started find each other: a file in a folder that all of them share.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/model.hpp"

namespace tessera::runtime {

/// Each rank leaves FILE.RANK, with a number drawn at random. Once all are there rank 0 writes FILE: what it gives to
/// all, and the numbers that it has read. Who does not find its own number there looks at a file of an earlier launch,
/// and waits on; rank 0 writes FILE anew where it had read one of those. So what was left behind cannot be taken for
/// something of this launch. Files are replaced as a whole. Behind its number a rank appends its notices to others: an
/// open of a network file system's file sees what was closed before.
///
/// All functions throw an Error with one sentence where a file is none of these, or cannot be read or written.
class Rendezvous {
 public:
  /// Leaves this rank's file. `file` may hold nothing but an earlier rendezvous.
  Rendezvous(std::filesystem::path file, int rank, int count);
  /// Removes this rank's file and, of rank 0, `file`.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Of rank 0: whether all have come, and `id` lies there for them. To be called until all have it.
  bool give(std::span<const std::byte> id);
  /// Of the others: whether rank 0 has given an id, which is then in `id`. Throws an AgreedError where it has given up.
  bool take(std::span<std::byte> id);
  /// Of rank 0: tells those that have come that it has given up.
  void give_up();
  bool met() const;  ///< all ranks' numbers are known here
  /// Of ranks that have met: whether this one is the first to call it.
  bool claim() const;
  /// What this rank has waited for in vain, in words.
  std::string missing() const;

  void tell(const Notice& notice, int rank) const;
  bool hear(Notice& notice, int& rank);

 private:
  std::filesystem::path file_of(int rank) const;
  /// Reads the numbers of those that have come: whether all have.
  bool look();
  void demand_own() const;
  void write(const std::string& id) const;

  std::filesystem::path file_;
  int rank_, count_;
  std::vector<std::string> numbers_;  ///< by rank; empty: it has not come
  std::vector<std::string> written_;  ///< in `file_`
  std::vector<int> counts_;           ///< of how many each says that it is
  bool of_another_ = false;           ///< `file_` was there, but is of another launch
  std::vector<std::uint64_t> heard_;  ///< bytes of each rank's file
  std::deque<std::pair<Notice, int>> notices_;
  std::chrono::steady_clock::time_point listened_{};
};

}  // namespace tessera::runtime
