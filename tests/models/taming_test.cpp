// The emitted Gpt against PyTorch's numbers (tests/golden/vq/taming_small), for each instruction set that this
// processor has, with one and with two threads.
#include <gtest/gtest.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gpt_small.h"
#include "runtime/error.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/sampling.hpp"
#include "tests/models/instruction_sets.hpp"
#include "tests/paths.hpp"

namespace tessera::test {
namespace {

using Numbers = std::vector<float>;

runtime::Safetensors golden(const std::string& file) {
  return runtime::read_safetensors(std::string(paths::golden) + "/vq/taming_small/" + file + ".safetensors");
}

std::vector<std::int32_t> integers(const runtime::Tensor& tensor) {
  const std::vector<std::int64_t> wide = tensor.integers();
  return {wide.begin(), wide.end()};
}

/// |difference| / |theirs|.
double apart(const Numbers& ours, const Numbers& theirs) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const double d = double(ours.at(i)) - theirs[i];
    difference += d * d;
    size += double(theirs[i]) * theirs[i];
  }
  return std::sqrt(difference) / std::sqrt(size);
}

void expect_near(const Numbers& ours, const Numbers& theirs, double tolerance) {
  double size = 0;
  for (const float x : theirs) size = std::max(size, std::abs(double(x)));
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < theirs.size(); ++i) ASSERT_NEAR(ours[i], theirs[i], tolerance * size) << i;
}

/// Adding one number to all scores of a row changes no softmax: UNDETERMINED.txt.
bool is_undetermined(const std::string& key) { return key.ends_with("attn.key.bias"); }

class Taming : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  static constexpr std::int64_t batch = 4, positions = GPT_SMALL_TOKENS, codes = GPT_SMALL_CODES;

  void SetUp() override {
    const std::string isa = std::get<0>(GetParam());
    setenv("TESSERA_ISA", isa.c_str(), 1);
    if (std::string(gpt_small_isa()) != isa) GTEST_SKIP() << "this processor cannot run " << isa;
#ifdef _OPENMP
    omp_set_num_threads(std::get<1>(GetParam()));
#endif
    const runtime::Safetensors params = golden("params");
    ASSERT_EQ(params.tensors.size(), std::size_t{GPT_SMALL_PARAMETERS});
    for (const tessera_parameter& row : gpt_small_parameters) {
      const runtime::Tensor& tensor = params.at(std::string("transformer.") + row.name);
      ASSERT_EQ(tensor.shape, runtime::Shape(row.shape, row.shape + row.rank)) << row.name;
      std::ranges::copy(tensor.floats(), parameters_.begin() + row.offset);
    }
    const runtime::Safetensors file = golden("batch");
    const std::vector<std::int32_t> start = integers(file.at("start")), seen = integers(file.at("seen"));
    for (std::size_t image = 0; image < batch; ++image) {
      read_.push_back(start[image]);
      const auto first = seen.begin() + static_cast<std::ptrdiff_t>(image) * positions;
      read_.insert(read_.end(), first, first + positions - 1);
    }
    wanted_ = integers(file.at("tokens"));
    ASSERT_EQ(gpt_small_pack(parameters_.data(), packed_.data()), 0);
  }
  void TearDown() override { unsetenv("TESSERA_ISA"); }

  static Numbers scratch(std::int64_t bytes) { return Numbers(static_cast<std::size_t>(bytes) / 4, NAN); }

  void forward(const std::vector<std::int32_t>& tokens) {
    Numbers scratch_ = scratch(GPT_SMALL_FORWARD_SCRATCH_BYTES(batch));
    ASSERT_EQ(
        gpt_small_forward(parameters_.data(), packed_.data(), tokens.data(), batch, logits_.data(), scratch_.data()),
        0);
  }
  int gradients(Numbers& to, std::int64_t at_once = batch) {
    Numbers scratch_ = scratch(GPT_SMALL_TRAIN_SCRATCH_BYTES(at_once));
    return gpt_small_loss_and_gradients(parameters_.data(), packed_.data(), read_.data(), wanted_.data(), batch,
                                        at_once, 1, 1, logits_.data(), &loss_, to.data(), scratch_.data());
  }

  static constexpr runtime::Grid window{4, 4};
  static constexpr runtime::TokenModel model{
      .name = "gpt_small",
      .codes = codes,
      .window = window,
      .cache_bytes = [](std::int64_t images) { return GPT_SMALL_CACHE_BYTES(images); },
      .step_scratch_bytes = [](std::int64_t images) { return GPT_SMALL_STEP_SCRATCH_BYTES(images); },
      .step = gpt_small_step,
      .error = gpt_small_error};
  Numbers parameters_ = Numbers(GPT_SMALL_PARAMETER_FLOATS), packed_ = Numbers(GPT_SMALL_PACKED_FLOATS + 1, NAN),
          logits_ = Numbers(batch * positions * codes, NAN);
  std::vector<std::int32_t> read_, wanted_;
  float loss_ = NAN;
};

TEST_P(Taming, TheLogitsArePyTorchs) {
  forward(read_);
  expect_near(logits_, golden("forward").at("logits").floats(), 1e-5);
}

TEST_P(Taming, AStepGivesTheRowOfTheFullPassAndKeepsPyTorchsKeysAndValues) {
  const runtime::Safetensors expected = golden("forward");
  forward(read_);
  const Numbers whole = logits_, incremental = expected.at("logits.incremental").floats();
  Numbers cache(GPT_SMALL_CACHE_BYTES(batch) / sizeof(float), NAN);  // the first step clears it
  Numbers scratch_ = scratch(GPT_SMALL_STEP_SCRATCH_BYTES(batch));
  std::size_t different = 0;
  for (std::size_t t = 0; t < positions; ++t) {
    std::vector<std::int32_t> tokens;
    for (std::size_t image = 0; image < batch; ++image) tokens.push_back(read_[image * positions + t]);
    Numbers rows(batch * codes, NAN), theirs;
    ASSERT_EQ(gpt_small_step(parameters_.data(), packed_.data(), cache.data(), static_cast<std::int64_t>(t),
                             tokens.data(), batch, rows.data(), scratch_.data()),
              0);
    for (std::size_t image = 0; image < batch; ++image) {
      const auto at = static_cast<std::ptrdiff_t>((image * positions + t) * codes);
      theirs.insert(theirs.end(), incremental.begin() + at, incremental.begin() + at + codes);
      different += std::memcmp(&rows[image * codes], &whole[static_cast<std::size_t>(at)], codes * sizeof(float)) != 0;
    }
    expect_near(rows, theirs, 1e-5);
  }
  EXPECT_EQ(different, 0U) << "rows differ from the full pass in some bit";
  // Of an image: layer after layer the keys [head, width, position], then the values [head, position, width].
  const Numbers keys = expected.at("cache.keys").floats(), values = expected.at("cache.values").floats();
  constexpr std::size_t heads = 2, width = 16, of_layer = 2 * heads * positions * width;
  Numbers our_keys, our_values;
  for (std::size_t layer = 0; layer < 2; ++layer)
    for (std::size_t image = 0; image < batch; ++image)
      for (std::size_t head = 0; head < heads; ++head)
        for (std::size_t t = 0; t < positions; ++t)
          for (std::size_t k = 0; k < width; ++k) {
            const float* const kept = &cache[(image * 2 + layer) * of_layer];
            our_keys.push_back(kept[(head * width + k) * positions + t]);
            our_values.push_back(kept[heads * positions * width + (head * positions + t) * width + k]);
          }
  expect_near(our_keys, keys, 1e-5);
  expect_near(our_values, values, 1e-5);
}

TEST_P(Taming, AStepRefusesAPositionPastTheEndAndATokenThatIsNone) {
  Numbers cache(GPT_SMALL_CACHE_BYTES(1) / sizeof(float)), scratch_ = scratch(GPT_SMALL_STEP_SCRATCH_BYTES(1));
  const auto step = [&](std::int64_t position, std::int32_t token) {
    return gpt_small_step(parameters_.data(), packed_.data(), cache.data(), position, &token, 1, logits_.data(),
                          scratch_.data());
  };
  EXPECT_EQ(step(positions - 1, codes - 1), 0);
  for (const std::int64_t bad : {std::int64_t{-1}, positions, std::int64_t{1} << 40}) {
    EXPECT_EQ(step(bad, 0), GPT_SMALL_ERROR_POSITION) << bad;
    EXPECT_STREQ(gpt_small_error(step(bad, 0)), "a position is not in [0, 16)");
  }
  for (const std::int32_t bad : {-1, 32}) EXPECT_EQ(step(0, bad), GPT_SMALL_ERROR_TOKEN) << bad;
}

TEST_P(Taming, TheLossIsTheMeanOverAllTokens) {
  Numbers scratch_ = scratch(GPT_SMALL_EVALUATE_SCRATCH_BYTES(batch));
  ASSERT_EQ(gpt_small_evaluate(parameters_.data(), packed_.data(), read_.data(), wanted_.data(), batch, logits_.data(),
                               &loss_, scratch_.data()),
            0);
  EXPECT_NEAR(loss_, golden("forward").at("loss").floats()[0], 1e-5);
}

TEST_P(Taming, EveryGradientIsPyTorchs) {
  const runtime::Safetensors expected = golden("backward");
  Numbers found(GPT_SMALL_PARAMETER_FLOATS, NAN);
  ASSERT_EQ(gradients(found), 0);
  EXPECT_NEAR(loss_, expected.at("loss").floats()[0], 1e-5);
  for (const tessera_parameter& row : gpt_small_parameters) {
    const Numbers theirs = expected.at(std::string("transformer.") + row.name).floats();
    const Numbers ours(&found[static_cast<std::size_t>(row.offset)],
                       &found[static_cast<std::size_t>(row.offset)] + theirs.size());
    if (is_undetermined(row.name))
      for (const float x : ours) EXPECT_NEAR(x, 0, 1e-7) << row.name;
    else
      EXPECT_LE(apart(ours, theirs), 1e-4) << row.name;
  }
}

TEST_P(Taming, RowsOfTheTableThatWereNotReadHaveNoGradient) {
  Numbers found(GPT_SMALL_PARAMETER_FLOATS, NAN);
  ASSERT_EQ(gradients(found), 0);
  const tessera_parameter* const table =
      std::ranges::find(gpt_small_parameters, std::string("tok_emb.weight"), &tessera_parameter::name);
  std::int64_t unread = 0;
  for (std::int32_t code = 0; code < codes; ++code) {
    if (std::ranges::count(read_, code)) continue;
    ++unread;
    for (std::int64_t d = 0; d < table->shape[1]; ++d)
      EXPECT_EQ(found[static_cast<std::size_t>(table->offset + code * table->shape[1] + d)], 0.0F);
  }
  EXPECT_GT(unread, 0);
}

#ifdef _OPENMP
TEST_P(Taming, TheGradientsHaveTheSameBitsOnAnyNumberOfThreadsAndOfImagesAtOnce) {
  Numbers first(GPT_SMALL_PARAMETER_FLOATS, NAN);
  ASSERT_EQ(gradients(first), 0);
  for (const int threads : {1, 3})
    for (const std::int64_t at_once : {std::int64_t{1}, batch}) {
      omp_set_num_threads(threads);
      Numbers again(GPT_SMALL_PARAMETER_FLOATS, NAN);
      ASSERT_EQ(gradients(again, at_once), 0);
      EXPECT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof(float)), 0)
          << threads << " threads, " << at_once << " at once";
    }
}
#endif

TEST_P(Taming, TenStepsOfAdamWArePyTorchs) {
  const runtime::Safetensors expected = golden("adamw");
  const Numbers losses = expected.at("losses").floats();
  Numbers found(GPT_SMALL_PARAMETER_FLOATS), optimizer(GPT_SMALL_OPTIMIZER_FLOATS);
  Numbers scratch_ = scratch(GPT_SMALL_TRAIN_SCRATCH_BYTES(batch));
  for (std::size_t step = 1; step <= losses.size(); ++step) {
    ASSERT_EQ(gpt_small_train_step(parameters_.data(), packed_.data(), found.data(), optimizer.data(), read_.data(),
                                   wanted_.data(), batch, batch, 1, static_cast<std::int64_t>(step), 1e-3F,
                                   logits_.data(), &loss_, scratch_.data()),
              0);
    EXPECT_NEAR(loss_, losses[step - 1], 1e-4) << "step " << step;
    if (step != 3) continue;
    for (const tessera_parameter& row : gpt_small_parameters) {
      if (is_undetermined(row.name)) continue;
      const Numbers theirs = expected.at(std::string("transformer.") + row.name).floats();
      for (std::size_t i = 0; i < theirs.size(); ++i)
        ASSERT_NEAR(parameters_[static_cast<std::size_t>(row.offset) + i], theirs[i], 1e-4) << row.name;
    }
  }
}

/// Token by token, given and drawn ones, and on a larger grid through a window.
TEST_P(Taming, TheTokensThatAreSampledArePyTorchs) {
  const runtime::Safetensors expected = golden("samples");
  struct How {
    std::string name;
    float temperature = 1;
    std::int64_t top_k = 0;
    float top_p = 1;
  };
  const std::string all = "temperature=1.3,top_k=12,top_p=0.9";
  for (const How& how :
       {How{"greedy"}, How{"plain"}, How{"temperature=0.7", 0.7F}, How{"top_k=5", 1, 5}, How{"top_p=0.8", 1, 0, 0.8F},
        How{all, 1.3F, 12, 0.9F}, How{"completed," + all, 1.3F, 12, 0.9F}, How{"larger,greedy"},
        How{"larger," + all, 1.3F, 12, 0.9F}}) {
    const bool larger = how.name.starts_with("larger");
    const Numbers uniforms = expected.at(larger ? "uniforms.larger" : "uniforms").floats();
    runtime::Drawing drawing{.grid = larger ? runtime::Grid{6, 5} : window,
                             .start = integers(expected.at("start")),
                             .given = {},
                             .temperature = how.temperature,
                             .top_k = how.top_k,
                             .top_p = how.top_p,
                             .uniforms = nullptr};
    if (how.name.starts_with("completed")) drawing.given = integers(expected.at("given"));
    if (!how.name.ends_with("greedy"))
      drawing.uniforms = [&](std::int64_t position, std::span<float> of_images) {
        for (std::size_t image = 0; image < of_images.size(); ++image)
          of_images[image] = uniforms[image * uniforms.size() / batch + static_cast<std::size_t>(position)];
      };
    std::int64_t done = 0;
    EXPECT_EQ(runtime::draw_tokens(model, parameters_.data(), packed_.data(), drawing,
                                   [&](std::int64_t at) { EXPECT_EQ(at, ++done); }),
              integers(expected.at("tokens." + how.name)))
        << how.name;
    EXPECT_EQ(done, drawing.grid.rows * drawing.grid.columns);
  }
}

TEST_P(Taming, AnImagesTokensDependNeitherOnTheBatchNorOnTheImagesBesideIt) {
  const auto drawn = [&](std::int64_t first, std::vector<std::int32_t> start) {
    return runtime::draw_tokens(model, parameters_.data(), packed_.data(),
                                {.grid = window,
                                 .start = std::move(start),
                                 .given = {},
                                 .temperature = 1,
                                 .top_k = 0,
                                 .top_p = 0.9F,
                                 .uniforms = runtime::uniforms_of(7, first)});
  };
  const std::vector<std::int32_t> all = drawn(0, {3, 1, 4, 1, 5}), last = drawn(3, {1, 5});
  EXPECT_TRUE(std::ranges::equal(last, std::span(all).subspan(3 * positions)));
  EXPECT_FALSE(std::ranges::equal(std::span(all).subspan(positions, positions), std::span(last).first(positions)));
}

TEST_P(Taming, WhatCannotBeDrawnIsSaidInASentence) {
  const auto sentence = [&](const runtime::Drawing& drawing) -> std::string {
    try {
      runtime::draw_tokens(model, parameters_.data(), packed_.data(), drawing);
      return "";
    } catch (const runtime::Error& wrong) {
      return wrong.what();
    }
  };
  const runtime::Drawing good{.grid = window, .start = {1, 2}, .given = {}, .uniforms = nullptr};
  EXPECT_EQ(sentence(good), "");
  const auto with = [&](const auto& change) {
    runtime::Drawing drawing = good;
    change(drawing);
    return sentence(drawing);
  };
  EXPECT_EQ(with([](auto& d) { d.grid = {4, 3}; }),
            "a grid of 4x3 tokens is smaller than the window of gpt_small, 4x4");
  EXPECT_EQ(with([](auto& d) { d.start = {1, 32}; }), "token 32 of image 1, position 0, is none of the 32 codes");
  EXPECT_EQ(with([](auto& d) { d.given = {1, 2, 3, -1}; }), "token -1 of image 1, position 1, is none of the 32 codes");
  EXPECT_EQ(with([](auto& d) { d.given = {1, 2, 3}; }),
            "3 given tokens are not the beginning of 2 images of 16 tokens");
  EXPECT_EQ(with([](auto& d) { d.start = {}; }), "no image is asked for");
  EXPECT_EQ(with([](auto& d) { d.temperature = 0; }), "the temperature must be above 0, and finite");
  EXPECT_EQ(with([](auto& d) { d.top_p = 1.5F; }), "top_p must be above 0 and at most 1");
  EXPECT_EQ(with([](auto& d) { d.top_k = -1; }), "top_k must not be negative (0 keeps all codes)");
  parameters_.assign(parameters_.size(), NAN);
  ASSERT_EQ(gpt_small_pack(parameters_.data(), packed_.data()), 0);
  EXPECT_EQ(sentence(good), "a row of logits holds a NaN or infinity, or no number at all: no token comes of it");
}

TEST_P(Taming, TokensOutsideOfTheCodesAreRefused) {
  Numbers found(GPT_SMALL_PARAMETER_FLOATS), scratch_ = scratch(GPT_SMALL_FORWARD_SCRATCH_BYTES(batch));
  for (const std::int32_t bad : {-1, 32}) {
    std::vector<std::int32_t> tokens = read_;
    tokens.back() = bad;
    const int code =
        gpt_small_forward(parameters_.data(), packed_.data(), tokens.data(), batch, logits_.data(), scratch_.data());
    EXPECT_EQ(code, GPT_SMALL_ERROR_TOKEN);
    EXPECT_STREQ(gpt_small_error(code), "a token is not in [0, 32)");
    std::swap(tokens, read_);
    EXPECT_EQ(gradients(found), GPT_SMALL_ERROR_TOKEN);
    std::swap(tokens, read_);
    std::int32_t& label = wanted_.back();
    const std::int32_t kept = std::exchange(label, bad);
    EXPECT_EQ(gradients(found), GPT_SMALL_ERROR_LABEL);
    label = kept;
  }
}

INSTANTIATE_TEST_SUITE_P(GptSmall, Taming, testing::Combine(testing::ValuesIn(instruction_sets), testing::Values(1, 2)),
                         [](const auto& param) {
                           return std::get<0>(param.param) + "_" + std::to_string(std::get<1>(param.param));
                         });

}  // namespace
}  // namespace tessera::test
