#include "runtime/positions.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tessera::runtime {
namespace {

constexpr std::int64_t most_kept = 17;  // a class token and sixteen registers: more is no such table

/// The grid of so many patches in the proportions of height : width.
std::optional<Grid> grid_of(std::int64_t patches, std::int64_t height, std::int64_t width) {
  const std::int64_t shared = std::gcd(height, width), down = height / shared, across = width / shared;
  const auto scale = std::llround(std::sqrt(static_cast<double>(patches) / static_cast<double>(down * across)));
  if (scale < 1 || scale * scale * down * across != patches) return std::nullopt;
  return Grid{scale * down, scale * across};
}

/// Keys 1981, Cubic convolution interpolation for digital image processing, with a = -0.5.
double cubic(double x) {
  x = std::abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
  return 0;
}

/// What each of `to` places takes of which of `from` places: weights that sum to one.
struct Share {
  std::int64_t first = 0;
  std::vector<double> weights;
};

std::vector<Share> shares(std::int64_t from, std::int64_t to) {
  const double step = static_cast<double>(from) / static_cast<double>(to), wide = std::max(step, 1.0);
  std::vector<Share> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const double center = step * (static_cast<double>(i) + 0.5);
    Share share;
    share.first = std::max<std::int64_t>(static_cast<std::int64_t>(center - 2 * wide + 0.5), 0);
    const std::int64_t end = std::min(static_cast<std::int64_t>(center + 2 * wide + 0.5), from);
    double sum = 0;
    for (std::int64_t j = share.first; j < end; ++j) {
      share.weights.push_back(cubic((static_cast<double>(j) - center + 0.5) / wide));
      sum += share.weights.back();
    }
    for (double& weight : share.weights) weight /= sum;
    all.push_back(std::move(share));
  }
  return all;
}

}  // namespace

bool is_position_table(const std::string& key, const Shape& found, const Shape& needed) {
  const bool named = std::ranges::any_of(
      std::vector<std::string>{"pos_embed", "pos_embedding", "position_embeddings", "positional_embedding"},
      [&](const std::string& name) { return key == name || key.ends_with("." + name); });
  const std::size_t rank = needed.size();
  if (!named || found.size() != rank || rank < 2 || rank > 3 || (rank == 3 && needed[0] != 1)) return false;
  Shape same = found;
  same[rank - 2] = needed[rank - 2];
  return same == needed && found != needed;
}

std::optional<Resampling> resampling(std::int64_t found, std::int64_t needed, std::int64_t height, std::int64_t width) {
  for (std::int64_t kept = 0; kept < std::min({found, needed, most_kept}); ++kept) {
    const std::optional<Grid> from = grid_of(found - kept, height, width), to = grid_of(needed - kept, height, width);
    if (from && to) return Resampling{kept, *from, *to};
  }
  return std::nullopt;
}

std::vector<float> resample(std::span<const float> table, const Resampling& how) {
  const std::int64_t rows = how.kept + how.from.rows * how.from.columns;
  const std::int64_t width = static_cast<std::int64_t>(table.size()) / rows;
  const auto at = [width](std::int64_t row) { return static_cast<std::size_t>(row * width); };
  const std::vector<Share> across = shares(how.from.columns, how.to.columns), down = shares(how.from.rows, how.to.rows);

  // First along the rows of the grid, then down its columns, as PyTorch does.
  std::vector<double> half(at(how.from.rows * how.to.columns));
  for (std::int64_t y = 0; y < how.from.rows; ++y)
    for (std::int64_t x = 0; x < how.to.columns; ++x) {
      const Share& share = across[static_cast<std::size_t>(x)];
      for (std::size_t j = 0; j < share.weights.size(); ++j) {
        const std::size_t from = at(how.kept + y * how.from.columns + share.first + static_cast<std::int64_t>(j));
        for (std::size_t d = 0; d < at(1); ++d)
          half[at(y * how.to.columns + x) + d] += share.weights[j] * static_cast<double>(table[from + d]);
      }
    }
  std::vector<float> result(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(at(how.kept)));
  std::vector<double> row(at(1));
  for (std::int64_t y = 0; y < how.to.rows; ++y)
    for (std::int64_t x = 0; x < how.to.columns; ++x) {
      const Share& share = down[static_cast<std::size_t>(y)];
      std::ranges::fill(row, 0.0);
      for (std::size_t j = 0; j < share.weights.size(); ++j) {
        const std::size_t from = at((share.first + static_cast<std::int64_t>(j)) * how.to.columns + x);
        for (std::size_t d = 0; d < at(1); ++d) row[d] += share.weights[j] * half[from + d];
      }
      for (const double value : row) result.push_back(static_cast<float>(value));
    }
  return result;
}

}  // namespace tessera::runtime
