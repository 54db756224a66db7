// Attention's backward pass of one head against sums in double precision: shared by the run on the CPU (host_test.cpp)
// and on a GPU (tensor_check.cu), as tensor_cores.hpp is.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

/// The kernel's sizes, and those of the problem.
struct HeadGradient {
  int most_keys, width, rows, keys;
  void (*kernel)(const bf16* queries, const bf16* keys, const bf16* values, const bf16* gradients, int line,
                 const float* p, const float* scale, float* of_queries, float* of_keys, float* of_values, int rows,
                 int key_count);
};
template <int most_keys, int width>
constexpr HeadGradient gradient_of(int rows, int keys) {
  return {most_keys, width, rows, keys, attention_gradient_of_a_head<most_keys, width>};
}
/// Of each width: fewer queries than a tile has, tiles that are full and that are not, one warp and the most of them,
/// more squares of the queries' gradients than warps.
const HeadGradient head_gradients[] = {gradient_of<16, 16>(5, 7),     gradient_of<32, 16>(17, 17),
                                       gradient_of<48, 32>(77, 37),   gradient_of<32, 64>(64, 32),
                                       gradient_of<208, 64>(97, 197), gradient_of<256, 64>(33, 241)};

inline float rounded_to_bf16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

/// Whether the three gradients are the sums of their products: of numbers for which p dp and delta are exact, so that p
/// and changes are rounded as the kernel rounds them, and the last bits of sums are all that may differ.
template <template <class> class DeviceArray>
bool gives_gradients(const HeadGradient& a) {
  const int line = a.width + 8;
  auto number = [&](int i, int k, int seed) {
    return static_cast<float>((i * 37 + k * 11 + i * k % 13 + seed * 4) % 15 - 7) / 8;
  };
  auto lines = [&](int count, int seed) {
    std::vector<bf16> all(static_cast<std::size_t>((count - 1) * line + a.width), bf16{0xffff});
    for (int i = 0; i < count; ++i)
      for (int k = 0; k < a.width; ++k) {
        const float x = number(i, k, seed);
        std::uint32_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        all[static_cast<std::size_t>(i * line + k)].bits = static_cast<std::uint16_t>(bits >> 16);
      }
    return all;
  };
  const auto at = [&](int row, int key) { return static_cast<std::size_t>(row * a.keys + key); };
  std::vector<float> p(static_cast<std::size_t>(a.rows * a.keys)), scale(p.size());
  for (int row = 0; row < a.rows; ++row)
    for (int key = 0; key < a.keys; ++key) {
      p[at(row, key)] = static_cast<float>((row * 181 + key * 97 + row * key % 31) % 509) / 512;
      scale[at(row, key)] = (row + 3 * key) % 5 ? 0.25f : 0.5f;
    }
  DeviceArray<bf16> queries(lines(a.rows, 1)), keys(lines(a.keys, 2)), values(lines(a.keys, 3)),
      gradients(lines(a.rows, 4));
  DeviceArray<float> given_p(p), given_scale(scale), of_queries(static_cast<std::size_t>(a.rows * a.width)),
      of_keys(static_cast<std::size_t>(a.keys * a.width)), of_values(static_cast<std::size_t>(a.keys * a.width));
  launch(a.kernel, dim3(1), dim3(static_cast<unsigned>(a.most_keys * 2)),
         static_cast<std::size_t>(attention_gradient_bytes(a.most_keys, a.width)), nullptr, queries.data(), keys.data(),
         values.data(), gradients.data(), line, given_p.data(), given_scale.data(), of_queries.data(), of_keys.data(),
         of_values.data(), a.rows, a.keys);

  std::vector<float> changes(p.size());
  for (int row = 0; row < a.rows; ++row) {
    std::vector<float> dp(static_cast<std::size_t>(a.keys));
    double delta = 0;
    for (int key = 0; key < a.keys; ++key) {
      float& sum = dp[static_cast<std::size_t>(key)];
      for (int k = 0; k < a.width; ++k) sum += number(row, k, 4) * number(key, k, 3);
      delta += static_cast<double>(p[at(row, key)]) * sum;
    }
    for (int key = 0; key < a.keys; ++key)
      changes[at(row, key)] = rounded_to_bf16(
          p[at(row, key)] * (dp[static_cast<std::size_t>(key)] - static_cast<float>(delta)) * scale[at(row, key)]);
  }
  // The sum over `depth` of left times right, for each line and column.
  const auto sums_are = [&](const std::vector<float>& found, int count, int depth, auto left, auto right) {
    for (int i = 0; i < count; ++i)
      for (int k = 0; k < a.width; ++k) {
        double sum = 0, size = 0;
        for (int d = 0; d < depth; ++d) {
          const double x = static_cast<double>(left(i, d)) * right(d, k);
          sum += x;
          size += std::fabs(x);
        }
        if (!(std::fabs(found[static_cast<std::size_t>(i * a.width + k)] - sum) <= 1e-6 * size)) return false;
      }
    return true;
  };
  return sums_are(
             of_queries.values(), a.rows, a.keys, [&](int row, int key) { return changes[at(row, key)]; },
             [&](int key, int k) { return number(key, k, 2); }) &&
         sums_are(
             of_keys.values(), a.keys, a.rows, [&](int key, int row) { return changes[at(row, key)]; },
             [&](int row, int k) { return number(row, k, 1); }) &&
         sums_are(
             of_values.values(), a.keys, a.rows, [&](int key, int row) { return rounded_to_bf16(p[at(row, key)]); },
             [&](int row, int k) { return number(row, k, 4); });
}

}  // namespace
