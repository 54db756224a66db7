// Products of bf16: with numbers that bf16 holds exactly they give the bits of single precision, on every instruction
// set; a ViT comes as near as the rounding of its factors lets it.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/philox.hpp"
#include "small_vit.h"
#include "small_vit_bf16.h"
#include "tests/models/emitted_model.hpp"
#include "whole_numbers.h"
#include "whole_numbers_bf16.h"

namespace tessera::test {
namespace {

using Floats = std::vector<float>;

const EmittedModel whole_numbers = TESSERA_EMITTED_MODEL(whole_numbers, WHOLE_NUMBERS, "", 0),
                   whole_numbers_bf16 = TESSERA_EMITTED_MODEL(whole_numbers_bf16, WHOLE_NUMBERS_BF16, "", 0),
                   small_vit = TESSERA_EMITTED_MODEL(small_vit, SMALL_VIT, "", 0.001f),
                   small_vit_bf16 = TESSERA_EMITTED_MODEL(small_vit_bf16, SMALL_VIT_BF16, "", 0.001f);

/// Scratch memory that starts as not-a-number.
runtime::Arena scratch(std::int64_t bytes) {
  runtime::Arena arena(bytes, 64);
  std::fill_n(arena.floats(), bytes / 4, NAN);
  return arena;
}

struct Batch {
  std::int64_t size;
  Floats images;
  std::vector<std::int32_t> labels;
};
/// What the entry points write.
struct Results {
  Floats outputs, gradients, image_gradients;
  float loss = NAN;
};

Results run(const EmittedModel& m, const Floats& parameters, const Batch& batch) {
  const auto floats = [](std::int64_t n) { return Floats(static_cast<std::size_t>(n), NAN); };
  const runtime::Arena packed = runtime::Arena::of_floats(m.packed_floats, 64);
  std::fill_n(packed.floats(), m.packed_floats, NAN);
  EXPECT_EQ(m.pack(parameters.data(), packed.floats()), 0);
  const float *p = parameters.data(), *w = packed.floats(), *x = batch.images.data();
  Results r{floats(batch.size * m.output_floats), floats(m.parameter_floats),
            floats(static_cast<std::int64_t>(batch.images.size()))};
  Floats outputs = r.outputs;
  EXPECT_EQ(m.loss_and_gradients(p, w, x, batch.labels.data(), batch.size, 1, 2, outputs.data(), &r.loss,
                                 r.gradients.data(), scratch(m.train_bytes(batch.size)).data()),
            0);
  EXPECT_EQ(m.input_gradient(p, w, x, batch.labels.data(), batch.size, outputs.data(), &r.loss,
                             r.image_gradients.data(), scratch(m.input_gradient_bytes(batch.size)).data()),
            0);
  EXPECT_EQ(m.forward(p, w, x, batch.size, r.outputs.data(), scratch(m.forward_bytes(batch.size)).data()), 0);
  return r;
}

bool equal(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// |difference| / |expected|, over all.
double distance(const Floats& found, const Floats& expected) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(double(found[i]) - expected[i], 2);
    size += std::pow(double(expected[i]), 2);
  }
  return std::sqrt(difference / size);
}

/// Ones of both signs among zeros.
Floats sparse_ones(std::int64_t count, runtime::Random& random) {
  Floats numbers(static_cast<std::size_t>(count));
  for (float& x : numbers) {
    const double u = random.uniform(0, 1);
    x = u < 0.02 ? 1.0f : u < 0.04 ? -1.0f : 0.0f;
  }
  return numbers;
}

class Bf16 : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    choose(GetParam());
    if (whole_numbers_bf16.isa() != GetParam()) GTEST_SKIP() << "this processor cannot run " << GetParam();
  }
  void TearDown() override {
    unsetenv("TESSERA_ISA");
    omp_set_num_threads(1);
  }
  static void choose(const std::string& isa) { setenv("TESSERA_ISA", isa.c_str(), 1); }
};

TEST_P(Bf16, WholeNumbersGiveTheBitsOfSinglePrecision) {
  for (const std::int64_t size : {1, 4, 64}) {  // 64: more images than a weight gradient takes at once
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

struct VitRun {
  Floats parameters = Floats(SMALL_VIT_PARAMETER_FLOATS);
  Batch batch{5, Floats(5 * SMALL_VIT_IMAGE_FLOATS), {3, 1, 4, 1, 5}};
  VitRun() {
    EXPECT_EQ(small_vit_init(parameters.data(), 3), SMALL_VIT_OK);
    runtime::Random random(5, 0, 0);
    for (float& pixel : batch.images) pixel = static_cast<float>(random.uniform(-1, 1));
  }
};

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

TEST_P(Bf16, BitsAreThoseOfOneThread) {
  const VitRun vit;
  const Results alone = run(small_vit_bf16, vit.parameters, vit.batch);
  for (const int threads : {2, 7}) {
    omp_set_num_threads(threads);
    const Results together = run(small_vit_bf16, vit.parameters, vit.batch);
    EXPECT_TRUE(equal(together.outputs, alone.outputs));
    EXPECT_TRUE(equal(together.gradients, alone.gradients));
    EXPECT_TRUE(equal(together.image_gradients, alone.image_gradients));
  }
}

TEST_P(Bf16, TrainingLearnsABatchByHeartAsSinglePrecisionDoes) {
  VitRun vit;
  const EmittedModel& m = small_vit_bf16;
  const runtime::Arena packed = runtime::Arena::of_floats(m.packed_floats, 64), memory = scratch(m.train_bytes(5));
  Floats gradients(vit.parameters.size()), optimizer(static_cast<std::size_t>(m.optimizer_floats)),
      outputs(static_cast<std::size_t>(5 * m.output_floats));
  float loss = NAN;
  for (std::int64_t step = 1; step <= 60; ++step)
    ASSERT_EQ(m.train_step(vit.parameters.data(), packed.floats(), gradients.data(), optimizer.data(),
                           vit.batch.images.data(), vit.batch.labels.data(), 5, 1, step, 0.002f, outputs.data(), &loss,
                           memory.data()),
              0);
  EXPECT_LT(loss, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Isas, Bf16, testing::Values("scalar", "avx2", "avx512", "avx512_bf16", "amx"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera::test
