// The generator as a program: its options, and what it says of folders and files.
#include "codegen/driver.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>

#include "dsl/trace.hpp"
#include "tests/recipes/digit_probe.hpp"

namespace tessera::test {
namespace {

using codegen::GeneratorOptions;

/// What generator_main says on standard error; it has to exit with 1.
std::string said_by_generator(std::vector<std::string> arguments) {
  const graph::Graph g = trace<DigitProbe>("digit_probe");
  arguments.insert(arguments.begin(), "generator");
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  testing::internal::CaptureStderr();
  EXPECT_EQ(codegen::generator_main(g, static_cast<int>(argv.size()), argv.data()), 1);
  return testing::internal::GetCapturedStderr();
}

TEST(Emit, AGeneratorOfManyModelsSaysWhatATraceRefuses) {
  const codegen::DeclaredModel refused{"Refused", [](std::string name) -> graph::Graph {
                                         throw std::logic_error(name + " does not use softmax [B, D=8] of attn");
                                       }};
  std::string arguments[] = {"generator", "Refused", "\x1bmodel", "--out", testing::TempDir()};
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  testing::internal::CaptureStderr();
  EXPECT_EQ(codegen::generator_main(std::span(&refused, 1), static_cast<int>(argv.size()), argv.data()), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "\\x1bmodel: \\x1bmodel does not use softmax [B, D=8] of attn\n");
}

TEST(Emit, TheGeneratorReadsTablesOfTilesFromRegularFilesAlone) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "tessera_tables";
  std::filesystem::create_directories(folder);
  const std::string pipe = folder / "pipe", large = folder / "large", out = folder / "out";
  ASSERT_TRUE(mkfifo(pipe.c_str(), 0600) == 0 || errno == EEXIST);
  {
    std::ofstream(large) << std::string((1 << 20) + 1, '#');
  }
  const auto said = [&](const std::string& table) {
    return said_by_generator({"--out", out, "--isa", "scalar", "--tiles", table});
  };
  for (const std::string& table : {pipe, folder.string(), std::string("/dev/zero"), std::string("/dev/null")})
    EXPECT_EQ(said(table), "digit_probe: the table of tiles " + table + " is not a regular file\n");
  EXPECT_EQ(said(large), "digit_probe: the table of tiles " + large + " has more than 1048576 bytes\n");
  EXPECT_EQ(said("nowhere"), "digit_probe: cannot read the table of tiles nowhere: there is no such file\n");
  EXPECT_FALSE(std::filesystem::exists(out));
  std::filesystem::remove_all(folder);
}

TEST(Emit, FoldersThatCannotBeMadeAreOneSentence) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "tessera_folders";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string file = folder / "file", out = folder / "out";
  std::ofstream(file) << "kept";
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--out", file}, {"--out", out, "--dump", file}})
    EXPECT_EQ(said_by_generator(arguments), "digit_probe: cannot make the folder " + file + ": Not a directory\n");
  EXPECT_EQ(std::filesystem::file_size(file), 4u);
  std::filesystem::remove_all(folder);
}

TEST(Emit, GeneratorsThatWriteAtOnceLeaveEveryFileWhole) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "tessera_writers";
  const std::string out = folder / "out", other = folder / "other";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(out);
  // What an earlier version has left, or somebody has put there, is in nobody's way, and not written through.
  const std::string header = out + "/digit_probe.h";
  std::filesystem::create_directories(header + ".tmp");
  std::filesystem::create_symlink(other, out + "/digit_probe_scalar.cpp.tmp");
  const graph::Graph g = trace<DigitProbe>("digit_probe");
  std::vector<pid_t> writers;
  for (int i = 0; i < 4; ++i) {
    writers.push_back(fork());
    if (writers.back() != 0) continue;
    std::vector<std::string> arguments{"generator", "--out", out, "--isa", "scalar"};
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    for (int again = 0; again < 5; ++again) {
      if (codegen::generator_main(g, static_cast<int>(argv.size()), argv.data()) != 0) _exit(1);
      std::error_code ignored;
      std::filesystem::remove(header, ignored);  // for the others to write it anew
    }
    _exit(codegen::generator_main(g, static_cast<int>(argv.size()), argv.data()));
  }
  for (const pid_t writer : writers) {
    int status = -1;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    EXPECT_EQ(status, 0);
  }
  GeneratorOptions options;
  options.isas = {"scalar"};
  std::set<std::string> expected{"digit_probe.h.tmp", "digit_probe_scalar.cpp.tmp"};
  for (const auto& [name, text] : codegen::generate(g, options)) {
    std::stringstream content;
    content << std::ifstream(out + "/" + name).rdbuf();
    EXPECT_EQ(content.str(), text) << name;
    expected.insert(name);
  }
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(out)) found.insert(entry.path().filename());
  EXPECT_EQ(found, expected);
  EXPECT_FALSE(std::filesystem::exists(other));
  std::filesystem::remove_all(folder);
}

TEST(Emit, TheGeneratorSaysWhyItCannotWrite) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "tessera_taken";
  std::filesystem::create_directories(folder / "digit_probe.h" / "full");
  EXPECT_EQ(said_by_generator({"--out", folder, "--isa", "scalar"}),
            "digit_probe: cannot write " + (folder / "digit_probe.h").string() + ": Is a directory\n");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) EXPECT_NE(entry.path().extension(), ".tmp");
  std::filesystem::remove_all(folder);
}

TEST(Emit, TheGeneratorRefusesAnInstructionSetTwiceAndShowsWhatATerminalWouldObey) {
  EXPECT_EQ(said_by_generator({"--\n\x1b[1m"}), "digit_probe: there is no option --\\x0a\\x1b[1m: see --help\n");
  EXPECT_EQ(said_by_generator({"--out", "nowhere", "--isa", "scalar,scalar"}),
            "digit_probe: --isa names scalar twice\n");
}

TEST(Emit, TheGeneratorRefusesACommandOfAProgramThatIsNotWritten) {
  EXPECT_EQ(said_by_generator({"--out", "nowhere", "--serve"}), "digit_probe: --serve is for --train\n");
}

}  // namespace
}  // namespace tessera::test
