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
#include "codegen/cpu/simd/transpose.h"
#include "codegen/cpu/simd/windows.h"
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

/// Of a convolution, of 8 rows and three images; twice, the second time added to the first. In doubles one window after
/// the other.
template <Windows w>
struct WindowGradient {
  static constexpr std::int64_t rows = 8, images = 3;
  static constexpr std::int64_t last(const ConvAxis& s, std::int64_t apart) {
    return (s.reach(s.positions) - 1) * apart;
  }
  static constexpr std::int64_t left_image =
      (rows - 1) * w.left_row + (w.down.positions - 1) * w.down.left + (w.across.positions - 1) * w.across.left + 1;
  static constexpr std::int64_t right_image =
      (w.columns - 1) * w.right_column + last(w.down, w.down.right) + last(w.across, w.across.right) + 1;
  std::vector<float> left = Gradient<1>::numbers(images * left_image, 1);
  std::vector<float> right = Gradient<1>::numbers(images * right_image, 2);
  std::vector<float> sums = std::vector<float>(rows * w.to_row);

  static void* run(void* self) {
    WindowGradient& g = *static_cast<WindowGradient*>(self);
    // 32 columns at once; rows in two parts, as two threads have them.
    for (const bool add : {false, true})
      for (const std::int64_t begin : {0, 4})
        g_windows<w, 4, 32>(begin, begin + 4, images, add, g.left.data(), left_image, g.right.data(), right_image,
                            g.sums.data());
    return nullptr;
  }
  double sum_of(std::int64_t row, std::int64_t column, std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t image = 0; image < images; ++image)
      for (std::int64_t y = 0; y < w.down.positions; ++y)
        for (std::int64_t x = 0; x < w.across.positions; ++x)
          sum += double{left[static_cast<std::size_t>(image * left_image + row * w.left_row + y * w.down.left +
                                                      x * w.across.left)]} *
                 right[static_cast<std::size_t>(image * right_image + column * w.right_column +
                                                (y * w.down.step + i * w.down.dilation) * w.down.right +
                                                (x * w.across.step + j * w.across.dilation) * w.across.right)];
    return sum;
  }
  void expect_sums() const {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < w.columns; ++column)
        for (std::int64_t tap = 0; tap < w.taps(); ++tap)
          EXPECT_NEAR(sums[static_cast<std::size_t>(row * w.to_row + column * w.taps() + tap)],
                      2 * sum_of(row, column, tap / w.across.taps, tap % w.across.taps), 1e-3)
              << row << ", " << column << ", " << tap;
  }
};

template <Windows w>
void expect_windows() {
  const auto g = std::make_unique<WindowGradient<w>>();
  pthread_attr_t attributes;
  pthread_t thread;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 384 << 10), 0);
  ASSERT_EQ(pthread_create(&thread, &attributes, WindowGradient<w>::run, g.get()), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  g->expect_sums();
}

TEST(Gradient, OfAConvolutionsWeightIsTheSumOverItsWindows) {
  // 3x3 over 12 x 14 of 37 channels, the edge of zeros being part of the map.
  expect_windows<Windows{37, {12, 3, 1, 1, 14, 16}, {14, 3, 1, 1, 1, 1}, 168, 224, 333}>();
  // Every other window; rows that are longer in memory than what is read of them.
  expect_windows<Windows{32, {5, 3, 2, 1, 8, 20}, {6, 3, 2, 1, 1, 1}, 40, 240, 290}>();
  // Taps two apart, channels innermost.
  expect_windows<Windows{20, {6, 3, 1, 2, 64, 260}, {7, 2, 1, 2, 8, 20}, 1, 1, 120}>();
  // A kernel of one number over a map as one line.
  expect_windows<Windows{24, {1, 1, 1, 1, 0, 0}, {2000, 1, 1, 1, 1, 1}, 2000, 2000, 24}>();
}
TEST(Gradient, OfAConvolutionOverLongLinesFitsIntoAStackOf384KiB) {
  expect_windows<Windows{33, {2, 3, 1, 1, 700, 702}, {700, 3, 1, 1, 1, 1}, 1400, 2808, 297}>();
  expect_windows<Windows{32, {4, 9, 1, 1, 40, 48}, {40, 9, 1, 1, 1, 1}, 160, 576, 2592}>();
}

}  // namespace
}  // namespace tessera::test
