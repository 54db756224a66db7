#include "runtime/philox.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::runtime {
namespace {

// The known answers of Random123 1.14 (tests/kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, GivesTheKnownAnswersOfItsAuthors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, BelowStaysBelowAndReachesEveryValueAboutEquallyOften) {
  Random random(7, 1, 0);
  int counts[7]{};
  for (int i = 0; i < 70000; ++i) {
    const std::uint32_t value = random.below(7);
    ASSERT_LT(value, 7u);
    ++counts[value];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);  // four standard deviations
}

TEST(Random, UniformFillsTheUnitIntervalAndBellHasUnitDeviation) {
  Random random(8, 1, 0);
  double sum = 0, squares = 0, mean = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = random.uniform(), b = random.bell();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    mean += u / 100000;
    sum += b;
    squares += b * b;
  }
  EXPECT_NEAR(mean, 0.5, 0.004);
  EXPECT_NEAR(sum / 100000, 0, 0.013);
  EXPECT_NEAR(std::sqrt(squares / 100000), 1, 0.01);
}

TEST(Random, SequencesOfOtherSeedPurposeOrIndexDiffer) {
  const std::uint32_t first = Random(1, 1, 1).word();
  EXPECT_EQ(first, Random(1, 1, 1).word());
  EXPECT_NE(first, Random(2, 1, 1).word());
  EXPECT_NE(first, Random(1, 2, 1).word());
  EXPECT_NE(first, Random(1, 1, 2).word());
}

}  // namespace
}  // namespace tessera::runtime
