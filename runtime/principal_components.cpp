#include "runtime/principal_components.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/vectors.hpp"

namespace tessera::runtime {
namespace {

/// Unit vectors at right angles to each other that span the same (Gram-Schmidt, twice for rounding); what depends on
/// those before it is left out.
void orthonormalise(std::vector<std::vector<double>>& vectors) {
  std::vector<std::vector<double>> kept;
  for (std::vector<double>& v : vectors) {
    const double before = std::sqrt(dot(v, v));
    for (int pass = 0; pass < 2; ++pass)
      for (const std::vector<double>& other : kept) {
        const double share = dot(v, other);
        for (std::size_t i = 0; i < v.size(); ++i) v[i] -= share * other[i];
      }
    const double length = std::sqrt(dot(v, v));
    if (!(length > 1e-10 * before)) continue;
    for (double& number : v) number /= length;
    kept.push_back(std::move(v));
  }
  vectors = std::move(kept);
}

/// Eigenvalues of a small symmetric matrix [n, n] on its diagonal, eigenvectors in the columns of the result: Jacobi's
/// rotations (Golub, Van Loan 2013, algorithm 8.5.2).
std::vector<std::vector<double>> diagonalise(std::vector<std::vector<double>>& a) {
  const std::size_t n = a.size();
  std::vector<std::vector<double>> vectors(n, std::vector<double>(n, 0));
  for (std::size_t i = 0; i < n; ++i) vectors[i][i] = 1;
  for (int sweep = 0; sweep < 60; ++sweep) {
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a[p][q] == 0) continue;
        const double tau = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const double t = (tau >= 0 ? 1 : -1) / (std::fabs(tau) + std::sqrt(1 + tau * tau));
        const double c = 1 / std::sqrt(1 + t * t), s = t * c;
        const auto rotate = [&](double& x, double& y) {
          const double before = x;
          x = c * before - s * y;
          y = s * before + c * y;
        };
        for (std::size_t k = 0; k < n; ++k) rotate(a[k][p], a[k][q]);
        for (std::size_t k = 0; k < n; ++k) rotate(a[p][k], a[q][k]);
        for (std::size_t k = 0; k < n; ++k) rotate(vectors[k][p], vectors[k][q]);
      }
  }
  return vectors;
}

}  // namespace

double PrincipalComponents::along(std::size_t direction, std::span<const float> row) const {
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i)
    sum += (static_cast<double>(row[i]) - mean[i]) * directions[direction][i];
  return sum;
}

PrincipalComponents principal_components(std::span<const float> rows, std::int64_t width, std::int64_t directions) {
  const auto d = static_cast<std::size_t>(width), count = rows.size() / d;
  PrincipalComponents result;
  result.mean.assign(d, 0);
  for (std::size_t r = 0; r < count; ++r)
    for (std::size_t i = 0; i < d; ++i) result.mean[i] += static_cast<double>(rows[r * d + i]);
  for (double& mean : result.mean) mean /= static_cast<double>(std::max<std::size_t>(count, 1));

  std::vector<double> covariance(d * d, 0);
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t r = 0; r < count; ++r) {
      const double x = static_cast<double>(rows[r * d + i]) - result.mean[i];
      for (std::size_t j = 0; j < d; ++j)
        covariance[i * d + j] += x * (static_cast<double>(rows[r * d + j]) - result.mean[j]);
    }
  for (double& number : covariance) number /= static_cast<double>(std::max<std::size_t>(count, 2) - 1);

  constexpr std::size_t spare = 5;  // further vectors, so that those that are wanted converge sooner
  constexpr int most_steps = 500;
  std::vector<std::vector<double>> basis(std::min(d, static_cast<std::size_t>(directions) + spare),
                                         std::vector<double>(d));
  for (std::size_t v = 0; v < basis.size(); ++v)
    for (std::size_t i = 0; i < d; ++i)
      basis[v][i] =
          std::sin(static_cast<double>((v + 1) * (i + 1)) + static_cast<double>(v));  // any that are not alike
  orthonormalise(basis);
  const auto times = [&](const std::vector<double>& x) {
    std::vector<double> y(d, 0);
    for (std::size_t i = 0; i < d; ++i)
      y[i] = std::inner_product(x.begin(), x.end(), covariance.begin() + static_cast<std::ptrdiff_t>(i * d), 0.0);
    return y;
  };
  std::vector<double> before;
  for (int step = 0; step < most_steps && !basis.empty(); ++step) {
    std::vector<std::vector<double>> images;
    for (const std::vector<double>& v : basis) images.push_back(times(v));
    std::vector<std::vector<double>> small(basis.size(), std::vector<double>(basis.size()));
    for (std::size_t i = 0; i < basis.size(); ++i)
      for (std::size_t j = 0; j <= i; ++j) small[i][j] = small[j][i] = dot(basis[i], images[j]);
    const std::vector<std::vector<double>> mixed = diagonalise(small);
    std::vector<std::size_t> order(basis.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return small[a][a] > small[b][b]; });
    std::vector<std::vector<double>> ritz, next;
    std::vector<double> values;
    for (const std::size_t k : order) {
      std::vector<double> vector(d, 0), image(d, 0);
      for (std::size_t v = 0; v < basis.size(); ++v)
        for (std::size_t i = 0; i < d; ++i) {
          vector[i] += mixed[v][k] * basis[v][i];
          image[i] += mixed[v][k] * images[v][i];
        }
      values.push_back(std::max(small[k][k], 0.0));
      ritz.push_back(std::move(vector));
      next.push_back(std::move(image));
    }
    const std::size_t wanted = std::min(ritz.size(), static_cast<std::size_t>(directions));
    double apart = 0;  // |C v - lambda v| of those that are wanted, as a share of the largest lambda
    for (std::size_t k = 0; k < wanted; ++k)
      for (std::size_t i = 0; i < d; ++i) apart = std::max(apart, std::fabs(next[k][i] - values[k] * ritz[k][i]));
    if (apart <= 1e-10 * values.front() || step + 1 == most_steps) {
      for (std::size_t k = 0; k < wanted && values[k] > 1e-12 * values.front(); ++k) {
        const auto largest = std::ranges::max_element(ritz[k], {}, [](double x) { return std::fabs(x); });
        if (*largest < 0)
          for (double& number : ritz[k]) number = -number;
        result.directions.push_back(ritz[k]);
        result.variances.push_back(values[k]);
      }
      return result;
    }
    basis = std::move(next);
    orthonormalise(basis);
  }
  return result;
}

}  // namespace tessera::runtime
