// Position tables for another number of patches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/safetensors.hpp"

namespace tessera::runtime {

/// Rows and columns of patches.
struct Grid {
  std::int64_t rows = 0, columns = 0;
  bool operator==(const Grid&) const = default;
};

/// How a table of one row a token becomes one for another grid.
struct Resampling {
  std::int64_t kept = 0;  ///< rows in front that belong to no patch: class token, registers
  Grid from, to;
};

/// Whether a parameter is a table of learned positions that only has another number of tokens: its key ends in
/// "pos_embed", "pos_embedding", "position_embeddings" or "positional_embedding", and its shape [1, N, D] or [N, D]
/// differs in N alone.
bool is_position_table(const std::string& key, const Shape& found, const Shape& needed);

/// How `found` rows become `needed` ones for images of height x width. Neither number tells its grid: both grids are
/// taken to have the image's proportions (square patches), and as few rows as possible to belong to no patch. Nothing
/// where the numbers allow no such grids.
std::optional<Resampling> resampling(std::int64_t found, std::int64_t needed, std::int64_t height, std::int64_t width);

/// The table [kept + to.rows * to.columns, width] of `table` [kept + from.rows * from.columns, width]: the kept rows as
/// they are, the others resampled by a cubic (a = -0.5) that is widened where the grid shrinks, and whose weights are
/// brought to the sum 1 at the border. Source: timm, resample_abs_pos_embed.
/// PyTorch equivalent: F.interpolate(grid, size, mode="bicubic", antialias=True)
std::vector<float> resample(std::span<const float> table, const Resampling& how);

}  // namespace tessera::runtime
