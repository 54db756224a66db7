// Places where nothing can be written, and disks that are full: one sentence, a non-zero exit, no partial file, and
// what was there before stays.
#include <algorithm>
#include <memory>
#include <ostream>

#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

/// What a command is to write: a file, or a folder with a checkpoint.
enum class Writes { file, folder };

/// A command of the program; PLACE is where it writes, and MODEL a folder with a checkpoint.
struct Command {
  const char* name;
  std::vector<std::string> arguments;
  Writes writes;
};
void PrintTo(const Command& command, std::ostream* out) { *out << command.name; }

const Command commands[]{
    {"train", {"train", "--digits", "60", "--epochs", "0", "--out", "PLACE"}, Writes::folder},
    {"import", {"import", "MODEL/f.safetensors", "--out", "PLACE"}, Writes::folder},
    {"export", {"export", "--out", "MODEL", "-o", "PLACE"}, Writes::file},
    {"export_halves", {"export", "--out", "MODEL", "--dtype", "f16", "-o", "PLACE"}, Writes::file},
    {"confusion", {"eval", "--out", "MODEL", "--digits", "600", "--confusion", "PLACE"}, Writes::file},
};

class BadPlaces : public testing::TestWithParam<Command> {
 protected:
  /// The model is the same for all.
  static void SetUpTestSuite() {
    shared = std::make_unique<TemporaryFolder>();
    ASSERT_EQ(sample({"train", "--digits", "60", "--epochs", "0", "--out", model()}).code, 0);
    ASSERT_EQ(sample({"export", "--out", model(), "-o", model() + "/f.safetensors"}).code, 0);
  }
  static void TearDownTestSuite() { shared.reset(); }
  BadPlaces() { std::filesystem::create_directory(folder / "place"); }
  static std::string model() { return shared->path().string(); }
  std::vector<std::string> arguments(const std::string& place) const {
    std::vector<std::string> all = GetParam().arguments;
    for (std::string& argument : all) {
      if (argument == "PLACE") argument = place;
      if (argument.starts_with("MODEL")) argument.replace(0, 5, model());
    }
    return all;
  }
  static void expect_one_sentence(const Result& result, const std::string& part) {
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.err.starts_with("sample: cannot ")) << result.err;
    EXPECT_CONTAINS(result.err, part);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  /// The files below a folder.
  static std::vector<std::string> files(const std::filesystem::path& from) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(from))
      if (entry.is_regular_file()) found.push_back(entry.path().lexically_relative(from).string());
    return found;
  }
  /// Runs the command on a small file system of its own, and lists below its output what it leaves there. Code 77: this
  /// user may not have one.
  Result on_disk(const std::string& options) {
    const std::string place = (folder / "place").string();
    std::vector<std::string> shell{
        "-c",  R"(mount -t tmpfs -o "$1" tmpfs "$2" 2>/dev/null || exit 77; shift 2; "$@"; code=$?
ls -A "$0" | sed 's/^/left: /'; exit $code)",
        place, options,
        place, paths::sample_program};
    shell.insert(shell.begin(), {"-rm", "/bin/sh"});
    const std::vector<std::string> own = arguments(GetParam().writes == Writes::folder ? place : place + "/file");
    shell.insert(shell.end(), own.begin(), own.end());
    return Process("/usr/bin/unshare", shell, {}).wait();
  }

  static inline std::unique_ptr<TemporaryFolder> shared;
  TemporaryFolder folder;
};

TEST_P(BadPlaces, BelowAFolderThatIsNoneIsRefused) {
  spill(folder / "text", "no folder");
  expect_one_sentence(sample(arguments((folder / "text/run").string())), "Not a directory");
  EXPECT_EQ(slurp(folder / "text"), "no folder");
}

TEST_P(BadPlaces, AFileAndAFolderAreNotTakenForEachOther) {
  const bool file = GetParam().writes == Writes::file;
  spill(folder / "place/text", "stays");
  const Result result = sample(arguments((folder / (file ? "place" : "place/text")).string()));
  expect_one_sentence(result, file ? "Is a directory" : "cannot make the folder");
  EXPECT_EQ(files(folder / "place"), std::vector<std::string>{"text"});
  EXPECT_EQ(slurp(folder / "place/text"), "stays");
}

TEST_P(BadPlaces, WhereTheSystemLetsNobodyWriteIsRefused) {
  expect_one_sentence(sample(arguments("/proc/place")), "/proc/place");
}

TEST_P(BadPlaces, ADeviceIsRefused) { expect_one_sentence(sample(arguments("/dev/full")), "/dev/full"); }

TEST_P(BadPlaces, ANameThatIsTooLongIsRefused) {
  expect_one_sentence(sample(arguments((folder / std::string(300, 'x')).string())), "File name too long");
}

TEST_P(BadPlaces, AFileThatMayNotGrowIsGivenUpWhole) {
  for (const std::int64_t bytes : {1500, 4000}) {  // enough for what is said of it
    const std::filesystem::path place = folder / "place" / std::to_string(bytes);
    expect_one_sentence(sample(arguments(place.string()), {.file_bytes = bytes, .stdout_to = ""}), "File too large");
    EXPECT_TRUE(files(folder / "place").empty());
  }
}

TEST_P(BadPlaces, AFullDiskIsToldAndNothingIsLeftOnIt) {
  const Result result = on_disk("size=4k");
  if (result.code == 77 || result.err.starts_with("unshare")) GTEST_SKIP() << "this user may not mount a small disk";
  expect_one_sentence(result, "No space left on device");
  EXPECT_EQ(result.out.find("left: "), std::string::npos) << result.out;
}

TEST_P(BadPlaces, ADiskThatCanOnlyBeReadIsTold) {
  const Result result = on_disk("ro");
  if (result.code == 77 || result.err.starts_with("unshare")) GTEST_SKIP() << "this user may not mount a small disk";
  expect_one_sentence(result, "Read-only file system");
}

INSTANTIATE_TEST_SUITE_P(Commands, BadPlaces, testing::ValuesIn(commands),
                         [](const testing::TestParamInfo<Command>& info) { return info.param.name; });

}  // namespace
}  // namespace tessera::runtime
