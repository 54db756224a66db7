// Built-in digits, batches and what becomes of pixels.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "runtime/batches.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/digits.hpp"
#include "runtime/preprocess.hpp"
#include "tests/runtime/sample_table.hpp"
#ifdef _OPENMP
#include <omp.h>
#endif

namespace tessera::runtime {
namespace {

TEST(Digits, AreTheSameBytesWithEveryCompiler) {
  EXPECT_EQ(draw_digits(500, 1, Split::train).fingerprint(), 0x3d46191eu);
}

TEST(Digits, ImageDependsOnSeedSplitAndIndexAlone) {
  const Dataset few = draw_digits(10, 3, Split::train), many = draw_digits(50, 3, Split::train);
  EXPECT_TRUE(std::equal(few.pixels.begin(), few.pixels.end(), many.pixels.begin()));
  EXPECT_NE(few.pixels, draw_digits(10, 4, Split::train).pixels);
  EXPECT_NE(few.pixels, draw_digits(10, 3, Split::test).pixels);
}

TEST(Digits, HoldEveryClassAboutEquallyOftenAndAreLightOnDark) {
  const Dataset data = draw_digits(5000, 1, Split::train);
  std::vector<int> counts(10);
  for (const std::int32_t label : data.labels) ++counts[static_cast<std::size_t>(label)];
  for (const int count : counts) EXPECT_NEAR(count, 500, 90);
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const auto image = data.image(i);
    const double mean = std::accumulate(image.begin(), image.end(), 0.0) / 784;
    EXPECT_GT(mean, 4) << i;
    EXPECT_LT(mean, 128) << i;
    EXPECT_GT(*std::max_element(image.begin(), image.end()), 120) << i;
  }
}

TEST(Shuffle, IsAPermutationThatChangesWithSeedAndEpoch) {
  std::vector<std::int32_t> order = shuffled(1000, 1, 0);
  EXPECT_EQ(order, shuffled(1000, 1, 0));
  EXPECT_NE(order, shuffled(1000, 2, 0));
  EXPECT_NE(order, shuffled(1000, 1, 1));
  std::sort(order.begin(), order.end());
  for (std::int32_t i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Batches, SeeEveryImageOnceAndTheLastBatchIsTheRest) {
  const Dataset data = draw_digits(50, 1, Split::train);
  Batches batches(data, {.batch = 16}, 10, 64);
  batches.begin(0, 0);
  std::vector<std::int64_t> sizes;
  std::int64_t sum = 0;
  while (const Batch* batch = batches.next()) {
    sizes.push_back(batch->size);
    sum += std::accumulate(batch->labels, batch->labels + batch->size, std::int64_t{0});
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{16, 16, 16, 2}));
  EXPECT_EQ(sum, std::accumulate(data.labels.begin(), data.labels.end(), std::int64_t{0}));
}

TEST(Batches, GoOnFromAPositionAsIfTheyHadNeverStopped) {
  const Dataset data = draw_digits(50, 1, Split::train);
  Batches whole(data, {.batch = 16}, 10, 64), rest(data, {.batch = 16}, 10, 64);
  whole.begin(3, 0);
  whole.next();
  whole.next();
  rest.begin(3, whole.position());
  const Batch *a = whole.next(), *b = rest.next();
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(std::equal(a->images, a->images + a->size * 784, b->images));
  EXPECT_TRUE(std::equal(a->labels, a->labels + a->size, b->labels));
}

// By several threads, and prepared beside the batch before: with all that chance has a hand in.
TEST(Batches, AreTheSameBitsHoweverTheyArePrepared) {
  const Dataset data = draw_digits(50, 1, Split::train);
  Recipe recipe{.batch = 16};
  recipe.augment = {.crop = 2, .flip = true, .operations = 1, .magnitude = 5, .erase = 0.25};
  recipe.smoothing = 0.1, recipe.mixup = 0.2, recipe.cutmix = 1;
  Batches alone(data, recipe, 10, 64), ahead(data, recipe, 10, 64);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    alone.begin(epoch, 16 * epoch);
    ahead.begin(epoch, 16 * epoch);
    while (true) {
#ifdef _OPENMP
      omp_set_num_threads(1);
#endif
      const Batch* const a = alone.next();
#ifdef _OPENMP
      omp_set_num_threads(3);
#endif
      const Batch* const b = ahead.next();
      ASSERT_EQ(a == nullptr, b == nullptr);
      if (!a) break;
      const std::int64_t seen = ahead.position();
      if (epoch == 0 || seen < 40) ahead.prepare();  // before the present one is read; at the end there is none
      EXPECT_EQ(ahead.position(), seen);
      EXPECT_EQ(seen, alone.position());
      ASSERT_EQ(a->size, b->size);
      EXPECT_TRUE(std::equal(a->images, a->images + a->size * 784, b->images)) << seen;
      EXPECT_TRUE(std::equal(a->labels, a->labels + a->size, b->labels)) << seen;
      EXPECT_TRUE(std::equal(a->targets, a->targets + a->size * 10, b->targets)) << seen;
    }
  }
  // What was prepared for one epoch is not given in another.
  alone.begin(5, 0), ahead.begin(5, 0);
  ahead.next(), ahead.prepare(), ahead.begin(5, 0);
  const Batch *const a = alone.next(), *const b = ahead.next();
  EXPECT_TRUE(std::equal(a->images, a->images + a->size * 784, b->images));
#ifdef _OPENMP
  omp_set_num_threads(1);
#endif
}

TEST(Normalize, MapsPixelsToTheUnitIntervalThenByMeanAndDeviation) {
  const Bytes pixels{0, 51, 255};
  float plain[3], scaled[3];
  normalize(pixels, 1, {}, plain);
  normalize(pixels, 1, {.mean = {0.5}, .deviation = {0.5}}, scaled);
  EXPECT_FLOAT_EQ(plain[1], 0.2f);
  EXPECT_FLOAT_EQ(plain[2], 1);
  EXPECT_FLOAT_EQ(scaled[0], -1);
  EXPECT_FLOAT_EQ(scaled[1], -0.6f);
  EXPECT_FLOAT_EQ(scaled[2], 1);
}

TEST(DataChoice, DrawsASixthAsManyTestDigitsAndLimitsBoth) {
  EXPECT_EQ(load({"", 600, 0}, Split::train, sample_model(), {}).size(), 600);
  EXPECT_EQ(load({"", 600, 0}, Split::test, sample_model(), {}).size(), 100);
  EXPECT_EQ(load({"", 600, 30}, Split::train, sample_model(), {}).size(), 30);
  EXPECT_EQ(load({"", 1, 0}, Split::test, sample_model(), {}).size(), 1);
}

TEST(Dataset, FingerprintSeesPixelsAndLabels) {
  Dataset data = draw_digits(5, 1, Split::train);
  const std::uint32_t before = data.fingerprint();
  data.labels[2] ^= 1;
  EXPECT_NE(data.fingerprint(), before);
  data.labels[2] ^= 1;
  data.pixels[100] ^= 1;
  EXPECT_NE(data.fingerprint(), before);
}

}  // namespace
}  // namespace tessera::runtime
