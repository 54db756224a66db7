// What is for sm_90a alone: its wrappers against wrapper_vectors.hpp, and products by warpgroups. Shared by the run on
// the CPU (host_test.cpp) and on a GPU (tensor_check.cu), behind tensor_cores.hpp.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cuda/tensor_cores.hpp"

namespace {

constexpr int box_lines = 24;

/// The box at these places of a tensor, as it lies in shared memory.
__global__ void __launch_bounds__(TESSERA_THREADS_OF_WARPGROUPS(128))
    give_box(TESSERA_MAP map, int along, int across, int third, int fourth, bf16* image) {
#if TESSERA_WARPGROUPS
  bf16* const tile = shared_tiles<bf16>();
  Gate* const gate = reinterpret_cast<Gate*>(tile + 64 * box_lines);
  if (thread_x() == 0) {
    gate_begin(gate, 1);
    asynchronous_fence();
  }
  barrier();
  if (thread_x() == 0) {
    gate_expect(gate, 128 * box_lines);
    copy_box<1>(tile, map, gate, 1, along, across, third, fourth);
  }
  gate_wait(gate, 0);
  for (int i = thread_x(); i < 64 * box_lines; i += 128) image[i] = tile[i];
#endif
}

constexpr int columns_of_words = 128;
/// Factors as they lie in shared memory, 64 rows or twice as many columns, 64 deep: multiplied from depth 16 to 32.
template <bool left_across, bool right_across>
__global__ void __launch_bounds__(TESSERA_THREADS_OF_WARPGROUPS(128))
    give_sums(const bf16* left, const bf16* right, float* words) {
#if TESSERA_WARPGROUPS
  bf16 *const of_left = shared_tiles<bf16>(), *const of_right = of_left + 64 * 64;
  for (int i = thread_x(); i < 64 * 64; i += 128) of_left[i] = left[i];
  for (int i = thread_x(); i < columns_of_words * 64; i += 128) of_right[i] = right[i];
  asynchronous_fence();
  barrier();
  float sums[columns_of_words / 2];
  for (int i = 0; i < columns_of_words / 2; ++i) sums[i] = words[thread_x() * (columns_of_words / 2) + i];
  multiplications_begin();
  multiply_add_async<columns_of_words, left_across, right_across>(
      sums, descriptor(shared_address(of_left + (left_across ? 16 * 64 : 16)), 8192),
      descriptor(shared_address(of_right + (right_across ? 16 * 64 : 16)), 8192));
  multiplications_commit();
  multiplications_wait<0>();
  for (int i = 0; i < columns_of_words / 2; ++i) words[thread_x() * (columns_of_words / 2) + i] = sums[i];
#endif
}

inline bf16 bits_of(float exact) {
  std::uint32_t bits;
  std::memcpy(&bits, &exact, sizeof bits);
  return {static_cast<std::uint16_t>(bits >> 16)};
}
/// Where a number of a line lies, by the table.
inline std::size_t place_in(int line, int at) {
  int place = 0;
  while (tessera::test::eights_at[line % 8][place] != at / 8) ++place;
  return static_cast<std::size_t>(line * 64 + place * 8 + at % 8);
}

template <template <class> class DeviceArray>
bool boxes_are_right() {
  constexpr int along = 100, across = 30, third = 3, fourth = 2, line = 104;
  std::vector<bf16> numbers(static_cast<std::size_t>(line * across * third * fourth), bf16{0xffff});
  auto number = [=](int x, int y, int z, int w) {
    return static_cast<std::uint16_t>(1 + x + along * (y + across * (z + third * w)));
  };
  for (int w = 0; w < fourth; ++w)
    for (int z = 0; z < third; ++z)
      for (int y = 0; y < across; ++y)
        for (int x = 0; x < along; ++x)
          numbers[static_cast<std::size_t>(x + line * (z + third * (y + across * w)))].bits = number(x, y, z, w);
  DeviceArray<bf16> tensor(numbers);
  const CUtensorMap map = tensor_map(tensor.data(), along, across, third, fourth, line * third, line,
                                     std::int64_t{line} * third * across, box_lines);
  constexpr int at[4][4] = {{0, 0, 0, 0}, {64, 8, 2, 1}, {64, 16, 1, 0}, {128, 0, 0, 1}};
  bool right = !launches_failed();
  for (const auto& [x, y, z, w] : at) {
    DeviceArray<bf16> image(64 * box_lines);
    launch(give_box, dim3(1), dim3(128), 128 * box_lines + sizeof(Gate), nullptr, map, x, y, z, w, image.data());
    const std::vector<bf16> found = image.values();
    for (int i = 0; i < box_lines; ++i)
      for (int j = 0; j < 64; ++j) {
        const std::uint16_t wanted = x + j < along && y + i < across ? number(x + j, y + i, z, w) : 0;
        right = right && found[place_in(i, j)].bits == wanted;
      }
  }
  return right;
}

template <template <class> class DeviceArray, bool left_across, bool right_across>
bool sums_are_right() {
  auto left = [](int row, int k) { return static_cast<float>((7 * row + 3 * k) % 23 - 11) / 4; };
  auto right = [](int column, int k) { return static_cast<float>((5 * k + 11 * column) % 19 - 9) / 2; };
  auto image_of = [](bool across, int points, auto number) {
    std::vector<bf16> image(static_cast<std::size_t>(points) * 64);
    for (int point = 0; point < points; ++point)
      for (int k = 0; k < 64; ++k)
        image[across ? static_cast<std::size_t>(point / 64 * 64 * 64) + place_in(k, point % 64) : place_in(point, k)] =
            bits_of(number(point, k));
    return image;
  };
  constexpr int of_thread = columns_of_words / 2;
  std::vector<float> before, wanted;
  for (const auto& places : tessera::test::places_of_sums)
    for (int i = 0; i < of_thread; ++i) {
      const int row = places[i % 4] / 8, column = places[i % 4] % 8 + i / 4 * 8;
      before.push_back(static_cast<float>((8 * row + column) % 13 - 6));
      wanted.push_back(before.back());
      for (int k = 16; k < 32; ++k) wanted.back() += left(row, k) * right(column, k);
    }
  DeviceArray<bf16> of_left(image_of(left_across, 64, left)), of_right(image_of(right_across, columns_of_words, right));
  DeviceArray<float> words(before);
  launch((give_sums<left_across, right_across>), dim3(1), dim3(128), 128 * (64 + columns_of_words), nullptr,
         of_left.data(), of_right.data(), words.data());
  return words.values() == wanted;
}

/// "" where every word is as it should be.
template <template <class> class DeviceArray>
std::string wrong_wrapper_of_warpgroups() {
  if (!boxes_are_right<DeviceArray>()) return "copy_box";
  if (!sums_are_right<DeviceArray, false, false>()) return "multiply_add_async";
  if (!sums_are_right<DeviceArray, true, false>()) return "multiply_add_async with the left lines across";
  if (!sums_are_right<DeviceArray, false, true>()) return "multiply_add_async with the right lines across";
  if (!sums_are_right<DeviceArray, true, true>()) return "multiply_add_async with all lines across";
  return "";
}

struct WarpgroupProduct {
  int tile_rows, tile_columns, teams, steps, cluster;
  bool left_deep, right_deep;
  void (*kernel)(TESSERA_MAP left, TESSERA_MAP right, float* out, int rows, int columns, int from, int to);
};
inline int blocks_across(int cluster) { return cluster > 2 ? 2 : 1; }
template <int tile_rows, int tile_columns, int down, int teams, int steps, int cluster, bool left_deep, bool right_deep>
constexpr WarpgroupProduct in_warpgroups{
    tile_rows,  tile_columns,
    teams,      steps,
    cluster,    left_deep,
    right_deep, by_warpgroups<tile_rows, tile_columns, down, teams, steps, cluster, left_deep, right_deep>};

/// Every tile of codegen/cuda/tile.cpp, and every way to store a factor.
const WarpgroupProduct warpgroup_products[] = {
    in_warpgroups<128, 256, 2, 1, 4, 1, true, true>,  in_warpgroups<256, 128, 2, 1, 4, 1, false, false>,
    in_warpgroups<128, 192, 2, 1, 5, 1, true, false>, in_warpgroups<128, 128, 2, 2, 6, 1, false, true>,
    in_warpgroups<128, 64, 2, 1, 4, 1, true, true>,   in_warpgroups<64, 256, 1, 1, 5, 1, false, false>,
    in_warpgroups<64, 128, 1, 1, 4, 1, true, false>,  in_warpgroups<128, 256, 2, 1, 4, 2, false, true>,
    in_warpgroups<128, 192, 2, 1, 5, 2, true, true>,  in_warpgroups<128, 128, 2, 2, 6, 2, true, false>,
    in_warpgroups<128, 64, 2, 1, 4, 2, false, false>, in_warpgroups<64, 128, 1, 1, 4, 2, true, true>,
    in_warpgroups<128, 128, 2, 2, 6, 4, true, true>,  in_warpgroups<128, 128, 2, 2, 6, 4, false, false>,
    in_warpgroups<128, 64, 2, 1, 4, 4, true, false>,  in_warpgroups<128, 128, 2, 1, 6, 2, true, false>};

/// Four groups of matrices, of which each is numbered a little higher than the one before it.
struct FourMatrices {
  Matrices each;
  int from, to;  ///< depths
  std::vector<float> product() const {
    std::vector<float> all;
    for (int group = 0; group < 4; ++group)
      for (int row = 0; row < each.rows; ++row)
        for (int column = 0; column < each.columns; ++column) {
          float sum = 0;
          for (int k = from; k < std::min(to, each.depth); ++k)
            sum += each.left(row + group, k) * each.right(column + 2 * group, k);
          all.push_back(sum);
        }
    return all;
  }
};

/// A factor's numbers, four groups of them, in lines that are multiples of 16 bytes apart; and its map.
template <template <class> class DeviceArray>
class MappedFactor {
 public:
  template <class Number>
  MappedFactor(bool deep, int points, int depths, int box_points, int box_depths, Number number)
      : length_(deep ? depths : points),
        lines_(deep ? points : depths),
        line_((length_ + 7) / 8 * 8),
        box_(deep ? box_points : box_depths),
        factor_(numbers(deep, number)) {}
  CUtensorMap map() {
    const std::int64_t group = std::int64_t{line_} * lines_;
    return tensor_map(factor_.data(), length_, lines_, 2, 2, line_, group, 2 * group, box_);
  }

 private:
  template <class Number>
  std::vector<bf16> numbers(bool deep, Number number) const {
    std::vector<bf16> all(static_cast<std::size_t>(4 * line_ * lines_), bf16{0xffff});
    for (int group = 0; group < 4; ++group)
      for (int i = 0; i < lines_; ++i)
        for (int at = 0; at < length_; ++at)
          all[static_cast<std::size_t>((group * lines_ + i) * line_ + at)] =
              bits_of(deep ? number(group, i, at) : number(group, at, i));
    return all;
  }
  int length_, lines_, line_, box_;
  DeviceArray<bf16> factor_;
};

/// `run` starts the kernel, in blocks of so many threads: run(start, left map, right map, out), start(kernel,
/// arguments...).
template <template <class> class DeviceArray, class Run>
std::vector<float> product_by(const WarpgroupProduct& p, const FourMatrices& m, int threads, Run run) {
  const Matrices& each = m.each;
  const int across = blocks_across(p.cluster), over = p.cluster / across;
  MappedFactor<DeviceArray> left(p.left_deep, each.rows, each.depth, p.tile_rows / across, 64 / across,
                                 [&](int group, int row, int k) { return each.left(row + group, k); });
  MappedFactor<DeviceArray> right(p.right_deep, each.columns, each.depth, p.tile_columns / over, 64 / over,
                                  [&](int group, int column, int k) { return each.right(column + 2 * group, k); });
  DeviceArray<float> out(static_cast<std::size_t>(4 * each.rows * each.columns));
  const dim3 grid(blocks_for(each.rows, p.tile_rows / across), blocks_for(each.columns, p.tile_columns * across), 4);
  const auto bytes = static_cast<std::size_t>(warpgroup_product_bytes(p.tile_rows, p.tile_columns, p.teams, p.steps));
  run([&](auto kernel,
          auto... passed) { launch_warpgroups(kernel, p.cluster, grid, dim3(threads), bytes, nullptr, passed...); },
      left.map(), right.map(), out.data());
  return launches_failed() ? std::vector<float>() : out.values();
}
template <template <class> class DeviceArray>
std::vector<float> product_by(const WarpgroupProduct& p, const FourMatrices& m) {
  return product_by<DeviceArray>(p, m, warpgroup_threads(p.teams), [&](auto start, auto left, auto right, float* out) {
    start(p.kernel, left, right, out, m.each.rows, m.each.columns, m.from, m.to);
  });
}

/// For each team a tile (of a cluster's), and a row, less than two tiles of columns, and more steps than shared memory
/// holds, from one that is not the first to one that ends early.
inline FourMatrices odd_sizes_for(const WarpgroupProduct& p) {
  const int across = blocks_across(p.cluster);
  const int last = p.steps == 3 ? 7 : p.steps + 1;  // of three steps, each place is used three times
  return {{p.teams * (p.cluster / across) * p.tile_rows + 1, across * p.tile_columns + 19, last * 64 + 21},
          64,
          (last + 1) * 64};
}

/// Where faults are planted, and for that a cluster whose teams have two tiles and one, each with more steps than there
/// are places, in an odd number of rounds.
const WarpgroupProduct sound_warpgroups = in_warpgroups<128, 128, 2, 2, 4, 4, true, false>;
constexpr FourMatrices sizes_for_faults{{2 * 2 * 128 + 1, 128 + 19, 5 * 64 + 21}, 64, 6 * 64};

/// A product that sums its left factor's rows, too.
struct SummingProduct {
  WarpgroupProduct product;
  int shares;
  void (*kernel)(TESSERA_MAP left, TESSERA_MAP right, float* out, float* of_rows, int rows, int columns, int from,
                 int to);
};
template <int tile_rows, int tile_columns, int down, int steps, int cluster, bool right_deep, int shares>
constexpr SummingProduct with_sums{
    {tile_rows, tile_columns, 1, steps, cluster, false, right_deep, nullptr},
    shares,
    by_warpgroups_with_sums<tile_rows, tile_columns, down, steps, cluster, right_deep, shares>};
const SummingProduct summing_products[] = {with_sums<128, 192, 2, 5, 2, false, 2>, with_sums<64, 128, 1, 4, 1, true, 1>,
                                           with_sums<256, 128, 2, 4, 1, false, 2>,
                                           with_sums<128, 128, 2, 3, 2, false, 2>};

/// The product, and behind it the sums of rows.
inline std::vector<float> product_and_sums(const SummingProduct& p, const FourMatrices& m) {
  std::vector<float> all = m.product();
  for (int group = 0; group < 4; ++group)
    for (int share = 0; share < p.shares; ++share)
      for (int row = 0; row < m.each.rows; ++row) {
        float sum = 0;
        for (int k = m.from; k < std::min(m.to, m.each.depth); ++k)
          if ((k - m.from) / 64 % p.shares == share) sum += m.each.left(row + group, k);
        all.push_back(sum);
      }
  return all;
}
template <template <class> class DeviceArray>
std::vector<float> product_and_sums_by(const SummingProduct& p, const FourMatrices& m) {
  DeviceArray<float> of_rows(static_cast<std::size_t>(4 * p.shares * m.each.rows));
  std::vector<float> all = product_by<DeviceArray>(
      p.product, m, warpgroup_threads(1) + 32, [&](auto start, auto left, auto right, float* out) {
        start(p.kernel, left, right, out, of_rows.data(), m.each.rows, m.each.columns, m.from, m.to);
      });
  const std::vector<float> sums = of_rows.values();
  all.insert(all.end(), sums.begin(), sums.end());
  return all;
}

}  // namespace
