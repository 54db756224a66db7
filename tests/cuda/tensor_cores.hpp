// The wrappers of the device header against wrapper_vectors.hpp, by one warp: shared by the run on the CPU
// (host_test.cpp) and on a GPU (wrappers_check.cu), which have included their own twin of the header and have a
// DeviceArray.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/wrapper_vectors.hpp"

namespace {

struct Given {
  alignas(16) bf16 rows[32][8];
  std::uint32_t left[32][4], right[32][2];
  float sums[32][4], numbers[16];
};
/// Of each lane.
struct Words {
  std::uint32_t sums[32][4], matrices[32][4], transposed[32][4], copied[32][4];
  bf16 nearest[32];
  float widened[32];
};

__global__ void give_words(const Given* given, Words* words) {
  bf16* const tile = shared_memory<bf16>();  // [32, 8], then the same again
  const int lane = thread_x();
  // All of the row, then as many of its bytes as the lane's number says.
  copy_async(tile + lane * 8, given->rows[lane], 16);
  copy_async(tile + (32 + lane) * 8, given->rows[lane], lane % 17);
  copy_commit();
  copy_wait<0>();
  barrier();
  float sums[4];
  std::memcpy(sums, given->sums[lane], sizeof sums);
  multiply_add(sums, given->left[lane], given->right[lane]);
  std::memcpy(words->sums[lane], sums, sizeof sums);
  load_matrices(words->matrices[lane], tile + (5 * lane + 3) % 32 * 8);
  load_matrices_transposed(words->transposed[lane], tile + (5 * lane + 3) % 32 * 8);
  words->nearest[lane] = rounded(given->numbers[lane % 16]);
  words->widened[lane] = widened(given->rows[lane][lane % 8]);
  std::memcpy(words->copied[lane], tile + (32 + lane) * 8, 16);
}

/// "" where every word is as it should be; else the name of the wrapper and the lane.
template <template <class> class DeviceArray>
std::string wrong_wrapper() {
  using namespace tessera::test;
  std::vector<Given> operands(1);
  Given& given = operands.front();
  Words wanted{};
  std::memcpy(given.left, left_fragments, sizeof given.left);
  std::memcpy(given.right, right_fragments, sizeof given.right);
  std::memcpy(given.sums, sums_before, sizeof given.sums);
  std::memcpy(wanted.sums, sums_behind, sizeof wanted.sums);
  std::memcpy(wanted.matrices, matrices, sizeof wanted.matrices);
  std::memcpy(wanted.transposed, matrices_transposed, sizeof wanted.transposed);
  for (int i = 0; i < 16; ++i) std::memcpy(&given.numbers[i], &roundings[i].number, 4);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 8; ++i) given.rows[lane][i].bits = static_cast<std::uint16_t>(8 * lane + i);
    std::memcpy(wanted.copied[lane], given.rows[lane], static_cast<std::size_t>(lane % 17));
    wanted.nearest[lane].bits = roundings[lane % 16].rounded;
    const std::uint32_t wide = std::uint32_t{given.rows[lane][lane % 8].bits} << 16;
    std::memcpy(&wanted.widened[lane], &wide, 4);
  }
  DeviceArray<Given> on_device(operands);
  DeviceArray<Words> words(1);
  launch(give_words, dim3(1), dim3(32), 2 * sizeof given.rows, nullptr, on_device.data(), words.data());
  const Words found = words.values().front();
  auto differs = [](const auto& mine, const auto& theirs) {
    int lane = 0;
    while (lane < 32 && std::memcmp(&mine[lane], &theirs[lane], sizeof mine[lane]) == 0) ++lane;
    return lane;
  };
  const std::pair<const char*, int> all[] = {{"multiply_add", differs(found.sums, wanted.sums)},
                                             {"load_matrices", differs(found.matrices, wanted.matrices)},
                                             {"load_matrices_transposed", differs(found.transposed, wanted.transposed)},
                                             {"rounded", differs(found.nearest, wanted.nearest)},
                                             {"widened", differs(found.widened, wanted.widened)},
                                             {"copy_async", differs(found.copied, wanted.copied)}};
  for (const auto& [name, lane] : all)
    if (lane < 32) return std::string(name) + " of lane " + std::to_string(lane);
  return "";
}

/// Factors of integers: whatever the order of the sums, they are exact.
struct Matrices {
  int rows, columns, depth;
  float left(int row, int k) const { return static_cast<float>((row * 7 + k * 3) % 11 - 5); }
  float right(int column, int k) const { return static_cast<float>((column * 5 + k) % 7 - 3); }
  std::vector<float> product() const {
    std::vector<float> result;
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column) {
        float sum = 0;
        for (int k = 0; k < depth; ++k) sum += left(row, k) * right(column, k);
        result.push_back(sum);
      }
    return result;
  }
};

/// How a factor is stored: along the depth or across it, and in whole eights or dense.
struct Stored {
  bool deep, eights;
};
struct TensorProduct {
  int tile_rows, tile_columns, threads;
  Stored left, right;
  void (*kernel)(const bf16* left, const bf16* right, float* out, int rows, int columns, int depth);
};
template <int tile_rows, int tile_columns, int warps_down, int warps_across, bool left_deep, bool left_eights,
          bool right_deep, bool right_eights>
constexpr TensorProduct in_tiles{tile_rows,
                                 tile_columns,
                                 warps_down* warps_across * 32,
                                 {left_deep, left_eights},
                                 {right_deep, right_eights},
                                 on_tensor_cores<tile_rows, tile_columns, warps_down, warps_across, left_deep,
                                                 left_eights, right_deep, right_eights>};

/// Every tile of codegen/cuda/tile.cpp, and every way to store a factor.
const TensorProduct tensor_products[] = {
    in_tiles<128, 256, 2, 4, true, true, true, true>,  in_tiles<128, 128, 2, 4, true, true, false, true>,
    in_tiles<128, 64, 2, 2, false, true, true, true>,  in_tiles<64, 128, 2, 2, true, true, true, false>,
    in_tiles<64, 64, 2, 2, false, true, false, true>,  in_tiles<64, 32, 2, 2, true, true, false, true>,
    in_tiles<32, 64, 2, 2, false, false, false, true>, in_tiles<32, 32, 2, 2, true, true, true, true>,
    in_tiles<32, 32, 2, 2, false, false, true, false>, in_tiles<32, 32, 2, 2, true, false, false, false>};

/// Small integers, which bf16 holds exactly; what lies between the lines is not a number.
template <class Number>
std::vector<bf16> stored(Stored how, int points, int depths, Number number) {
  const int lines = how.deep ? points : depths, length = how.deep ? depths : points;
  const int line = how.eights ? (length + 7) / 8 * 8 : length;
  std::vector<bf16> all(static_cast<std::size_t>(lines * line), bf16{0xffff});
  for (int i = 0; i < lines; ++i)
    for (int at = 0; at < length; ++at) {
      const float x = how.deep ? number(i, at) : number(at, i);
      std::uint32_t bits;
      std::memcpy(&bits, &x, sizeof bits);
      all[static_cast<std::size_t>(i * line + at)].bits = static_cast<std::uint16_t>(bits >> 16);
    }
  return all;
}

template <template <class> class DeviceArray>
std::vector<float> product_by(const TensorProduct& p, const Matrices& m) {
  DeviceArray<bf16> left_factor(stored(p.left, m.rows, m.depth, [&](int row, int k) { return m.left(row, k); })),
      right_factor(stored(p.right, m.columns, m.depth, [&](int column, int k) { return m.right(column, k); }));
  DeviceArray<float> out(static_cast<std::size_t>(m.rows * m.columns));
  launch(p.kernel, dim3(blocks_for(m.rows, p.tile_rows), blocks_for(m.columns, p.tile_columns)),
         dim3(static_cast<unsigned>(p.threads)),
         static_cast<std::size_t>(tensor_product_bytes(p.tile_rows, p.tile_columns)), nullptr, left_factor.data(),
         right_factor.data(), out.data(), m.rows, m.columns, m.depth);
  return out.values();
}

/// Two tiles of rows, the second with one row; columns that end within a tile; more steps of the depth than shared
/// memory holds, the last one short.
inline Matrices odd_sizes_for(const TensorProduct& p) { return {p.tile_rows + 1, p.tile_columns - 3, 173}; }

/// Attention of one head: the kernel's sizes, and those of the problem, which leave a rest everywhere.
struct HeadAttention {
  int warps, most_keys, width, rows, keys;
  void (*kernel)(const bf16* queries, const bf16* keys, const bf16* values, int line, float* p, float* kept, float* out,
                 int rows, int key_count);
};
template <int warps, int most_keys, int width>
constexpr HeadAttention attention_in_blocks{
    warps, most_keys, width, warps * 32 + 21, most_keys - 11, attention_of_a_head<warps, most_keys, width>};
const HeadAttention attentions[] = {attention_in_blocks<4, 32, 16>, attention_in_blocks<4, 48, 32>,
                                    attention_in_blocks<4, 208, 64>, attention_in_blocks<4, 64, 128>};

/// Whether p is the softmax of the scores, what is kept of a row its largest score and one over its sum, and the result
/// the mix of values by p, rounded: to the last bits of sums; and whether all have the same bits however many blocks
/// share the head.
template <template <class> class DeviceArray>
bool attends(const HeadAttention& a) {
  const int line = a.width + 8;
  auto number = [](int i, int seed) { return static_cast<float>((i * 37 + seed * 11) % 15 - 7) / 8; };
  auto lines = [&](int count, int seed) {
    std::vector<bf16> all(static_cast<std::size_t>((count - 1) * line + a.width), bf16{0xffff});
    for (int i = 0; i < count; ++i)
      for (int k = 0; k < a.width; ++k) {
        const float x = number(i * a.width + k, seed);
        std::uint32_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        all[static_cast<std::size_t>(i * line + k)].bits = static_cast<std::uint16_t>(bits >> 16);
      }
    return all;
  };
  DeviceArray<bf16> queries(lines(a.rows, 1)), keys(lines(a.keys, 2)), values(lines(a.keys, 3));
  const auto of_shares = [&](unsigned shares) {
    DeviceArray<float> p(static_cast<std::size_t>(a.rows * a.keys)), kept(static_cast<std::size_t>(a.rows * 4)),
        out(static_cast<std::size_t>(a.rows * a.width));
    launch(a.kernel, dim3(shares), dim3(static_cast<unsigned>(a.warps * 32)),
           static_cast<std::size_t>(attention_bytes(a.warps, a.most_keys, a.width)), nullptr, queries.data(),
           keys.data(), values.data(), line, p.data(), kept.data(), out.data(), a.rows, a.keys);
    return std::vector{p.values(), kept.values(), out.values()};
  };
  const std::vector<std::vector<float>> alone = of_shares(1);
  const std::vector<float>&found_p = alone[0], &found_kept = alone[1], &found = alone[2];
  for (const unsigned shares : {2u, 5u}) {  // of five some have nothing to do
    const std::vector<std::vector<float>> shared = of_shares(shares);
    for (std::size_t i = 0; i < alone.size(); ++i)
      if (std::memcmp(alone[i].data(), shared[i].data(), alone[i].size() * sizeof(float)) != 0) return false;
  }
  for (int row = 0; row < a.rows; ++row) {
    std::vector<double> wanted;
    double sum = 0, most = -1e9;
    for (int key = 0; key < a.keys; ++key) {
      double score = 0;
      for (int k = 0; k < a.width; ++k) score += number(row * a.width + k, 1) * number(key * a.width + k, 2);
      score = score * 0.25 + (row + 3 * key) % 7 * 0.125;
      most = score > most ? score : most;
      wanted.push_back(std::exp(score));
      sum += wanted.back();
    }
    const double inverse = std::exp(most) / sum;
    if (!(std::fabs(found_kept[static_cast<std::size_t>(row * 4)] - most) <= 1e-5) ||
        !(std::fabs(found_kept[static_cast<std::size_t>(row * 4 + 1)] - inverse) <= 1e-5 * inverse))
      return false;
    std::vector<double> mixed(static_cast<std::size_t>(a.width));
    for (int key = 0; key < a.keys; ++key) {
      const float mine = found_p[static_cast<std::size_t>(row * a.keys + key)];
      const double theirs = wanted[static_cast<std::size_t>(key)] / sum;
      if (!(std::fabs(mine - theirs) <= 1e-5 * theirs)) return false;
      std::uint32_t bits;
      std::memcpy(&bits, &mine, sizeof bits);
      bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
      float rounded_p;
      std::memcpy(&rounded_p, &bits, sizeof bits);
      for (int k = 0; k < a.width; ++k)
        mixed[static_cast<std::size_t>(k)] += static_cast<double>(rounded_p) * number(key * a.width + k, 3);
    }
    for (int k = 0; k < a.width; ++k)
      if (!(std::fabs(found[static_cast<std::size_t>(row * a.width + k)] - mixed[static_cast<std::size_t>(k)]) <= 1e-6))
        return false;
  }
  return true;
}

/// Whether of a warp's sums those of so many rows and columns are stored, one by one, by two and by eight with the same
/// bits, and nothing else is but for what fills up a two or an eight.
template <template <class> class DeviceArray>
bool squares_are_stored(decltype(&store_a_square) kernel, int rows, int columns) {
  const auto size = [](int count) { return static_cast<std::size_t>(count); };
  const auto sum_at = [](int row, int column) { return static_cast<float>(row * 16 + column) * 1.0078125f; };
  std::vector<float> sums(32 * 8), of_rows(size(rows));
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 8; ++i)
      sums[size(lane * 8 + i)] = sum_at(lane / 4 + i / 2 % 2 * 8, lane % 4 * 2 + i % 2 + i / 4 * 8);
  for (int row = 0; row < rows; ++row) of_rows[size(row)] = static_cast<float>(row) / 8;
  const int line = (columns + 7) / 8 * 8, pairs = (columns + 1) / 2 * 2;
  const std::vector<float> untouched(size(rows * 16), -1);
  DeviceArray<float> given(sums), given_rows(of_rows), singles(size(rows * columns)), in_pairs(untouched);
  DeviceArray<bf16> in_eights(size(rows * line));
  launch(kernel, dim3(1), dim3(32), 0, nullptr, given.data(), given_rows.data(), singles.data(), in_pairs.data(),
         in_eights.data(), rows, columns);
  const std::vector<float> one = singles.values(), two = in_pairs.values();
  const std::vector<bf16> eight = in_eights.values();
  bool right = true;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < 16; ++column) {
      const float sum = sum_at(row, column), more = sum + of_rows[size(row)];
      std::uint32_t bits;
      std::memcpy(&bits, &more, sizeof bits);
      bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
      right = right && (column >= columns || one[size(row * columns + column)] == sum) &&
              two[size(row * 16 + column)] == (column < pairs ? sum : -1) &&
              (column >= line || eight[size(row * line + column)].bits == bits);
    }
  return right;
}

}  // namespace
