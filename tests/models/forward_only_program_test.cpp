// The program of a model without a loss: it answers as that of the same declaration with one does, and trains nothing.
#include "runtime/digits.hpp"
#include "runtime/image.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

/// vit_mnist trained a little, its weights as PyTorch would have them, and a program that was given them.
class ForwardOnlyProgram : public testing::Test {
 protected:
  ForwardOnlyProgram() {
    const Dataset digits = draw_digits(1, 1, Split::test);
    const Bytes png = encode_png(digits.image(0), 1, 28, 28);
    spill(folder / "digit.png", std::string(png.begin(), png.end()));
    succeeds(trained({"train", "--digits", "300", "--epochs", "1", "--out", at("run")}));
    succeeds(trained({"export", "--out", at("run"), "-o", at("weights.safetensors")}));
    succeeds(sample({"import", at("weights.safetensors"), "--out", at("other")}));
  }
  std::string at(const std::string& name) { return (folder / name).string(); }
  /// The program of the declaration with a recipe.
  static Result trained(const std::vector<std::string>& arguments) {
    return Process(paths::trained_program, arguments, {}).wait();
  }
  static std::string succeeds(const Result& result) {
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }
  TemporaryFolder folder;
};

TEST_F(ForwardOnlyProgram, AnswersAsTheProgramThatTrainedTheWeights) {
  std::string expected = succeeds(trained({"eval", "--digits", "600", "--out", at("run")}));
  const std::size_t loss = expected.find("loss ");
  ASSERT_NE(loss, std::string::npos);
  expected.erase(loss, expected.find('\n', loss) + 1 - loss);
  EXPECT_EQ(succeeds(sample({"eval", "--digits", "600", "--out", at("other")})), expected);

  EXPECT_EQ(succeeds(sample({"predict", at("digit.png"), "--out", at("other")})),
            succeeds(trained({"predict", at("digit.png"), "--out", at("run")})));
  succeeds(trained({"attention", at("digit.png"), "--out", at("run"), "-o", at("a.png")}));
  succeeds(sample({"attention", at("digit.png"), "--out", at("other"), "-o", at("b.png")}));
  EXPECT_EQ(slurp(folder / "a.png"), slurp(folder / "b.png"));
}

TEST_F(ForwardOnlyProgram, WritesTheWeightsThatItWasGiven) {
  succeeds(sample({"export", "--out", at("other"), "-o", at("again.safetensors")}));
  EXPECT_EQ(slurp(folder / "again.safetensors"), slurp(folder / "weights.safetensors"));
}

TEST_F(ForwardOnlyProgram, TakesACheckpointByImport) {
  succeeds(sample({"import", at("run/checkpoint.safetensors"), "--out", at("third")}));
  EXPECT_EQ(succeeds(sample({"predict", at("digit.png"), "--out", at("third")})),
            succeeds(trained({"predict", at("digit.png"), "--out", at("run")})));
}

TEST(ForwardOnly, TrainIsOneSentence) {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {}, {"--epochs", "3"}, {"--resume", "--out", "nowhere"}, {"--device", "cuda"}}) {
    std::vector<std::string> arguments{"train"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result refused = sample(arguments);
    EXPECT_EQ(refused.code, 1);
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(refused.err,
              "vit_mnist_inference: the declaration has no loss: there is nothing to train (a recipe beside forward "
              "gives it one)\n");
  }
  EXPECT_FALSE(std::filesystem::exists("vit_mnist_inference_run"));
}

TEST(ForwardOnly, HelpOffersWhatThereIs) {
  const std::string help = sample({"--help"}).out;
  EXPECT_CONTAINS(help, "vit_mnist_inference: evaluates and applies the model.");
  for (const char* command : {"\n  eval ", "\n  predict ", "\n  attention ", "\n  bench ", "\n  export ", "\n  import ",
                              "\n  summary ", "vit_mnist_inference import weights.safetensors --out run\n"})
    EXPECT_CONTAINS(help, command);
  for (const char* training : {"train ", "Train the model", "training step", "optimiser", "--resume"})
    EXPECT_EQ(help.find(training), std::string::npos) << help;
  EXPECT_CONTAINS(sample({}).err, "say what to do, for example eval or predict (");
}

TEST(ForwardOnly, SummaryAndBenchKnowTheForwardPassAlone) {
  const std::string summary = sample({"summary"}).out, bench = sample({"bench", "--batch", "2", "--runs", "1"}).out;
  for (const char* line : {" B = 1\n", "  forward scratch bytes", "  inspect scratch bytes", "  forward bytes in all",
                           "  forward FLOPs", "to predict one image\nkernels "})
    EXPECT_CONTAINS(summary, line);
  EXPECT_CONTAINS(bench, "\nforward ");
  for (const char* training : {"train", "loss", "labels", "gradient", "optimizer", "update", "recipe", "epochs"}) {
    EXPECT_EQ(summary.find(training), std::string::npos) << training << " in " << summary;
    EXPECT_EQ(bench.find(training), std::string::npos) << training << " in " << bench;
  }
}

}  // namespace
}  // namespace tessera::runtime
