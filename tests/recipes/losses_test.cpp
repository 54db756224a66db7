// Losses of a model's own, and of the caller's, beside the probe of the same parameters that is held to PyTorch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "callers_loss.h"
#include "own_cross_entropy.h"
#include "probe_adam.h"
#include "squared_error.h"

namespace tessera::test {
namespace {

constexpr std::int64_t images = 5, pixels = PROBE_ADAM_IMAGE_FLOATS, classes = PROBE_ADAM_OUTPUT_FLOATS;
static_assert(SQUARED_ERROR_TARGET_FLOATS == classes);
static_assert(SQUARED_ERROR_PARAMETER_FLOATS == PROBE_ADAM_PARAMETER_FLOATS);
static_assert(CALLERS_LOSS_PARAMETER_FLOATS == PROBE_ADAM_PARAMETER_FLOATS);

/// A batch, parameters, and room for what is computed of them.
struct Losses : testing::Test {
  Losses() {
    EXPECT_EQ(probe_adam_init(parameters, 7), PROBE_ADAM_OK);
    for (std::int64_t i = 0; i < images * pixels; ++i) batch[i] = std::sin(static_cast<float>(3 * i + 1));
    for (std::int64_t i = 0; i < images * classes; ++i) targets[i] = std::cos(static_cast<float>(2 * i));
  }

  /// What the probe under the cross entropy computes.
  std::vector<float> cross_entropy_gradients() {
    std::vector<float> all(PROBE_ADAM_PARAMETER_FLOATS);
    EXPECT_EQ(probe_adam_loss_and_gradients(parameters, nullptr, batch, labels, images, images, 1, 1, outputs, &loss,
                                            gradients, scratch),
              PROBE_ADAM_OK);
    std::copy_n(gradients, all.size(), all.begin());
    return all;
  }
  std::vector<float> squared_error_gradients() {
    std::vector<float> all(PROBE_ADAM_PARAMETER_FLOATS);
    EXPECT_EQ(squared_error_loss_and_gradients(parameters, nullptr, batch, targets, images, images, 1, 1, outputs,
                                               &loss, gradients, scratch),
              SQUARED_ERROR_OK);
    std::copy_n(gradients, all.size(), all.begin());
    return all;
  }
  std::vector<float> gradients_of(const std::vector<float>& output_gradients) {
    std::vector<float> all(PROBE_ADAM_PARAMETER_FLOATS);
    EXPECT_EQ(callers_loss_gradients(parameters, nullptr, batch, output_gradients.data(), images, images, 1, 1, outputs,
                                     gradients, scratch),
              CALLERS_LOSS_OK);
    std::copy_n(gradients, all.size(), all.begin());
    return all;
  }

  static void expect_near(const std::vector<float>& found, const std::vector<float>& wanted) {
    float largest = 0;
    for (const float number : wanted) largest = std::max(largest, std::fabs(number));
    EXPECT_GT(largest, 1e-3F);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5F * largest) << i;
  }

  alignas(64) float parameters[PROBE_ADAM_PARAMETER_FLOATS]{};
  alignas(64) float gradients[PROBE_ADAM_PARAMETER_FLOATS]{};
  alignas(64) float batch[images * pixels]{};
  alignas(64) float outputs[images * classes]{};
  alignas(64) float targets[images * classes]{};
  alignas(64) float scratch[1 << 14]{};
  std::int32_t labels[images]{2, 0, 1, 1, 2};
  float loss = 0;
};

TEST_F(Losses, OfLabelsAreTheRecipesWhereTheyAreDeclaredAlike) {
  const std::vector<float> wanted = cross_entropy_gradients();
  const float of_recipe = loss;
  ASSERT_EQ(own_cross_entropy_loss_and_gradients(parameters, nullptr, batch, labels, images, images, 1, 1, outputs,
                                                 &loss, gradients, scratch),
            OWN_CROSS_ENTROPY_OK);
  EXPECT_EQ(loss, of_recipe);
  EXPECT_EQ(std::vector<float>(gradients, gradients + wanted.size()), wanted);
}

TEST_F(Losses, OfTargetsAreWhatIsDeclared) {
  const std::vector<float> found = squared_error_gradients();
  double expected = 0;
  std::vector<float> of_outputs(images * classes);
  for (std::size_t i = 0; i < of_outputs.size(); ++i) {
    const double error = static_cast<double>(outputs[i]) - static_cast<double>(targets[i]);
    expected += error * error / static_cast<double>(images * classes);
    of_outputs[i] = static_cast<float>(2 * error / static_cast<double>(images * classes));
  }
  EXPECT_NEAR(loss, expected, 1e-6 * expected);
  const float of_training = loss;
  expect_near(found, gradients_of(of_outputs));

  loss = 0;
  ASSERT_EQ(squared_error_evaluate(parameters, nullptr, batch, targets, images, outputs, &loss, scratch),
            SQUARED_ERROR_OK);
  EXPECT_EQ(loss, of_training);
  EXPECT_EQ(squared_error_evaluate(parameters, nullptr, batch, nullptr, images, outputs, &loss, scratch),
            SQUARED_ERROR_ERROR_NULL);
}

TEST_F(Losses, OfTargetsHaveGradientsOfThePixels) {
  std::vector<float> of_pixels(images * pixels);
  ASSERT_EQ(squared_error_input_gradient(parameters, nullptr, batch, targets, images, outputs, &loss, of_pixels.data(),
                                         scratch),
            SQUARED_ERROR_OK);
  for (const std::int64_t pixel : {std::int64_t{0}, std::int64_t{7}, images * pixels - 1}) {
    float sides[2];
    for (const int side : {0, 1}) {
      const float before = batch[pixel];
      batch[pixel] += side ? 1e-2F : -1e-2F;
      ASSERT_EQ(squared_error_evaluate(parameters, nullptr, batch, targets, images, outputs, &sides[side], scratch),
                SQUARED_ERROR_OK);
      batch[pixel] = before;
    }
    EXPECT_NEAR(of_pixels[static_cast<std::size_t>(pixel)], (sides[1] - sides[0]) / 2e-2F, 2e-4F);
  }
}

TEST_F(Losses, OfTheCallerHaveTheGradientsOfTheLossWhoseGradientIsGiven) {
  const std::vector<float> wanted = cross_entropy_gradients();
  std::vector<float> of_outputs(images * classes);  // of the cross entropy: (softmax - one hot) / images
  for (std::int64_t i = 0; i < images; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < classes; ++j) sum += std::exp(static_cast<double>(outputs[i * classes + j]));
    for (std::int64_t j = 0; j < classes; ++j)
      of_outputs[static_cast<std::size_t>(i * classes + j)] = static_cast<float>(
          (std::exp(static_cast<double>(outputs[i * classes + j])) / sum - (j == labels[i] ? 1 : 0)) / images);
  }
  expect_near(gradients_of(of_outputs), wanted);
  const std::vector<float> twice = [&] {
    for (float& number : of_outputs) number *= 2;
    return gradients_of(of_outputs);
  }();
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(twice[i], 2 * wanted[i], 1e-5);
  EXPECT_EQ(
      callers_loss_gradients(parameters, nullptr, batch, nullptr, images, images, 1, 1, outputs, gradients, scratch),
      CALLERS_LOSS_ERROR_NULL);
}

TEST_F(Losses, OfTargetsAreMadeSmallByTheTrainingStep) {
  std::vector<float> optimizer(SQUARED_ERROR_OPTIMIZER_FLOATS);
  float first = 0;
  for (std::int64_t step = 1; step <= 60; ++step) {
    ASSERT_EQ(squared_error_train_step(parameters, nullptr, gradients, optimizer.data(), batch, targets, images, images,
                                       1, step, 0.02F, outputs, &loss, scratch),
              SQUARED_ERROR_OK);
    if (step == 1) first = loss;
  }
  EXPECT_LT(loss, first / 4);
}

}  // namespace
}  // namespace tessera::test
