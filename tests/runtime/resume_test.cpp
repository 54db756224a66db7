// A run that is stopped or killed and then resumed ends with the bytes of a run that was not.
#include <chrono>
#include <csignal>
#include <thread>

#include "runtime/philox.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

class Resume : public testing::Test {
 protected:
  std::vector<std::string> command(const std::string& out, bool resume) {
    std::vector<std::string> arguments{
        "train", "--digits", "2000", "--epochs", "4", "--out", (folder / out).string(), "--checkpoint-every", "3"};
    if (resume) arguments.push_back("--resume");
    return arguments;
  }
  void expect_same(const std::string& a, const std::string& b) {
    for (const char* file : {"checkpoint.safetensors", "curve.csv", "curve.svg", "predictions.svg"})
      EXPECT_TRUE(slurp(folder / a / file) == slurp(folder / b / file)) << file;
    EXPECT_EQ(partial_files(folder / b), std::vector<std::string>());
  }
  /// Waits until the run has saved once.
  bool saved(Process& process, const std::string& out) {
    while (process.running()) {
      if (std::filesystem::exists(folder / out / "checkpoint.safetensors")) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  TemporaryFolder folder;
};

TEST_F(Resume, TwoRunsEndWithTheSameBytes) {
  EXPECT_EQ(sample(command("a", false)).code, 0);
  EXPECT_EQ(sample(command("b", false)).code, 0);
  expect_same("a", "b");
}

TEST_F(Resume, RunKilledAtRandomMomentsEndsWithTheSameBytes) {
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(sample(command("whole", false)).code, 0);
  const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  // The first kill comes after a checkpoint, so that there is something to go on from; the others at any moment.
  {
    Process process(paths::sample_program, command("killed", false), {});
    ASSERT_TRUE(saved(process, "killed"));
    process.send(SIGKILL);
    EXPECT_EQ(process.wait().code, 128 + SIGKILL);
  }
  const auto seed = static_cast<std::uint64_t>(begin.time_since_epoch().count());
  RecordProperty("seed", std::to_string(seed));
  Random random(seed, 2000, 0);
  for (int i = 0; i < 10; ++i) {
    Process process(paths::sample_program, command("killed", true), {});
    std::this_thread::sleep_for(std::chrono::duration<double>(random.uniform(0, whole)));
    process.send(SIGKILL);
    const Result result = process.wait();
    EXPECT_TRUE(result.code == 128 + SIGKILL || result.code == 0) << result.err;
  }
  const Result last = sample(command("killed", true));
  EXPECT_EQ(last.code, 0) << last.err;
  EXPECT_CONTAINS(last.out, "going on after step");
  expect_same("whole", "killed");
}

TEST_F(Resume, InterruptSavesStopsAndTellsHowToGoOn) {
  ASSERT_EQ(sample(command("whole", false)).code, 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string out = signal == SIGINT ? "interrupted" : "terminated";
    Process process(paths::sample_program, command(out, false), {});
    ASSERT_TRUE(saved(process, out));
    process.send(signal);
    const Result stopped = process.wait();
    EXPECT_EQ(stopped.code, 130) << stopped.err;
    EXPECT_CONTAINS(stopped.out, "go on with: ");
    EXPECT_CONTAINS(stopped.out, "train --resume --out " + (folder / out).string());
    EXPECT_EQ(sample({"train", "--resume", "--out", (folder / out).string()}).code, 0);
    expect_same("whole", out);
  }
}

TEST_F(Resume, ResumingBeforeTheFirstCheckpointStartsFromTheBeginning) {
  const Result result = sample(command("new", true));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_CONTAINS(result.out, "yet: starting from the beginning");
}

TEST_F(Resume, ResumingADamagedCheckpointIsOneSentence) {
  ASSERT_EQ(sample(command("a", false)).code, 0);
  const std::filesystem::path file = folder / "a/checkpoint.safetensors";
  const std::string whole = slurp(file);
  spill(file, whole.substr(0, whole.size() - 1000));
  const Result result = sample(command("a", true));
  EXPECT_EQ(result.code, 1);
  EXPECT_CONTAINS(result.err, "(is it truncated?)");
}

}  // namespace
}  // namespace tessera::runtime
