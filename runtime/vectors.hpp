// Sums over rows of numbers, in double precision.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tessera::runtime {

/// The sum of a[i] b[i]; both are of one length.
template <class A, class B>
double dot(std::span<const A> a, std::span<const B> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}
inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return dot(std::span<const double>(a), std::span<const double>(b));
}

}  // namespace tessera::runtime
