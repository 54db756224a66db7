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
/// more squares of the queries' gradients than warps, columns that are made in two parts.
const HeadGradient head_gradients[] = {gradient_of<16, 16>(5, 7),     gradient_of<32, 16>(17, 17),
                                       gradient_of<48, 32>(77, 37),   gradient_of<32, 64>(64, 32),
                                       gradient_of<208, 64>(97, 197), gradient_of<256, 64>(33, 241),
                                       gradient_of<48, 128>(77, 37)};

/// Of the same sizes, with p made again; and attention's forward pass, which keeps what it is made from.
struct HeadAgain {
  HeadGradient stored;
  decltype(HeadAttention::kernel) forward;
  void (*kernel)(const bf16* queries, const bf16* keys, const bf16* values, const bf16* gradients, int line,
                 const float* kept, float* p, const float* scale, float* of_queries, float* of_keys, float* of_values,
                 int rows, int key_count);
};
template <int most_keys, int width>
constexpr HeadAgain again_of(int rows, int keys) {
  return {gradient_of<most_keys, width>(rows, keys), attention_of_a_head<4, most_keys, width>,
          attention_again_of_a_head<most_keys, width>};
}
const HeadAgain heads_again[] = {again_of<16, 16>(5, 7),   again_of<32, 16>(17, 17),    again_of<48, 32>(41, 37),
                                 again_of<32, 64>(32, 32), again_of<208, 64>(197, 197), again_of<256, 64>(33, 241),
                                 again_of<64, 128>(41, 57)};

/// Numbers of bf16 in lines that are `line` apart; what is between them is none.
template <class Number>
std::vector<bf16> lines_of(int count, int width, int line, Number number) {
  std::vector<bf16> all(static_cast<std::size_t>((count - 1) * line + width), bf16{0xffff});
  for (int i = 0; i < count; ++i)
    for (int k = 0; k < width; ++k) {
      const float x = number(i, k);
      std::uint32_t bits;
      std::memcpy(&bits, &x, sizeof bits);
      all[static_cast<std::size_t>(i * line + k)].bits = static_cast<std::uint16_t>(bits >> 16);
    }
  return all;
}

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
    return lines_of(count, a.width, line, [&](int i, int k) { return number(i, k, seed); });
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

/// Whether p, made again, has the bits of the p that forward gives, rounded, and whether all gradients have those of
/// the ones that are made of it from memory. Every fourth row's scores are so low that a score of 0, as a key past the
/// end has, would overflow.
template <template <class> class DeviceArray>
bool gives_the_same_again(const HeadAgain& again) {
  const HeadGradient& a = again.stored;
  const int line = a.width + 8;
  const auto lines = [&](int count, int seed) {
    return lines_of(count, a.width, line, [&](int i, int k) {
      if (k == 0 && seed == 1 && i % 4 == 3) return -64.0f;
      if (k == 0 && seed == 2) return 8.0f;
      return static_cast<float>((i * 37 + k * 11 + i * k % 13 + seed * 4) % 15 - 7) / 8;
    });
  };
  const auto floats = [](int count) { return std::vector<float>(static_cast<std::size_t>(count), NAN); };
  DeviceArray<bf16> queries(lines(a.rows, 1)), keys(lines(a.keys, 2)), values(lines(a.keys, 3)),
      gradients(lines(a.rows, 4));
  std::vector<float> scale(static_cast<std::size_t>(a.rows * a.keys), 0.25f);
  DeviceArray<float> given_scale(scale), p(floats(a.rows * a.keys)), kept(floats(a.rows * 4)),
      mixed(floats(a.rows * a.width)), of_queries(floats(a.rows * a.width)), of_keys(floats(a.keys * a.width)),
      of_values(floats(a.keys * a.width)), p_again(floats(a.rows * a.keys)), queries_again(floats(a.rows * a.width)),
      keys_again(floats(a.keys * a.width)), values_again(floats(a.keys * a.width));
  launch(again.forward, dim3(2), dim3(128), static_cast<std::size_t>(attention_bytes(4, a.most_keys, a.width)), nullptr,
         queries.data(), keys.data(), values.data(), line, p.data(), kept.data(), mixed.data(), a.rows, a.keys);
  std::vector<float> rounded_p = p.values();
  for (float& x : rounded_p) x = rounded_to_bf16(x);
  DeviceArray<float> given_p(rounded_p);
  const dim3 block(static_cast<unsigned>(a.most_keys * 2));
  const auto bytes = static_cast<std::size_t>(attention_gradient_bytes(a.most_keys, a.width));
  launch(a.kernel, dim3(1), block, bytes, nullptr, queries.data(), keys.data(), values.data(), gradients.data(), line,
         given_p.data(), given_scale.data(), of_queries.data(), of_keys.data(), of_values.data(), a.rows, a.keys);
  launch(again.kernel, dim3(1), block, bytes, nullptr, queries.data(), keys.data(), values.data(), gradients.data(),
         line, kept.data(), p_again.data(), given_scale.data(), queries_again.data(), keys_again.data(),
         values_again.data(), a.rows, a.keys);
  return p_again.values() == rounded_p && queries_again.values() == of_queries.values() &&
         keys_again.values() == of_keys.values() && values_again.values() == of_values.values();
}

}  // namespace
