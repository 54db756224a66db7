// Products of bf16: with numbers that bf16 holds exactly they give the bits of single precision, on every instruction
// set; a ViT comes as near as the rounding of its factors lets it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "block_vit.h"
#include "block_vit_bf16.h"
#include "keys_vit.h"
#include "keys_vit_bf16.h"
#include "runtime/philox.hpp"
#include "small_vit_bf16.h"
#include "tests/models/instruction_sets.hpp"
#include "tests/models/precision_run.hpp"
#include "whole_numbers.h"
#include "whole_numbers_bf16.h"

namespace tessera::test {
namespace {

const EmittedModel whole_numbers = TESSERA_EMITTED_MODEL(whole_numbers, WHOLE_NUMBERS, "", 0),
                   whole_numbers_bf16 = TESSERA_EMITTED_MODEL(whole_numbers_bf16, WHOLE_NUMBERS_BF16, "", 0),
                   small_vit = TESSERA_EMITTED_MODEL(small_vit, SMALL_VIT, "", 0.001f),
                   small_vit_bf16 = TESSERA_EMITTED_MODEL(small_vit_bf16, SMALL_VIT_BF16, "", 0.001f),
                   block_vit = TESSERA_EMITTED_MODEL(block_vit, BLOCK_VIT, "", 0.001f),
                   block_vit_bf16 = TESSERA_EMITTED_MODEL(block_vit_bf16, BLOCK_VIT_BF16, "", 0.001f),
                   keys_vit = TESSERA_EMITTED_MODEL(keys_vit, KEYS_VIT, "", 0.001f),
                   keys_vit_bf16 = TESSERA_EMITTED_MODEL(keys_vit_bf16, KEYS_VIT_BF16, "", 0.001f);

/// Ones of both signs among zeros.
Floats sparse_ones(std::int64_t count, runtime::Random& random) {
  Floats numbers(static_cast<std::size_t>(count));
  for (float& x : numbers) {
    const double u = random.uniform(0, 1);
    x = u < 0.02 ? 1.0f : u < 0.04 ? -1.0f : 0.0f;
  }
  return numbers;
}

class Bf16 : public OnIsa {
  std::string isa() const override { return whole_numbers_bf16.isa(); }
};

TEST_P(Bf16, WholeNumbersGiveTheBitsOfSinglePrecision) {
  // In tiles, a chunk of 512 images is more than a weight gradient takes at once.
  const bool tiles = GetParam() == "avx512_bf16" || GetParam() == "amx";
  for (const std::int64_t size : {1, 4, tiles ? 512 : 64}) {
    runtime::Random random(7, 0, 0);
    Batch batch{size, sparse_ones(size * WHOLE_NUMBERS_IMAGE_FLOATS, random), {}};
    for (std::int64_t i = 0; i < size; ++i) batch.labels.push_back(static_cast<std::int32_t>(1 + i % 17));
    Floats parameters(WHOLE_NUMBERS_PARAMETER_FLOATS);
    for (const tessera_parameter& row : whole_numbers.parameters) {
      std::int64_t count = 1;
      for (int d = 0; d < row.rank; ++d) count *= row.shape[d];
      const Floats numbers = sparse_ones(count, random);
      std::copy(numbers.begin(), numbers.end(), parameters.begin() + row.offset);
      // Class 0 is certain, so that the gradient of the loss with respect to the outputs is of ones, too.
      if (std::string(row.name) == "head.bias") parameters[static_cast<std::size_t>(row.offset)] = 65536;
    }
    choose("scalar");
    const Results expected = run(whole_numbers, parameters, batch);
    for (const Floats* numbers : {&expected.outputs, &expected.gradients, &expected.image_gradients})
      ASSERT_TRUE(std::any_of(numbers->begin(), numbers->end(), [](float x) { return x != 0; }));
    choose(GetParam());
    for (const int threads : {1, 3}) {
      omp_set_num_threads(threads);
      const Results found = run(whole_numbers_bf16, parameters, batch);
      EXPECT_TRUE(equal(found.outputs, expected.outputs)) << distance(found.outputs, expected.outputs);
      EXPECT_TRUE(equal(found.gradients, expected.gradients)) << distance(found.gradients, expected.gradients);
      EXPECT_TRUE(equal(found.image_gradients, expected.image_gradients))
          << distance(found.image_gradients, expected.image_gradients);
    }
  }
}

TEST_P(Bf16, VitIsAsNearSinglePrecisionAsRoundedFactorsLetItBe) {
  const VitRun vit;
  const Results found = run(small_vit_bf16, vit.parameters, vit.batch);
  choose("scalar");
  const Results expected = run(small_vit, vit.parameters, vit.batch);
  // One rounding is an error of up to 1/512; that of a hundred products, one after the other, stays near it.
  EXPECT_LE(distance(found.outputs, expected.outputs), 0.008);
  EXPECT_LE(distance(found.gradients, expected.gradients), 0.015);
  EXPECT_LE(distance(found.image_gradients, expected.image_gradients), 0.015);
  EXPECT_GT(distance(found.outputs, expected.outputs), 1e-4) << "nothing was rounded";
}

TEST_P(Bf16, AttentionByBlocksIsAsNear) {
  EXPECT_LT(BLOCK_VIT_BF16_FORWARD_SCRATCH_BYTES(1), 4 * 3 * 257 * 257) << "scores have a place in memory";
  const VitRun vit(block_vit_init, BLOCK_VIT_PARAMETER_FLOATS, BLOCK_VIT_IMAGE_FLOATS);
  const Results found = run(block_vit_bf16, vit.parameters, vit.batch);
  choose("scalar");
  const Results expected = run(block_vit, vit.parameters, vit.batch);
  EXPECT_LE(distance(found.outputs, expected.outputs), 0.008);
  EXPECT_LE(distance(found.gradients, expected.gradients), 0.015);
  EXPECT_GT(distance(found.outputs, expected.outputs), 1e-4) << "nothing was rounded";
}

TEST_P(Bf16, AttentionByBlocksOfKeysIsAsNearOnAnyNumberOfThreads) {
  EXPECT_LT(KEYS_VIT_BF16_FORWARD_SCRATCH_BYTES(1), 1600 * 1600) << "scores have a place in memory";
  VitRun vit(keys_vit_init, KEYS_VIT_PARAMETER_FLOATS, KEYS_VIT_IMAGE_FLOATS);
  vit.batch.size = 1;
  const Floats found = outputs_of(keys_vit_bf16, vit.parameters, vit.batch);
  omp_set_num_threads(3);
  EXPECT_TRUE(equal(outputs_of(keys_vit_bf16, vit.parameters, vit.batch), found));
  choose("scalar");
  const Floats expected = outputs_of(keys_vit, vit.parameters, vit.batch);
  EXPECT_LE(distance(found, expected), 0.008);
  EXPECT_GT(distance(found, expected), 1e-4) << "nothing was rounded";
}

TEST_P(Bf16, BitsAreThoseOfOneThread) {
  const VitRun vit, blocks(block_vit_init, BLOCK_VIT_PARAMETER_FLOATS, BLOCK_VIT_IMAGE_FLOATS);
  const Results alone = run(small_vit_bf16, vit.parameters, vit.batch),
                alone_by_blocks = run(block_vit_bf16, blocks.parameters, blocks.batch);
  for (const int threads : {2, 7}) {
    omp_set_num_threads(threads);
    const Results together = run(small_vit_bf16, vit.parameters, vit.batch),
                  by_blocks = run(block_vit_bf16, blocks.parameters, blocks.batch);
    EXPECT_TRUE(equal(together.outputs, alone.outputs));
    EXPECT_TRUE(equal(together.gradients, alone.gradients));
    EXPECT_TRUE(equal(together.image_gradients, alone.image_gradients));
    EXPECT_TRUE(equal(by_blocks.outputs, alone_by_blocks.outputs));
    EXPECT_TRUE(equal(by_blocks.gradients, alone_by_blocks.gradients));
  }
}

TEST_P(Bf16, TrainingLearnsABatchByHeartAsSinglePrecisionDoes) {
  VitRun vit;
  const EmittedModel& m = small_vit_bf16;
  const runtime::Arena packed = runtime::Arena::of_floats(m.packed_floats, 64), memory = scratch(m.train_bytes(5));
  Floats gradients(vit.parameters.size()), optimizer(static_cast<std::size_t>(m.optimizer_floats)),
      outputs(static_cast<std::size_t>(5 * m.output_floats));
  float loss = NAN;
  ASSERT_EQ(m.pack(vit.parameters.data(), packed.floats()), 0);
  for (std::int64_t step = 1; step <= 60; ++step)
    ASSERT_EQ(m.train_step(vit.parameters.data(), packed.floats(), gradients.data(), optimizer.data(),
                           vit.batch.images.data(), vit.batch.labels.data(), 5, 5, 1, step, 0.002f, outputs.data(),
                           &loss, memory.data()),
              0);
  EXPECT_LT(loss, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Isas, Bf16, testing::ValuesIn(isas(instruction_sets_of(codegen::Precision::bf16))),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera::test
