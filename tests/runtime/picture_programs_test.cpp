// The programs of VQGANs and of transformers over their tokens around models that are made up, whose losses and tokens
// a test says: what they warn of, and what they refuse.
#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/safetensors.hpp"
#include "runtime/taming_program.hpp"
#include "runtime/vqgan.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

/// What the made-up phases give in each step.
struct Given {
  std::int64_t codes_in_use = 40;
  float rec_loss = 0.5F, d_weight = 1, disc_loss = 0.7F;
};
Given given;

constexpr std::int64_t pixels = 28 * 28, positions = 4, codes = 40;
constexpr std::array<const char*, 2> generator_losses{"rec_loss", "d_weight"};
constexpr std::array<const char*, 1> discriminator_losses{"disc_loss"};
constexpr std::array<tessera_parameter, 4> table{{{"encoder.weight", 1, 0, {2}, 0, "[2]"},
                                                  {"quantize.embedding.weight", 2, 0, {40, 1}, 2, "[40, 1]"},
                                                  {"loss.perceptual_loss.net.slice1.0.weight", 1, 0, {3}, 42, "[3]"},
                                                  {"loss.perceptual_loss.lin0.model.1.weight", 1, 0, {2}, 45, "[2]"}}};
constexpr std::int64_t floats = 47;

/// Tokens in turns: each code as often as any other of those in use.
void write_tokens(float* tokens, std::int64_t batch) {
  for (std::int64_t i = 0; i < batch * positions; ++i)
    tokens[i] = static_cast<float>(i % std::min(given.codes_in_use, batch * positions));
}

TrainingPhase phase_of(bool generator, bool perceptual) {
  TrainingPhase phase;
  phase.name = generator ? "generator" : "discriminator";
  phase.parameters = std::span(table).first(perceptual ? 4 : 2);
  phase.losses = generator ? std::span<const char* const>(generator_losses) : discriminator_losses;
  phase.parameter_floats = floats;
  phase.packed_floats = 1;
  phase.optimizer_floats = 2 * floats;
  phase.output_floats = generator ? positions : pixels;
  phase.scratch_bytes = [](std::int64_t) -> std::int64_t { return 64; };
  phase.error = [](int) { return "an error"; };
  phase.isa = [] { return "none"; };
  phase.init = [](float* parameters, std::uint64_t) {
    std::fill_n(parameters, floats, 0.5F);
    return 0;
  };
  phase.pack = [](const float*, float*) { return 0; };
  phase.update = [](float*, float*, const float*, float*, std::int64_t, float) { return 0; };
  if (generator)
    phase.loss_and_gradients = [](const float*, const float*, const float*, const float*, std::int64_t batch,
                                  std::int64_t, std::uint64_t, std::int64_t, float* outputs, float* losses, float* loss,
                                  float* gradients, void*) {
      write_tokens(outputs, batch);
      std::fill_n(gradients, floats, 0.0F);
      losses[0] = *loss = given.rec_loss;
      losses[1] = given.d_weight;
      return 0;
    };
  else
    phase.loss_and_gradients = [](const float*, const float*, const float*, const float*, std::int64_t, std::int64_t,
                                  std::uint64_t, std::int64_t, float*, float* losses, float* loss, float* gradients,
                                  void*) {
      std::fill_n(gradients, floats, 0.0F);
      losses[0] = *loss = given.disc_loss;
      return 0;
    };
  return phase;
}

/// Gives nothing, [batch, outputs].
template <std::int64_t outputs>
ForwardPass pass_of_zeros() {
  ForwardPass pass;
  pass.parameters = std::span(table).first(2);
  pass.parameter_floats = floats;
  pass.packed_floats = 1;
  pass.output_floats = outputs;
  pass.scratch_bytes = [](std::int64_t) -> std::int64_t { return 64; };
  pass.error = [](int) { return "an error"; };
  pass.pack = [](const float*, float*) { return 0; };
  pass.forward = [](const float*, const float*, const float*, std::int64_t batch, float* out, void*) {
    std::fill_n(out, batch * outputs, 0.0F);
    return 0;
  };
  return pass;
}

/// What a program's main prints and returns.
template <class Main>
Result ran(const Main& main, std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  std::ostringstream out, err;
  std::streambuf *const cout = std::cout.rdbuf(out.rdbuf()), *const cerr = std::cerr.rdbuf(err.rdbuf());
  Result result;
  result.code = main(static_cast<int>(argv.size()), argv.data());
  std::cout.rdbuf(cout);
  std::cerr.rdbuf(cerr);
  result.out = out.str();
  result.err = err.str();
  return result;
}

class VqganProgram : public testing::Test {
 protected:
  VqganProgram() { given = {}; }

  Result train(bool perceptual = false, const std::vector<std::string>& more = {}) const {
    const Vqgan model{.name = "made_up",
                      .generator = phase_of(true, perceptual),
                      .discriminator = phase_of(false, perceptual),
                      .encode = pass_of_zeros<positions>(),
                      .reconstruct = pass_of_zeros<pixels>(),
                      .decode = pass_of_zeros<pixels>(),
                      .image_shape = {1, 28, 28},
                      .tokens = {2, 2},
                      .codes = codes};
    std::vector<std::string> arguments{"made_up", "train", "--digits",     "60",         "--batch",
                                       "10",      "--out", folder / "run", "--overwrite"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return ran([&](int argc, char** argv) { return vqgan_program(model, argc, argv); }, arguments);
  }
  static bool warns(const Result& result, const std::string& of) {
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out.find("warning: " + of) != std::string::npos;
  }

  TemporaryFolder folder;
};

TEST_F(VqganProgram, WarnsWhereMostOfTheCodebookIsNotUsed) {
  const std::string warning = "the perplexity of the codes is ";
  given.codes_in_use = 3;  // below a tenth of 40
  EXPECT_TRUE(warns(train(), warning + "3.0, below a tenth of the 40 codes: most of the codebook is not used"));
  given.codes_in_use = 5;
  EXPECT_FALSE(warns(train(), warning));
}

TEST_F(VqganProgram, WarnsWhereTheDiscriminatorLearnsNothingForAnEpoch) {
  const std::string warning = "for an epoch the discriminator's loss has stayed within 0.005 of 1";
  given.disc_loss = 1.004F;
  given.d_weight = 10.5F;
  EXPECT_TRUE(warns(train(), warning));
  given.d_weight = 9.5F;
  EXPECT_FALSE(warns(train(), warning));
  given.d_weight = 10.5F;
  given.disc_loss = 0.99F;
  EXPECT_FALSE(warns(train(), warning));
}

TEST_F(VqganProgram, SaysInWhichHalfALossIsNotANumber) {
  given.rec_loss = std::nanf("");
  const Result generator = train();
  EXPECT_EQ(generator.code, 1);
  EXPECT_EQ(generator.err, "made_up: training diverged in the generator's phase of step 1: rec_loss is not a number\n");
  given = {};
  given.disc_loss = std::nanf("");
  EXPECT_EQ(train().err,
            "made_up: training diverged in the discriminator's phase of step 1: disc_loss is not a number\n");
}

TEST_F(VqganProgram, ThePerceptualLossTakesWeightsThatAreGiven) {
  const Result without = train(true);
  EXPECT_EQ(without.code, 1);
  EXPECT_EQ(without.err,
            "made_up: the perceptual loss takes the weights of VGG16 and LPIPS as they are: --perceptual names a file "
            "with loss.perceptual_loss.net.slice1.0.weight to loss.perceptual_loss.lin0.model.1.weight, 2 tensors\n");
  const std::string path = folder / "vgg.safetensors";
  Safetensors file;
  const std::vector<float> numbers{1, 2, 3};
  file.tensors["loss.perceptual_loss.net.slice1.0.weight"] = Tensor::of({3}, numbers);
  file.tensors["encoder.weight"] = Tensor::of({1}, std::span(numbers).first(1));  // is not asked for
  write_safetensors(path, file);
  const Result lacking = train(true, {"--perceptual", path});
  EXPECT_EQ(lacking.code, 1);
  EXPECT_NE(lacking.err.find("loss.perceptual_loss.lin0.model.1.weight"), std::string::npos) << lacking.err;
  file.tensors["loss.perceptual_loss.lin0.model.1.weight"] = Tensor::of({2}, std::span(numbers).first(2));
  write_safetensors(path, file);
  const Result whole = train(true, {"--perceptual", path});
  EXPECT_EQ(whole.code, 0) << whole.err;
  const Safetensors run = read_safetensors(folder / "run/checkpoint.safetensors");
  EXPECT_EQ(run.at("loss.perceptual_loss.net.slice1.0.weight").floats(), numbers);
  EXPECT_EQ(run.at("encoder.weight").floats(), (std::vector<float>{0.5, 0.5}));
  EXPECT_EQ(train(false, {"--perceptual", path}).err, "made_up: --perceptual: made_up has no perceptual loss\n");
}

TEST_F(VqganProgram, LeavesAReportWithReconstructionsAndTheUseOfCodes) {
  EXPECT_EQ(train().code, 0);
  const std::string report = slurp(folder / "run/report.html");
  for (const char* said : {"<h2>Reconstructions</h2>", "test images, and below each what its 4 tokens make of it",
                           "<h2>Codebook</h2>", "1 of 40 in use, perplexity 1.0", "<h2>Machine</h2>"})
    EXPECT_NE(report.find(said), std::string::npos) << said;
}

TEST(TamingProgramOfNoClasses, HasNoClassToDraw) {
  Taming taming;
  taming.transformer.model.name = "made_up";
  taming.transformer.tokens.window = {2, 2};
  std::vector<std::string> arguments{"made_up", "sample", "--class", "3", "-o", "none.png"};
  const Result refused = ran([&](int argc, char** argv) { return taming_program(taming, argc, argv); }, arguments);
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.err, "made_up: --class: made_up is not trained by class\n");
}

TEST(TamingProgramOfNoClasses, SaysWhatAMistypedWordIsNearTo) {
  Taming taming;
  taming.transformer.model.name = "made_up";
  const auto said = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "made_up");
    const Result refused = ran([&](int argc, char** argv) { return taming_program(taming, argc, argv); }, arguments);
    EXPECT_EQ(refused.code, 2);
    return refused.err;
  };
  EXPECT_EQ(said({"sampel"}),
            "made_up: there is no command 'sampel'; did you mean sample? (made_up --help tells more)\n");
  EXPECT_EQ(said({"summary", "--threads", "1"}),
            "made_up: summary has no option '--threads', which belongs to train, sample, eval, bench (made_up summary "
            "--help tells more)\n");
  EXPECT_EQ(said({}), "made_up: say what to do, for example train or sample (made_up --help tells more)\n");
}

}  // namespace
}  // namespace tessera::runtime
