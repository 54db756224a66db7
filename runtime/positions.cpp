#include "runtime/positions.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
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

/// The same of distances from -(from / 2) to from / 2, of which neighbours are 1, q, q^2 ... apart from the middle on,
/// with q such that the farthest is to / 2; they are rounded to floats as timm's are.
std::vector<Share> distance_shares(std::int64_t from, std::int64_t to) {
  const std::int64_t far = from / 2, reach = to / 2;
  double q = 1, below = 1.01, above = 1.5;
  while (above - below > 1e-6) {
    q = (below + above) / 2;
    const bool too_far = (1 - std::pow(q, static_cast<double>(far))) / (1 - q) > static_cast<double>(reach);
    (too_far ? above : below) = q;
  }
  std::vector<float> places(static_cast<std::size_t>(2 * far + 1));
  double place = 1;
  for (std::int64_t i = 0; i < far; ++i) {
    places[static_cast<std::size_t>(far + 1 + i)] = static_cast<float>(place);
    places[static_cast<std::size_t>(far - 1 - i)] = static_cast<float>(-place);
    place += std::pow(q, static_cast<double>(i + 1));
  }
  std::vector<Share> all;
  for (std::int64_t i = -reach; i <= reach; ++i) {
    const auto at = static_cast<float>(i);
    const auto right = std::min<std::ptrdiff_t>(std::ranges::lower_bound(places, at) - places.begin(),
                                                static_cast<std::ptrdiff_t>(places.size()) - 1);
    const auto left = std::max<std::ptrdiff_t>(right - 1, 0);
    const double before = std::max(0.0, static_cast<double>(at) - places[static_cast<std::size_t>(left)]);
    const double after = std::max(0.0, static_cast<double>(places[static_cast<std::size_t>(right)]) - at);
    if (left == right || before + after == 0)
      all.push_back({right, {1}});
    else
      all.push_back({left, {after / (before + after), before / (before + after)}});
  }
  return all;
}

/// The same of places between which numbers are linear, and outside of which they are those of the border.
std::vector<Share> linear_shares(std::int64_t from, std::int64_t to) {
  std::vector<Share> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
    const double place = std::clamp(center, 0.0, static_cast<double>(from - 1));
    const auto left = std::min(static_cast<std::int64_t>(place), std::max<std::int64_t>(from - 2, 0));
    const double right = place - static_cast<double>(left);
    all.push_back(from == 1 ? Share{0, {1}} : Share{left, {1 - right, right}});
  }
  return all;
}

/// A grid of `width` numbers a place: first along its rows, then down its columns, as PyTorch does.
std::vector<float> resampled(std::span<const float> grid, std::int64_t columns, std::size_t width,
                             const std::vector<Share>& down, const std::vector<Share>& across) {
  const std::size_t wide = across.size(), rows = grid.size() / width / static_cast<std::size_t>(columns);
  std::vector<double> half(rows * wide * width);
  for (std::size_t y = 0; y < rows; ++y)
    for (std::size_t x = 0; x < wide; ++x)
      for (std::size_t j = 0; j < across[x].weights.size(); ++j) {
        const std::size_t from =
            (y * static_cast<std::size_t>(columns) + static_cast<std::size_t>(across[x].first) + j) * width;
        for (std::size_t d = 0; d < width; ++d)
          half[(y * wide + x) * width + d] += across[x].weights[j] * static_cast<double>(grid[from + d]);
      }
  std::vector<float> result;
  std::vector<double> row(width);
  for (const Share& share : down)
    for (std::size_t x = 0; x < wide; ++x) {
      std::ranges::fill(row, 0.0);
      for (std::size_t j = 0; j < share.weights.size(); ++j) {
        const std::size_t from = ((static_cast<std::size_t>(share.first) + j) * wide + x) * width;
        for (std::size_t d = 0; d < width; ++d) row[d] += share.weights[j] * half[from + d];
      }
      for (const double value : row) result.push_back(static_cast<float>(value));
    }
  return result;
}

bool ends_in_one_of(const std::string& key, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const std::string& name) { return key == name || key.ends_with("." + name); });
}

bool names_positions(const std::string& key) {
  return ends_in_one_of(key, {"pos_embed", "pos_embedding", "position_embeddings", "positional_embedding"});
}

/// 2 rows - 1 by 2 columns - 1.
Grid ways(const Grid& grid) { return {2 * grid.rows - 1, 2 * grid.columns - 1}; }

}  // namespace

bool is_position_table(const std::string& key, const Shape& found, const Shape& needed) {
  const std::size_t rank = needed.size();
  if (!names_positions(key) || found.size() != rank || rank < 2 || rank > 3 || (rank == 3 && needed[0] != 1))
    return false;
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
  const std::size_t rows = static_cast<std::size_t>(how.kept + how.from.rows * how.from.columns);
  const std::size_t width = table.size() / rows, kept = static_cast<std::size_t>(how.kept) * width;
  std::vector<float> result(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(kept));
  const std::vector<float> patches =
      resampled(table.subspan(kept), how.from.columns, width, shares(how.from.rows, how.to.rows),
                shares(how.from.columns, how.to.columns));
  result.insert(result.end(), patches.begin(), patches.end());
  return result;
}

bool is_relative_table(const std::string& key, const Shape& found, const Shape& needed) {
  const std::string name = "relative_position_bias_table";
  return (key == name || key.ends_with("." + name)) && found.size() == 2 && needed.size() == 2 && found[1] == needed[1];
}

std::optional<Resampling> relative_resampling(std::int64_t found, std::int64_t needed, const Grid& to,
                                              const std::optional<Grid>& from) {
  const Grid wanted = ways(to);
  const std::int64_t kept = needed - wanted.rows * wanted.columns, all = found - kept;
  if (to == Grid{} || kept < 0 || all < 1) return std::nullopt;
  if (from) {
    // Not their product, which a hostile file could make overflow.
    if (from->rows > all || from->columns > all) return std::nullopt;
    const Grid told = ways(*from);
    if (all % told.rows != 0 || all / told.rows != told.columns) return std::nullopt;
    return Resampling{kept, *from, to};
  }
  const std::int64_t shared = std::gcd(to.rows, to.columns);
  for (const Grid& unit : {Grid{1, 1}, Grid{to.rows / shared, to.columns / shared}})
    for (std::int64_t scale = 1;; ++scale) {
      const Grid grid{scale * unit.rows, scale * unit.columns}, likely = ways(grid);
      if (likely.rows * likely.columns == all) return Resampling{kept, grid, to};
      if (likely.rows * likely.columns > all) break;
    }
  return std::nullopt;
}

std::vector<float> resample_relative(std::span<const float> table, const Resampling& how) {
  if (how.from == how.to) return {table.begin(), table.end()};
  const Grid from = ways(how.from), to = ways(how.to);
  const auto all = static_cast<std::size_t>(from.rows * from.columns);
  const std::size_t width = table.size() / (all + static_cast<std::size_t>(how.kept));
  std::vector<float> result = resampled(table.first(all * width), from.columns, width,
                                        distance_shares(from.rows, to.rows), distance_shares(from.columns, to.columns));
  result.insert(result.end(), table.begin() + static_cast<std::ptrdiff_t>(all * width), table.end());
  return result;
}

bool is_position_map(const std::string& key, const Shape& found, const Shape& needed) {
  if (!names_positions(key) || found.size() != 4 || needed.size() != 4) return false;
  return found[0] == 1 && needed[0] == 1 && found[1] > 0 && found[2] > 0 && found[3] == needed[3];
}

bool is_distance_table(const std::string& key, const Shape& found, const Shape& needed) {
  if (!ends_in_one_of(key, {"rel_pos_h", "rel_pos_w"}) || found.size() != 2 || needed.size() != 2) return false;
  return found[0] > 0 && found[0] % 2 == 1 && found[1] == needed[1];
}

std::vector<float> resample_distances(std::span<const float> table, std::int64_t found, std::int64_t needed) {
  return resampled(table, 1, table.size() / static_cast<std::size_t>(found), linear_shares(found, needed), {{0, {1}}});
}

}  // namespace tessera::runtime
