// The program vqgan_digits: what it trains, and PyTorch's trained weights through its commands
// (tests/golden/vq/digits_trained).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "runtime/idx.hpp"
#include "runtime/image.hpp"
#include "runtime/safetensors.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

namespace fs = std::filesystem;

const fs::path trained = fs::path(paths::golden) / "vq/digits_trained";

double number_behind(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  EXPECT_NE(at, std::string::npos) << word << " in " << text;
  return at == std::string::npos ? NAN : std::atof(text.c_str() + at + word.size());
}

TEST(VqganDigits, PyTorchsWeightsGiveItsTokensAndItsError) {
  const char* shared = std::getenv("TESSERA_SHARED");
  if (!shared || !fs::exists(fs::path(shared) / "data/mnist"))
    GTEST_SKIP() << "TESSERA_SHARED names no folder with data/mnist: the MNIST files are not here";
  const fs::path mnist = fs::path(shared) / "data/mnist";
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  const Result imported = sample({"import", trained / "vqgan.safetensors", "--out", out});
  ASSERT_EQ(imported.code, 0) << imported.err;
  const Safetensors expected = read_safetensors(trained / "expected.safetensors");

  const Result evaluated = sample({"eval", "--data", mnist, "--limit", "1000", "--out", out});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const double mse = expected.at("test_mse_01").floats()[0], perplexity = expected.at("perplexity").floats()[0];
  EXPECT_NEAR(number_behind(evaluated.out, "MSE "), mse, 1e-3 * mse) << evaluated.out;
  EXPECT_NEAR(number_behind(evaluated.out, "perplexity "), perplexity, 0.06) << evaluated.out;

  const Dataset images = read_mnist(mnist, Split::test);
  std::vector<std::string> encode{"encode", "--out", out, "-o", folder / "tokens.safetensors"};
  for (const std::int64_t which : expected.at("which").integers()) {
    encode.push_back(folder / ("image" + std::to_string(which) + ".png"));
    const Bytes png = encode_png(images.image(which), 1, 28, 28);
    write_file(encode.back(), std::string_view(reinterpret_cast<const char*>(png.data()), png.size()));
  }
  const Result encoded = sample(encode);
  ASSERT_EQ(encoded.code, 0) << encoded.err;
  EXPECT_EQ(read_safetensors(folder / "tokens.safetensors").at("tokens").integers(), expected.at("indices").integers());

  const Result decoded = sample({"decode", folder / "tokens.safetensors", "--out", out, "-o", folder / "sheet.png"});
  ASSERT_EQ(decoded.code, 0) << decoded.err;
  EXPECT_GT(fs::file_size(folder / "sheet.png"), 1000u);
  const Result rebuilt = sample({"reconstruct", encode.back(), "--out", out, "-o", folder / "b.png"});
  ASSERT_EQ(rebuilt.code, 0) << rebuilt.err;
  EXPECT_GT(number_behind(rebuilt.out, "PSNR "), 15) << rebuilt.out;
}

TEST(VqganDigits, AResumedRunEndsInTheSameBytes) {
  const TemporaryFolder folder;
  const auto train = [&](const char* out, const char* epochs) {
    return sample({"train", "--digits", "192", "--batch", "32", "--epochs", epochs, "--out", folder / out});
  };
  ASSERT_EQ(train("whole", "2").code, 0);
  // Half of the run, whose checkpoint is then made one of the whole run.
  ASSERT_EQ(train("half", "1").code, 0);
  Safetensors half = read_safetensors(folder / "half/checkpoint.safetensors");
  half.metadata["epochs"] = "2";
  write_safetensors(folder / "half/checkpoint.safetensors", half);
  const Result resumed = sample({"train", "--resume", "--out", folder / "half"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(read_file(folder / "half/checkpoint.safetensors", longest_picture),
            read_file(folder / "whole/checkpoint.safetensors", longest_picture));
  const std::string report = slurp(folder / "whole/report.html");
  for (const char* said : {"<h2>Reconstructions</h2>", "<h2>Codebook</h2>", "Mean |x - y|"})
    EXPECT_NE(report.find(said), std::string::npos) << said;

  const Result exported = sample({"export", "--out", folder / "whole", "-o", folder / "weights.safetensors"});
  ASSERT_EQ(exported.code, 0) << exported.err;
  const Safetensors weights = read_safetensors(folder / "weights.safetensors");
  EXPECT_EQ(weights.at("loss.discriminator.main.3.num_batches_tracked").integers(), std::vector<std::int64_t>{36});
  const Result of_run = sample({"eval", "--digits", "12", "--out", folder / "whole"}),
               of_export = sample({"eval", "--digits", "12", "--checkpoint", folder / "weights.safetensors"});
  ASSERT_EQ(of_export.code, 0) << of_export.err;
  EXPECT_EQ(of_export.out, of_run.out);
  ASSERT_EQ(sample({"import", folder / "weights.safetensors", "--out", folder / "again"}).code, 0);
  ASSERT_EQ(sample({"export", "--out", folder / "again", "-o", folder / "back.safetensors"}).code, 0);
  EXPECT_EQ(read_file(folder / "back.safetensors", longest_picture),
            read_file(folder / "weights.safetensors", longest_picture));
}

TEST(VqganDigits, AGeneratorAloneIsUsedWithoutWhatJudgesIt) {
  const TemporaryFolder folder;
  const std::string published = trained / "vqgan.safetensors";
  ASSERT_EQ(sample({"import", published, "--out", folder / "run"}).code, 0);
  const Result imported = sample({"eval", "--digits", "12", "--out", folder / "run"}),
               as_it_is = sample({"eval", "--digits", "12", "--checkpoint", published});
  ASSERT_EQ(as_it_is.code, 0) << as_it_is.err;
  EXPECT_EQ(as_it_is.out, imported.out);
  const Result exported = sample({"export", "--checkpoint", published, "-o", folder / "all.safetensors"});
  EXPECT_EQ(exported.code, 1);
  EXPECT_CONTAINS(exported.err, "loss.discriminator.main.0.weight");
  EXPECT_FALSE(fs::exists(folder / "all.safetensors"));
}

TEST(VqganDigits, TellsTheVersionOfTesseraAndOfTheDeclaration) {
  const Result version = sample({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.starts_with("vqgan_digits, declaration ")) << version.out;
  EXPECT_CONTAINS(version.out, ", made with Tessera ");
}

TEST(VqganDigits, WhatDoesNotFitIsASentence) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  ASSERT_EQ(sample({"import", trained / "vqgan.safetensors", "--out", out}).code, 0);
  const auto decode = [&](const Shape& shape, const auto& tokens) {
    Safetensors file;
    file.tensors["tokens"] = Tensor::of(shape, tokens);
    write_safetensors(folder / "tokens.safetensors", file);
    return sample({"decode", folder / "tokens.safetensors", "--out", out, "-o", folder / "sheet.png"});
  };
  std::vector<std::int64_t> tokens(98, 1);
  tokens[52] = 64;
  const Result outside = decode({2, 49}, tokens);
  EXPECT_EQ(outside.code, 1);
  EXPECT_EQ(outside.err, "vqgan_digits: token 64 of image 1, position 3, is none of the 64 codes\n");
  const Result count = decode({48}, std::vector<std::int64_t>(48, 1));
  EXPECT_EQ(count.code, 1);
  EXPECT_EQ(count.err, "vqgan_digits: there are 48 tokens, which are no whole number of images of 49\n");
  const Result grid = decode({49, 2}, std::vector<std::int64_t>(98, 1));
  EXPECT_EQ(grid.code, 1);
  EXPECT_EQ(grid.err, "vqgan_digits: " + (folder / "tokens.safetensors").string() +
                          " holds images of 2 tokens, and those of vqgan_digits are of 49\n");
  const Result reals = decode({1, 49}, std::vector<float>(49, 1));
  EXPECT_EQ(reals.code, 1);
  EXPECT_EQ(reals.err, "vqgan_digits: " + (folder / "tokens.safetensors").string() +
                           ": tokens are of type F32, and I64, I32 or U8 is needed\n");
  EXPECT_FALSE(fs::exists(folder / "sheet.png"));
  EXPECT_EQ(sample({"train", "--resume", "--out", folder / "none"}).code, 1);
  const std::string elsewhere = folder / "gpu";
  for (const char* const command : {"train", "eval"}) {
    const Result on_gpu = sample({command, "--device", "cuda", "--out", elsewhere});
    EXPECT_EQ(on_gpu.code, 1);
    EXPECT_EQ(on_gpu.err,
              "vqgan_digits: this program was built without CUDA and computes on the CPU only (CUDA in "
              "tessera_add_model lets it use a GPU)\n");
  }
  EXPECT_FALSE(fs::exists(elsewhere));
}

TEST(VqganDigits, ParametersThatGiveNoNumbersAreNoAnswer) {
  const TemporaryFolder folder;
  ASSERT_EQ(sample({"import", trained / "vqgan.safetensors", "--out", folder / "run"}).code, 0);
  Safetensors file = read_safetensors(folder / "run/checkpoint.safetensors");
  for (auto& [key, tensor] : file.tensors)
    if (tensor.dtype == "F32")
      tensor = Tensor::of(tensor.shape, std::vector<float>(static_cast<std::size_t>(elements(tensor.shape)), 3e38F));
  const std::string large = folder / "large.safetensors", picture = folder / "digit.png";
  write_safetensors(large, file);
  const Bytes png = encode_png(Bytes(28 * 28, 90), 1, 28, 28);
  spill(picture, std::string(png.begin(), png.end()));
  Safetensors tokens;
  tokens.tensors["tokens"] = Tensor::of({1, 49}, std::vector<std::int64_t>(49, 1));
  write_safetensors(folder / "tokens.safetensors", tokens);
  const auto refused = [&](std::vector<std::string> arguments, const std::string& said) {
    arguments.insert(arguments.end(), {"--checkpoint", large});
    const Result result = sample(arguments);
    EXPECT_EQ(result.code, 1) << arguments[0];
    EXPECT_EQ(result.err, "vqgan_digits: " + said + "\n");
    EXPECT_FALSE(fs::exists(folder / "out"));
  };
  const std::string encoder = "the encoder finds no nearest code: its parameters cannot be used";
  refused({"eval", "--digits", "6"}, encoder);
  refused({"encode", picture, "-o", folder / "out"}, encoder);
  refused({"reconstruct", picture, "-o", folder / "out"},
          "the reconstructions are not numbers: these parameters cannot be used");
  refused({"decode", folder / "tokens.safetensors", "-o", folder / "out"},
          "the pixels are not numbers: the parameters that gave them cannot be used");
}

TEST(VqganDigits, WhatAProgramCannotDoIsOneSentenceAndNothingIsLost) {
  const TemporaryFolder folder;
  const std::string out = folder / "run", picture = folder / "digit.png";
  ASSERT_EQ(sample({"import", trained / "vqgan.safetensors", "--out", out}).code, 0);
  const Bytes png = encode_png(Bytes(28 * 28, 90), 1, 28, 28);
  spill(picture, std::string(png.begin(), png.end()));
  const std::string checkpoint = out + "/checkpoint.safetensors", full = "/dev/full";
  ASSERT_EQ(sample({"encode", picture, "--out", out, "-o", folder / "tokens.safetensors"}).code, 0);
  const std::string tokens = folder / "tokens.safetensors";
  const auto all = [&] { return slurp(checkpoint) + slurp(picture) + slurp(tokens); };
  const std::string before = all();
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& said,
                           const Process::Limits& limits = {}, int code = 1) {
    const Result result = sample(arguments, limits);
    EXPECT_EQ(result.code, code) << said;
    EXPECT_EQ(result.err, "vqgan_digits: " + said + "\n");
    EXPECT_TRUE(all() == before) << said;
    EXPECT_EQ(partial_files(folder.path()), std::vector<std::string>()) << said;
  };
  const std::string read = ": it is what is read";
  refused({"encode", picture, "--out", out, "-o", picture}, "cannot write " + picture + read);
  refused({"reconstruct", picture, "--out", out, "-o", picture}, "cannot write " + picture + read);
  refused({"decode", tokens, "--out", out, "-o", tokens},
          "cannot write " + tokens + ": it is a safetensors file, whose parameters would be lost");
  refused({"export", "--out", out, "-o", checkpoint}, "cannot write " + checkpoint + read);
  refused({"import", checkpoint, "--out", out}, "cannot write " + checkpoint + read);
  refused({"eval", "--out", out, "--digits", "60"}, "cannot write to standard output", {.stdout_to = full});
  refused({"export", "--out", out, "-o", folder / "more.safetensors"},
          "cannot write " + (folder / "more.safetensors").string() + ": File too large",
          {.file_bytes = 1000, .stdout_to = {}});
  refused({"train", "--epochs", "0"},
          "--epochs: '0' is not an integer from 1 to 1,000,000 (vqgan_digits train --help tells more)", {}, 2);
  refused({"train", "--seed", "-1"},
          "--seed: '-1' is not an integer from 0 to 2^64 - 1 (vqgan_digits train --help tells more)", {}, 2);
  refused(
      {"train", "--data", "\xff", "--out", folder / "new"},
      "--data \xff cannot be kept in a checkpoint, whose texts are UTF-8: give it such a name, or a link that has one");
  refused({"encode", "--out", out, "-o", "\x1b[31m"}, "FILE is required (vqgan_digits encode --help tells more)", {},
          2);
  const Result threads = [&] {
    ::setenv("OMP_NUM_THREADS", "100000", 1);
    const Result result = sample({"eval", "--out", out, "--digits", "6"});
    ::unsetenv("OMP_NUM_THREADS");
    return result;
  }();
  if (sample({"summary", "--threads", "2"}).code == 0) {
    EXPECT_EQ(threads.code, 1);
    EXPECT_EQ(threads.err,
              "vqgan_digits: OMP_NUM_THREADS asks for 100000 threads, more than the 4096 that can be used\n");
  }
}

}  // namespace
}  // namespace tessera::runtime
