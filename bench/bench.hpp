// What the benchmark programs share.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "runtime/arena.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace tessera::bench {

/// Invented numbers between -1 and 1: time does not depend on what they show.
inline runtime::Arena invented(std::int64_t floats, std::int64_t alignment) {
  runtime::Arena arena = runtime::Arena::of_floats(floats, alignment);
  std::uint32_t random = 1;
  for (std::int64_t i = 0; i < floats; ++i) {
    random = random * 1664525u + 1013904223u;
    arena.floats()[i] = static_cast<float>(random >> 8) / 8388608.0f - 1;
  }
  return arena;
}

/// How many threads the models work with.
inline int threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

/// Runs call, which answers an error code, as often as Google Benchmark asks. Returns the seconds of the fastest run,
/// which is what a ceiling may be compared with: of that, too, the fastest run counts. 0 where a run failed, which is
/// reported.
template <class Call, class Sentence>
double fastest(benchmark::State& state, const Call& call, const Sentence& sentence) {
  double best = 1e9;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    if (const int code = call()) {
      state.SkipWithError(sentence(code));
      return 0;
    }
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

}  // namespace tessera::bench
