// The directions in which rows of numbers differ most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::runtime {

/// The mean row, and directions of unit length: of all, the variance of the rows along the first is largest, along the
/// next the largest of those at right angles to it, and so on.
struct PrincipalComponents {
  std::vector<double> mean;
  std::vector<std::vector<double>> directions;
  std::vector<double> variances;  ///< along each

  /// How far a row lies from the mean along a direction.
  double along(std::size_t direction, std::span<const float> row) const;
};

/// Of rows [count, width], `count` directions or as many as they span, whichever is less: the eigenvectors of the
/// covariance matrix with the largest eigenvalues, by subspace iteration with Rayleigh-Ritz steps (Saad 2011,
/// "Numerical Methods for Large Eigenvalue Problems", algorithm 5.3) from fixed vectors. The sign of a direction is
/// such that its largest number is positive. sklearn equivalent: PCA(directions).fit(rows).components_
PrincipalComponents principal_components(std::span<const float> rows, std::int64_t width, std::int64_t directions);

}  // namespace tessera::runtime
