#include "bench/functions.hpp"

#include "bench/fastest.hpp"

namespace tessera::bench {

double seconds_of(Function function, bool wide) {
  constexpr int passes = 20000, floats = 256;
  if (function == Function::none) return 0;
  alignas(64) float x[floats], y[floats];
  for (int i = 0; i < floats; ++i) x[i] = static_cast<float>(i % 7 - 3);
  const double best = fastest_of(30, [&] {
    for (int pass = 0; pass < passes; ++pass)
      (wide ? apply_avx512 : apply_avx2)(function, x, y, floats / (wide ? 16 : 8));
  });
  return best / (static_cast<double>(passes) * floats);
}

}  // namespace tessera::bench
