// How long something takes that a neighbour on the machine may disturb.
#pragma once

#include <algorithm>
#include <chrono>

namespace tessera::bench {

/// Seconds of the fastest of thirty runs, which should be short, so that on a busy machine some are not interrupted.
template <class Work>
double fastest_of_thirty(Work work) {
  double best = 1e9;
  for (int repeat = 0; repeat < 30; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

}  // namespace tessera::bench
