// The command line of an emitted program, as a person meets it.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint.hpp"
#include "runtime/digits.hpp"
#include "runtime/image.hpp"
#include "tests/runtime/helpers.hpp"
#include "tests/runtime/sample_table.hpp"

namespace tessera::runtime {
namespace {

class Program : public testing::Test {
 protected:
  Result train(std::vector<std::string> more = {}, Process::Limits limits = {}) {
    std::vector<std::string> arguments{"train", "--digits", "600", "--out", out()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sample(arguments, limits);
  }
  std::string out() { return (folder / "run").string(); }
  bool no_partial_files() { return partial_files(folder.path()).empty(); }
  TemporaryFolder folder;
};

TEST_F(Program, HelpTellsCommandsFilesAndEnvironment) {
  const Result help = sample({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* part : {"train", "eval", "predict", "summary", "TESSERA_ISA=scalar|avx2|avx512",
                           "TESSERA_L2_BYTES=BYTES", "--resume", "curve.csv"})
    EXPECT_CONTAINS(help.out, part);
  EXPECT_EQ(sample({"train", "--help"}).code, 0);
}

TEST_F(Program, WrongCommandLinesAreOneSentenceAndExitCodeTwo) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{},
                                             {"frob"},
                                             {"train", "--epochs", "x"},
                                             {"train", "--batch", "0"},
                                             {"predict"},
                                             {"train", "--frob"},
                                             {"train", "--resume", "--overwrite"},
                                             {"train", "--lr", "nan", "--epochs", "0"},
                                             {"train", "--seed", "-1"},
                                             {"train", "--seed", "18446744073709551616"},
                                             {"train", "--skip", "head.*"},
                                             {"train", "--isa-change"},
                                             {"train", "eval"}}) {
    const Result result = sample(wrong);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_TRUE(result.err.starts_with("sample: ")) << result.err;
  }
}

TEST_F(Program, WhatNobodyKnowsLeadsToWhatWasMeant) {
  for (const auto& [wrong, sentence] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"tarin"}, "sample: there is no command 'tarin'; did you mean train? (sample --help tells more)\n"},
           {{"evl", "--out", "x"},
            "sample: there is no command 'evl'; did you mean eval? (sample --help tells more)\n"},
           {{"frobnicate"}, "sample: there is no command 'frobnicate' (sample --help tells more)\n"},
           {{"train", "--epoch", "3"},
            "sample: train has no option '--epoch'; did you mean --epochs? (sample train --help tells more)\n"},
           {{"train", "--bacth=3"},
            "sample: train has no option '--bacth'; did you mean --batch? (sample train --help tells more)\n"},
           {{"train", "--checkpoint", "x"},
            "sample: train has no option '--checkpoint', which belongs to eval, predict, export, embed, similar, probe "
            "(sample train --help tells more)\n"},
           {{"predict", "a.png", "--thread", "2"},
            "sample: predict has no option '--thread'; did you mean --threads? (sample predict --help tells more)\n"},
           {{"eval", "here"}, "sample: eval does not take 'here' (sample eval --help tells more)\n"},
           {{"--topk", "3"},
            "sample: there is no option '--topk', which belongs to predict (sample --help tells more)\n"}}) {
    const Result result = sample(wrong);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.err, sentence);
  }
}

TEST_F(Program, AnEmptyWordIsNoValueOfAnyOption) {
  for (const auto& [wrong, option] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"train", "--init", ""}, "train --init"},
           {{"train", "--data", ""}, "train --data"},
           {{"train", "--out", ""}, "train --out"},
           {{"eval", "--checkpoint", ""}, "eval --checkpoint"},
           {{"predict", "a.png", ""}, "predict FILE"},
           {{"export", "--to", ""}, "export --to"},
           {{"import", ""}, "import FILE"}}) {
    const Result result = sample(wrong);
    EXPECT_EQ(result.code, 2);
    const std::size_t space = option.find(' ');
    const std::string command = option.substr(0, space), name = option.substr(space + 1);
    EXPECT_EQ(result.err, text("sample: ", name, " is empty (sample ", command, " --help tells more)\n"));
  }
}

TEST_F(Program, WhatIsRefusedLeavesNoFolder) {
  spill(folder / "text", "no data");
  const std::string inner = (folder / "new/inner").string();
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"train", "--data", (folder / "text").string(), "--out", inner},
                                             {"train", "--data", (folder / "nowhere").string(), "--out", inner},
                                             {"import", (folder / "text").string(), "--out", inner}}) {
    EXPECT_EQ(sample(wrong).code, 1);
    EXPECT_FALSE(std::filesystem::exists(folder / "new")) << wrong[1];
  }
  std::filesystem::create_directories(inner);  // somebody else's stays
  EXPECT_EQ(sample({"train", "--data", "nowhere", "--out", inner}).code, 1);
  EXPECT_TRUE(std::filesystem::exists(inner));
}

TEST_F(Program, RangesAreNumbersForPeople) {
  EXPECT_CONTAINS(sample({"train", "--batch", "0"}).err, "'0' is not an integer from 1 to 1,000,000 ");
  EXPECT_CONTAINS(sample({"train", "--lr", "-1"}).err, "'-1' is no number from 0 to 1,000,000 ");
  EXPECT_CONTAINS(sample({"train", "--seed", "x"}).err, "'x' is not an integer from 0 to 2^64 - 1 ");
}

TEST_F(Program, HelpOfACommandShowsWhatBelongsToIt) {
  const std::string help = sample({"predict", "--help"}).out;
  for (const char* part : {"--topk", "--json", "--threads N", "sample predict --out run photo.jpg"})
    EXPECT_CONTAINS(help, part);
  for (const char* part : {"--epochs", "sample train", "TESSERA_ISA"})
    EXPECT_EQ(help.find(part), std::string::npos) << help;
}

TEST_F(Program, VersionTellsTesseraAndTheDeclaration) {
  const Result version = sample({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.starts_with("sample, declaration 5a3b1e0000000001, made with Tessera ")) << version.out;
}

TEST_F(Program, TrainingWhereARunIsAsksWhatToDo) {
  ASSERT_EQ(train().code, 0);
  const std::string checkpoint = out() + "/checkpoint.safetensors", before = slurp(checkpoint);
  const Result asked = train();
  EXPECT_EQ(asked.code, 1);
  EXPECT_EQ(asked.err, "sample: " + out() +
                           " holds a run already: --resume goes on with it, --overwrite starts another and keeps its "
                           "checkpoint as checkpoint.previous.safetensors\n");
  EXPECT_TRUE(slurp(checkpoint) == before);
  EXPECT_EQ(train({"--overwrite", "--seed", "7"}).code, 0);
  EXPECT_TRUE(slurp(out() + "/checkpoint.previous.safetensors") == before);
  EXPECT_FALSE(slurp(checkpoint) == before);
}

TEST_F(Program, ASizeOfTheSecondCacheThatIsNoneIsOneSentence) {
  for (const char* wrong : {"many", "0", "-5", "1M", "99999999999999999999"}) {
    setenv("TESSERA_L2_BYTES", wrong, 1);
    const Result result = train();
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.err, std::string("sample: TESSERA_L2_BYTES=") + wrong + " is not a number of bytes above 0\n");
  }
  setenv("TESSERA_L2_BYTES", "262144", 1);
  EXPECT_EQ(train().code, 0);
  unsetenv("TESSERA_L2_BYTES");
}

TEST_F(Program, WhatNeedsCudaIsOneSentenceWithoutIt) {
  for (const auto& [result, sentence] :
       {std::pair{train({"--device", "cuda"}),
                  "sample: this program was built without CUDA and computes on the CPU only"},
        {sample({"summary", "--device", "sm_80"}), "sample: this program was emitted without CUDA kernels"}}) {
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(result.err.starts_with(sentence)) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(Program, TrainThenEvalTellTheSameAccuracy) {
  const Result trained = train(), evaluated = sample({"eval", "--out", out()});
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  const std::size_t at = trained.out.find("accuracy ", trained.out.find("done:")) + 9;
  EXPECT_CONTAINS(evaluated.out, "accuracy  " + trained.out.substr(at, trained.out.find('%', at) - at) + "% (");
  EXPECT_CONTAINS(evaluated.out, "images    100 (built-in digits)");
  EXPECT_CONTAINS(sample({"eval", "--out", out(), "--on-training-images"}).out, "images    600 ");
  EXPECT_CONTAINS(sample({"eval", "--out", out(), "--limit", "50"}).out, "images    50 ");
}

TEST_F(Program, OutputThatIsNoTerminalHoldsPlainLinesOnly) {
  const Result trained = train();
  EXPECT_EQ(trained.out.find('\r'), std::string::npos);
  EXPECT_EQ(trained.out.find('\033'), std::string::npos);
  EXPECT_CONTAINS(trained.out, "epoch 1/2  step 10  training loss ");
}

TEST_F(Program, PredictTellsTheSameOfAPngAnInvertedPngAndAnIdxFile) {
  train();
  Dataset digits = draw_digits(2, 1, Split::test);
  const auto png = [&](const std::string& name) {
    const Bytes content = encode_png(digits.image(0), 1, 28, 28);
    spill(folder / name, std::string(content.begin(), content.end()));
    return (folder / name).string();
  };
  const std::string plain = png("plain.png");
  std::string idx("\0\0\x08\x03\0\0\0\2\0\0\0\x1c\0\0\0\x1c", 16);
  idx.append(digits.pixels.begin(), digits.pixels.end());
  spill(folder / "two", idx);
  for (std::uint8_t& pixel : digits.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
  const std::string dark = png("dark.png");

  const auto answer = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"predict", "--out", out(), "--topk", "10"});
    const Result result = sample(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  const auto numbers = [](const std::string& line) { return line.substr(line.find("  ")); };
  const auto tail = [&](const std::string& line) { return line.substr(line.size() - 90); };
  const std::string first = answer({plain});
  EXPECT_EQ(tail(first), tail(answer({"--invert", dark})));
  const std::string both = answer({(folder / "two").string()});
  EXPECT_EQ(std::count(both.begin(), both.end(), '\n'), 2);
  EXPECT_CONTAINS(both, "two[1]");
  EXPECT_EQ(tail(first), tail(both.substr(0, both.find('\n') + 1)));
  EXPECT_EQ(numbers(first).find("nan"), std::string::npos);
}

TEST_F(Program, PredictAnswersInJson) {
  train();
  const Dataset digits = draw_digits(2, 1, Split::test);
  const Bytes png = encode_png(digits.image(0), 1, 28, 28);
  spill(folder / "a \"b\".png", std::string(png.begin(), png.end()));
  std::string idx("\0\0\x08\x03\0\0\0\2\0\0\0\x1c\0\0\0\x1c", 16);
  idx.append(digits.pixels.begin(), digits.pixels.end());
  spill(folder / "two", idx);
  const Result answer = sample({"predict", "--json", "--topk", "2", "--out", out(), (folder / "a \"b\".png").string(),
                                (folder / "two").string()});
  EXPECT_EQ(answer.code, 0) << answer.err;
  const auto rows = nlohmann::json::parse(answer.out);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["file"], (folder / "a \"b\".png").string());
  EXPECT_FALSE(rows[0].contains("image"));
  EXPECT_EQ(rows[2]["image"], 1);
  EXPECT_EQ(rows[0]["classes"], rows[1]["classes"]);  // of the same picture
  ASSERT_EQ(rows[0]["classes"].size(), 2u);
  EXPECT_GE(rows[0]["classes"][0]["probability"].get<double>(), rows[0]["classes"][1]["probability"].get<double>());
  EXPECT_FALSE(rows[0]["classes"][0].contains("name"));
}

/// What the program writes to a terminal of 100 columns and 30 rows.
std::string on_a_terminal(std::vector<std::string> arguments, const char* kind, const char* locale) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) return "there is no terminal";
  const std::string name = ::ptsname(terminal);
  arguments.insert(arguments.begin(), paths::sample_program);
  const pid_t child = ::fork();
  if (child == 0) {
    const int screen = ::open(name.c_str(), O_RDWR | O_NOCTTY);
    winsize size{};
    size.ws_row = 30, size.ws_col = 100;
    ::ioctl(screen, TIOCSWINSZ, &size);
    ::dup2(screen, 1);
    ::dup2(screen, 2);
    ::close(screen);
    ::close(terminal);
    ::setenv("TERM", kind, 1);
    ::setenv("LC_ALL", locale, 1);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  std::string seen;
  char buffer[4096];
  // The read fails when the program has closed its side.
  for (ssize_t n; (n = ::read(terminal, buffer, sizeof buffer)) > 0;) seen.append(buffer, static_cast<std::size_t>(n));
  ::close(terminal);
  ::waitpid(child, nullptr, 0);
  return seen;
}

TEST_F(Program, TerminalShowsCurvesInPlaceAndADumbOneLines) {
  const auto run = [&](const char* kind, const char* locale, const char* to) {
    return on_a_terminal({"train", "--digits", "600", "--out", (folder / to).string()}, kind, locale);
  };
  const std::string shown = run("xterm-256color", "C.UTF-8", "a");
  // The last view stays: the bar, the legend, plots of Braille patterns (their first byte is e2), then the files.
  for (const char* part : {"epoch 2/2", " images/s  0:00 left", "test loss ", "accuracy", "\xe2\xa0", "report.html"})
    EXPECT_CONTAINS(shown, part);
  EXPECT_CONTAINS(shown, "\033[36mtraining");
  const std::string ascii = run("xterm", "C", "b");
  EXPECT_EQ(ascii.find("\xe2"), std::string::npos);
  EXPECT_CONTAINS(ascii, "epoch 2/2  [=====");
  const std::string dumb = run("dumb", "C.UTF-8", "c");
  EXPECT_EQ(dumb.find('\033'), std::string::npos) << dumb;
  EXPECT_CONTAINS(dumb, "epoch 2/2  step 20  training loss ");
}

TEST_F(Program, PredictTellsTheNamesOfAFile) {
  train();
  const Dataset digits = draw_digits(1, 1, Split::test);
  const Bytes png = encode_png(digits.image(0), 1, 28, 28);
  spill(folder / "a.png", std::string(png.begin(), png.end()));
  spill(folder / "names", "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n");
  const auto predict = [&](const std::string& names) {
    return sample({"predict", (folder / "a.png").string(), "--out", out(), "--topk", "10", "--labels", names});
  };
  const Result named = predict((folder / "names").string());
  EXPECT_EQ(named.code, 0) << named.err;
  for (const char* name : {"  zero 0.", "  nine 0."}) EXPECT_CONTAINS(named.out, name);
  const std::string weights = (folder / "named.safetensors").string();
  const Result exported = sample({"export", "--out", out(), "--labels", (folder / "names").string(), "-o", weights});
  EXPECT_EQ(exported.code, 0) << exported.err;
  const Result of_file = sample({"predict", (folder / "a.png").string(), "--checkpoint", weights, "--topk", "10"});
  for (const char* name : {"  zero 0.", "  nine 0."}) EXPECT_CONTAINS(of_file.out, name);
  const Result missing = predict((folder / "none").string());
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.out, "");
  EXPECT_CONTAINS(missing.err, "sample: cannot open ");
}

TEST_F(Program, EvalTellsTheFirstFiveAndDrawsTheConfusion) {
  train();
  const std::string picture = (folder / "confusion.svg").string();
  const Result evaluated = sample({"eval", "--out", out(), "--confusion", picture});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_CONTAINS(evaluated.out, "\ntop 5     ");
  EXPECT_CONTAINS(evaluated.out, "the confusion matrix is in " + picture);
  EXPECT_TRUE(slurp(picture).starts_with("<svg"));
  const Result unwritable = sample({"eval", "--out", out(), "--confusion", "/proc/confusion.svg"});
  EXPECT_EQ(unwritable.code, 1);
  EXPECT_CONTAINS(unwritable.err, "cannot write /proc/confusion.svg");
}

TEST_F(Program, BenchTellsForwardAndTrainingAtEachBatch) {
  const Result bench = sample({"bench", "--batch", "1", "3", "--runs", "2"});
  EXPECT_EQ(bench.code, 0) << bench.err;
  EXPECT_CONTAINS(bench.out, "kernels scalar, median of 2 runs\n");
  for (const char* row :
       {"\nforward             1", "\nforward             3", "\ntraining step       1", "\ntraining step       3"})
    EXPECT_CONTAINS(bench.out, row);
}

TEST_F(Program, ModelWithoutAttentionMapsHasNoSuchCommand) {
  const Result result = sample({"attention", "a.png"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(sample({"--help"}).out.find("attention"), std::string::npos);
}

TEST_F(Program, ReportIsOneFileThatHoldsEverything) {
  train();
  const std::string report = slurp(folder / "run/report.html");
  EXPECT_TRUE(report.starts_with("<!DOCTYPE html>"));
  for (const char* part :
       {"<h2>Curves</h2>", "<h2>Confusion</h2>", "<h2>Samples</h2>", "<h2>Machine</h2>", "data:image/png;base64,",
        "<th scope=\"row\">Optimizer</th><td>Adam</td>", "<th scope=\"row\">Learning rate</th><td>0.002, constant</td>",
        "images [B, 784]", "checkpoint.safetensors", "<th scope=\"row\">Kernels</th><td>scalar</td>"})
    EXPECT_NE(report.find(part), std::string::npos) << part;
  // Nothing comes from elsewhere: addresses are names of XML's languages, and pictures are in the file.
  for (const char* part : {"<script", "<link", "src=", "url(", "href=\"http", "@import"})
    EXPECT_EQ(report.find(part), std::string::npos) << part;
  // Every element is closed, in order.
  std::vector<std::string> open;
  for (std::size_t at = report.find('<', 15); at != std::string::npos; at = report.find('<', at + 1)) {
    const std::size_t end = report.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = report.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" \n/", 1));
    if (tag.starts_with('/')) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST_F(Program, SummaryTellsShapesParametersAndMemory) {
  const Result summary = sample({"summary"});
  EXPECT_EQ(summary.code, 0);
  for (const char* part : {"head   [B, 10]", "7,850 in 2 tensors", "5a3b1e0000000001", "epochs, batch 64"})
    EXPECT_CONTAINS(summary.out, part);
}

TEST_F(Program, ErrorsAreOneSentenceOnStandardError) {
  spill(folder / "text.png", "this is no picture");
  train();
  const std::string missing = (folder / "no").string();
  for (const auto& [arguments, part] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"eval", "--out", missing},
            "cannot open " + missing + "/checkpoint.safetensors: No such file or directory"},
           {{"train", "--data", missing, "--out", (folder / "x").string()}, "there is no folder"},
           {{"predict", "--out", out(), (folder / "text.png").string()}, "is not a PNG, JPEG, BMP or PGM picture"},
           {{"predict", "--out", out(), missing}, "cannot open " + missing},
           {{"eval", "--checkpoint", (folder / "text.png").string()}, "is not a safetensors file"},
           {{"train", "--out", "/proc/tessera"}, "cannot make the folder /proc/tessera"}}) {
    const Result result = sample(arguments);
    EXPECT_EQ(result.code, 1) << part;
    EXPECT_CONTAINS(result.err, part);
    EXPECT_TRUE(result.err.starts_with("sample: ")) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST_F(Program, FullDiskIsOneSentenceAndLeavesNoPartialFile) {
  const Result full = train({}, {.file_bytes = 20000, .stdout_to = ""});
  EXPECT_EQ(full.code, 1);
  EXPECT_EQ(full.err, "sample: cannot write " + out() + "/checkpoint.safetensors: File too large\n");
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(Program, FullDiskKeepsTheCheckpointThatIsThere) {
  train();
  const std::string before = slurp(folder / "run/checkpoint.safetensors");
  EXPECT_EQ(train({"--resume", "--epochs", "4"}, {.file_bytes = 20000, .stdout_to = ""}).code, 1);
  EXPECT_EQ(slurp(folder / "run/checkpoint.safetensors"), before);
  EXPECT_TRUE(no_partial_files());
}

TEST_F(Program, CommandThatFailsMovesNoCheckpoint) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(train({"--seed", "2", "--overwrite"}).code, 0);
  const std::filesystem::path last = folder / "run/checkpoint.safetensors";
  const std::filesystem::path first = folder / "run/checkpoint.previous.safetensors";
  const std::string last_before = slurp(last), first_before = slurp(first);
  std::filesystem::copy_file(last, folder / "model");
  const std::string missing = (folder / "no").string();
  for (const auto& [arguments, file_bytes] : std::vector<std::pair<std::vector<std::string>, std::int64_t>>{
           {{"train", "--overwrite", "--batch", "1000001"}, -1},
           {{"train", "--overwrite", "--lr", "nan"}, -1},
           {{"train", "--overwrite", "--data", missing}, -1},
           {{"train", "--overwrite", "--init", missing}, -1},
           {{"train", "--overwrite", "--data", folder.path().string()}, -1},
           {{"train", "--overwrite", "--digits", "60"}, 20000},
           {{"train", "--overwrite", "--digits", "60", "--epochs", "0"}, 20000},
           {{"import", (folder / "model").string()}, 20000}}) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--out", out()});
    const Result result = sample(all, {.file_bytes = file_bytes, .stdout_to = ""});
    EXPECT_EQ(result.code, arguments.back() == "1000001" || arguments.back() == "nan" ? 2 : 1) << arguments[2];
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_TRUE(slurp(last) == last_before) << result.err;
    EXPECT_TRUE(slurp(first) == first_before) << result.err;
    EXPECT_TRUE(no_partial_files());
  }
}

TEST_F(Program, FilesAndFoldersThatMayNotBeUsedAreOneSentence) {
  if (::geteuid() == 0) GTEST_SKIP() << "runs as root, to whom no file is closed: EACCES cannot be had";
  ASSERT_EQ(train().code, 0);
  const std::string checkpoint = out() + "/checkpoint.safetensors", before = slurp(checkpoint);
  const auto refused = [&](const std::string& closed, std::filesystem::perms open,
                           const std::vector<std::string>& arguments) {
    std::filesystem::permissions(closed, std::filesystem::perms::none);
    const Result result = sample(arguments);
    std::filesystem::permissions(closed, open);
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.err.starts_with("sample: ")) << result.err;
    EXPECT_CONTAINS(result.err, ": Permission denied\n");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_TRUE(slurp(checkpoint) == before);
  };
  const std::filesystem::perms file = std::filesystem::status(checkpoint).permissions(),
                               run = std::filesystem::status(out()).permissions();
  refused(checkpoint, file, {"eval", "--out", out()});
  refused(checkpoint, file, {"train", "--resume", "--epochs", "3", "--out", out()});
  refused(out(), run, {"eval", "--out", out()});
  refused(out(), run, {"train", "--overwrite", "--digits", "60", "--out", out()});
  refused(out(), run, {"train", "--digits", "60", "--out", out() + "/below"});
}

TEST_F(Program, WhatIsWrittenTakesTheCheckpointsPlaceOfNoRun) {
  ASSERT_EQ(train().code, 0);
  const std::string checkpoint = out() + "/checkpoint.safetensors", weights = (folder / "weights.safetensors").string();
  ASSERT_EQ(sample({"export", "--out", out(), "-o", weights}).code, 0);
  const std::string trained = slurp(checkpoint), exported = slurp(weights);
  const std::string run = ": it is the checkpoint of a training run, which would be lost\n";
  for (const auto& [arguments, sentence] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"export", "--out", out(), "-o", checkpoint}, checkpoint + run},
           {{"export", "--checkpoint", weights, "-o", checkpoint}, checkpoint + run},
           {{"eval", "--out", out(), "--confusion", checkpoint}, checkpoint + run},
           {{"eval", "--out", out(), "--confusion", weights},
            weights + ": it is a safetensors file, whose parameters would be lost\n"},
           {{"export", "--checkpoint", weights, "--dtype", "f16", "-o", weights},
            weights + ": it is what is read\n"}}) {
    const Result result = sample(arguments);
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.err, "sample: cannot write " + sentence);
    EXPECT_TRUE(slurp(checkpoint) == trained && slurp(weights) == exported) << result.err;
  }
  EXPECT_EQ(sample({"export", "--out", out(), "--dtype", "f16", "-o", weights}).code, 0);
  EXPECT_NE(slurp(weights), exported);
}

TEST_F(Program, ParametersThatGiveNoNumbersAreNoAnswer) {
  const std::string weights = (folder / "weights.safetensors").string(), picture = (folder / "digit.png").string();
  save_model(weights, sample_model(), std::vector<float>(SAMPLE_PARAMETER_FLOATS, 3e38F).data(), std::nullopt);
  const Bytes png = encode_png(Bytes(28 * 28, 90), 1, 28, 28);
  spill(picture, std::string(png.begin(), png.end()));
  const std::string unusable = " of sample is not a number: these parameters cannot be used\n";
  for (const auto& [arguments, what] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{{{"eval", "--digits", "60"}, "loss"},
                                                                     {{"predict", picture}, "answer"},
                                                                     {{"predict", picture, "--json"}, "answer"}}) {
    std::vector<std::string> with = arguments;
    with.insert(with.end(), {"--checkpoint", weights});
    const Result result = sample(with);
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.err, "sample: the " + what + unusable);
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(Program, CheckpointsOfEveryEarlierVersionAreEvaluatedAndResumed) {
  int versions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(paths::golden) + "/checkpoints")) {
    ++versions;
    std::filesystem::remove_all(out());
    std::filesystem::create_directory(out());
    std::filesystem::copy_file(entry.path(), folder / "run/checkpoint.safetensors");
    const Result evaluated = sample({"eval", "--out", out()});
    EXPECT_EQ(evaluated.code, 0) << evaluated.err;
    EXPECT_CONTAINS(evaluated.out, "accuracy  20.00% (2 of 10)");
    const Result resumed = sample({"train", "--resume", "--epochs", "3", "--out", out()});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_CONTAINS(resumed.out, "going on after step 6 of ");
    EXPECT_CONTAINS(resumed.out, "epoch 3/3  step 9 ");
  }
  EXPECT_GT(versions, 0);
}

TEST_F(Program, ExportsToOneFileAtOnceLeaveOneOfThemWhole) {
  ASSERT_EQ(train().code, 0);
  const std::string file = (folder / "weights").string();
  std::vector<std::string> whole;
  for (const char* dtype : {"f32", "f16"}) {
    ASSERT_EQ(sample({"export", "--out", out(), "--dtype", dtype, "-o", file}).code, 0);
    whole.push_back(slurp(file));
  }
  for (int i = 0; i < 10; ++i) {
    Process first(paths::sample_program, {"export", "--out", out(), "--dtype", "f32", "-o", file}, {});
    Process second(paths::sample_program, {"export", "--out", out(), "--dtype", "f16", "-o", file}, {});
    EXPECT_EQ(first.wait().code, 0);
    EXPECT_EQ(second.wait().code, 0);
    EXPECT_EQ(std::ranges::count(whole, slurp(file)), 1);
  }
  EXPECT_TRUE(no_partial_files());
}

TEST_F(Program, PipesAndDevicesAreRefusedWhereAFileIsRead) {
  ASSERT_EQ(train().code, 0);
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string zero = "/dev/zero";
  for (const std::string& place : {pipe, zero})
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{"eval", "--checkpoint", place},
                                               {"eval", "--out", out(), "--labels", place},
                                               {"predict", "--out", out(), place},
                                               {"import", place, "--out", out()},
                                               {"train", "--overwrite", "--init", place, "--out", out()}}) {
      const Result result = sample(arguments);
      EXPECT_EQ(result.code, 1) << arguments[0];
      EXPECT_EQ(result.err, "sample: cannot read " + place + ": it is no regular file\n");
    }
}

TEST_F(Program, StandardOutputThatIsFullIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const Result result = sample({"summary"}, {.file_bytes = -1, .stdout_to = "/dev/full"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "sample: cannot write to standard output\n");
}

TEST_F(Program, StandardFilesThatAreClosedGiveTheirNumbersToNoOther) {
  const std::string command = text('"', paths::sample_program, "\" train --digits 60 --epochs 1 --out ", out());
  for (const char* closed : {" >&-", " >&- 2>&-", " <&- >&- 2>&-"}) {
    const Result result = Process("/bin/sh", {"-c", command + " --overwrite" + closed}, {}).wait();
    EXPECT_EQ(result.code, 1) << closed;
    EXPECT_EQ(result.err, std::string(closed) == " >&-" ? "sample: cannot write to standard output\n" : "");
    EXPECT_EQ(sample({"train", "--resume", "--epochs", "2", "--out", out()}).code, 0) << closed;
  }
  const Result result = Process("/bin/sh", {"-c", command + " --overwrite <&- 2>&-"}, {}).wait();
  EXPECT_EQ(result.code, 0);
  EXPECT_CONTAINS(result.out, "done: ");
}

TEST_F(Program, MoreThreadsThanOneAreTakenOrRefusedInASentence) {
  const Result result = sample({"summary", "--threads", "2"});
  EXPECT_TRUE(result.code == 0 || result.err.find("was built without OpenMP") != std::string::npos) << result.err;
}

TEST_F(Program, MoreThreadsOfTheEnvironmentThanCanBeUsedAreOneSentenceWithOpenMp) {
  if (sample({"summary", "--threads", "2"}).code != 0) GTEST_SKIP() << "built without OpenMP";
  setenv("OMP_NUM_THREADS", "100000", 1);
  const Result result = train();
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "sample: OMP_NUM_THREADS asks for 100000 threads, more than the 4096 that can be used\n");
}

TEST_F(Program, LinksThatLeadToThemselvesAreOneSentence) {
  const std::string loop = (folder / "loop").string();
  std::filesystem::create_symlink("loop", folder / "loop");
  ASSERT_EQ(train().code, 0);
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"train", "--data", loop, "--out", out()},
                                             {"train", "--out", loop},
                                             {"train", "--resume", "--out", loop},
                                             {"eval", "--out", loop},
                                             {"eval", "--checkpoint", loop},
                                             {"predict", "--out", out(), loop},
                                             {"export", "--out", out(), "-o", loop},
                                             {"import", loop, "--out", out()}}) {
    const Result result = sample(arguments);
    EXPECT_EQ(result.code, 1) << arguments[0];
    EXPECT_TRUE(result.err.starts_with("sample: cannot ")) << result.err;
    EXPECT_TRUE(result.err.ends_with(": Too many levels of symbolic links\n")) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST_F(Program, NamesOfFilesDoNotSteerTheTerminal) {
  ASSERT_EQ(train().code, 0);
  const Bytes content = encode_png(draw_digits(1, 1, Split::test).image(0), 1, 28, 28);
  const std::string name = (folder /
                            "a\033[31m\n\xc2\x9b"
                            "b.png")
                               .string();
  spill(name, std::string(content.begin(), content.end()));
  const Result answered = sample({"predict", "--out", out(), name});
  EXPECT_EQ(answered.code, 0) << answered.err;
  spill(name, "no picture");
  const Result refused = sample({"predict", "--out", out(), name});
  EXPECT_EQ(refused.code, 1);
  for (const std::string& shown : {answered.out, refused.err}) {
    EXPECT_CONTAINS(shown, "/a [31m   b.png");
    EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 1) << shown;
  }
}

TEST_F(Program, RealMnistTrainsForAnEpoch) {
  const char* shared = std::getenv("TESSERA_SHARED");
  if (!shared) GTEST_SKIP() << "TESSERA_SHARED is not set: the real MNIST files are not at hand";
  const std::string mnist = std::string(shared) + "/data/mnist";
  if (!std::filesystem::is_directory(mnist)) GTEST_SKIP() << "there is no " << mnist;
  const Result result = sample({"train", "--data", mnist, "--epochs", "1", "--out", out()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_CONTAINS(result.out, "60,000 training and 10,000 test images");
}

}  // namespace
}  // namespace tessera::runtime
