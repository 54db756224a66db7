// Whom a rank names that has waited for longer than the limit, where an engine plays the others.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/communicator.hpp"

namespace tessera::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = Notice::Kind;

/// What the others do.
struct Others {
  std::set<int> answer = {};       ///< pings and ends
  std::set<int> answer_late = {};  ///< with the number of the ping before
  int ends = -1;                   ///< after 0.7 s
  double done = 1e9;               ///< seconds after which the exchange ends
  bool unreachable = false;        ///< the engine throws where one has ended
};
Others others;
int own_rank, ranks;
std::deque<std::pair<Notice, int>> arrived;
Clock::time_point opened;

double seconds() { return std::chrono::duration<double>(Clock::now() - opened).count(); }

void open(int& rank, int& count) {
  rank = own_rank;
  count = ranks;
  opened = Clock::now();
}

/// The next rank owes something: it says nothing about who has stopped.
int pending() {
  if (others.unreachable && seconds() > 0.7) throw std::runtime_error("the ranks cannot reach each other");
  return seconds() > others.done ? -1 : (own_rank + 1) % ranks;
}

void tell(const Notice& notice, int rank) {
  if (notice.kind == Kind::end) std::fprintf(stderr, "end to %d\n", rank);
  if (others.answer.contains(rank)) arrived.push_back({{Kind::ack, notice.number}, rank});
  if (others.answer_late.contains(rank)) arrived.push_back({{Kind::ack, notice.number - 1}, rank});
}

bool hear(Notice& notice, int& rank) {
  if (others.ends >= 0 && seconds() > 0.7) arrived.push_back({{Kind::end, 7}, std::exchange(others.ends, -1)});
  if (arrived.empty()) return false;
  std::tie(notice, rank) = arrived.front();
  arrived.pop_front();
  return true;
}

const Ranks engine{.open = open,
                   .close = nullptr,
                   .send = nullptr,
                   .receive = nullptr,
                   .pending = pending,
                   .tell = tell,
                   .hear = hear};

/// Waits with a limit of 0.3 s as one of so many ranks; for GPUs, whose engine does not say for whom. Ends with code 0
/// where the wait does; in a process of its own, as a rank's output goes nowhere.
void wait(int rank, int count, Others what_they_do, bool gpus = false) {
  own_rank = rank;
  ranks = count;
  others = std::move(what_they_do);
  arrived.clear();
  ::setenv("OMPI_COMM_WORLD_SIZE", std::to_string(count).c_str(), 1);
  Model model;
  model.name = "probe";
  model.ranks = &engine;
  Communicator communicator;
  communicator.open(model);
  communicator.set_timeout(0.3);
  if (gpus)
    communicator.wait_until([] { return false; });
  else
    communicator.wait();
  std::_Exit(0);
}

const std::string ends = " (--rank-timeout): the run ends, its checkpoint holds what was saved last\n";

testing::Matcher<const std::string&> is(const std::string& said) { return testing::Eq(said); }
const testing::ExitedWithCode one(1);

TEST(FailureDetector, TheLowestThatAnswersNamesTheOneThatDoesNotThenTellsTheOthers) {
  EXPECT_EXIT(wait(0, 3, {.answer = {1}}), one,
              is("probe: rank 2 has not answered for 0.3 s" + ends + "end to 1\nend to 2\n"));
  EXPECT_EXIT(wait(1, 3, {.answer = {2}}), one,
              is("probe: rank 0 has not answered for 0.3 s" + ends + "end to 0\nend to 2\n"));
  EXPECT_EXIT(wait(1, 2, {}), one, is("probe: rank 0 has not answered for 0.3 s" + ends + "end to 0\n"));
  EXPECT_EXIT(wait(0, 3, {.answer = {1}}, true), one,
              is("probe: rank 2 has not answered for 0.3 s" + ends + "end to 1\nend to 2\n"));
}

TEST(FailureDetector, NamesAllThatDoNotAnswer) {
  EXPECT_EXIT(wait(1, 4, {.answer = {2}}), one,
              is("probe: ranks 0, 3 have not answered for 0.3 s" + ends + "end to 0\nend to 2\nend to 3\n"));
}

TEST(FailureDetector, AnAnswerToAnEarlierPingIsNone) {
  EXPECT_EXIT(wait(0, 3, {.answer = {1}, .answer_late = {2}}), one,
              is("probe: rank 2 has not answered for 0.3 s" + ends + "end to 1\nend to 2\n"));
}

TEST(FailureDetector, LeavesItToALowerRankThatAnswersAndEndsWithoutAWord) {
  EXPECT_EXIT(wait(1, 3, {.answer = {0}, .ends = 0}), one, is(""));
  EXPECT_EXIT(wait(2, 3, {.answer = {0, 1}, .ends = 1}), one, is(""));
}

TEST(FailureDetector, WhoHasBeenToldToEndDoesNotBlameTheEngine) {
  EXPECT_EXIT(wait(1, 3, {.answer = {0}, .ends = 0, .unreachable = true}), one, is(""));
  EXPECT_EXIT(
      {
        try {
          wait(1, 3, {.answer = {0}, .unreachable = true});
        } catch (const std::runtime_error& error) {
          std::fputs(error.what(), stderr);
          std::_Exit(2);
        }
      },
      testing::ExitedWithCode(2), is("the ranks cannot reach each other"));
}

TEST(FailureDetector, BlamesNobodyWhereAllAnswer) {
  EXPECT_EXIT(wait(0, 3, {.answer = {1, 2}}), one,
              is("probe: the exchange with rank 1 has not ended for 0.3 s, though all ranks answer" + ends +
                 "end to 1\nend to 2\n"));
  EXPECT_EXIT(wait(0, 3, {.answer = {1, 2}}, true), one,
              is("probe: the exchange with the GPUs of other ranks has not ended for 0.3 s, though all ranks answer" +
                 ends + "end to 1\nend to 2\n"));
}

TEST(FailureDetector, AnExchangeThatEndsInTimeEndsNobody) {
  const testing::ExitedWithCode none(0);
  EXPECT_EXIT(wait(0, 3, {.done = 0.18}), none, is(""));                // longer than half of the limit
  EXPECT_EXIT(wait(1, 3, {.answer = {0}, .done = 0.9}), none, is(""));  // a lower rank would have said it
}

}  // namespace
}  // namespace tessera::runtime
