// For every call that a command makes of the system and that fails: the old model is whole or the new one is, one
// sentence says what happened, and the exit code is not zero. And for every moment at which power can fail: a whole
// model.
#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <ostream>
#include <set>
#include <sstream>

#include "runtime/arena.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/digits.hpp"
#include "runtime/image.hpp"
#include "tests/faults/disk.hpp"
#include "tests/runtime/helpers.hpp"
#include "tests/runtime/sample_table.hpp"

namespace tessera::runtime {
namespace {

/// A command of a program, run where there are a run of the sample program, WORK/run, a VQGAN, WORK/vqgan, a
/// transformer over its tokens, WORK/gpt, and what other commands have left.
struct Command {
  const char* name;
  std::vector<std::string> arguments;
  const char* model;     ///< the file that it writes, "" for none
  const char* previous;  ///< where what was there before is kept, "" for nowhere
  const char* program = paths::sample_program;
  bool is_sample() const { return program == paths::sample_program; }
};
void PrintTo(const Command& command, std::ostream* out) { *out << command.name; }

const char* const checkpoint = "run/checkpoint.safetensors";
const Command commands[]{
    {"train",
     {"train", "--overwrite", "--digits", "60", "--batch", "20", "--epochs", "1", "--checkpoint-every", "2", "--out",
      "WORK/run"},
     checkpoint,
     "run/checkpoint.previous.safetensors"},
    {"resume", {"train", "--resume", "--epochs", "2", "--out", "WORK/run"}, checkpoint, ""},
    {"import",
     {"import", "WORK/weights.safetensors", "--out", "WORK/run"},
     checkpoint,
     "run/checkpoint.previous.safetensors"},
    {"export",
     {"export", "--out", "WORK/run", "--dtype", "f16", "-o", "WORK/weights.safetensors"},
     "weights.safetensors",
     ""},
    {"eval", {"eval", "--out", "WORK/run", "--confusion", "WORK/c.svg"}, "", ""},
    {"predict", {"predict", "WORK/digit.png", "--out", "WORK/run"}, "", ""},
    {"embed",
     {"embed", "WORK/pictures", "--out", "WORK/run", "-o", "WORK/features.safetensors"},
     "features.safetensors",
     ""},
    {"similar", {"similar", "WORK/digit.png", "--index", "WORK/index.safetensors", "--out", "WORK/run"}, "", ""},
    {"probe",
     {"probe", "--index", "WORK/index.safetensors", "--out", "WORK/run", "-o", "WORK/head.safetensors"},
     "head.safetensors",
     ""},
    {"pack", {"pack", "--digits", "60", "-o", "WORK/data.packed"}, "data.packed", ""},
    {"onnx", {"export", "--out", "WORK/run", "--onnx", "WORK/model.onnx"}, "model.onnx", ""},
    {"encode",
     {"encode", "WORK/digit.png", "--out", "WORK/vqgan", "-o", "WORK/tokens.safetensors"},
     "tokens.safetensors",
     "",
     paths::vqgan_program},
    {"gpt_export",
     {"export", "--out", "WORK/gpt", "-o", "WORK/gpt.safetensors"},
     "gpt.safetensors",
     "",
     paths::gpt_program},
};

/// Whether the bytes are a model of the sample program, and where it is a run one that can go on.
bool is_model(const std::string& bytes) {
  static std::set<std::string> known;
  if (known.contains(bytes)) return true;
  const Model model = sample_model();
  const Arena parameters = Arena::of_floats(model.parameter_floats, 64),
              optimizer = Arena::of_floats(model.optimizer_floats(), 64);
  const TemporaryFolder folder;
  spill(folder / "f", bytes);
  const bool whole = sentence([&] {
                       if (load_parameters(folder / "f", model, parameters.floats()).state)
                         resume_checkpoint(folder / "f", model, parameters.floats(), optimizer.floats());
                     }).empty();
  if (whole) known.insert(bytes);
  return whole;
}

/// Sets a variable of the environment as long as it lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Environment() { ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

class Faults : public testing::TestWithParam<Command> {
 protected:
  static void SetUpTestSuite() {
    ::setenv("OMP_NUM_THREADS", "1", 1);
    ::setenv("OMP_WAIT_POLICY", "passive", 1);
    start = std::make_unique<TemporaryFolder>();
    const std::string run = (*start / "run").string();
    ASSERT_EQ(sample({"train", "--digits", "60", "--batch", "20", "--epochs", "1", "--seed", "2", "--out", run}).code,
              0);
    ASSERT_EQ(sample({"export", "--out", run, "-o", (*start / "weights.safetensors").string()}).code, 0);
    const Bytes digit = encode_png(draw_digits(1, 1, Split::test).image(0), 1, 28, 28);
    spill(*start / "digit.png", std::string(digit.begin(), digit.end()));
    // A VQGAN, a transformer over its tokens, and files that are no models, which may be replaced.
    const std::filesystem::path weights = std::filesystem::path(paths::golden) / "vq/digits_trained/vqgan.safetensors";
    const std::string vqgan = *start / "vqgan", gpt = *start / "gpt";
    const auto ran = [](const char* program, const std::vector<std::string>& arguments) {
      return Process(program, arguments, {}).wait().code;
    };
    ASSERT_EQ(ran(paths::vqgan_program, {"import", weights, "--out", vqgan}), 0);
    ASSERT_EQ(ran(paths::gpt_program, {"train", "--vqgan", vqgan, "--out", gpt, "--images", "8", "--steps", "1"}), 0);
    for (const char* folder : {"bright", "dark"})
      for (int i = 0; i < 5; ++i) {
        const std::filesystem::path picture = *start / "pictures" / folder / text(i, ".png");
        std::filesystem::create_directories(picture.parent_path());
        const Bytes png = encode_png(Bytes(28 * 28, static_cast<std::uint8_t>(*folder + 20 * i)), 1, 28, 28);
        spill(picture, std::string(png.begin(), png.end()));
      }
    ASSERT_EQ(sample({"embed", *start / "pictures", "--out", run, "-o", *start / "index.safetensors"}).code, 0);
    for (const char* name : {"tokens.safetensors", "gpt.safetensors", "features.safetensors", "head.safetensors",
                             "data.packed", "model.onnx"})
      spill(*start / name, "no model");
  }
  static void TearDownTestSuite() { start.reset(); }

  void begin() {
    std::filesystem::remove_all(work());
    std::filesystem::copy(start->path(), work(), std::filesystem::copy_options::recursive);
  }
  std::filesystem::path work() const { return folder / "work"; }
  Result run() {
    std::vector<std::string> arguments = GetParam().arguments;
    for (std::string& argument : arguments)
      if (argument.starts_with("WORK")) argument.replace(0, 4, work().string());
    const Environment preload("LD_PRELOAD", paths::faults_shim);
    return Process(GetParam().program, arguments, {}).wait();
  }
  /// How often the command does this, and what it answers where nothing fails.
  long calls(const std::string& call) {
    begin();
    const Environment fault("TESSERA_FAULT", call + ":0"), count("TESSERA_FAULT_COUNT", (folder / "count").string());
    good = run();
    EXPECT_EQ(good.code, 0) << good.err;
    complete = file(GetParam().model);
    return std::stol(slurp(folder / "count"));
  }
  std::string file(const char* name) const { return *name ? slurp(work() / name) : std::string(); }

  /// Whether nothing of what was written is missing.
  bool is_whole(const std::string& bytes, const std::string& before, const std::string& after) const {
    return bytes == before || bytes == after || (GetParam().is_sample() && is_model(bytes));
  }

  /// Lets one call fail, and answers whether a model was lost.
  bool lost(const std::string& fault) {
    begin();
    const std::string before = file(GetParam().model);
    Result result;
    {
      const Environment set("TESSERA_FAULT", fault);
      result = run();
    }
    const std::string now = file(GetParam().model), kept = file(GetParam().previous);
    EXPECT_TRUE(result.code == 0 || result.code == 1) << fault << ": exit code " << result.code << " " << result.err;
    if (result.code == 0) {
      EXPECT_EQ(result.err, "") << fault;
      if (!*GetParam().model) {
        EXPECT_EQ(result.out, good.out) << fault;
      }
    } else {
      const std::string program =
          GetParam().is_sample() ? "sample" : std::filesystem::path(GetParam().program).filename().string();
      // OpenMP's own sentence begins with an empty line.
      const std::ptrdiff_t lines = result.err.starts_with("\nlibgomp: ") ? 2 : 1;
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), lines) << fault << ": " << result.err;
      EXPECT_TRUE(result.err.starts_with(program + ": ") || result.err.starts_with("the program cannot go on: ") ||
                  result.err.starts_with("\nlibgomp: "))
          << fault << ": " << result.err;
    }
    if (!fault.starts_with("unlink")) {
      EXPECT_EQ(partial_files(work()), std::vector<std::string>()) << fault;
    }
    if (!*GetParam().model) return false;
    const bool is_new = now != before;
    EXPECT_TRUE(is_new || result.code != 0) << fault << ": nothing was written";
    return !is_whole(now, before, complete) || (is_new && *GetParam().previous && kept != before);
  }

  static inline std::unique_ptr<TemporaryFolder> start;
  TemporaryFolder folder;
  Result good;
  std::string complete;  ///< what the command writes where nothing fails
};

TEST_P(Faults, OfAnySystemCallLoseNoModel) {
  int injected = 0, models_lost = 0;
  for (const char* call : {"open", "read", "write", "fsync", "rename", "close", "link", "unlink", "flock", "stat",
                           "ftruncate", "mkdir", "mmap"})
    for (long n = 1, all = calls(call); n <= all; ++n)
      for (const char* more : {"", ":on"}) {
        ++injected;
        models_lost += lost(text(call, ":", n, more));
      }
  std::cout << GetParam().name << ": " << injected << " failing system calls, models lost: " << models_lost
            << std::endl;
  EXPECT_GT(injected, 10);
  EXPECT_EQ(models_lost, 0);
}

TEST_P(Faults, OfAnyAllocationLoseNoModel) {
  const char* const every = std::getenv("TESSERA_FAULTS");
  const long all = calls("alloc"), step = every && std::string(every) == "every" ? 1 : std::max(all / 100, 1L);
  int injected = 0, models_lost = 0;
  for (long n = 1; n <= all; n += step)
    for (const char* more : {"", ":on"}) {
      ++injected;
      models_lost += lost(text("alloc:", n, more));
    }
  std::cout << GetParam().name << ": " << injected << " failing allocations of " << all
            << ", models lost: " << models_lost << std::endl;
  EXPECT_GT(injected, 10);
  EXPECT_EQ(models_lost, 0);
}

TEST_P(Faults, OfPowerAtAnyMomentLoseNoModel) {
  if (!*GetParam().model) return;
  begin();
  const std::string model = work() / GetParam().model, before = slurp(model);
  Disk disk(work());
  {
    const Environment log("TESSERA_DISK_LOG", (folder / "log").string());
    const Result result = run();
    ASSERT_EQ(result.code, 0) << result.err;
  }
  const std::string after = slurp(model);
  int crashes = 0, models_lost = 0, not_kept = 0;
  const auto see = [&](const Disk::Files& files) {
    ++crashes;
    const auto content = [&](const std::string& name) { return files.contains(name) ? files.at(name) : std::string(); };
    models_lost += !is_whole(content(model), before, after) || (content(model) != before && *GetParam().previous &&
                                                                content(work() / GetParam().previous) != before);
  };
  disk.after_a_crash(see);
  for (const DiskEvent& event : disk_events(slurp(folder / "log"))) {
    disk.apply(event);
    disk.after_a_crash(see);
  }
  // What the program called done is there.
  disk.after_a_crash([&](const Disk::Files& files) { not_kept += files.at(model) != after; });
  std::cout << GetParam().name << ": " << crashes << " crashes, models lost: " << models_lost << std::endl;
  EXPECT_GT(crashes, 50);
  EXPECT_EQ(models_lost, 0);
  EXPECT_EQ(not_kept, 0);
}

INSTANTIATE_TEST_SUITE_P(Commands, Faults, testing::ValuesIn(commands),
                         [](const testing::TestParamInfo<Command>& info) { return info.param.name; });

}  // namespace
}  // namespace tessera::runtime
