// The machine's fused multiply-adds: what kernels are measured against. Built by peers/cpu.py, run in its process.
#include <immintrin.h>

#include <chrono>
#include <cstdint>

namespace {

constexpr std::int64_t rounds = 20'000'000;

// Ten independent sums hide the latency of a fused multiply-add, with one vector and with two a cycle.
__attribute__((target("avx512f"))) float sum_avx512() {
  __m512 sum[10];
  for (int i = 0; i < 10; ++i) sum[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (std::int64_t r = 0; r < rounds / 10; ++r)
#pragma GCC unroll 10
    for (int i = 0; i < 10; ++i) sum[i] = _mm512_fmadd_ps(sum[i], a, b);
  float all = 0;
  for (const __m512& s : sum) all += _mm512_reduce_add_ps(s);
  return all;
}

__attribute__((target("avx2,fma"))) float sum_avx2() {
  __m256 sum[10];
  for (int i = 0; i < 10; ++i) sum[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (std::int64_t r = 0; r < rounds / 10; ++r)
#pragma GCC unroll 10
    for (int i = 0; i < 10; ++i) sum[i] = _mm256_fmadd_ps(sum[i], a, b);
  float all = 0;
  for (const __m256& s : sum) all += s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
  return all;
}

}  // namespace

/// GFLOP/s of fused multiply-adds on registers, on so many threads; 0 where the processor lacks the instructions.
extern "C" double ceiling_gflops(int wide, int threads) {
  __builtin_cpu_init();
  if (wide ? !__builtin_cpu_supports("avx512f") : !__builtin_cpu_supports("fma")) return 0;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    float sink = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : sink)
    for (int t = 0; t < threads; ++t) sink += wide ? sum_avx512() : sum_avx2();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double flops = static_cast<double>(rounds) * (wide ? 32 : 16) * threads;
    if (sink != 0.5f && flops / seconds / 1e9 > best) best = flops / seconds / 1e9;
  }
  return best;
}
