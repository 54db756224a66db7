// How long something takes that a neighbour on the machine may disturb.
#pragma once

#include <algorithm>
#include <chrono>

namespace tessera::bench {

/// Seconds of the fastest of so many runs, which should be short, so that on a busy machine some are not interrupted.
template <class Work>
double fastest_of(int runs, Work work) {
  double best = 1e9;
  for (int run = 0; run < runs; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

}  // namespace tessera::bench
