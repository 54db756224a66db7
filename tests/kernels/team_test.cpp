// How a team's threads partition the tiles of a product.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tessera::test {
namespace {

#include "codegen/cpu/simd/team.h"

struct Product {
  std::int64_t rows, high, columns, wide;
};
const std::vector<Product> products{
    {197, 9, 192, 48}, {197, 9, 2304, 48}, {65, 6, 256, 64}, {1, 1, 1000, 48}, {8, 9, 20, 48}};

TEST(Team, EachSumIsOneThreadsAndTilesStayWhole) {
  for (const Product& p : products)
    for (const bool far : {false, true})
      for (std::int64_t parts = 1; parts <= 17; ++parts) {
        std::vector<int> owners(static_cast<std::size_t>(p.rows * p.columns), 0);
        for (std::int64_t part = 0; part < parts; ++part) {
          const Tiles mine = Team{0, 1, part, parts}.tiles(p.rows, p.high, p.columns, p.wide, far);
          if (mine.begin >= mine.end || mine.left >= mine.right) continue;
          EXPECT_EQ(mine.begin % p.high, 0);
          EXPECT_EQ(mine.left % p.wide, 0);
          EXPECT_TRUE(mine.end == p.rows || mine.end % p.high == 0);
          EXPECT_TRUE(mine.right == p.columns || mine.right % p.wide == 0);
          for (std::int64_t row = mine.begin; row < mine.end; ++row)
            for (std::int64_t column = mine.left; column < mine.right; ++column)
              ++owners[static_cast<std::size_t>(row * p.columns + column)];
        }
        EXPECT_TRUE(std::all_of(owners.begin(), owners.end(), [](int n) { return n == 1; }))
            << p.rows << " x " << p.columns << ", " << parts << " threads";
      }
}

TEST(Team, OfWeightsInFarMemoryAThreadReadsItsColumnsElseItsRows) {
  for (std::int64_t part = 0; part < 2; ++part) {
    const Team team{0, 1, part, 2};
    const Tiles far = team.tiles(197, 9, 768, 48, true);
    EXPECT_EQ(far.begin, 0);
    EXPECT_EQ(far.end, 197);
    EXPECT_EQ(far.right - far.left, 384);
    const Tiles near = team.tiles(197, 9, 768, 48, false);
    EXPECT_EQ(near.begin, part * 99);
    EXPECT_EQ(near.end, part ? 197 : 99);
    EXPECT_EQ(near.right - near.left, 768);
  }
}

TEST(Team, TheLargestShareIsAsSmallAsItCanBe) {
  // 22 tiles of rows and 4 of columns, 8 threads by 2: 3 by 2 tiles at most; by rows alone it would be 2 by 4.
  std::int64_t most = 0;
  for (std::int64_t part = 0; part < 16; ++part) {
    const Tiles mine = Team{0, 1, part, 16}.tiles(197, 9, 192, 48, false);
    most = std::max(most, (mine.end - mine.begin + 8) / 9 * ((mine.right - mine.left) / 48));
  }
  EXPECT_EQ(most, 6);
}

}  // namespace
}  // namespace tessera::test
