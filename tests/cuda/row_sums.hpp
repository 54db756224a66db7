// Sums over rows as kernels of rows make them, by the device's own text or with a fault in it.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/cuda/host/device_array.hpp"
#include "tests/cuda/right_runs.hpp"

/// Of 23 rows of 70 numbers by three blocks of four warps, of which one has no row in the end.
inline std::size_t right_sums_over_rows(decltype(&sum_rows) kernel) {
  constexpr int rows = 23, length = 70, padded = 96, blocks = 3, warps = 4;
  std::vector<float> x(rows * length), wanted(blocks * 2 * padded);
  for (int row = 0; row < rows; ++row)
    for (int d = 0; d < length; ++d) {
      const auto number = static_cast<float>(row * 37 % 11 + d);
      x[static_cast<std::size_t>(row * length + d)] = number;
      const int sums = row / warps % blocks * 2 * padded;
      wanted[static_cast<std::size_t>(sums + d)] += number;
      wanted[static_cast<std::size_t>(sums + padded + d)] += 2 * number;
    }
  return tessera::cuda_host::right_runs(wanted, [&] {
    tessera::cuda_host::DeviceArray<float> numbers(x), out(wanted.size());
    launch_named("sum_rows", kernel, dim3(blocks), dim3(32 * warps), warps * 2 * padded * sizeof(float), nullptr,
                 numbers.data(), out.data(), rows, length, blocks);
    return out.values();
  });
}

inline void reduce_over_groups(float* out) { out[thread_x()] = sum_over_warps<8>(static_cast<real>(thread_x())); }
/// Of eight groups of eight threads.
inline std::size_t right_sums_over_groups() {
  std::vector<float> wanted;
  for (int thread = 0; thread < 64; ++thread) wanted.push_back(static_cast<float>(8 * (thread % 8) + 8 * 28));
  return tessera::cuda_host::right_runs(wanted, [] {
    tessera::cuda_host::DeviceArray<float> out(64);
    launch_named("reduce_over_groups", reduce_over_groups, dim3(1), dim3(64), 64 * sizeof(float), nullptr, out.data());
    return out.values();
  });
}

/// All at once, and a part after the other.
inline void go_through_steps(float* out) {
  int count = 0;
  const auto put = [&](int step) { out[count++] = static_cast<real>(step); };
  unrolled<4, 4>(put);
  unrolled<6, 3>(put);
}
inline std::size_t right_unrolled_steps() {
  return tessera::cuda_host::right_runs({0, 1, 2, 3, 0, 1, 2, 3, 4, 5}, [] {
    tessera::cuda_host::DeviceArray<float> out(10);
    launch_named("go_through_steps", go_through_steps, dim3(1), dim3(1), 0, nullptr, out.data());
    return out.values();
  });
}
