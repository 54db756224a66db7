#include "runtime/positions.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "runtime/error.hpp"

namespace tessera::runtime {
namespace {

constexpr const char* key = "patch_grid";

/// The grid of so many patches in the proportions of down : across.
std::optional<Grid> in_proportion(std::int64_t patches, std::int64_t down, std::int64_t across) {
  const std::int64_t shared = std::gcd(down, across);
  down /= shared, across /= shared;
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
  return same == needed;
}

std::optional<Grid> grid_of(const Safetensors& file) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) return std::nullopt;
  Grid grid;
  const char *const begin = found->second.data(), *const end = begin + found->second.size();
  const auto rows = std::from_chars(begin, end, grid.rows);
  if (rows.ec != std::errc{} || rows.ptr == end || *rows.ptr != 'x') return std::nullopt;
  const auto columns = std::from_chars(rows.ptr + 1, end, grid.columns);
  if (columns.ec != std::errc{} || columns.ptr != end || grid.rows < 1 || grid.columns < 1) return std::nullopt;
  return grid;
}

void tell_grid(Safetensors& file, const Grid& grid) {
  if (grid != Grid{}) file.metadata[key] = text(grid.rows, "x", grid.columns);
}

std::optional<Resampling> resampling(std::int64_t found, std::int64_t needed, const Grid& to,
                                     const std::optional<Grid>& from) {
  const std::int64_t kept = needed - to.rows * to.columns, patches = found - kept;
  if (to == Grid{} || kept < 0 || patches < 1) return std::nullopt;
  if (from) {
    // Not their product, which a hostile file could make overflow.
    if (patches % from->rows != 0 || patches / from->rows != from->columns) return std::nullopt;
    return Resampling{kept, *from, to};
  }
  std::optional<Grid> likely = in_proportion(patches, 1, 1);
  if (!likely) likely = in_proportion(patches, to.rows, to.columns);
  return likely ? std::optional(Resampling{kept, *likely, to}) : std::nullopt;
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
