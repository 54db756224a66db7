// The ways to run a kernel on the CPU: orders of its threads, early and late copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/cuda/host/run.hpp"

namespace tessera::cuda_host {

inline std::vector<Options> all_options() {
  std::vector<Options> all;
  for (const bool late : {false, true}) {
    all.push_back({Schedule::fixed, 1, late, true});
    all.push_back({Schedule::reversed, 1, late, true});
    // Also rounded to nearest, and as an A100 adds, which an H100's warpgroups need not do.
    for (const int at_once : {0, 8})
      all.push_back({Schedule::random, static_cast<std::uint64_t>(8 + at_once), late, true, 0, at_once});
  }
  return all;
}

/// How many of the eight ways to run it give `wanted` everywhere; what breaks a rule gives nothing.
template <class F>
std::size_t right_runs(const std::vector<float>& wanted, F run) {
  std::size_t right = 0;
  for (const Options& options : all_options()) {
    use(options);
    try {
      right += run() == wanted ? 1 : 0;
    } catch (const Fault&) {
    }
  }
  use({});
  return right;
}

/// Whether all of them do.
template <class F>
bool always_right(const std::vector<float>& wanted, F run) {
  bool right = true;
  for (const Options& options : all_options()) {
    use(options);
    try {
      right = right && run() == wanted;
    } catch (const Fault&) {
      right = false;
    }
  }
  use({});
  return right;
}

}  // namespace tessera::cuda_host
