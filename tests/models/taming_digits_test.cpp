// The GPT that was trained on digits (digits_trained of golden/vq, which is too large for the repository), with the
// VQGAN of its tokens: what PyTorch gives for them. Without TESSERA_SHARED it is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "digits_gpt.h"
#include "runtime/checkpoint.hpp"
#include "runtime/idx.hpp"
#include "runtime/sampling.hpp"
#include "tests/paths.hpp"
#include "vqgan_digits_decode.h"
#include "vqgan_digits_encode.h"

namespace tessera::test {
namespace {

using Numbers = std::vector<float>;

constexpr std::int64_t positions = DIGITS_GPT_TOKENS, codes = DIGITS_GPT_CODES;

class TamingDigits : public testing::Test {
 protected:
  void SetUp() override {
    const char* const shared = std::getenv("TESSERA_SHARED");
    if (!shared || !*shared) GTEST_SKIP() << "TESSERA_SHARED is not set";
    shared_ = shared;
    golden_ = shared_ + "/golden/vq/digits_trained/";
    expected_ = runtime::read_safetensors(golden_ + "expected.safetensors");
    gpt_ = load("gpt", "digits_gpt", digits_gpt_parameters, DIGITS_GPT_PARAMETER_FLOATS);
    packed_.resize(DIGITS_GPT_PACKED_FLOATS);
    ASSERT_EQ(digits_gpt_pack(gpt_.data(), packed_.data()), 0);
  }

  Numbers load(const std::string& file, const std::string& name, std::span<const tessera_parameter> table,
               std::int64_t floats) const {
    runtime::Model model;
    model.name = name;
    model.parameters = table;
    model.parameter_floats = floats;
    Numbers numbers(static_cast<std::size_t>(floats));
    runtime::load_parameters(golden_ + file + ".safetensors", model, numbers.data(), std::cerr);
    return numbers;
  }

  std::vector<std::int32_t> encoded(std::span<const float> images) const {
    const auto batch = static_cast<std::int64_t>(images.size()) / (28 * 28);
    const Numbers parameters =
        load("vqgan", "vqgan_digits_encode", vqgan_digits_encode_parameters, VQGAN_DIGITS_ENCODE_PARAMETER_FLOATS);
    Numbers packed(VQGAN_DIGITS_ENCODE_PACKED_FORWARD_FLOATS + 1), out(images.size() / (28 * 28) * positions),
        scratch(static_cast<std::size_t>(VQGAN_DIGITS_ENCODE_FORWARD_SCRATCH_BYTES(batch)) / sizeof(float));
    EXPECT_EQ(vqgan_digits_encode_pack_forward(parameters.data(), packed.data()), 0);
    EXPECT_EQ(
        vqgan_digits_encode_forward(parameters.data(), packed.data(), images.data(), batch, out.data(), scratch.data()),
        0);
    return {out.begin(), out.end()};
  }

  /// Of the test images of MNIST, in [-1, 1].
  Numbers images(std::span<const std::int64_t> which) const {
    const runtime::Dataset data = runtime::read_mnist(shared_ + "/data/mnist", runtime::Split::test);
    Numbers all;
    for (const std::int64_t i : which)
      for (const std::uint8_t pixel : data.image(i)) all.push_back(static_cast<float>(pixel) / 127.5F - 1);
    return all;
  }

  static std::vector<std::int32_t> integers(const runtime::Tensor& tensor) {
    const std::vector<std::int64_t> wide = tensor.integers();
    return {wide.begin(), wide.end()};
  }

  std::string shared_, golden_;
  runtime::Safetensors expected_;
  Numbers gpt_, packed_;
};

TEST_F(TamingDigits, TheTokensThatAreDrawnAreEqual) {
  const std::vector<std::int32_t> start = integers(expected_.at("start"));
  const Numbers uniforms = expected_.at("uniforms").floats();
  const runtime::TokenModel model{
      .name = "digits_gpt",
      .codes = codes,
      .window = {7, 7},
      .cache_bytes = [](std::int64_t images) -> std::int64_t { return DIGITS_GPT_CACHE_BYTES(images); },
      .step_scratch_bytes = [](std::int64_t images) -> std::int64_t { return DIGITS_GPT_STEP_SCRATCH_BYTES(images); },
      .step = digits_gpt_step,
      .error = digits_gpt_error};
  const std::vector<std::int32_t> tokens =
      runtime::draw_tokens(model, gpt_.data(), packed_.data(),
                           {.grid = {7, 7},
                            .start = start,
                            .given = {},
                            .temperature = 1,
                            .top_k = 0,
                            .top_p = 0.9F,
                            .uniforms = [&](std::int64_t position, std::span<float> of_images) {
                              for (std::size_t image = 0; image < of_images.size(); ++image)
                                of_images[image] = uniforms[image * positions + static_cast<std::size_t>(position)];
                            }});
  EXPECT_EQ(tokens, integers(expected_.at("tokens")));

  const Numbers parameters =
      load("vqgan", "vqgan_digits_decode", vqgan_digits_decode_parameters, VQGAN_DIGITS_DECODE_PARAMETER_FLOATS);
  const auto batch = static_cast<std::int64_t>(start.size());
  Numbers packed(VQGAN_DIGITS_DECODE_PACKED_FORWARD_FLOATS + 1), out(start.size() * 28 * 28),
      scratch(static_cast<std::size_t>(VQGAN_DIGITS_DECODE_FORWARD_SCRATCH_BYTES(batch)) / sizeof(float));
  ASSERT_EQ(vqgan_digits_decode_pack_forward(parameters.data(), packed.data()), 0);
  const Numbers numbers(tokens.begin(), tokens.end());
  ASSERT_EQ(
      vqgan_digits_decode_forward(parameters.data(), packed.data(), numbers.data(), batch, out.data(), scratch.data()),
      0);
  const Numbers theirs = expected_.at("images").floats();
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    largest = std::max(largest, std::abs(double(theirs[i])));
    apart = std::max(apart, std::abs(double(out[i]) - theirs[i]));
  }
  EXPECT_LE(apart, 1e-5 * largest);
}

TEST_F(TamingDigits, TheTokensOfTestImagesAreEqual) {
  const std::vector<std::int64_t> which = expected_.at("which").integers();
  EXPECT_EQ(encoded(images(which)), integers(expected_.at("indices")));
}

TEST_F(TamingDigits, TheLossOverAThousandTestImagesIsPyTorchs) {
  const runtime::Dataset data = runtime::read_mnist(shared_ + "/data/mnist", runtime::Split::test);
  double sum = 0;
  constexpr std::int64_t batch = 100;
  for (std::int64_t first = 0; first < 1000; first += batch) {
    std::vector<std::int64_t> which;
    for (std::int64_t i = 0; i < batch; ++i) which.push_back(first + i);
    const std::vector<std::int32_t> wanted = encoded(images(which));
    std::vector<std::int32_t> read = wanted;
    for (std::int64_t i = 0; i < batch; ++i) {
      const auto row = read.begin() + i * positions;
      std::copy_backward(row, row + positions - 1, row + positions);
      *row = data.labels[static_cast<std::size_t>(first + i)];
    }
    Numbers outputs(batch * positions * codes),
        scratch(static_cast<std::size_t>(DIGITS_GPT_EVALUATE_SCRATCH_BYTES(batch)) / sizeof(float));
    float loss = 0;
    ASSERT_EQ(digits_gpt_evaluate(gpt_.data(), packed_.data(), read.data(), wanted.data(), batch, outputs.data(), &loss,
                                  scratch.data()),
              0);
    sum += double(loss) / 10;
  }
  const double theirs = expected_.at("test_loss").floats()[0];
  EXPECT_NEAR(sum, theirs, 1e-3 * theirs);
}

}  // namespace
}  // namespace tessera::test
