// Ranks with a GPU each, processes of which the CPU stands for every GPU: the bytes of one process for any number.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <thread>

#include "cuda_ranks.h"
#include "cuda_ranks_cuda.h"
#include "runtime/numbers.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/tree_reduce.hpp"
#include "tests/distributed/processes.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

using Arguments = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class CudaRanks : public testing::Test {
 protected:
  CudaRanks() {
    for (const char* const name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMP_NUM_THREADS"})
      ::setenv(name, "1", 1);
  }
  static Process start(Arguments command) {
    const std::string program = command.front();
    command.erase(command.begin());
    return Process(program, std::move(command), {});
  }
  static Result run(const Arguments& command) { return start(command).wait(); }
  static Arguments launch(int ranks, const std::string& program = paths::ranks_cuda) {
    return {
        paths::openmpi_run, "--oversubscribe", "--bind-to", "none", "--quiet", "-np", std::to_string(ranks), program};
  }
  std::string at(const std::string& name) const { return (folder / name).string(); }
  /// 27 images, 7 batches: steps of four parts and of three, fewer than four ranks.
  Arguments training(const std::string& out, const std::string& epochs = "2") const {
    return {"train", "--device", "cuda", "--digits",           "27", "--batch", "4",    "--accumulate",
            "4",     "--epochs", epochs, "--checkpoint-every", "1",  "--out",   at(out)};
  }
  void expect_same(const std::string& a, const std::string& b) const {
    for (const char* file : {"checkpoint.safetensors", "best.safetensors", "curve.csv"}) {
      EXPECT_TRUE(slurp(folder / a / file) == slurp(folder / b / file)) << file << " of " << a << " and of " << b;
      EXPECT_FALSE(slurp(folder / a / file).empty()) << file << " of " << a;
    }
  }
  static int times(const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }
  /// The ranks that train in the folder.
  std::vector<pid_t> processes(const std::string& out) const {
    std::vector<pid_t> found;
    for (const auto& [pid, environment] : test::processes(paths::ranks_cuda, at(out))) found.push_back(pid);
    return found;
  }
  /// Sends the last of three ranks a signal after the first checkpoint, and waits until all have ended.
  Result disturbed(const std::string& out, int signal, const std::string& epochs, const Arguments& more = {}) const {
    Process process = start(launch(3) + training(out, epochs) + more);
    while (process.running() && !std::filesystem::exists(folder / out / "checkpoint.safetensors"))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::vector<pid_t> ranks = processes(out);
    EXPECT_EQ(ranks.size(), 3u);
    if (!ranks.empty()) ::kill(ranks.back(), signal);
    const Clock::time_point begin = Clock::now();
    Result result = process.wait();
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
    EXPECT_NE(result.code, 0);
    return result;
  }

  TemporaryFolder folder;
};

/// Ranks that no launcher has started: they find each other by a file.
class CudaRanksByFile : public CudaRanks {
 protected:
  CudaRanksByFile() { ::setenv("TESSERA_RENDEZVOUS", at("meet").c_str(), 1); }
  ~CudaRanksByFile() override {
    for (const char* const name : {"TESSERA_RENDEZVOUS", "TESSERA_RANKS", "TESSERA_RANK"}) ::unsetenv(name);
  }
  static std::unique_ptr<Process> start_rank(int rank, int count, Arguments arguments) {
    ::setenv("TESSERA_RANKS", std::to_string(count).c_str(), 1);
    ::setenv("TESSERA_RANK", std::to_string(rank).c_str(), 1);
    return std::make_unique<Process>(paths::ranks_cuda, std::move(arguments), Process::Limits{});
  }
  static std::vector<std::unique_ptr<Process>> start_ranks(int count, const Arguments& arguments) {
    std::vector<std::unique_ptr<Process>> all;
    for (int rank = 0; rank < count; ++rank) all.push_back(start_rank(rank, count, arguments));
    return all;
  }
  struct Results {
    std::string out, err;  ///< of all ranks, one after the other
    std::vector<int> codes;
  };
  static Results wait(std::vector<std::unique_ptr<Process>>& all) {
    Results results;
    for (const auto& process : all) {
      const Result result = process->wait();
      results.out += result.out;
      results.err += result.err;
      results.codes.push_back(result.code);
    }
    return results;
  }
  static Results run_ranks(int count, const Arguments& arguments) {
    auto all = start_ranks(count, arguments);
    return wait(all);
  }
  /// One process without the variables.
  Result run_alone(const Arguments& arguments) const {
    ::unsetenv("TESSERA_RENDEZVOUS");
    ::unsetenv("TESSERA_RANKS");
    const Result result = run(Arguments{paths::ranks_cuda} + arguments);
    ::setenv("TESSERA_RENDEZVOUS", at("meet").c_str(), 1);
    return result;
  }
  /// What the rendezvous has left.
  std::string left() const {
    std::string names;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "."))
      if (const std::string name = entry.path().filename(); name.starts_with("meet")) names += name + " ";
    return names;
  }
  void wait_for(const std::string& file) const {
    for (const Clock::time_point begin = Clock::now();
         !std::filesystem::exists(folder / file) && Clock::now() - begin < std::chrono::seconds(120);)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(std::filesystem::exists(folder / file)) << file;
  }
};

TEST_F(CudaRanks, AnyNumberEndsWithTheSameBytes) {
  ASSERT_EQ(run(Arguments{paths::ranks_cuda} + training("one")).code, 0);
  for (const int count : {1, 2, 3, 4}) {
    const std::string out = std::to_string(count);
    const Result result = run(launch(count) + training(out));
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(times(result.out, "kernels CUDA on this CPU"), 1) << result.out;
    expect_same("one", out);
    if (count == 1) continue;
    // Two epochs of a step of four parts and one of three.
    std::int64_t all = 0, most = 0;
    const std::int64_t floats = CUDA_RANKS_PARAMETER_FLOATS;
    for (int rank = 0; rank < count; ++rank) {
      const std::int64_t sent = 2 * (bytes_of_step(floats, 4, rank, count) + bytes_of_step(floats, 3, rank, count));
      all += sent;
      most = std::max(most, sent);
    }
    EXPECT_CONTAINS(slurp(folder / out / "report.txt"),
                    text("Ranks             ", count, ", which have sent ", grouped(all),
                         " bytes of gradients and parameters, ", grouped(most), " the one that sent most\n"));
  }
}

TEST_F(CudaRanks, InBf16EndWithTheSameBytes) {
  ASSERT_EQ(run(Arguments{paths::probe_bf16} + training("one")).code, 0);
  const Result result = run(launch(3, paths::probe_bf16) + training("three"));
  ASSERT_EQ(result.code, 0) << result.err;
  expect_same("one", "three");
}

TEST_F(CudaRanks, EachGpuKeepsItsShareOfTheOptimisersState) {
  constexpr std::int64_t floats = CUDA_RANKS_PARAMETER_FLOATS, batch = 4, states = 3, slack = 32 << 10;
  // Parameters, gradients, the sum of its part; its slice of the state and of what three others send; evaluation.
  const std::int64_t slice = slice_of(floats, 3, 4).size(), image = 4 * 784;
  const std::int64_t needed = 4 * (3 * floats + (states + 3) * slice) + CUDA_RANKS_CUDA_TRAIN_SCRATCH_BYTES(batch) +
                              2 * batch * image + 4 * floats + CUDA_RANKS_CUDA_EVALUATE_SCRATCH_BYTES(batch) +
                              batch * image;
  ::setenv("TESSERA_HOST_GPU_BYTES", std::to_string(needed + slack).c_str(), 1);
  const Result enough = run(launch(4) + training("enough", "1"));
  EXPECT_EQ(enough.code, 0) << enough.err;
  ASSERT_LT(2 * slack, 4 * (states * (floats - slice)));  // what the whole state would take more
  ::setenv("TESSERA_HOST_GPU_BYTES", std::to_string(needed - slack).c_str(), 1);
  const Result little = run(launch(4) + training("little", "1"));
  ::unsetenv("TESSERA_HOST_GPU_BYTES");
  EXPECT_NE(little.code, 0);
}

TEST_F(CudaRanks, ThreeTrainNearTheNumbersOfACpu) {
  Arguments on_cpu = training("cpu");
  on_cpu[2] = "cpu";
  ASSERT_EQ(run(Arguments{paths::ranks_cuda} + on_cpu).code, 0);
  ASSERT_EQ(run(launch(3) + training("cuda")).code, 0);
  const Safetensors cpu = read_safetensors(folder / "cpu/checkpoint.safetensors"),
                    cuda = read_safetensors(folder / "cuda/checkpoint.safetensors");
  ASSERT_EQ(cpu.tensors.size(), cuda.tensors.size());
  for (const auto& [key, tensor] : cpu.tensors) {
    const std::vector<float> x = tensor.floats(), y = cuda.at(key).floats();
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 2e-4) << key << " " << i;
  }
}

TEST_F(CudaRanks, OneIsKilledAndAnotherNumberGoesOnWithTheSameBytes) {
  ASSERT_EQ(run(Arguments{paths::ranks_cuda} + training("one", "12")).code, 0);
  disturbed("killed", SIGKILL, "12");
  const Result two = run(launch(2) + Arguments{"train", "--device", "cuda", "--resume", "--out", at("killed")});
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_CONTAINS(two.out, "going on after step");
  expect_same("one", "killed");
}

TEST_F(CudaRanks, OneThatStopsAnsweringIsWaitedForNoLongerThanTheLimit) {
  const Result stopped = disturbed("stopped", SIGSTOP, "200", {"--rank-timeout", "2"});
  EXPECT_EQ(times(stopped.err, "has not answered for 2 s"), 1) << stopped.err;
}

TEST_F(CudaRanks, EvaluateAsOneDoes) {
  ASSERT_EQ(run(Arguments{paths::ranks_cuda} + training("run", "1")).code, 0);
  const Arguments eval{"eval", "--device", "cuda", "--digits", "300", "--out", at("run")};
  const Result one = run(Arguments{paths::ranks_cuda} + eval), three = run(launch(3) + eval);
  EXPECT_EQ(three.code, 0) << three.err;
  EXPECT_EQ(three.out.substr(three.out.find('\n') + 1), one.out);  // without the line on the instruction set
}

TEST_F(CudaRanks, AreRefusedInASentenceThatIsSaidOnce) {
  const auto expect_refused = [&](const Arguments& command, const std::string& sentence) {
    const Result result = run(command);
    EXPECT_NE(result.code, 0);
    EXPECT_EQ(times(result.err, sentence), 1) << result.err << result.out;
    EXPECT_FALSE(std::filesystem::exists(folder / "refused/checkpoint.safetensors"));
  };
  expect_refused(launch(2, paths::ranks_cuda_alone) + training("refused"),
                 "this program was built without NCCL, its ranks compute on CPUs only: --device cuda is for one rank "
                 "(DISTRIBUTED mpi nccl in tessera_add_model lets each rank use a GPU)");
  expect_refused(launch(5) + training("refused"), "5 ranks cannot share 4 parts of a step (--accumulate)");
  expect_refused(launch(2) + training("refused") + Arguments{"--overlap"},
                 "--overlap is for ranks that compute on CPUs, not for --device cuda");
  ::setenv("TESSERA_HOST_GPU_BYTES", "0", 1);
  expect_refused(launch(2) + training("refused"), "there is no GPU here that CUDA can use (no CUDA-capable device");
  ::unsetenv("TESSERA_HOST_GPU_BYTES");
}

TEST_F(CudaRanksByFile, EndWithTheBytesOfOneProcessAndLeaveNoFile) {
  ASSERT_EQ(run_alone(training("one")).code, 0);
  for (const int count : {1, 2, 3, 4}) {
    const Results results = run_ranks(count, training(std::to_string(count)));
    ASSERT_EQ(results.codes, std::vector<int>(static_cast<std::size_t>(count), 0)) << results.err;
    EXPECT_EQ(times(results.out, "done: "), 1) << results.out;
    expect_same("one", std::to_string(count));
    EXPECT_EQ(left(), "");
  }
  const Arguments eval{"eval", "--device", "cuda", "--digits", "300", "--out", at("one")};
  const Results three = run_ranks(3, eval);
  EXPECT_EQ(three.codes, std::vector<int>(3, 0)) << three.err;
  EXPECT_EQ(three.out.substr(three.out.find('\n') + 1), run_alone(eval).out);
}

TEST_F(CudaRanksByFile, WhatAKilledLaunchHasLeftIsNotTakenForThisOne) {
  ASSERT_EQ(run_alone(training("one", "12")).code, 0);
  auto all = start_ranks(3, training("killed", "12"));
  wait_for("killed/checkpoint.safetensors");
  for (const auto& process : all) process->send(SIGKILL);
  wait(all);
  ASSERT_EQ(left().size(), std::string("meet meet.0 meet.1 meet.2 ").size()) << left();
  // Rank 0 comes last: until then the others see the earlier launch's file, and rank 0 that of its rank 2.
  const Arguments resume{"train", "--device", "cuda", "--resume", "--out", at("killed")};
  const std::string before = slurp(folder / "meet.1"), of_two = slurp(folder / "meet.2"),
                    of_all = slurp(folder / "meet");
  std::vector<std::unique_ptr<Process>> again(3);
  again[1] = start_rank(1, 3, resume);
  for (const Clock::time_point begin = Clock::now();
       slurp(folder / "meet.1") == before && Clock::now() - begin < std::chrono::seconds(120);)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  again[0] = start_rank(0, 3, resume);
  for (const Clock::time_point begin = Clock::now();
       slurp(folder / "meet") == of_all && Clock::now() - begin < std::chrono::seconds(120);)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(slurp(folder / "meet.2"), of_two);  // by which rank 0 has written its file
  again[2] = start_rank(2, 3, resume);
  const Results results = wait(again);
  ASSERT_EQ(results.codes, std::vector<int>(3, 0)) << results.err;
  EXPECT_CONTAINS(results.out, "going on after step");
  expect_same("one", "killed");
  EXPECT_EQ(left(), "");
}

TEST_F(CudaRanksByFile, OneIsKilledOrStopsAndTheOthersSayItOnce) {
  for (const auto& [signal, sentence] : {std::pair{SIGKILL, "remote process exited or there was a network error"},
                                         std::pair{SIGSTOP, "rank 2 has not answered for 3 s (--rank-timeout)"}}) {
    const std::string out = std::to_string(signal);
    auto all = start_ranks(3, training(out, "5000") + Arguments{"--rank-timeout", "3"});
    wait_for(out + "/checkpoint.safetensors");
    all[2]->send(signal);
    std::string said;
    for (const int rank : {0, 1}) {
      const Result result = all[static_cast<std::size_t>(rank)]->wait();
      EXPECT_EQ(result.code, 1) << result.err;
      said += result.err;
    }
    all[2]->send(SIGKILL);
    EXPECT_EQ(times(said, sentence), 1) << said;
    EXPECT_EQ(times(said, "\n"), 1) << said;
  }
}

TEST_F(CudaRanksByFile, AreRefusedInASentence) {
  const auto expect_refused = [&](std::vector<std::unique_ptr<Process>> all, const std::string& sentence) {
    const Results results = wait(all);
    for (const int code : results.codes) EXPECT_EQ(code, 1);
    EXPECT_EQ(times(results.err, sentence), 1) << results.err;
    EXPECT_EQ(times(results.err, "\n"), 1) << results.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "refused/checkpoint.safetensors"));
  };
  const auto one = [](std::unique_ptr<Process> process) {
    std::vector<std::unique_ptr<Process>> all;
    all.push_back(std::move(process));
    return all;
  };
  const Arguments train = training("refused"), soon{"--rank-timeout", "4"};
  const std::string meet = at("meet") + " (TESSERA_RENDEZVOUS)";

  // One of them does not come: rank 0 says it, and the others end without a word.
  std::vector<std::unique_ptr<Process>> two(2);
  two[0] = start_rank(0, 3, train + soon);
  wait_for("meet.0");
  two[1] = start_rank(1, 3, train + soon);
  expect_refused(std::move(two), "rank 2 has not come to " + meet + " as one of 3 for 4 s (--rank-timeout)");
  // Nor does rank 0, of which an earlier launch has left something; nor where there is nothing.
  expect_refused(one(start_rank(1, 3, train + Arguments{"--rank-timeout=0.5"})),
                 "rank 1 has waited for rank 0 at " + meet +
                     ", where there is only the file of another launch for 0.75 s (--rank-timeout)");
  std::filesystem::remove(folder / "meet");
  expect_refused(one(start_rank(1, 3, train + Arguments{"--rank-timeout", "0.5"})),
                 "rank 1 has waited for rank 0 at " + meet +
                     ": it has not come, or the folder is not shared by all machines for 0.75 s (--rank-timeout)");
  // Another number of ranks.
  two.resize(2);
  two[0] = start_rank(0, 2, train + soon);
  wait_for("meet.0");
  two[1] = start_rank(1, 3, train + Arguments{"--rank-timeout", "1000"});
  const auto ended = two[0]->wait();
  two[1]->send(SIGKILL);
  EXPECT_CONTAINS(ended.err, "rank 1 has not come to " + meet + " as one of 2; rank 1 was started as one of 3");
  two.clear();
  // Two that are the same.
  std::vector<std::unique_ptr<Process>> same(2);
  same[0] = start_rank(1, 3, train + Arguments{"--rank-timeout", "1000"});
  same[1] = start_rank(1, 3, train + Arguments{"--rank-timeout", "1000"});
  while (same[0]->running() && same[1]->running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const auto& process : same) process->send(SIGTERM);
  EXPECT_CONTAINS(wait(same).err, "another process is rank 1 at " + meet + " as well: each needs its own TESSERA_RANK");

  expect_refused(one(start_rank(3, 3, train)), "TESSERA_RANK=3 is none of 3 ranks (TESSERA_RANKS), which count from 0");
  Arguments on_cpu = train;
  on_cpu[2] = "cpu";
  expect_refused(start_ranks(2, on_cpu),
                 "ranks that find each other by a file (TESSERA_RENDEZVOUS) compute on GPUs: --device cuda is missing");
  expect_refused(start_ranks(5, train), "5 ranks cannot share 4 parts of a step (--accumulate)");
  ::setenv("TESSERA_HOST_GPU_BYTES", "0", 1);
  expect_refused(start_ranks(2, train), "there is no GPU here that CUDA can use (no CUDA-capable device");
  ::unsetenv("TESSERA_HOST_GPU_BYTES");
  spill(folder / "meet", "a file of somebody's");
  expect_refused(start_ranks(2, train), meet + " is not a file of a rendezvous: name one that is not there yet");
  EXPECT_EQ(slurp(folder / "meet"), "a file of somebody's");
  ::setenv("TESSERA_RENDEZVOUS", at("nowhere/meet").c_str(), 1);
  expect_refused(start_ranks(2, train), "nowhere/meet.0");
  ::unsetenv("TESSERA_RANKS");
  expect_refused(
      one(std::make_unique<Process>(paths::ranks_cuda, train, Process::Limits{})),
      "TESSERA_RENDEZVOUS names a file for ranks, but neither TESSERA_RANKS nor srun says how many there are");
  ::setenv("TESSERA_RANKS", "2", 1);
  ::setenv("TESSERA_RANK", "0", 1);
  expect_refused(one(std::make_unique<Process>(paths::ranks_cuda_alone, train, Process::Limits{})),
                 "this program was built without NCCL, by which ranks exchange bytes that find each other by a file");
  ::unsetenv("TESSERA_RENDEZVOUS");
  expect_refused(one(std::make_unique<Process>(paths::ranks_cuda, train, Process::Limits{})),
                 "TESSERA_RANKS is for ranks that find each other by a file, which TESSERA_RENDEZVOUS names");
}

}  // namespace
}  // namespace tessera::runtime
