// The two phases of VQGAN's training step as emitted programs, on PyTorch's ten steps (golden/vq/vqgan_small and, with
// ActNorm, the vanilla loss and beta as in print, vqgan_paper), for each instruction set that this processor has.
#include <gtest/gtest.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "paper_vqgan_discriminator.h"
#include "paper_vqgan_generator.h"
#include "runtime/checkpoint.hpp"
#include "runtime/error.hpp"
#include "runtime/phases.hpp"
#include "runtime/safetensors.hpp"
#include "small_vqgan_discriminator.h"
#include "small_vqgan_generator.h"
#include "tests/models/instruction_sets.hpp"
#include "tests/paths.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;
using Floats = std::vector<float>;

runtime::Safetensors golden(const std::string& file, const std::string& folder = "vqgan_small") {
  return runtime::read_safetensors(std::string(paths::golden) + "/vq/" + folder + "/" + file + ".safetensors");
}

std::vector<double> numbers(const runtime::Tensor& tensor) {
  if (tensor.is_real()) return tensor.doubles();
  const std::vector<std::int64_t> whole = tensor.integers();
  return {whole.begin(), whole.end()};
}

std::vector<double> row_of(const runtime::Tensor& tensor, std::int64_t step) {
  const std::vector<double> all = numbers(tensor);
  const auto length = static_cast<std::ptrdiff_t>(all.size()) / tensor.shape.at(0);
  return {all.begin() + step * length, all.begin() + (step + 1) * length};
}

/// Biases of keys, which no softmax sees: UNDETERMINED.txt.
bool is_undetermined(const std::string& key) { return key.ends_with(".k.bias"); }

class VqganTraining : public testing::TestWithParam<std::string> {
 protected:
  static constexpr std::int64_t batch = 4, disc_start = 2;
  static constexpr float rates[2] = {2e-4F, 2e-4F};

  void SetUp() override {
    setenv("TESSERA_ISA", GetParam().c_str(), 1);
    if (small_vqgan_generator_isa() != GetParam()) GTEST_SKIP() << "this processor cannot run " << GetParam();
    take_parameters(run);
  }
  void TearDown() override {
    unsetenv("TESSERA_ISA");
    set_threads(1);
  }

  static void set_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
  }

  static runtime::AlternatingPhases phases() {
    return {TESSERA_TRAINING_PHASE(small_vqgan_generator, SMALL_VQGAN_GENERATOR, "generator"),
            TESSERA_TRAINING_PHASE(small_vqgan_discriminator, SMALL_VQGAN_DISCRIMINATOR, "discriminator"), batch};
  }

  static void take_parameters(const runtime::AlternatingPhases& of, const std::string& folder = "vqgan_small") {
    const runtime::Safetensors params = golden("params", folder);
    ASSERT_EQ(params.tensors.size(), of.phase(0).parameters.size());
    for (const tessera_parameter& row : of.phase(0).parameters) {
      const runtime::Tensor& tensor = params.at(row.name);
      ASSERT_EQ(tensor.shape, runtime::Shape(row.shape, row.shape + row.rank)) << row.name;
      std::ranges::copy(numbers(tensor), of.parameters() + row.offset);
    }
  }

  void steps(runtime::AlternatingPhases& of, std::int64_t first, std::int64_t last) const {
    for (std::int64_t step = first; step <= last; ++step)
      of.step(images.data(), batch, step, step > disc_start ? 1 : 0, rates);
  }

  static void expect_same_bits(const runtime::AlternatingPhases& a, const runtime::AlternatingPhases& b) {
    const auto bytes = static_cast<std::size_t>(a.phase(0).parameter_floats) * sizeof(float);
    EXPECT_EQ(std::memcmp(a.parameters(), b.parameters(), bytes), 0);
    EXPECT_EQ(std::memcmp(a.optimizer(), b.optimizer(), 2 * bytes), 0);
  }

  const Floats images = golden("batch").at("images").floats();
  runtime::AlternatingPhases run = phases();
};

/// Ten steps: their losses and indices, and the parameters after the third, as far as `adam` has them.
void expect_ten_steps(runtime::AlternatingPhases& run, const Floats& images, const runtime::Safetensors& adam,
                      std::int64_t disc_start, float rate) {
  for (std::int64_t step = 0; step < 10; ++step) {
    run.step(images.data(), 4, step + 1, step >= disc_start ? 1 : 0, {rate, rate});
    for (const int phase : {0, 1})
      for (const char* loss : run.phase(phase).losses) {
        const double wanted = row_of(adam.at(std::string("losses.") + loss), step).at(0);
        EXPECT_NEAR(run.loss(loss), wanted, 1e-4 * std::max(std::fabs(wanted), 0.1)) << loss << " of step " << step;
      }
    const std::vector<double> indices = row_of(adam.at("losses.indices"), step);
    ASSERT_EQ(std::vector<double>(run.outputs(0).begin(), run.outputs(0).end()), indices) << "of step " << step;
    if (step != 2) continue;
    std::int64_t all = 0, apart = 0;
    for (const tessera_parameter& row : run.phase(0).parameters) {
      const std::string key = row.name;
      if (is_undetermined(key) || key.starts_with("loss.perceptual_loss.") || !adam.has(key)) continue;
      const std::vector<double> wanted = numbers(adam.at(key));
      const float* const found = run.parameters() + row.offset;
      if (key.ends_with("num_batches_tracked") || key.ends_with("initialized")) {
        EXPECT_EQ(found[0], wanted[0]) << key;
        continue;
      }
      double largest = 0, worst = 0;
      for (const double number : wanted) largest = std::max(largest, std::fabs(number));
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const double difference = std::fabs(found[i] - wanted[i]);
        ++all;
        apart += difference > 1e-4 * largest;
        worst = std::max(worst, difference);
      }
      if (key.find("running_") != std::string::npos) {
        EXPECT_LE(worst, 1e-4 * largest) << key;
      }
    }
    EXPECT_GT(all, 400);
    EXPECT_LE(apart, all / 10000) << "of " << all << " parameters";
  }
}

TEST_P(VqganTraining, TenStepsArePyTorchs) {
  const char* shared = std::getenv("TESSERA_SHARED");
  if (!shared) GTEST_SKIP() << "TESSERA_SHARED is not set: PyTorch's ten steps are not at hand";
  const fs::path path = fs::path(shared) / "golden/vq/vqgan_small/adam.safetensors";
  expect_ten_steps(run, images, runtime::read_safetensors(path), disc_start, rates[0]);
}

TEST_P(VqganTraining, TenStepsWithActNormTheVanillaLossAndBetaAsInPrintArePyTorchs) {
  runtime::AlternatingPhases paper(
      TESSERA_TRAINING_PHASE(paper_vqgan_generator, PAPER_VQGAN_GENERATOR, "generator"),
      TESSERA_TRAINING_PHASE(paper_vqgan_discriminator, PAPER_VQGAN_DISCRIMINATOR, "discriminator"), batch);
  take_parameters(paper, "vqgan_paper");
  expect_ten_steps(paper, golden("batch", "vqgan_paper").at("images").floats(), golden("adam", "vqgan_paper"), 1,
                   1e-3F);
}

TEST_P(VqganTraining, WhatAHalfDoesNotTrainStaysAsItIs) {
  const runtime::AlternatingPhases before = phases();
  take_parameters(before);
  steps(run, 1, 1);
  for (const tessera_parameter& row : run.phase(0).parameters) {
    const std::string key = row.name;
    if (is_undetermined(key)) continue;
    const std::int64_t count = runtime::elements(runtime::Shape(row.shape, row.shape + row.rank));
    const bool same = std::equal(run.parameters() + row.offset, run.parameters() + row.offset + count,
                                 before.parameters() + row.offset);
    // Before the discriminator starts its gradients are 0, and only what it tracks changes.
    const bool tracked = key.find("running_") != std::string::npos || key.ends_with("num_batches_tracked");
    EXPECT_EQ(same, key.starts_with("loss.") && !tracked) << key;
    if (key.ends_with("num_batches_tracked")) {
      EXPECT_EQ(run.parameters()[row.offset], before.parameters()[row.offset] + 3) << key;
    }
  }
}

TEST_P(VqganTraining, BitsDoNotDependOnTheNumberOfThreads) {
  steps(run, 1, 3);
  set_threads(3);
  runtime::AlternatingPhases three = phases();
  take_parameters(three);
  steps(three, 1, 3);
  expect_same_bits(run, three);
}

TEST_P(VqganTraining, AResumedRunHasTheSameBits) {
  steps(run, 1, 4);
  runtime::AlternatingPhases stopped = phases(), resumed = phases();
  take_parameters(stopped);
  steps(stopped, 1, 2);
  runtime::Model model;
  model.name = "small_vqgan";
  model.parameters = run.phase(0).parameters;
  model.parameter_floats = run.phase(0).parameter_floats;
  model.optimizer_state = {"optimizer.m.", "optimizer.v."};
  const fs::path path = fs::path(testing::TempDir()) / ("vqgan_training_" + GetParam() + ".safetensors");
  runtime::TrainingState state;
  state.recipe.batch = batch;
  state.recipe.accumulate = state.recipe.epochs = 1;
  state.data.digits = 1;
  state.step = 2;
  runtime::save_checkpoint(path, model, stopped.parameters(), stopped.optimizer(), state);
  EXPECT_EQ(runtime::resume_checkpoint(path, model, resumed.parameters(), resumed.optimizer()).step, 2);
  fs::remove(path);
  steps(resumed, 3, 4);
  expect_same_bits(run, resumed);
}

/// What training says when something in the parameters is not a number.
std::string refusal(runtime::AlternatingPhases& of, const Floats& images) {
  try {
    of.step(images.data(), 4, 7, 1, {1e-4F, 1e-4F});
  } catch (const runtime::Error& error) {
    return error.what();
  }
  return "";
}

float* parameter(const runtime::AlternatingPhases& of, const std::string& key) {
  for (const tessera_parameter& row : of.phase(0).parameters)
    if (row.name == key) return of.parameters() + row.offset;
  ADD_FAILURE() << key;
  return nullptr;
}

TEST_P(VqganTraining, NotANumberIsSaidOfTheHalfThatMeetsIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  parameter(run, "decoder.conv_out.bias")[0] = nan;
  const Floats before(run.parameters(), run.parameters() + run.phase(0).parameter_floats);
  EXPECT_EQ(refusal(run, images), "training diverged in the generator's phase of step 7: total_loss is not a number");
  EXPECT_EQ(std::memcmp(before.data(), run.parameters(), before.size() * sizeof(float)), 0);
  take_parameters(run);
  runtime::AlternatingPhases other = phases();
  take_parameters(other);
  Floats huge = images;
  std::ranges::fill(huge, 3e38F);
  EXPECT_NE(refusal(other, huge).find("'s phase of step 7: "), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Isas, VqganTraining, testing::ValuesIn(instruction_sets),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera::test
