// What the emitted program can do beyond training: attention, and telling where a run breaks.
#include <algorithm>

#include "runtime/digits.hpp"
#include "runtime/image.hpp"
#include "runtime/safetensors.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

class VitMnistProgram : public testing::Test {
 protected:
  VitMnistProgram() {
    const Dataset digits = draw_digits(1, 1, Split::test);
    const Bytes png = encode_png(digits.image(0), 1, 28, 28);
    spill(folder / "digit.png", std::string(png.begin(), png.end()));
  }
  Result train(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"train", "--digits", "300", "--epochs", "1", "--out", out()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sample(arguments);
  }
  Result look(const std::string& picture, const std::string& at = "digit.png") {
    return sample({"attention", (folder / at).string(), "--out", out(), "-o", (folder / picture).string()});
  }
  /// The trained parameters with one of them changed, as a file to start from.
  std::string changed(const std::string& key, float value) {
    Safetensors file = read_safetensors(folder / "run/checkpoint.safetensors");
    Safetensors start;
    for (auto& [name, tensor] : file.tensors)
      if (!name.starts_with("optimizer.") && !name.starts_with("curve")) start.tensors[name] = tensor;
    std::vector<float> values = start.at(key).floats();
    values[0] = value;
    start.tensors[key] = Tensor::of(start.at(key).shape, values);
    const std::filesystem::path path = folder / "start.safetensors";
    write_safetensors(path, start);
    return path.string();
  }
  std::string out() { return (folder / "run").string(); }
  TemporaryFolder folder;
};

TEST_F(VitMnistProgram, AttentionIsDrawnOverThePicture) {
  ASSERT_EQ(train().code, 0);
  const Result drawn = look("seen.png");
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_EQ(drawn.out, (folder / "seen.png").string() +
                           ": the picture; rolled out over 2 blocks; block 2, head 1; block 2, head 2\n");
  const std::string png = slurp(folder / "seen.png");
  const Image panel = decode_image(bytes_of(png), 3, "seen.png");
  EXPECT_EQ(panel.width, 4 * (224 + 12) + 12);
  EXPECT_EQ(look("seen.svg").code, 0);
  EXPECT_CONTAINS(slurp(folder / "seen.svg"), "block 2, head 2");
}

TEST_F(VitMnistProgram, AttentionOfATestImageTellsTheAnswerAndTheTruth) {
  ASSERT_EQ(train().code, 0);
  const auto look_at = [&](const char* index) {
    return sample({"attention", "--test-image", index, "--out", out(), "-o", (folder / "seen.svg").string()});
  };
  EXPECT_EQ(look_at("0").code, 0);
  const std::string svg = slurp(folder / "seen.svg");
  for (const char* part : {"vit_mnist: test image 0, which is ", ">answer: ", "98th percentile"})
    EXPECT_CONTAINS(svg, part);
  EXPECT_EQ(look_at("50").err, "vit_mnist: there is no test image 50: built-in digits have 50, from 0\n");
  EXPECT_EQ(sample({"attention", "--out", out()}).code, 2);
}

TEST_F(VitMnistProgram, PageHoldsModulesKernelsMemoryAndSources) {
  const std::string file = (folder / "model.html").string();
  const Result drawn = sample({"summary", "--html", file});
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  const std::string page = slurp(file);
  for (const char* part :
       {"<b>blocks</b>", "<b>{} x 2</b>", "[B, N+1=50, D=8]", "<b>linear_mapper_forward",
        "Memory of an image over time", "static void linear_mapper_forward",
        "made of: ", "<code>Block, vit_mnist.hpp: return y + mlp(norm2(y));</code>", "Training: loss and gradients"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  for (const char* part : {"<script", "<link", "src=", "url(", "href=", "@import"})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
}

TEST_F(VitMnistProgram, AttentionThatCannotBeDrawnIsOneSentence) {
  ASSERT_EQ(train().code, 0);
  spill(folder / "two", std::string("\0\0\x08\x03\0\0\0\2\0\0\0\x1c\0\0\0\x1c", 16) + std::string(2 * 784, 'x'));
  const std::vector<std::pair<Result, std::string>> wrong{{look("seen.jpg"), "has to end in .png or .svg"},
                                                          {look("no/seen.png"), "cannot write "},
                                                          {look("seen.png", "none.png"), "cannot open "},
                                                          {look("seen.png", "two"), "holds 2 pictures"}};
  for (const auto& [result, part] : wrong) {
    EXPECT_EQ(result.code, 1) << part;
    EXPECT_CONTAINS(result.err, part);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "seen.png"));
}

TEST_F(VitMnistProgram, TrainingThatCannotBeginMovesNoCheckpoint) {
  ASSERT_EQ(train().code, 0);
  const std::filesystem::path last = folder / "run/checkpoint.safetensors";
  const std::string before = slurp(last);
  const auto refused = [&](const Result& result, int code, const std::string& said) {
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_CONTAINS(result.err, said);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_TRUE(slurp(last) == before) << said;
    EXPECT_FALSE(std::filesystem::exists(folder / "run/checkpoint.previous.safetensors"));
    EXPECT_EQ(partial_files(folder.path()), std::vector<std::string>());
  };
  ::setenv("TESSERA_ISA", "none_such", 1);
  refused(train({"--overwrite"}), 1, "TESSERA_ISA names kernels that do not exist or that this processor cannot run");
  ::unsetenv("TESSERA_ISA");
  refused(train({"--overwrite", "--lr", "nan"}), 2, "--lr: 'nan' is no number");
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  return;  // it needs more memory of its own
#endif
#endif
  // With 1 GiB, since a machine may have what is asked for.
  refused(Process("/bin/sh",
                  {"-c", "ulimit -d 1048576 && exec \"$@\"", "sh", paths::sample_program, "train", "--overwrite",
                   "--digits", "300", "--batch", "1000000", "--out", out()},
                  {})
              .wait(),
          1, "there is not enough memory");
}

TEST_F(VitMnistProgram, DivergenceNamesTheFirstLayerAndKeepsTheCheckpoint) {
  ASSERT_EQ(train().code, 0);
  const std::string before = slurp(folder / "run/checkpoint.safetensors");
  const std::string start = changed("blocks.1.mhsa.k_mappings.0.weight", 3e38f);
  const Result broken = train({"--overwrite", "--init", start});
  EXPECT_EQ(broken.code, 1);
  EXPECT_CONTAINS(broken.err,
                  "training diverged: the loss of step 1 is not a number: what blocks.1.mhsa.k_mappings.0 gives is the "
                  "first that is not a number; no checkpoint was written before");
  EXPECT_EQ(slurp(folder / "run/checkpoint.safetensors"), before);
  EXPECT_FALSE(std::filesystem::exists(folder / "run/checkpoint.previous.safetensors"));
}

}  // namespace
}  // namespace tessera::runtime
