// Any number of ranks, of either MPI, ends with the bytes of one process; what goes wrong is said once and ends all.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "ranks_probe.h"
#include "runtime/numbers.hpp"
#include "runtime/philox.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/tree_reduce.hpp"
#include "tests/distributed/processes.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

using Arguments = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

struct Mpi {
  std::string name, run, program;
  Arguments options;  ///< of the launcher
};
Mpi open_mpi() {
  return {"OpenMpi", paths::openmpi_run, paths::sample_program, {"--oversubscribe", "--bind-to", "none", "--quiet"}};
}
Mpi mpich() { return {"Mpich", paths::mpich_run, paths::ranks_mpich, {}}; }

Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Messages go through sockets: a rank that stops while it writes into a queue of shared memory leaves the queue's
/// reader spinning inside MPI (Open MPI: once in 6,000 stops), so that two ranks no longer answer.
Mpi over_sockets(Mpi mpi) {
  mpi.options = mpi.options + (mpi.name == "OpenMpi"
                                   ? Arguments{"--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "127.0.0.0/8"}
                                   : Arguments{"-genv", "MPIR_CVAR_NOLOCAL", "1", "-genv", "UCX_TLS", "self,tcp"});
  return mpi;
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class Ranks : public testing::Test {
 protected:
  Ranks() {
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    ::setenv("OMP_NUM_THREADS", "1", 1);
  }

  /// What starts so many ranks of a program.
  static Arguments launch(const Mpi& mpi, int ranks) {
    return Arguments{mpi.run} + mpi.options + Arguments{"-np", std::to_string(ranks)};
  }
  static Result run(Arguments command) {
    const std::string program = command.front();
    command.erase(command.begin());
    return Process(program, std::move(command), {}).wait();
  }
  /// 1,210 images, 121 batches: the last step of an epoch has one part where 8 or 12 are a step, fewer than ranks.
  Arguments training(const std::string& out, int parts, int epochs = 2) const {
    return {"train",
            "--digits",
            "1210",
            "--batch",
            "10",
            "--epochs",
            std::to_string(epochs),
            "--accumulate",
            std::to_string(parts),
            "--checkpoint-every",
            "3",
            "--out",
            (folder / out).string()};
  }
  /// One process without a launcher.
  Result alone(const std::string& out, int parts, const Arguments& more = {}) const {
    return run(Arguments{paths::sample_program} + training(out, parts) + more);
  }
  Result ranks(const Mpi& mpi, int count, const std::string& out, int parts) const {
    return run(launch(mpi, count) + Arguments{mpi.program} + training(out, parts));
  }
  void expect_same(const std::string& a, const std::string& b) const {
    for (const char* file : {"checkpoint.safetensors", "best.safetensors", "curve.csv", "curve.svg", "predictions.svg"})
      EXPECT_TRUE(slurp(folder / a / file) == slurp(folder / b / file)) << file << " of " << a << " and of " << b;
    EXPECT_GT(slurp(folder / b / "checkpoint.safetensors").size(), 100000u);
  }
  /// How often a part stands in a text.
  static int times(const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }
  /// Calls f with either MPI at the same time: most of it they wait.
  template <class F>
  static void beside_each_other(const F& f) {
    std::thread other([&] { f(mpich()); });
    f(open_mpi());
    other.join();
  }
  /// One sentence, of this rank.
  static void expect_unanswered(int rank, const std::string& err) {
    EXPECT_EQ(times(err, "(--rank-timeout)"), 1) << err;
    EXPECT_EQ(times(err, "ranks_probe: rank " + std::to_string(rank) + " has not answered for 2 s (--rank-timeout)"), 1)
        << err << "stopped was rank " << rank;
  }
  /// All ranks end, the sentence is said once, and nothing is trained.
  void expect_refused(const Arguments& command, const std::string& sentence) const {
    const Result result = run(command);
    EXPECT_NE(result.code, 0);
    EXPECT_EQ(times(result.err, sentence), 1) << result.err << result.out;
    EXPECT_FALSE(std::filesystem::exists(folder / "refused/checkpoint.safetensors"));
  }
  /// The processes that train in the folder by their ranks, without the launcher and its helpers.
  std::map<int, pid_t> processes(const std::string& program, const std::string& out) const {
    std::map<int, pid_t> found;
    for (const auto& [pid, variables] : test::processes(program, (folder / out).string())) {
      std::istringstream environment(variables);
      for (std::string variable; std::getline(environment, variable, '\0');)
        for (const std::string rank : {"OMPI_COMM_WORLD_RANK=", "PMI_RANK="})
          if (variable.starts_with(rank)) found[std::stoi(variable.substr(rank.size()))] = pid;
    }
    return found;
  }
  /// Ranks that train for long and have written the first checkpoint.
  std::unique_ptr<Process> start(const Mpi& mpi, int count, const std::string& out, const Arguments& more) const {
    Arguments command = launch(mpi, count) + Arguments{mpi.program} + training(out, 8, 40) + more;
    const std::string launcher = command.front();
    command.erase(command.begin());
    auto process = std::make_unique<Process>(launcher, std::move(command), Process::Limits{});
    while (process->running() && !std::filesystem::exists(folder / out / "checkpoint.safetensors"))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return process;
  }
  /// Waits up to 10 s until no more ranks than so many are left.
  bool only(std::size_t count, const Mpi& mpi, const std::string& out) const {
    const Clock::time_point begin = Clock::now();
    while (processes(mpi.program, out).size() > count) {
      if (seconds_since(begin) > 10) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  /// Starts ranks that train for long, and sends one of them a signal at a random moment after the first checkpoint.
  struct Disturbed {
    Result result;
    int rank = -1;       ///< which got the signal
    double seconds = 0;  ///< from the signal to the end
    bool gone = false;   ///< no rank is left
  };
  Disturbed disturb(const Mpi& mpi, int count, const std::string& out, int signal, const Arguments& more = {}) const {
    const std::unique_ptr<Process> process = start(mpi, count, out, more);
    const auto seed = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
    RecordProperty("seed", std::to_string(seed));
    Random random(seed, 4000, 0);
    std::this_thread::sleep_for(std::chrono::duration<double>(random.uniform(0, 0.1)));
    const std::map<int, pid_t> all = processes(mpi.program, out);
    EXPECT_EQ(all.size(), static_cast<std::size_t>(count)) << process->wait().err;
    if (all.size() != static_cast<std::size_t>(count)) return {};
    const int rank = static_cast<int>(random.below(static_cast<std::uint32_t>(count)));
    ::kill(all.at(rank), signal);
    const Clock::time_point begin = Clock::now();
    Disturbed disturbed{process->wait(), rank, 0, false};
    disturbed.seconds = seconds_since(begin);
    disturbed.gone = only(0, mpi, out);  // the launcher may end a moment before what it has killed
    return disturbed;
  }
  void resume(const Mpi& mpi, int count, const std::string& out) const {
    const Result result =
        run(launch(mpi, count) + Arguments{mpi.program, "train", "--resume", "--out", (folder / out).string()});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_CONTAINS(result.out, "going on after step");
  }

  TemporaryFolder folder;
};

TEST_F(Ranks, AnyNumberOfEitherMpiEndsWithTheSameBytes) {
  ASSERT_EQ(alone("one", 8).code, 0);
  ASSERT_EQ(alone("threads", 8, {"--threads", "2"}).code, 0);
  expect_same("one", "threads");
  const auto same = [&](const Mpi& mpi, int count) {
    const std::string out = mpi.name + std::to_string(count);
    const Result result = ranks(mpi, count, out, 8);
    ASSERT_EQ(result.code, 0) << out << result.err;
    if (count > 1) {
      EXPECT_EQ(times(result.out, std::to_string(count) + " ranks share the 8 parts of a step"), 1) << result.out;
      EXPECT_EQ(times(result.out, ", the widest instruction set that all of them have"), 1) << result.out;
    }
    expect_same("one", out);
  };
  for (const Mpi& mpi : {open_mpi(), mpich()})
    for (const int count : {1, 2, 3, 4, 8}) same(mpi, count);
}

TEST_F(Ranks, AProgramThatCanRunAsRanksTrainsAsOneThatCannot) {
  const Arguments train{"train", "--digits", "1210", "--batch", "10", "--epochs", "2", "--out"};
  ASSERT_EQ(run(Arguments{paths::ranks_none} + train + Arguments{(folder / "plain").string()}).code, 0);
  ASSERT_EQ(run(Arguments{paths::sample_program} + train + Arguments{(folder / "alone").string()}).code, 0);
  ASSERT_EQ(
      run(launch(open_mpi(), 2) + Arguments{paths::sample_program} + train + Arguments{(folder / "two").string()}).code,
      0);
  const Safetensors plain = read_safetensors(folder / "plain/checkpoint.safetensors");
  for (const char* other : {"alone", "two"}) {
    const Safetensors ranks = read_safetensors(folder / other / "checkpoint.safetensors");
    ASSERT_EQ(plain.tensors.size(), ranks.tensors.size());
    for (const auto& [name, tensor] : plain.tensors) EXPECT_TRUE(bytes_of(tensor) == bytes_of(ranks.at(name))) << name;
  }
}

TEST_F(Ranks, OverlapEndsWithTheSameBytes) {
  ASSERT_EQ(alone("one", 8).code, 0);
  for (const int count : {1, 2, 3, 4}) {
    const std::string out = "probe" + std::to_string(count);
    const Result result =
        run(launch(open_mpi(), count) + Arguments{paths::sample_program} + training(out, 8) + Arguments{"--overlap"});
    ASSERT_EQ(result.code, 0) << result.err;
    expect_same("one", out);
  }
  // Blocks of several messages; 45 batches: the last step has one part, on one of the ranks.
  const Arguments train{"train", "--digits", "360", "--batch", "8", "--epochs", "1", "--accumulate", "4", "--out"};
  ASSERT_EQ(run(Arguments{paths::ranks_mnist} + train + Arguments{(folder / "blocks").string()}).code, 0);
  for (const int count : {2, 3, 4})
    for (const bool overlap : {false, true}) {
      const std::string out = "blocks" + std::to_string(count) + (overlap ? "_overlap" : "");
      Arguments command =
          launch(open_mpi(), count) + Arguments{paths::ranks_mnist} + train + Arguments{(folder / out).string()};
      if (overlap) command.emplace_back("--overlap");
      const Result result = run(command);
      ASSERT_EQ(result.code, 0) << result.err;
      expect_same("blocks", out);
    }
}

TEST_F(Ranks, TwelvePartsOnFiveAndSeven) {
  ASSERT_EQ(alone("one", 12).code, 0);
  for (const int count : {5, 7}) {
    ASSERT_EQ(ranks(open_mpi(), count, std::to_string(count), 12).code, 0);
    expect_same("one", std::to_string(count));
  }
}

TEST_F(Ranks, SumsOfTheEngineDependOnTheNumberOfRanks) {
  ASSERT_EQ(alone("one", 8).code, 0);
  Mpi engine = open_mpi();
  engine.program = paths::ranks_allreduce;
  const Result result = ranks(engine, 3, "allreduce", 8);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_FALSE(slurp(folder / "one/checkpoint.safetensors") == slurp(folder / "allreduce/checkpoint.safetensors"));
}

TEST_F(Ranks, ARankIsKilledAndAnotherNumberGoesOnWithTheSameBytes) {
  ASSERT_EQ(run(Arguments{paths::sample_program} + training("one", 8, 40)).code, 0);
  for (const Mpi& mpi : {open_mpi(), mpich()}) {
    const Disturbed killed = disturb(mpi, 3, mpi.name, SIGKILL);
    EXPECT_NE(killed.result.code, 0);
    EXPECT_LT(killed.seconds, 10);
    EXPECT_TRUE(killed.gone);
    resume(mpi, 2, mpi.name);
    expect_same("one", mpi.name);
  }
}

TEST_F(Ranks, ARankThatStopsAnsweringIsWaitedForNoLongerThanTheLimit) {
  beside_each_other([&](const Mpi& mpi) {
    const Disturbed stopped = disturb(over_sockets(mpi), 3, mpi.name, SIGSTOP, {"--rank-timeout", "2"});
    EXPECT_NE(stopped.result.code, 0);
    expect_unanswered(stopped.rank, stopped.result.err);
    EXPECT_LT(stopped.seconds, 10);
    EXPECT_TRUE(stopped.gone);
  });
}

// On a busy machine a launcher takes seconds to end ranks, of which the stopped one then wakes up: here it takes for
// ever.
TEST_F(Ranks, ARankThatStopsAnsweringIsNamedOnceHoweverSlowTheLauncherIs) {
  for (const int rank : {0, 1, 2})
    beside_each_other([&](const Mpi& mpi) {
      const std::string out = mpi.name + std::to_string(rank);
      const std::unique_ptr<Process> launcher = start(over_sockets(mpi), 3, out, {"--rank-timeout", "2"});
      const std::map<int, pid_t> all = processes(mpi.program, out);
      ASSERT_EQ(all.size(), 3u) << launcher->wait().err;
      launcher->send(SIGSTOP);
      ::kill(all.at(rank), SIGSTOP);
      EXPECT_TRUE(only(1, mpi, out)) << out;
      ::kill(all.at(rank), SIGCONT);
      EXPECT_TRUE(only(0, mpi, out)) << out;
      launcher->send(SIGCONT);
      const Result result = launcher->wait();
      EXPECT_NE(result.code, 0);
      expect_unanswered(rank, result.err);
    });
}

TEST_F(Ranks, ASignalToOneRankSavesAndStopsAll) {
  ASSERT_EQ(run(Arguments{paths::sample_program} + training("one", 8, 40)).code, 0);
  const Disturbed told = disturb(mpich(), 2, "told", SIGTERM);
  EXPECT_NE(told.result.code, 0);
  EXPECT_EQ(times(told.result.out, "stopped after step"), 1) << told.result.out << told.result.err;
  resume(open_mpi(), 3, "told");
  expect_same("one", "told");
}

TEST_F(Ranks, SendTheBytesOfTheFormula) {
  // 120 batches: every step has all of its parts.
  for (const auto& [count, parts, subtrees_of_all] : {std::tuple{4, 8, 4}, {2, 4, 2}, {3, 4, 3}, {3, 8, 6}}) {
    const std::string out = std::to_string(count) + "_" + std::to_string(parts);
    const Result result = run(launch(open_mpi(), count) +
                              Arguments{paths::sample_program, "train", "--digits", "1200", "--batch", "10", "--epochs",
                                        "1", "--accumulate", std::to_string(parts), "--out", (folder / out).string()});
    ASSERT_EQ(result.code, 0) << result.err;
    // Of each of its subtrees a rank sends all but its own slice, and then its slice to each of the others.
    const std::int64_t floats = RANKS_PROBE_PARAMETER_FLOATS, steps = 120 / parts;
    std::int64_t all = 0, most = 0;
    for (int rank = 0; rank < count; ++rank) {
      all += steps * bytes_of_step(floats, parts, rank, count);
      most = std::max(most, steps * bytes_of_step(floats, parts, rank, count));
    }
    if (count != 3) {
      EXPECT_EQ(all, steps * 4 * floats * (count - 1) * (subtrees_of_all / count + 1));
    }
    std::ostringstream said;
    said << "Ranks             " << count << ", which have sent " << grouped(all)
         << " bytes of gradients and parameters, " << grouped(most) << " the one that sent most\n";
    EXPECT_CONTAINS(slurp(folder / out / "report.txt"), said.str());
  }
}

TEST_F(Ranks, SummaryTellsWhatTheySendAndTake) {
  const Result result =
      run({paths::sample_program, "summary", "--ranks", "3", "--accumulate", "16", "--network", "100GbE"});
  EXPECT_EQ(result.code, 0) << result.err;
  std::int64_t most = 0;
  for (int rank = 0; rank < 3; ++rank) most = std::max(most, bytes_of_step(RANKS_PROBE_PARAMETER_FLOATS, 16, rank, 3));
  EXPECT_CONTAINS(result.out, "ranks         3, which share 16 parts of a step, 800 images\nsent          " +
                                  grouped(most) + " bytes in a step by the rank that sends most, ");
  EXPECT_CONTAINS(result.out, " a rank beside its images, ");
  EXPECT_CONTAINS(result.out, " for the exchange of a step at 100 Gb/s a rank and 20 us a message, on paper\n");
  EXPECT_CONTAINS(run({paths::sample_program, "summary", "--ranks", "4", "--accumulate", "2"}).err,
                  "4 ranks cannot share 2 parts of a step");
  EXPECT_CONTAINS(run({paths::sample_program, "summary", "--ranks", "4", "--network", "fast"}).err,
                  "as in 100GbE or 400IB, not 'fast'");
}

TEST_F(Ranks, EvaluateAsOneProcessDoes) {
  ASSERT_EQ(alone("run", 8).code, 0);
  const std::string out = (folder / "run").string();
  const Result one = run({paths::sample_program, "eval", "--out", out});
  for (const Mpi& mpi : {open_mpi(), mpich()}) {
    const Result three = run(launch(mpi, 3) + Arguments{mpi.program, "eval", "--out", out});
    EXPECT_EQ(three.code, 0) << three.err;
    EXPECT_EQ(three.out.substr(three.out.find('\n') + 1), one.out);  // without the line on the instruction set
  }
}

TEST_F(Ranks, AreRefusedWhereTheyCannotShareARun) {
  const Arguments two = launch(open_mpi(), 2), one{"-np", "1"};
  const Arguments train = training("refused", 4);
  expect_refused(launch(open_mpi(), 8) + Arguments{paths::sample_program} + train,
                 "8 ranks cannot share 4 parts of a step (--accumulate)");
  expect_refused(two + Arguments{paths::ranks_none, "train", "--out", (folder / "refused").string()},
                 "this program was built without DISTRIBUTED and cannot run as 2 ranks");
  expect_refused(two + Arguments{paths::sample_program, "predict", "a.png"},
                 "predict is for one process, not for 2 ranks");
  expect_refused(two + Arguments{paths::sample_program, "train", "--bacth"}, "did you mean --batch?");
  Arguments start = launch(open_mpi(), 1);
  expect_refused(start + Arguments{paths::sample_program} + train + Arguments{":"} + one +
                     Arguments{paths::sample_program} + training("refused too", 4),
                 "rank 1 was started with other arguments than rank 0");
  expect_refused(start + Arguments{"-x", "TESSERA_ISA=scalar", paths::sample_program} + train + Arguments{":"} + one +
                     Arguments{"-x", "TESSERA_ISA=nothing", paths::sample_program} + train,
                 "the ranks have no instruction set in common");
  const std::string other = (folder / "other").string();
  spill(other, slurp(paths::sample_program) + "x");
  std::filesystem::permissions(other, std::filesystem::perms::owner_all);
  expect_refused(start + Arguments{paths::sample_program} + train + Arguments{":"} + one + Arguments{other} + train,
                 "rank 1 runs another program than rank 0");
  // All end with 1, not only the one that speaks: each notes with what, and the launcher leaves the others alone.
  const Arguments noted{
      "--mca", "orte_abort_on_non_zero_status",
      "0",     "sh",
      "-c",    "\"$@\"; code=$?; echo $code > \"" + (folder / "code").string() + "$OMPI_COMM_WORLD_RANK\"; exit $code",
      "sh"};
  const std::string said = run(launch(open_mpi(), 8) + noted + Arguments{paths::sample_program} + train).err;
  EXPECT_EQ(times(said, "8 ranks cannot share 4 parts of a step (--accumulate)"), 1) << said;
  for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(slurp(folder / ("code" + std::to_string(rank))), "1\n") << rank;
  // A launcher of the other MPI.
  expect_refused(Arguments{paths::openmpi_run, "--oversubscribe", "--quiet", "-np", "2", paths::ranks_mpich} + train,
                 "it is linked with another MPI than that of the launcher");
}

/// A data set in MNIST's files, of grey images.
void write_digits(const std::filesystem::path& to, char grey) {
  std::filesystem::create_directories(to);
  for (const auto& [name, count] : {std::pair{"train", 40}, {"t10k", 20}}) {
    const auto number = [](int value) {
      return std::string{static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
                         static_cast<char>(value)};
    };
    std::string images = number(0x803) + number(count) + number(28) + number(28);
    images.append(static_cast<std::size_t>(count) * 784, grey);
    spill(to / (std::string(name) + "-images-idx3-ubyte"), images);
    std::string labels = number(0x801) + number(count);
    for (int i = 0; i < count; ++i) labels += static_cast<char>(i % 10);
    spill(to / (std::string(name) + "-labels-idx1-ubyte"), labels);
  }
}

TEST_F(Ranks, AreRefusedWhereTheirImagesDiffer) {
  write_digits(folder / "a/data", 1);
  write_digits(folder / "b/data", 2);
  const Arguments start{paths::openmpi_run, "--oversubscribe", "--quiet"};
  const std::string out = (folder / "run").string();
  ASSERT_EQ(run({paths::sample_program, "train", "--digits", "100", "--epochs", "1", "--out", out}).code, 0);
  const auto evaluation = [&](const std::string& where) {
    return Arguments{
        "--wdir", (folder / where).string(), "-np", "1", paths::sample_program, "eval", "--data", "data", "--out", out};
  };
  expect_refused(start + evaluation("a") + Arguments{":"} + evaluation("b"), "rank 1 has other images than rank 0");
  const Result same = run(start + evaluation("a") + Arguments{":"} + evaluation("a"));
  EXPECT_EQ(same.code, 0) << same.err;

  // Another machine's folder of the same name.
  if (std::system("unshare --mount true 2>/dev/null") != 0) GTEST_SKIP() << "mount namespaces cannot be made here";
  const std::string path = (folder / "a").string();
  const Arguments train{paths::sample_program,        "train", "--data", path + "/data", "--batch", "5", "--out",
                        (folder / "refused").string()};
  Arguments there{
      "unshare", "--mount", "sh", "-c", "mount --bind " + (folder / "b").string() + " " + path + " && exec \"$@\"",
      "sh"};
  expect_refused(start + Arguments{"-np", "1"} + train + Arguments{":", "-np", "1"} + there + train,
                 "rank 1 has other training images than rank 0");
}

TEST_F(Ranks, ReadOnePackedFile) {
  write_digits(folder / "data", 1);
  const std::string packed = (folder / "digits.packed").string();
  ASSERT_EQ(run({paths::sample_program, "pack", "--data", (folder / "data").string(), "-o", packed}).code, 0);
  const auto train = [&](const std::string& data, const std::string& out) {
    return Arguments{paths::sample_program, "train", "--data",   data, "--batch", "5",
                     "--accumulate",        "4",     "--epochs", "2",  "--out",   (folder / out).string()};
  };
  ASSERT_EQ(run(train(packed, "one")).code, 0);
  for (const Mpi& mpi : {open_mpi(), mpich()}) {
    Arguments command = train(packed, mpi.name);
    command.front() = mpi.program;
    const Result result = run(launch(mpi, 3) + command);
    ASSERT_EQ(result.code, 0) << result.err;
    expect_same("one", mpi.name);
  }
}

TEST_F(Ranks, MayHaveOtherClocks) {
  const Arguments later{"unshare", "--time", "--fork", "--monotonic", "1000000"};
  if (std::system("unshare --time --fork --monotonic 1000000 true 2>/dev/null") != 0)
    GTEST_SKIP() << "time namespaces cannot be made here";
  ASSERT_EQ(alone("one", 4).code, 0);
  const Arguments train = Arguments{paths::sample_program} + training("clocks", 4);
  const Result result = run(launch(open_mpi(), 1) + train + Arguments{":", "-np", "1"} + later + train);
  EXPECT_EQ(result.code, 0) << result.err;
  expect_same("one", "clocks");
}

TEST_F(Ranks, UseTheWidestInstructionSetThatAllHave) {
  const Arguments train = training("narrow", 4);
  const Result result = run(launch(open_mpi(), 1) + Arguments{paths::sample_program} + train +
                            Arguments{":", "-np", "1", "-x", "TESSERA_ISA=scalar", paths::sample_program} + train);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_CONTAINS(result.out, "2 ranks, kernels for scalar, the widest instruction set that all of them have");
  ::setenv("TESSERA_ISA", "scalar", 1);
  ASSERT_EQ(alone("scalar", 4).code, 0);
  ::unsetenv("TESSERA_ISA");
  expect_same("scalar", "narrow");
}

}  // namespace
}  // namespace tessera::runtime
