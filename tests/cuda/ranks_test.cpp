// Ranks with a GPU each, processes of which the CPU stands for every GPU: the bytes of one process for any number.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "cuda_ranks.h"
#include "runtime/numbers.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/tree_reduce.hpp"
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
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string line = slurp(entry.path() / "cmdline");
      if (line.starts_with(std::string(paths::ranks_cuda) + '\0') && line.find(at(out) + '\0') != std::string::npos)
        found.push_back(std::stoi(name));
    }
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
  ::setenv("TESSERA_HOST_GPU_BYTES", "0", 1);
  expect_refused(launch(2) + training("refused"), "there is no GPU here that CUDA can use (no CUDA-capable device");
  ::unsetenv("TESSERA_HOST_GPU_BYTES");
}

}  // namespace
}  // namespace tessera::runtime
