// The step of the Gpt with weights of bf16, int8 and int4.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "gpt_small.h"
#include "gpt_small_bf16.h"
#include "gpt_small_int4.h"
#include "gpt_small_int8.h"
#include "runtime/safetensors.hpp"
#include "tests/paths.hpp"

namespace tessera::test {
namespace {

using Numbers = std::vector<float>;

/// The furthest of all logits from PyTorch's, in parts of the largest, token by token and of the full pass.
struct Apart {
  double step = 0, forward = 0;
};

template <class Pack, class Forward, class Step>
Apart apart(std::span<const tessera_parameter> table, std::int64_t floats, std::int64_t packed_floats,
            std::int64_t cache_bytes, std::int64_t scratch_bytes, Pack pack, Forward forward, Step step) {
  const auto golden = [](const std::string& file) {
    return runtime::read_safetensors(std::string(paths::golden) + "/vq/taming_small/" + file + ".safetensors");
  };
  constexpr std::size_t batch = 4, positions = 16, codes = 32;
  const runtime::Safetensors params = golden("params"), given = golden("batch");
  Numbers parameters(static_cast<std::size_t>(floats)), packed(static_cast<std::size_t>(packed_floats));
  for (const tessera_parameter& row : table)
    std::ranges::copy(params.at(std::string("transformer.") + row.name).floats(), parameters.begin() + row.offset);
  EXPECT_EQ(pack(parameters.data(), packed.data()), 0);
  const std::vector<std::int64_t> start = given.at("start").integers(), seen = given.at("seen").integers();
  std::vector<std::int32_t> read;
  for (std::size_t image = 0; image < batch; ++image)
    for (std::size_t t = 0; t < positions; ++t)
      read.push_back(static_cast<std::int32_t>(t ? seen[image * positions + t - 1] : start[image]));
  Numbers cache(static_cast<std::size_t>(cache_bytes) / sizeof(float)),
      scratch(static_cast<std::size_t>(scratch_bytes) / sizeof(float)), whole(batch * positions * codes),
      rows(batch * codes);
  EXPECT_EQ(forward(parameters.data(), packed.data(), read.data(), batch, whole.data(), scratch.data()), 0);
  const Numbers theirs = golden("forward").at("logits").floats();
  double largest = 0;
  Apart found;
  for (const float x : theirs) largest = std::max(largest, std::abs(double(x)));
  for (std::size_t i = 0; i < theirs.size(); ++i)
    found.forward = std::max(found.forward, std::abs(double(whole[i]) - theirs[i]) / largest);
  for (std::size_t t = 0; t < positions; ++t) {
    std::int32_t tokens[batch];
    for (std::size_t image = 0; image < batch; ++image) tokens[image] = read[image * positions + t];
    EXPECT_EQ(step(parameters.data(), packed.data(), cache.data(), static_cast<std::int64_t>(t), tokens, batch,
                   rows.data(), scratch.data()),
              0);
    for (std::size_t image = 0; image < batch; ++image)
      for (std::size_t j = 0; j < codes; ++j) {
        const double difference = double(rows[image * codes + j]) - theirs[(image * positions + t) * codes + j];
        found.step = std::max(found.step, std::isnan(difference) ? 1.0 : std::abs(difference) / largest);
      }
  }
  return found;
}

#define TESSERA_APART(name, NAME)                                                                           \
  apart(name##_parameters, NAME##_PARAMETER_FLOATS, NAME##_PACKED_FLOATS, NAME##_CACHE_BYTES(4),            \
        std::max<std::int64_t>(NAME##_STEP_SCRATCH_BYTES(4), NAME##_FORWARD_SCRATCH_BYTES(4)), name##_pack, \
        name##_forward, name##_step)

TEST(TamingPrecision, AStepOfRoundedWeightsIsAsNearAsTheFullPass) {
  const Apart bf16 = TESSERA_APART(gpt_small_bf16, GPT_SMALL_BF16);
  EXPECT_LE(bf16.step, 0.02);
  EXPECT_GT(bf16.step, 1e-5) << "nothing was rounded";
  EXPECT_LE(bf16.step, 2 * bf16.forward);
  const Apart int8 = TESSERA_APART(gpt_small_int8, GPT_SMALL_INT8);
  EXPECT_LE(int8.step, 0.05);
  EXPECT_GT(int8.step, 1e-5) << "nothing was rounded";
  EXPECT_LE(int8.step, 2 * int8.forward);
  const Apart int4 = TESSERA_APART(gpt_small_int4, GPT_SMALL_INT4);
  EXPECT_LE(int4.step, 0.25);
  EXPECT_GT(int4.step, int8.step) << "weights were not rounded to four bits";
  EXPECT_LE(int4.step, 2 * int4.forward);
}

TEST(TamingPrecision, CachesTakeHalfOfTheMemory) {
  EXPECT_EQ(2 * GPT_SMALL_BF16_CACHE_BYTES(4), GPT_SMALL_CACHE_BYTES(4));
  EXPECT_EQ(2 * GPT_SMALL_INT8_CACHE_BYTES(4), GPT_SMALL_CACHE_BYTES(4));
}

}  // namespace
}  // namespace tessera::test
