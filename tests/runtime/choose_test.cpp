#include "runtime/choose.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/tokens.hpp"
#include "tests/paths.hpp"

namespace tessera::runtime {
namespace {

struct Draw {
  float temperature = 1;
  std::int64_t top_k = 0;
  float top_p = 1;
};

/// Logits [batch, codes], and what is chosen of them.
struct Logits {
  std::vector<float> numbers;
  std::int64_t batch, codes;

  int choose(const Draw& how, const float* uniforms, std::int32_t* tokens) const {
    std::vector<double> scratch(static_cast<std::size_t>(tessera_choose_scratch_bytes(codes) + 7) / 8);
    return tessera_choose(numbers.data(), batch, codes, how.temperature, how.top_k, how.top_p, uniforms, tokens,
                          scratch.data());
  }
  std::vector<std::int32_t> drawn(const Draw& how, const std::vector<float>& uniforms) const {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch), -1);
    EXPECT_EQ(choose(how, uniforms.data(), tokens.data()), TESSERA_CHOOSE_OK);
    return tokens;
  }
  std::vector<std::int32_t> greedy() const {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch), -1);
    EXPECT_EQ(choose({}, nullptr, tokens.data()), TESSERA_CHOOSE_OK);
    return tokens;
  }
  std::string refusal(const Draw& how, float uniform = 0.5F) const {
    std::int32_t token = -7;
    const std::string words = tessera_choose_error(choose(how, &uniform, &token));
    EXPECT_EQ(token, -7);
    return words;
  }
};

Logits logits_of(const Safetensors& file) {
  const Tensor& t = file.at("in.logits");
  return {t.floats(), t.shape[0], t.shape[1]};
}

Draw draw_of(const Safetensors& file) {
  Draw how;
  if (file.has("in.temperature")) how.temperature = file.at("in.temperature").floats()[0];
  if (file.has("in.top_k")) how.top_k = static_cast<std::int64_t>(file.at("in.top_k").floats()[0]);
  if (file.has("in.top_p")) how.top_p = file.at("in.top_p").floats()[0];
  return how;
}

Safetensors golden(const std::string& name) {
  return read_safetensors(std::string(paths::golden) + "/vq/vq_operations/next_token_" + name + ".safetensors");
}

class Choose : public testing::TestWithParam<const char*> {};

TEST_P(Choose, DrawsTheTokensOfPyTorch) {
  const Safetensors file = golden(GetParam());
  const std::vector<std::int64_t> want = file.at("out.token").integers();
  const std::vector<std::int32_t> got = logits_of(file).drawn(draw_of(file), file.at("in.u").floats());
  EXPECT_EQ(std::vector<std::int64_t>(got.begin(), got.end()), want);
}

// Where one token gives way to the next says each probability, to 24 bits.
TEST_P(Choose, DrawsByTheProbabilitiesOfPyTorch) {
  const Safetensors file = golden(GetParam());
  const Logits logits = logits_of(file);
  const std::vector<float> want = file.at("out.probabilities").floats();
  for (std::int64_t row = 0; row < logits.batch; ++row) {
    const auto first = logits.numbers.begin() + row * logits.codes;
    const Logits one{{first, first + logits.codes}, 1, logits.codes};
    double until = 0;
    for (std::int64_t j = 0; j < logits.codes; ++j) {
      const double p = static_cast<double>(want[static_cast<std::size_t>(row * logits.codes + j)]);
      for (const double inside : {1e-6, p / 2, p - 1e-6}) {
        if (p < 3e-6) continue;  // narrower than what a float near one can tell apart
        EXPECT_EQ(one.drawn(draw_of(file), {static_cast<float>(until + inside)})[0], j) << row;
      }
      until += p;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(NextToken, Choose, testing::Values("plain", "temperature", "top_k", "top_p", "all"));

TEST(ChooseTies, WhatEqualsTheKthStays) {
  const Safetensors file = golden("top_k_ties");
  const std::vector<float> p = file.at("out.probabilities").floats();
  float until = 0;
  for (std::int32_t j = 0; j < 5; ++j) {
    const float share = p[static_cast<std::size_t>(j)];
    if (share > 0) {
      EXPECT_EQ(logits_of(file).drawn(draw_of(file), {until + share / 2})[0], j);
    }
    until += share;
  }
  EXPECT_EQ(p[3], 0.0F);
}

TEST(ChooseGreedy, TakesTheFirstOfTheLargest) {
  EXPECT_EQ((Logits{{1, 3, 3, -1, 0, 0, 0, 2}, 2, 4}.greedy()), (std::vector<std::int32_t>{1, 3}));
}

TEST(ChooseDraw, EndsAtTheLastCodeThatCanCome) {
  constexpr float none = -std::numeric_limits<float>::infinity();
  const Logits thirds{{0, 0, 0, none}, 1, 4};
  EXPECT_EQ(thirds.drawn({}, {std::nextafter(1.0F, 0.0F)})[0], 2);
  EXPECT_EQ(thirds.drawn({.temperature = 1e-30F, .top_p = 0.5F}, {0.99F})[0], 1);  // 1/3, then 2/3 exceed 1/2
  EXPECT_EQ((Logits{{3e38F, -3e38F}, 1, 2}.drawn({.temperature = 1e-30F}, {0.9F})[0]), 0);
}

TEST(ChooseRefusals, AreOneSentenceEachAndLeaveTheTokensAsTheyWere) {
  const Logits good{{1, 2, 3}, 1, 3};
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  for (const float temperature : {0.0F, -1.0F, nan, infinity})
    EXPECT_EQ(good.refusal({.temperature = temperature}), "the temperature must be above 0, and finite");
  EXPECT_EQ(good.refusal({.top_k = -1}), "top_k must not be negative (0 keeps all codes)");
  for (const float top_p : {0.0F, -0.5F, 1.5F, nan})
    EXPECT_EQ(good.refusal({.top_p = top_p}), "top_p must be above 0 and at most 1");
  for (const float uniform : {1.0F, -0.1F, nan})
    EXPECT_EQ(good.refusal({}, uniform), "a uniform number is not in [0, 1)");
  const std::string no_number = "a row of logits holds a NaN or infinity, or no number at all: no token comes of it";
  EXPECT_EQ((Logits{{1, nan, 3}, 1, 3}.refusal({})), no_number);
  EXPECT_EQ((Logits{{1, infinity, 3}, 1, 3}.refusal({})), no_number);
  EXPECT_EQ((Logits{{-infinity, -infinity}, 1, 2}.refusal({})), no_number);
  const std::string size = "there must be at least one image and one code, and no more logits than memory can have";
  EXPECT_EQ((Logits{{1, 2}, 0, 2}.refusal({})), size);
  EXPECT_EQ((Logits{{1, 2}, std::numeric_limits<std::int64_t>::max() / 2, 2}.refusal({})), size);
  std::int32_t token = 0;
  EXPECT_EQ(tessera_choose(good.numbers.data(), 1, 3, 1, 0, 1, nullptr, &token, nullptr), TESSERA_CHOOSE_ERROR_NULL);
  EXPECT_STREQ(tessera_choose_error(99), "unknown error code");
}

TEST(ChooseRefusals, GreedyRefusesNaNAsWell) {
  std::int32_t tokens[2] = {-7, -7};
  const Logits logits{{1, 2, std::nanf(""), 3}, 2, 2};
  EXPECT_EQ(logits.choose({}, nullptr, tokens), TESSERA_CHOOSE_ERROR_LOGITS);
  EXPECT_EQ(tokens[0], -7);
}

TEST(DemandTokens, NamesTheImageThePositionAndTheToken) {
  const auto refusal = [](const std::vector<std::int32_t>& tokens) -> std::string {
    try {
      demand_tokens(tokens, 3, 8);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({0, 7, 1, 2, 3, 4}), "");
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({0, 7, 1, 2, 3, 8}), "token 8 of image 1, position 2, is none of the 8 codes");
  EXPECT_EQ(refusal({0, -1, 1}), "token -1 of image 0, position 1, is none of the 8 codes");
  EXPECT_EQ(refusal({0, 1, 2, 3}), "there are 4 tokens, which are no whole number of images of 3");
}

TEST(Uniforms, AreOfSeedImageAndPositionAloneAndFillTheUnitInterval) {
  std::vector<float> all(1000), some(10);
  tessera_uniforms(3, 0, 1000, 7, all.data());
  tessera_uniforms(3, 500, 10, 7, some.data());
  EXPECT_EQ(some, std::vector<float>(all.begin() + 500, all.begin() + 510));
  double mean = 0;
  for (const float u : all) {
    ASSERT_GE(u, 0.0F);
    ASSERT_LT(u, 1.0F);
    mean += static_cast<double>(u) / 1000;
  }
  EXPECT_NEAR(mean, 0.5, 0.04);  // four standard deviations
  std::vector<float> other(10);
  tessera_uniforms(3, 500, 10, 8, other.data());
  EXPECT_NE(some, other);
  tessera_uniforms(4, 500, 10, 7, other.data());
  EXPECT_NE(some, other);
}

}  // namespace
}  // namespace tessera::runtime
