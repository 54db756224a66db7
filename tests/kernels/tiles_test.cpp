// Products of bf16 by blocks of their depth, over stand-ins for what the instruction sets have: any processor runs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

using real = float;
using vec = float;
struct bf16 {
  float value;  // as wide as it needs to be: rounding is not what is tested
};
constexpr std::int64_t lanes = 1;
vec v_load(const real* p) { return *p; }
void v_store(real* p, vec x) { *p = x; }
vec v_add(vec a, vec b) { return a + b; }

#include "codegen/cpu/simd/tiles.h"

void t_pack_left(const bf16* from, std::int64_t across, std::int64_t along, std::int64_t rows, std::int64_t depth,
                 bf16* to, std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t k = 0; k < t_whole(depth); ++k)
      to[row * stride + k] = k < depth ? from[row * across + k * along] : bf16{0};
}
void t_pack_right(const bf16* from, std::int64_t along, std::int64_t columns, std::int64_t depth, bf16* panel) {
  for (std::int64_t k = 0; k < t_whole(depth); ++k)
    for (std::int64_t column = 0; column < t_columns; ++column)
      panel[k / 2 * 64 + column * 2 + k % 2] = k < depth && column < columns ? from[k * along + column] : bf16{0};
}
void t_pack_left(const real* from, std::int64_t across, std::int64_t along, std::int64_t rows, std::int64_t depth,
                 bf16* to, std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t k = 0; k < t_whole(depth); ++k)
      to[row * stride + k] = {k < depth ? from[row * across + k * along] : 0};
}
void t_pack_right(const real* from, std::int64_t along, std::int64_t columns, std::int64_t depth, bf16* panel) {
  for (std::int64_t k = 0; k < t_whole(depth); ++k)
    for (std::int64_t column = 0; column < t_columns; ++column)
      panel[k / 2 * 64 + column * 2 + k % 2] = {k < depth && column < columns ? from[k * along + column] : 0};
}
void t_product(real* sums, std::int64_t rows, std::int64_t, const bf16* left, std::int64_t stride, const bf16* panel,
               std::int64_t depth, const bf16*, std::int64_t) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < t_columns; ++column) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += double{left[row * stride + k].value} * double{panel[k / 2 * 64 + column * 2 + k % 2].value};
      sums[row * t_columns + column] = static_cast<real>(sum);
    }
}

#include "codegen/cpu/simd/tiles_blocks.h"

struct Case {
  std::int64_t rows, columns, depth;
  bool rows_lie_along, panels;
};

void expect_product(const Case& c) {
  SCOPED_TRACE(testing::Message() << c.rows << " x " << c.columns << " x " << c.depth << ", rows along "
                                  << c.rows_lie_along << ", panels " << c.panels);
  const auto numbers = [](std::int64_t count, std::uint32_t state) {
    std::vector<bf16> all(static_cast<std::size_t>(count));
    for (bf16& x : all)
      x.value = static_cast<float>(static_cast<std::int32_t>(state = state * 1664525 + 1013904223)) * 0x1p-31f;
    return all;
  };
  const std::vector<bf16> left = numbers(c.rows * c.depth, 1), right = numbers(c.depth * c.columns, 2);
  std::vector<bf16> panels(static_cast<std::size_t>(t_whole(c.depth) * t_columns));
  t_pack_right(right.data(), c.columns, c.columns, c.depth, panels.data());
  const std::int64_t across = c.rows_lie_along ? c.depth : 1, along = c.rows_lie_along ? 1 : c.rows;
  std::vector<real> sums(static_cast<std::size_t>(c.rows * t_columns), NAN);
  t_product_in_blocks(sums.data(), c.rows, c.columns, left.data(), across, along,
                      c.panels ? panels.data() : right.data(), c.panels ? 0 : c.columns, c.depth);
  // Of single precision they are rounded on their way, which here changes nothing.
  std::vector<real> wide_left, wide_right, same(sums.size(), NAN);
  for (const bf16& x : left) wide_left.push_back(x.value);
  for (const bf16& x : right) wide_right.push_back(x.value);
  t_product_in_blocks(same.data(), c.rows, c.columns, wide_left.data(), across, along, wide_right.data(), c.columns,
                      c.depth);
  for (std::int64_t row = 0; row < c.rows; ++row)
    for (std::int64_t column = 0; column < c.columns; ++column) {
      const auto at = static_cast<std::size_t>(row * t_columns + column);
      EXPECT_EQ(same[at], sums[at]) << row << ", " << column;
      double sum = 0;
      for (std::int64_t k = 0; k < c.depth; ++k)
        sum += double{left[static_cast<std::size_t>(row * across + k * along)].value} *
               double{right[static_cast<std::size_t>(k * c.columns + column)].value};
      EXPECT_NEAR(sums[at], sum, 1e-4) << row << ", " << column;
    }
}

TEST(Tiles, ProductsInBlocksOfTheirDepthAreTheProducts) {
  for (const std::int64_t depth : {1, 1023, 1024, 1025, 2048, 4097})
    for (const bool along : {false, true})
      for (const bool panels : {false, true}) {
        expect_product({1, 1, depth, along, panels});
        expect_product({36, 32, depth, along, panels});
        expect_product({5, 7, depth, along, panels});
      }
}

}  // namespace
