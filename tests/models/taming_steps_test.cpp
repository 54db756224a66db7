// Steps of a Gpt of 150 positions: the bits of the full pass, and those of any other batch and number of threads.
#include <gtest/gtest.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gpt_long.h"
#include "gpt_long_bf16.h"
#include "gpt_long_int8.h"
#include "tests/models/instruction_sets.hpp"

namespace tessera::test {
namespace {

using Numbers = std::vector<float>;

constexpr std::int64_t positions = GPT_LONG_TOKENS, codes = GPT_LONG_CODES;

/// An emitted model.
struct Steps {
  const char* name;
  codegen::Precision precision;
  std::int64_t parameters, packed;
  int (*init)(float*, std::uint64_t);
  int (*pack)(const float*, float*);
  int (*step)(const float*, const float*, float*, std::int64_t, const std::int32_t*, std::int64_t, float*, void*);
  std::int64_t (*cache)(std::int64_t);
  std::int64_t (*scratch)(std::int64_t);
  const char* (*isa)();
};

const Steps models[] = {
    {"gpt_long", codegen::Precision::fp32, GPT_LONG_PARAMETER_FLOATS, GPT_LONG_PACKED_FORWARD_FLOATS, gpt_long_init,
     gpt_long_pack_forward, gpt_long_step, [](std::int64_t batch) { return std::int64_t{GPT_LONG_CACHE_BYTES(batch)}; },
     [](std::int64_t batch) { return std::int64_t{GPT_LONG_STEP_SCRATCH_BYTES(batch)}; }, gpt_long_isa},
    {"gpt_long_bf16", codegen::Precision::bf16, GPT_LONG_BF16_PARAMETER_FLOATS, GPT_LONG_BF16_PACKED_FORWARD_FLOATS,
     gpt_long_bf16_init, gpt_long_bf16_pack_forward, gpt_long_bf16_step,
     [](std::int64_t batch) { return std::int64_t{GPT_LONG_BF16_CACHE_BYTES(batch)}; },
     [](std::int64_t batch) { return std::int64_t{GPT_LONG_BF16_STEP_SCRATCH_BYTES(batch)}; }, gpt_long_bf16_isa},
    {"gpt_long_int8", codegen::Precision::int8, GPT_LONG_INT8_PARAMETER_FLOATS, GPT_LONG_INT8_PACKED_FORWARD_FLOATS,
     gpt_long_int8_init, gpt_long_int8_pack_forward, gpt_long_int8_step,
     [](std::int64_t batch) { return std::int64_t{GPT_LONG_INT8_CACHE_BYTES(batch)}; },
     [](std::int64_t batch) { return std::int64_t{GPT_LONG_INT8_STEP_SCRATCH_BYTES(batch)}; }, gpt_long_int8_isa}};

Numbers nan_of_bytes(std::int64_t bytes) { return Numbers(static_cast<std::size_t>(bytes) / sizeof(float) + 1, NAN); }

/// Weights large enough that attention looks at some positions more than at others.
Numbers parameters_of(const Steps& m) {
  Numbers all(static_cast<std::size_t>(m.parameters));
  EXPECT_EQ(m.init(all.data(), 7), 0);
  for (float& x : all) x = x == 1 ? x : 4 * x;
  return all;
}

std::int32_t token(std::int64_t image, std::int64_t position) {
  return static_cast<std::int32_t>((image * 37 + position * 101 + image * position * 13) % codes);
}

/// The rows [image][position] of so many images, step by step.
std::vector<Numbers> rows_of(const Steps& m, std::int64_t batch, int threads) {
#ifdef _OPENMP
  omp_set_num_threads(threads);
#else
  (void)threads;
#endif
  const Numbers parameters = parameters_of(m);
  Numbers packed(static_cast<std::size_t>(m.packed)), cache = nan_of_bytes(m.cache(batch)),
                                                      scratch = nan_of_bytes(m.scratch(batch)),
                                                      logits(static_cast<std::size_t>(batch * codes));
  EXPECT_EQ(m.pack(parameters.data(), packed.data()), 0);
  std::vector<Numbers> rows(static_cast<std::size_t>(batch));
  for (std::int64_t t = 0; t < positions; ++t) {
    std::vector<std::int32_t> tokens;
    for (std::int64_t image = 0; image < batch; ++image) tokens.push_back(token(image, t));
    EXPECT_EQ(
        m.step(parameters.data(), packed.data(), cache.data(), t, tokens.data(), batch, logits.data(), scratch.data()),
        0);
    for (std::int64_t image = 0; image < batch; ++image)
      rows[static_cast<std::size_t>(image)].insert(rows[static_cast<std::size_t>(image)].end(),
                                                   logits.begin() + image * codes,
                                                   logits.begin() + (image + 1) * codes);
  }
  return rows;
}

/// How many rows differ in some bit.
std::int64_t different(const Numbers& some, const Numbers& others) {
  std::int64_t count = 0;
  for (std::int64_t t = 0; t < positions; ++t)
    count += std::memcmp(&some[static_cast<std::size_t>(t * codes)], &others[static_cast<std::size_t>(t * codes)],
                         codes * sizeof(float)) != 0;
  return count;
}

/// The models for each instruction set.
void for_each_set(const std::function<void(const Steps&, const std::string&)>& visit) {
  for (const Steps& m : models)
    for (const std::string& isa : instruction_sets_of(m.precision)) {
      setenv("TESSERA_ISA", isa.c_str(), 1);
      if (m.isa() == isa) visit(m, isa);
    }
  unsetenv("TESSERA_ISA");
}

TEST(TamingSteps, HaveTheBitsOfTheFullPass) {
  constexpr std::int64_t batch = 3;
  for_each_set([](const Steps& m, const std::string& isa) {
    if (m.precision != codegen::Precision::fp32) return;
    const std::vector<Numbers> rows = rows_of(m, batch, 2);
    const Numbers parameters = parameters_of(m);
    Numbers packed(static_cast<std::size_t>(m.packed)), scratch = nan_of_bytes(GPT_LONG_FORWARD_SCRATCH_BYTES(batch)),
                                                        whole(static_cast<std::size_t>(batch * positions * codes));
    ASSERT_EQ(m.pack(parameters.data(), packed.data()), 0);
    std::vector<std::int32_t> tokens;
    for (std::int64_t image = 0; image < batch; ++image)
      for (std::int64_t t = 0; t < positions; ++t) tokens.push_back(token(image, t));
    ASSERT_EQ(gpt_long_forward(parameters.data(), packed.data(), tokens.data(), batch, whole.data(), scratch.data()),
              0);
    for (std::int64_t image = 0; image < batch; ++image) {
      const auto first = whole.begin() + image * positions * codes;
      EXPECT_EQ(different(rows[static_cast<std::size_t>(image)], {first, first + positions * codes}), 0)
          << isa << ", image " << image;
    }
  });
}

TEST(TamingSteps, HaveTheSameBitsInAnyBatchOnAnyNumberOfThreads) {
  for_each_set([](const Steps& m, const std::string& isa) {
    const std::vector<Numbers> alone = rows_of(m, 1, 1);
    for (const float x : alone.front()) ASSERT_TRUE(std::isfinite(x)) << m.name << " " << isa;
    // Of whole tiles of rows, and of 1, 2, 4 and more that are left over; more than go by within one K-block of
    // weights.
    for (const auto& [batch, threads] : {std::pair{15, 1}, {7, 2}, {2, 3}, {50, 2}}) {
      const std::vector<Numbers> rows = rows_of(m, batch, threads);
      EXPECT_EQ(different(rows.front(), alone.front()), 0)
          << m.name << " " << isa << ", a batch of " << batch << " on " << threads << " threads";
      if (batch == 15) continue;
      const std::vector<Numbers> more = rows_of(m, 15, threads);
      for (std::size_t image = 0; image < std::min(rows.size(), more.size()); ++image)
        EXPECT_EQ(different(rows[image], more[image]), 0)
            << m.name << " " << isa << ", image " << image << " of " << batch;
    }
  });
}

}  // namespace
}  // namespace tessera::test
