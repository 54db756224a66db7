// Weight gradients of images of many tokens: their sums, and that a small stack is enough.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

// clang-format off
#include "codegen/cpu/simd/scalar_begin.h"
namespace {
std::int64_t tessera_l2_bytes() { return std::int64_t{1} << 20; }
#include "codegen/cpu/simd/scalar.h"
#include "codegen/cpu/simd/fetch.h"
#include "codegen/cpu/simd/gradient.h"
}  // namespace
#include "codegen/cpu/simd/scalar_end.h"
// clang-format on

namespace tessera::test {
namespace {

/// Of `depth` tokens, 32 rows and 70 columns; twice, the second time added to the first.
template <std::int64_t depth>
struct Gradient {
  static constexpr std::int64_t rows = 32, columns = 70;
  std::vector<float> left = numbers(depth * rows, 1), right = numbers(depth * columns, 2);
  std::vector<float> sums = std::vector<float>(rows * columns), biases = std::vector<float>(rows);

  static std::vector<float> numbers(std::int64_t count, std::uint32_t state) {
    std::vector<float> all(static_cast<std::size_t>(count));
    for (float& x : all)
      x = static_cast<float>(static_cast<std::int32_t>(state = state * 1664525 + 1013904223)) * 0x1p-31f;
    return all;
  }
  static void* run(void* self) {
    Gradient& g = *static_cast<Gradient*>(self);
    for (const bool add : {false, true})
      // As many columns at once as the widest vectors take.
      g_gradient<columns, depth, 8, 64>(0, rows, add, g.left.data(), rows, g.right.data(), columns, g.sums.data(),
                                        columns, g.biases.data());
    return nullptr;
  }
  void expect_sums() const {
    for (std::int64_t row = 0; row < rows; ++row) {
      double bias = 0;
      for (std::int64_t k = 0; k < depth; ++k) bias += left[static_cast<std::size_t>(k * rows + row)];
      EXPECT_NEAR(biases[static_cast<std::size_t>(row)], 2 * bias, 1e-3);
      for (std::int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k)
          sum += double{left[static_cast<std::size_t>(k * rows + row)]} *
                 right[static_cast<std::size_t>(k * columns + column)];
        EXPECT_NEAR(sums[static_cast<std::size_t>(row * columns + column)], 2 * sum, 1e-3) << row << ", " << column;
      }
    }
  }
};

template <std::int64_t depth>
void expect_to_fit() {
  Gradient<depth> g;
  pthread_attr_t attributes;
  pthread_t thread;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 384 << 10), 0);
  ASSERT_EQ(pthread_create(&thread, &attributes, Gradient<depth>::run, &g), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  g.expect_sums();
}

TEST(Gradient, OfManyTokensFitsIntoAStackOf384KiB) {
  expect_to_fit<1024>();
  expect_to_fit<1025>();
  expect_to_fit<4097>();
}

}  // namespace
}  // namespace tessera::test
