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
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gpt_small.h"
#include "runtime/choose.hpp"
#include "runtime/safetensors.hpp"
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

  Numbers parameters_ = Numbers(GPT_SMALL_PARAMETER_FLOATS), packed_ = Numbers(GPT_SMALL_PACKED_FLOATS + 1, NAN),
          logits_ = Numbers(batch * positions * codes, NAN);
  std::vector<std::int32_t> read_, wanted_;
  float loss_ = NAN;
};

TEST_P(Taming, TheLogitsArePyTorchs) {
  forward(read_);
  expect_near(logits_, golden("forward").at("logits").floats(), 1e-5);
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

/// Token by token: each from the logits of those before it, those behind it being anything.
TEST_P(Taming, TheTokensThatAreSampledArePyTorchs) {
  const runtime::Safetensors expected = golden("samples");
  struct How {
    std::string name;
    float temperature = 1;
    std::int64_t top_k = 0;
    float top_p = 1;
    bool given = false;
  };
  const std::vector<std::int32_t> start = integers(expected.at("start")), given = integers(expected.at("given"));
  const Numbers uniforms = expected.at("uniforms").floats();
  std::vector<double> scratch_(static_cast<std::size_t>(tessera_choose_scratch_bytes(codes)) / 8 + 1);
  for (const How& how : {How{"greedy"}, How{"plain"}, How{"temperature=0.7", 0.7F}, How{"top_k=5", 1, 5},
                         How{"top_p=0.8", 1, 0, 0.8F}, How{"temperature=1.3,top_k=12,top_p=0.9", 1.3F, 12, 0.9F},
                         How{"completed,temperature=1.3,top_k=12,top_p=0.9", 1.3F, 12, 0.9F, true}}) {
    std::vector<std::int32_t> read(batch * positions, 0), drawn(batch * positions);
    for (std::size_t image = 0; image < batch; ++image) read[image * positions] = start[image];
    for (std::size_t t = 0; t < positions; ++t) {
      Numbers row, u;
      forward(read);
      for (std::size_t image = 0; image < batch; ++image) {
        const auto at = logits_.begin() + static_cast<std::ptrdiff_t>((image * positions + t) * codes);
        row.insert(row.end(), at, at + codes);
        u.push_back(uniforms[image * positions + t]);
      }
      std::int32_t next[batch];
      ASSERT_EQ(tessera_choose(row.data(), batch, codes, how.temperature, how.top_k, how.top_p,
                               how.name == "greedy" ? nullptr : u.data(), next, scratch_.data()),
                0);
      for (std::size_t image = 0; image < batch; ++image) {
        const bool known = how.given && t < positions / 2;
        const std::int32_t token = known ? given[image * positions / 2 + t] : next[image];
        drawn[image * positions + t] = token;
        if (t + 1 < positions) read[image * positions + t + 1] = token;
      }
    }
    EXPECT_EQ(drawn, integers(expected.at("tokens." + how.name))) << how.name;
  }
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
