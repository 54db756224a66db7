// What a kernel asks of the machine: the twin of codegen/cuda/device/cuda.h for run.hpp. An emitted file includes it in
// the place of the other where TESSERA_DEVICE_HEADER names it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tests/cuda/host/cuda_runtime.hpp"
#include "tests/cuda/host/run.hpp"

#define TESSERA_DEVICE [[maybe_unused]] inline
#define TESSERA_UNROLL
#define TESSERA_UNROLL_BY_4
#define TESSERA_ROLLED
#define __device__
#define __global__
#define __launch_bounds__(...)
#define TESSERA_WARPGROUPS true
#define TESSERA_THREADS_OF_WARPGROUPS(count) count
#define TESSERA_MAP const CUtensorMap

namespace {

struct bf16 {
  std::uint16_t bits;
};

/// What the lanes of a warp hand in, and what is made of it.
namespace together {

inline float to_float(std::uint32_t bits) {
  bits <<= 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Rounded to nearest, ties to even.
inline std::uint32_t to_bf16(float value) {
  if (std::isnan(value)) return 0x7fff;
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

template <class Word>
struct Shuffle {
  Word value, other;
  int bits;
};
struct Matrices {
  std::uint32_t* part;
  const bf16* row;
  bool transposed;
};
struct MultiplyAdd {
  float* sum;
  const std::uint32_t *left, *right;
};

inline void load_matrices(void* const lanes[32]) {
  for (int matrix = 0; matrix < 4; ++matrix) {
    const void* rows[8];
    for (int i = 0; i < 8; ++i) rows[i] = static_cast<const Matrices*>(lanes[8 * matrix + i])->row;
    tessera::cuda_host::read_at_once(rows);
  }
  for (int lane = 0; lane < 32; ++lane) {
    const Matrices& mine = *static_cast<const Matrices*>(lanes[lane]);
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::uint32_t pair[2];
      for (int i = 0; i < 2; ++i) {
        const int row = mine.transposed ? lane % 4 * 2 + i : lane / 4,
                  column = mine.transposed ? lane / 4 : lane % 4 * 2 + i;
        pair[i] = static_cast<const Matrices*>(lanes[8 * matrix + row])->row[column].bits;
      }
      mine.part[matrix] = pair[0] | pair[1] << 16;
    }
  }
}

/// The fragments of mma.m16n8k16, PTX ISA 9.7.14.5.8.
inline void multiply_add(void* const lanes[32]) {
  float left[16][16], right[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const MultiplyAdd& mine = *static_cast<const MultiplyAdd*>(lanes[lane]);
    const int group = lane / 4, pair = lane % 4 * 2;
    for (int i = 0; i < 8; ++i)
      left[group + (i / 2 % 2) * 8][pair + i % 2 + (i / 4) * 8] = to_float(mine.left[i / 2] >> i % 2 * 16 & 0xffff);
    for (int i = 0; i < 4; ++i)
      right[pair + i % 2 + (i / 2) * 8][group] = to_float(mine.right[i / 2] >> i % 2 * 16 & 0xffff);
  }
  for (int lane = 0; lane < 32; ++lane) {
    const MultiplyAdd& mine = *static_cast<const MultiplyAdd*>(lanes[lane]);
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      float products[16];
      for (int k = 0; k < 16; ++k) products[k] = left[row][k] * right[k][column];
      mine.sum[i] = tessera::cuda_host::with_products(mine.sum[i], products);
    }
  }
}

}  // namespace together

TESSERA_DEVICE bf16 rounded(float value) { return {static_cast<std::uint16_t>(together::to_bf16(value))}; }
TESSERA_DEVICE std::uint32_t rounded_pair(float first, float second) {
  return together::to_bf16(first) | together::to_bf16(second) << 16;
}
TESSERA_DEVICE float widened(bf16 value) { return together::to_float(value.bits); }
TESSERA_DEVICE float in_bf16(float value) { return widened(rounded(value)); }

using tessera::cuda_host::Place;

TESSERA_DEVICE int same_in_warp(int number) { return number; }
TESSERA_DEVICE int made_anew(int number) { return number; }
TESSERA_DEVICE float difference(float a, float b) { return a - b; }
TESSERA_DEVICE float power_of_two(float x) { return std::exp2(x); }
TESSERA_DEVICE float reciprocal(float x) { return 1.0f / x; }
TESSERA_DEVICE int thread_x() { return tessera::cuda_host::current().thread; }
TESSERA_DEVICE int threads() { return static_cast<int>(tessera::cuda_host::block_size().x); }
TESSERA_DEVICE int block_x() { return static_cast<int>(tessera::cuda_host::current().block.x); }
TESSERA_DEVICE int block_y() { return static_cast<int>(tessera::cuda_host::current().block.y); }
TESSERA_DEVICE int block_z() { return static_cast<int>(tessera::cuda_host::current().block.z); }

TESSERA_DEVICE int blocks_x() { return static_cast<int>(tessera::cuda_host::grid_size().x); }

TESSERA_DEVICE void barrier(const Place& place = Place::current()) { tessera::cuda_host::barrier(place); }
/// By a name that no other barrier has.
TESSERA_DEVICE void warp_barrier(const Place& place = Place::current()) {
  tessera::cuda_host::barrier_of(-1 - thread_x() / 32, 32, place);
}

template <class Word>
TESSERA_DEVICE Word shuffle_xor(Word value, int bits, const Place& place = Place::current()) {
  together::Shuffle<Word> mine{value, {}, bits};
  const auto exchange = [](void* const lanes[32]) {
    for (int lane = 0; lane < 32; ++lane) {
      auto& reader = *static_cast<together::Shuffle<Word>*>(lanes[lane]);
      reader.other = static_cast<const together::Shuffle<Word>*>(lanes[lane ^ reader.bits])->value;
    }
  };
  tessera::cuda_host::warp(place, &mine, exchange, false);
  return mine.other;
}

TESSERA_DEVICE void store_16_bytes(void* to, const std::uint32_t (&words)[4]) {
  tessera::cuda_host::check_aligned(to, 16);
  std::memcpy(to, words, 16);
}

template <class T>
TESSERA_DEVICE T* shared_memory() {
  return reinterpret_cast<T*>(tessera::cuda_host::shared_bytes());
}

TESSERA_DEVICE void copy_async(void* to, const void* from, int valid) {
  tessera::cuda_host::copy_async(to, from, valid);
}
TESSERA_DEVICE void copy_commit() { tessera::cuda_host::copy_commit(); }
template <int left>
TESSERA_DEVICE void copy_wait() {
  tessera::cuda_host::copy_wait(left);
}

TESSERA_DEVICE void load_matrices(std::uint32_t part[4], const bf16* row, const Place& place = Place::current()) {
  together::Matrices mine{part, row, false};
  tessera::cuda_host::reads(row, 16);
  tessera::cuda_host::warp(place, &mine, together::load_matrices);
}
TESSERA_DEVICE void load_matrices_transposed(std::uint32_t part[4], const bf16* row,
                                             const Place& place = Place::current()) {
  together::Matrices mine{part, row, true};
  tessera::cuda_host::reads(row, 16);
  tessera::cuda_host::warp(place, &mine, together::load_matrices);
}
TESSERA_DEVICE void multiply_add(float sum[4], const std::uint32_t left[4], const std::uint32_t right[2],
                                 const Place& place = Place::current()) {
  together::MultiplyAdd mine{sum, left, right};
  tessera::cuda_host::warp(place, &mine, together::multiply_add);
}

template <class T>
TESSERA_DEVICE T* shared_tiles() {
  return shared_memory<T>();  // here, both begin on a multiple of 1024 bytes
}
TESSERA_DEVICE std::uint32_t shared_address(const void* place) { return tessera::cuda_host::shared_address(place); }
typedef std::uint64_t Gate;
TESSERA_DEVICE void gate_begin(Gate* gate, int arrivals) { tessera::cuda_host::gate_begin(gate, arrivals); }
template <int cluster>
TESSERA_DEVICE void gate_arrive(Gate* gate, int block) {
  cluster == 1 ? tessera::cuda_host::gate_arrive(gate, 0) : tessera::cuda_host::gate_arrive_in(gate, block);
}
TESSERA_DEVICE void gate_expect(Gate* gate, int bytes) { tessera::cuda_host::gate_arrive(gate, bytes); }
TESSERA_DEVICE void gate_wait(Gate* gate, int parity, const Place& place = Place::current()) {
  tessera::cuda_host::gate_wait(gate, parity, place);
}
TESSERA_DEVICE void asynchronous_fence() { tessera::cuda_host::asynchronous_fence(); }
template <int cluster>
TESSERA_DEVICE void cluster_barrier(const Place& place = Place::current()) {
  cluster == 1 ? tessera::cuda_host::barrier(place) : tessera::cuda_host::cluster_barrier(true, place);
}
template <int cluster>
TESSERA_DEVICE void barrier_of_gates(const Place& place = Place::current()) {
  cluster == 1 ? tessera::cuda_host::barrier(place) : tessera::cuda_host::cluster_barrier(false, place);
}
typedef tessera::cuda_host::TensorMap CUtensorMap;
TESSERA_DEVICE void prefetch_map(const CUtensorMap&) {}
template <int sharing>
TESSERA_DEVICE void copy_box(bf16* to, const CUtensorMap& map, Gate* gate, int blocks, int along, int across, int third,
                             int fourth) {
  tessera::cuda_host::copy_box(to, map, gate, {along, across, third, fourth}, sharing, blocks);
}
template <int name, int count>
TESSERA_DEVICE void barrier_of(const Place& place = Place::current()) {
  tessera::cuda_host::barrier_of(name, count, place);
}
TESSERA_DEVICE void multiplications_begin(const Place& place = Place::current()) {
  tessera::cuda_host::multiplications_begin(place);
}
TESSERA_DEVICE void multiplications_commit(const Place& place = Place::current()) {
  tessera::cuda_host::multiplications_commit(place);
}
template <int left>
TESSERA_DEVICE void multiplications_wait(const Place& place = Place::current()) {
  tessera::cuda_host::multiplications_wait(left, place);
}
template <int columns, bool left_across, bool right_across>
TESSERA_DEVICE void multiply_add_async(float (&sums)[columns / 2], std::uint64_t left, std::uint64_t right,
                                       const Place& place = Place::current()) {
  tessera::cuda_host::multiply_add_async({sums, columns, left_across, right_across, left, right}, place);
}

typedef cudaStream_t Stream;

[[maybe_unused]] inline unsigned blocks_for(std::int64_t count, int size) {
  return static_cast<unsigned>((count + size - 1) / size);
}

/// Of no GPU that there is.
[[maybe_unused]] inline int sm_count() { return 8; }

[[maybe_unused]] inline bool& shared_memory_missing() {
  static thread_local bool missing = false;
  return missing;
}
[[maybe_unused]] inline bool allow_shared(std::size_t bytes) {
  const bool there = bytes <= tessera::cuda_host::most_shared_bytes();
  shared_memory_missing() = shared_memory_missing() || !there;
  return there;
}

template <class... Parameters, class... Arguments>
void launch_named(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                  Stream stream, Arguments... arguments) {
  if (!allow_shared(shared_bytes)) return;
  tessera::cuda_host::put(
      stream, [=] { tessera::cuda_host::run(name, grid, block, shared_bytes, [=] { kernel(arguments...); }); });
}
#define launch(kernel, ...) launch_named(#kernel, kernel, __VA_ARGS__)
template <class... Parameters, class... Arguments>
void launch_clusters_named(const char* name, void (*kernel)(Parameters...), int cluster, dim3 grid, dim3 block,
                           std::size_t shared_bytes, Stream stream, Arguments... arguments) {
  if (!allow_shared(shared_bytes)) return;
  const unsigned size = static_cast<unsigned>(cluster);
  grid.x = (grid.x + size - 1) / size * size;
  tessera::cuda_host::put(
      stream, [=] { tessera::cuda_host::run(name, grid, block, shared_bytes, [=] { kernel(arguments...); }, size); });
}
#define launch_clusters(kernel, ...) launch_clusters_named(#kernel, kernel, __VA_ARGS__)
/// As if there were room for a third of the clusters: some blocks have more tiles than one.
template <class... Parameters, class... Arguments>
void launch_warpgroups_named(const char* name, void (*kernel)(Parameters...), int cluster, dim3 grid, dim3 block,
                             std::size_t shared_bytes, Stream stream, Arguments... arguments) {
  const unsigned size = static_cast<unsigned>(cluster), clusters = (grid.x + size - 1) / size * grid.y;
  launch_clusters_named(name, kernel, cluster, dim3((clusters + 2) / 3 * size, 1, grid.z), block, shared_bytes, stream,
                        arguments...);
}
#define launch_warpgroups(kernel, ...) launch_warpgroups_named(#kernel, kernel, __VA_ARGS__)

template <class... Parameters>
bool can_launch(void (*)(Parameters...)) {
  return tessera::cuda_host::has_warpgroups();
}
[[maybe_unused]] inline bool& maps_failed() {
  static thread_local bool failed = false;
  return failed;
}
[[maybe_unused]] inline CUtensorMap tensor_map(const bf16* first, std::int64_t along, std::int64_t across,
                                               std::int64_t third, std::int64_t fourth, std::int64_t to_across,
                                               std::int64_t to_third, std::int64_t to_fourth, int lines) {
  const CUtensorMap map{first, {along, across, third, fourth}, {2, 2 * to_across, 2 * to_third, 2 * to_fourth}, lines};
  maps_failed() = maps_failed() || !tessera::cuda_host::is_possible(map);
  return map;
}
[[maybe_unused]] inline bool launches_failed() { return std::exchange(maps_failed(), false); }
[[maybe_unused]] inline int launch_code(int done, int refused, int without_memory) {
  const bool failed = launches_failed();
  if (std::exchange(shared_memory_missing(), false)) return without_memory;
  return failed ? refused : done;
}

}  // namespace
