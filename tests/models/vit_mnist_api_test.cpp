// The emitted C API of vit_mnist: what it does with wrong arguments, and how parameters start.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "vit_mnist.h"

namespace tessera::test {
namespace {

/// Valid arguments for two images.
class VitMnistApi : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(vit_mnist_init(parameters_.data(), 1), VIT_MNIST_OK); }
  void TearDown() override { unsetenv("TESSERA_ISA"); }

  static constexpr std::int64_t batch_ = 2;
  std::vector<float> parameters_ = std::vector<float>(VIT_MNIST_PARAMETER_FLOATS), gradients_ = parameters_;
  std::vector<float> optimizer_ = std::vector<float>(VIT_MNIST_OPTIMIZER_FLOATS);
  std::vector<float> images_ = std::vector<float>(batch_ * VIT_MNIST_IMAGE_FLOATS), image_gradients_ = images_;
  std::vector<float> outputs_ = std::vector<float>(batch_ * VIT_MNIST_OUTPUT_FLOATS);
  std::vector<float> maps_ = std::vector<float>(batch_ * VIT_MNIST_ATTENTION_FLOATS);
  std::vector<float> magnitudes_ = std::vector<float>(batch_ * VIT_MNIST_LAYERS);
  std::vector<float> scratch_ = std::vector<float>(VIT_MNIST_TRAIN_SCRATCH_BYTES(batch_) / 4);
  std::vector<std::int32_t> labels_ = std::vector<std::int32_t>(batch_, 3);
  float loss_ = 0;

  // Each entry point with its arguments; nulls[i] leaves pointer i out.
  template <class T>
  static T* unless(bool null, std::vector<T>& v) {
    return null ? nullptr : v.data();
  }
  int forward(std::set<int> nulls = {}, std::int64_t batch = batch_) {
    return vit_mnist_forward(unless(nulls.contains(0), parameters_), nullptr, unless(nulls.contains(1), images_), batch,
                             unless(nulls.contains(2), outputs_), unless(nulls.contains(3), scratch_));
  }
  int inspect(std::set<int> nulls = {}, std::int64_t batch = batch_) {
    return vit_mnist_inspect(unless(nulls.contains(0), parameters_), nullptr, unless(nulls.contains(1), images_), batch,
                             unless(nulls.contains(2), maps_), unless(nulls.contains(3), magnitudes_),
                             unless(nulls.contains(4), scratch_));
  }
  int evaluate(std::set<int> nulls = {}, std::int64_t batch = batch_) {
    return vit_mnist_evaluate(unless(nulls.contains(0), parameters_), nullptr, unless(nulls.contains(1), images_),
                              unless(nulls.contains(2), labels_), batch, unless(nulls.contains(3), outputs_),
                              nulls.contains(4) ? nullptr : &loss_, unless(nulls.contains(5), scratch_));
  }
  int loss_and_gradients(std::set<int> nulls = {}, std::int64_t batch = batch_, std::int64_t at_once = batch_) {
    return vit_mnist_loss_and_gradients(unless(nulls.contains(0), parameters_), nullptr,
                                        unless(nulls.contains(1), images_), unless(nulls.contains(2), labels_), batch,
                                        at_once, 1, 1, unless(nulls.contains(3), outputs_),
                                        nulls.contains(4) ? nullptr : &loss_, unless(nulls.contains(5), gradients_),
                                        unless(nulls.contains(6), scratch_));
  }
  int input_gradient(std::set<int> nulls = {}, std::int64_t batch = batch_) {
    return vit_mnist_input_gradient(unless(nulls.contains(0), parameters_), nullptr, unless(nulls.contains(1), images_),
                                    unless(nulls.contains(2), labels_), batch, unless(nulls.contains(3), outputs_),
                                    nulls.contains(4) ? nullptr : &loss_, unless(nulls.contains(5), image_gradients_),
                                    unless(nulls.contains(6), scratch_));
  }
  int update(std::set<int> nulls = {}, std::int64_t step = 1) {
    return vit_mnist_update(unless(nulls.contains(0), parameters_), nullptr, unless(nulls.contains(1), gradients_),
                            unless(nulls.contains(2), optimizer_), step, 0.001f);
  }
  int train_step(std::set<int> nulls = {}, std::int64_t batch = batch_, std::int64_t step = 1,
                 std::int64_t at_once = batch_) {
    return vit_mnist_train_step(unless(nulls.contains(0), parameters_), nullptr, unless(nulls.contains(1), gradients_),
                                unless(nulls.contains(2), optimizer_), unless(nulls.contains(3), images_),
                                unless(nulls.contains(4), labels_), batch, at_once, 1, step, 0.001f,
                                unless(nulls.contains(5), outputs_), nulls.contains(6) ? nullptr : &loss_,
                                unless(nulls.contains(7), scratch_));
  }
};

TEST_F(VitMnistApi, AcceptsValidArguments) {
  for (const int code :
       {forward(), inspect(), evaluate(), loss_and_gradients(), input_gradient(), update(), train_step()})
    EXPECT_EQ(code, VIT_MNIST_OK);
}

TEST_F(VitMnistApi, RefusesEveryNullPointer) {
  EXPECT_EQ(vit_mnist_init(nullptr, 1), VIT_MNIST_ERROR_NULL);
  EXPECT_EQ(vit_mnist_pack(nullptr, nullptr), VIT_MNIST_ERROR_NULL);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(update({i}), VIT_MNIST_ERROR_NULL) << i;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(forward({i}), VIT_MNIST_ERROR_NULL) << i;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(inspect({i}), VIT_MNIST_ERROR_NULL) << i;
  for (int i = 0; i < 6; ++i) EXPECT_EQ(evaluate({i}), VIT_MNIST_ERROR_NULL) << i;
  for (int i = 0; i < 7; ++i) EXPECT_EQ(loss_and_gradients({i}), VIT_MNIST_ERROR_NULL) << i;
  for (int i = 0; i < 7; ++i) EXPECT_EQ(input_gradient({i}), VIT_MNIST_ERROR_NULL) << i;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(train_step({i}), VIT_MNIST_ERROR_NULL) << i;
}

TEST_F(VitMnistApi, RefusesABatchWithoutImages) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                         most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t batch : {std::int64_t{0}, std::int64_t{-1}, least, most, most / 16, std::int64_t{1} << 56}) {
    EXPECT_EQ(forward({}, batch), VIT_MNIST_ERROR_BATCH);
    EXPECT_EQ(inspect({}, batch), VIT_MNIST_ERROR_BATCH);
    EXPECT_EQ(evaluate({}, batch), VIT_MNIST_ERROR_BATCH);
    EXPECT_EQ(loss_and_gradients({}, batch), VIT_MNIST_ERROR_BATCH);
    EXPECT_EQ(input_gradient({}, batch), VIT_MNIST_ERROR_BATCH);
    EXPECT_EQ(train_step({}, batch), VIT_MNIST_ERROR_BATCH);
  }
}

TEST_F(VitMnistApi, NumbersThatAreAlignedAsFloatsAreEnough) {
  // Each array one float behind a multiple of 16 bytes, where the allocator puts it.
  const auto moved = [](std::vector<float> numbers) {
    numbers.insert(numbers.begin(), 0.0f);
    return numbers;
  };
  std::vector<float> parameters = moved(parameters_), gradients = moved(gradients_), optimizer = moved(optimizer_),
                     images = moved(images_), outputs = moved(outputs_), scratch = moved(scratch_);
  ASSERT_EQ(train_step(), VIT_MNIST_OK);
  ASSERT_EQ(vit_mnist_train_step(&parameters[1], nullptr, &gradients[1], &optimizer[1], &images[1], labels_.data(),
                                 batch_, batch_, 1, 1, 0.001f, &outputs[1], &loss_, &scratch[1]),
            VIT_MNIST_OK);
  parameters.erase(parameters.begin());
  EXPECT_EQ(parameters, parameters_);
}

TEST_F(VitMnistApi, RefusesFewerImagesAtOnceThanASixteenthOfTheBatch) {
  for (const std::int64_t at_once : {0, -1}) {
    EXPECT_EQ(loss_and_gradients({}, batch_, at_once), VIT_MNIST_ERROR_AT_ONCE);
    EXPECT_EQ(train_step({}, batch_, 1, at_once), VIT_MNIST_ERROR_AT_ONCE);
  }
  for (const std::int64_t at_once : {1, 2, 1000}) EXPECT_EQ(loss_and_gradients({}, batch_, at_once), VIT_MNIST_OK);
  const std::vector<float> images(33 * VIT_MNIST_IMAGE_FLOATS);
  const std::vector<std::int32_t> labels(33);
  std::vector<float> outputs(33 * VIT_MNIST_OUTPUT_FLOATS), scratch(VIT_MNIST_TRAIN_SCRATCH_BYTES(3) / 4);
  const auto run = [&](std::int64_t at_once) {
    return vit_mnist_loss_and_gradients(parameters_.data(), nullptr, images.data(), labels.data(), 33, at_once, 1, 1,
                                        outputs.data(), &loss_, gradients_.data(), scratch.data());
  };
  EXPECT_EQ(run(2), VIT_MNIST_ERROR_AT_ONCE);
  EXPECT_EQ(run(3), VIT_MNIST_OK);
  EXPECT_STREQ(vit_mnist_error(VIT_MNIST_ERROR_AT_ONCE),
               "at least a sixteenth of the batch has to be worked on at once");
}

TEST_F(VitMnistApi, SuggestsAsManyImagesAtOnceAsItTakes) {
  for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{2}, std::int64_t{128}, std::int64_t{100000},
                                   std::numeric_limits<std::int64_t>::max()}) {
    const std::int64_t at_once = vit_mnist_images_at_once(batch);
    EXPECT_GE(at_once, batch / 16 + (batch % 16 != 0));
    EXPECT_LE(at_once, batch);
  }
}

TEST_F(VitMnistApi, RefusesALabelThatNamesNoClassAndChangesNothing) {
  const std::vector<float> before = parameters_;
  for (const std::int32_t label : {-1, 10, 1 << 30}) {
    labels_.back() = label;
    EXPECT_EQ(evaluate(), VIT_MNIST_ERROR_LABEL);
    EXPECT_EQ(loss_and_gradients(), VIT_MNIST_ERROR_LABEL);
    EXPECT_EQ(input_gradient(), VIT_MNIST_ERROR_LABEL);
    EXPECT_EQ(train_step(), VIT_MNIST_ERROR_LABEL);
  }
  EXPECT_EQ(parameters_, before);
}

TEST_F(VitMnistApi, RefusesAStepBeforeTheFirst) {
  EXPECT_EQ(update({}, 0), VIT_MNIST_ERROR_STEP);
  EXPECT_EQ(train_step({}, batch_, 0), VIT_MNIST_ERROR_STEP);
}

TEST_F(VitMnistApi, RefusesKernelsThatDoNotExist) {
  setenv("TESSERA_ISA", "neon", 1);
  EXPECT_STREQ(vit_mnist_isa(), "");
  for (const int code :
       {forward(), inspect(), evaluate(), loss_and_gradients(), input_gradient(), update(), train_step()})
    EXPECT_EQ(code, VIT_MNIST_ERROR_ISA);
  setenv("TESSERA_ISA", "", 1);
  EXPECT_EQ(forward(), VIT_MNIST_OK);
}

TEST_F(VitMnistApi, PutsEveryErrorCodeIntoASentenceOfItsOwn) {
  std::set<std::string> sentences;
  for (int code = VIT_MNIST_OK; code <= VIT_MNIST_ERROR_STEP + 1; ++code) sentences.insert(vit_mnist_error(code));
  EXPECT_EQ(sentences.size(), static_cast<std::size_t>(VIT_MNIST_ERROR_STEP + 2));
}

// ---- how parameters start ----

std::vector<float> initial(std::uint64_t seed) {
  std::vector<float> p(VIT_MNIST_PARAMETER_FLOATS, NAN);
  EXPECT_EQ(vit_mnist_init(p.data(), seed), VIT_MNIST_OK);
  return p;
}

std::vector<float> values(const std::vector<float>& arena, const tessera_parameter& row) {
  std::int64_t count = 1;
  for (std::int32_t d = 0; d < row.rank; ++d) count *= row.shape[d];
  return {arena.begin() + row.offset, arena.begin() + row.offset + count};
}

TEST(VitMnistInit, GivesTheSameNumbersForASeedAndOthersForAnother) {
  EXPECT_EQ(initial(1), initial(1));
  const std::vector<float> one = initial(1), two = initial(2);
  for (const tessera_parameter& row : vit_mnist_parameters) {
    if (std::string(row.name).find("norm") != std::string::npos) continue;
    EXPECT_NE(values(one, row), values(two, row)) << row.name;
  }
}

TEST(VitMnistInit, StartsNormsAsTheIdentityAndLinearLayersAsPyTorchDoes) {
  const std::vector<float> arena = initial(3);
  std::int64_t inputs = 0;  // of the linear layer whose bias comes next
  for (const tessera_parameter& row : vit_mnist_parameters) {
    const std::string key = row.name;
    const std::vector<float> v = values(arena, row);
    const auto [least, most] = std::minmax_element(v.begin(), v.end());
    if (key.find("norm") != std::string::npos) {
      const float wanted = key.ends_with(".weight") ? 1 : 0;
      EXPECT_TRUE(*least == wanted && *most == wanted) << key;
      continue;
    }
    if (key == "class_token") {
      EXPECT_GE(*least, 0) << key;
      EXPECT_LT(*most, 1) << key;
      continue;
    }
    if (key.ends_with(".weight")) inputs = row.shape[1];
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    EXPECT_GE(*least, -bound) << key;
    EXPECT_LE(*most, bound) << key;
    if (v.size() >= 64) {  // enough numbers to reach into both ends
      EXPECT_LT(*least, -0.8 * bound) << key;
      EXPECT_GT(*most, 0.8 * bound) << key;
    }
  }
}

TEST(VitMnistInit, LeavesTheGapsBetweenParametersZero) {
  std::vector<float> arena = initial(4);
  for (const tessera_parameter& row : vit_mnist_parameters) {
    const std::size_t count = values(arena, row).size();
    std::fill_n(arena.begin() + row.offset, count, 0.0f);
  }
  EXPECT_EQ(arena, std::vector<float>(VIT_MNIST_PARAMETER_FLOATS, 0.0f));
}

}  // namespace
}  // namespace tessera::test
