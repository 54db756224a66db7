#include "bench/ceiling.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "bench/fastest.hpp"

namespace {

/// Multiply-adds of a run: the processor keeps the clock of what ran before for some milliseconds.
constexpr std::int64_t at_rest = 5'000'000, after_work = 1'000'000;

// Ten independent sums hide the latency of a fused multiply-add, with one vector and with two a cycle.
__attribute__((target("avx512f"))) float sum_avx512(std::int64_t rounds) {
  __m512 sum[10];
  for (int i = 0; i < 10; ++i) sum[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (std::int64_t r = 0; r < rounds / 10; ++r)
#pragma GCC unroll 10
    for (int i = 0; i < 10; ++i) sum[i] = _mm512_fmadd_ps(sum[i], a, b);
  float all = 0;
  for (const __m512& s : sum)
    for (int i = 0; i < 16; ++i) all += s[i];
  return all;
}

__attribute__((target("avx2,fma"))) float sum_avx2(std::int64_t rounds) {
  __m256 sum[10];
  for (int i = 0; i < 10; ++i) sum[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (std::int64_t r = 0; r < rounds / 10; ++r)
#pragma GCC unroll 10
    for (int i = 0; i < 10; ++i) sum[i] = _mm256_fmadd_ps(sum[i], a, b);
  float all = 0;
  for (const __m256& s : sum)
    for (int i = 0; i < 8; ++i) all += s[i];
  return all;
}

__attribute__((target("avx512f"))) void copy_avx512(const float* x, float* y, std::int64_t floats) {
  for (std::int64_t i = 0; i + 32 <= floats; i += 32)
    for (int k = 0; k < 32; k += 16) {
      const __m512 v = _mm512_loadu_ps(x + i + k);
      _mm512_storeu_ps(y + i + k, _mm512_add_ps(v, v));
    }
}

__attribute__((target("avx2"))) void copy_avx2(const float* x, float* y, std::int64_t floats) {
  for (std::int64_t i = 0; i + 32 <= floats; i += 32)
    for (int k = 0; k < 32; k += 8) {
      const __m256 v = _mm256_loadu_ps(x + i + k);
      _mm256_storeu_ps(y + i + k, _mm256_add_ps(v, v));
    }
}

bool can(int wide) {
  __builtin_cpu_init();
  return wide ? __builtin_cpu_supports("avx512f") : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

void sum_on(int wide, int threads, std::int64_t rounds) {
  float sink = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : sink)
  for (int t = 0; t < threads; ++t) sink += wide ? sum_avx512(rounds) : sum_avx2(rounds);
  volatile float result = sink;
  (void)result;
}

double fastest_gflops(int runs, int wide, int threads, std::int64_t rounds) {
  const double seconds = tessera::bench::fastest_of(runs, [&] { sum_on(wide, threads, rounds); });
  return static_cast<double>(rounds) * (wide ? 32 : 16) * threads / seconds / 1e9;
}

}  // namespace

double ceiling_gflops(int wide, int threads) {
  if (!can(wide)) return 0;
  return fastest_gflops(30, wide, threads, at_rest);
}

double ceiling_after_work_gflops(int wide, int threads) {
  if (!can(wide)) return 0;
  sum_on(wide, threads, after_work);  // the change to nothing but multiply-adds takes a moment
  return fastest_gflops(3, wide, threads, after_work);
}

double ceiling_copy_gbytes(int wide, int threads, std::int64_t floats) {
  if (!can(wide)) return 0;
  constexpr std::int64_t line = 16;  // floats
  const std::int64_t part = std::max(floats / threads / 32 * 32, std::int64_t{32});
  std::vector<float> memory(static_cast<std::size_t>(2 * part * threads + 2 * line));
  void* start = memory.data();
  std::size_t space = memory.size() * sizeof(float);
  float* const x = static_cast<float*>(std::align(64, line * sizeof(float), start, space));
  float* const y = x + part * threads;
  const std::int64_t passes = 10'000'000 / (part * threads) + 1;
  const double best = tessera::bench::fastest_of(30, [&] {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; ++t)
      for (std::int64_t pass = 0; pass < passes; ++pass) {
        (wide ? copy_avx512 : copy_avx2)(x + t * part, y + t * part, part);
        asm volatile("" ::: "memory");  // each pass happens
      }
  });
  return 8.0 * static_cast<double>(part * threads) * static_cast<double>(passes) / best / 1e9;
}
