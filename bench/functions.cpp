#include "bench/functions.hpp"

#include <algorithm>
#include <chrono>

namespace tessera::bench {

double seconds_of(Function function, bool wide) {
  constexpr int passes = 20000, floats = 256;
  if (function == Function::none) return 0;
  alignas(64) float x[floats], y[floats];
  for (int i = 0; i < floats; ++i) x[i] = static_cast<float>(i % 7 - 3);
  double best = 1e9;
  for (int repeat = 0; repeat < 30; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    for (int pass = 0; pass < passes; ++pass)
      (wide ? apply_avx512 : apply_avx2)(function, x, y, floats / (wide ? 16 : 8));
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best / (static_cast<double>(passes) * floats);
}

}  // namespace tessera::bench
