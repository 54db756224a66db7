// A loop whose turns do not depend on one another, shared out to threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

namespace tessera::runtime {

/// Calls body(i) for every i from 0 to `count`. Where several throw, rethrows what the smallest i threw, whatever the
/// number of threads.
template <class Body>
void parallel_for(std::int64_t count, Body body) {
  std::atomic<std::int64_t> first_bad = count;
  std::exception_ptr problem;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
  for (std::int64_t i = 0; i < count; ++i) {
    if (i > first_bad) continue;
    try {
      body(i);
    } catch (...) {
#ifdef _OPENMP
#pragma omp critical
#endif
      if (i < first_bad) first_bad = i, problem = std::current_exception();
    }
  }
  if (problem) std::rethrow_exception(problem);
}

}  // namespace tessera::runtime
