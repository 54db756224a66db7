// Position tables for another number of patches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/model.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {

/// How a table of one row a token, or one for each way that two patches stand to each other, becomes one for another
/// grid.
struct Resampling {
  std::int64_t kept = 0;  ///< rows that belong to no patch, class token and registers: in front, or of biases behind
  Grid from, to;
};

/// Whether a parameter is a table of learned positions, if perhaps for another number of tokens: its key ends in
/// "pos_embed", "pos_embedding", "position_embeddings" or "positional_embedding", and its shape [1, N, D] or [N, D]
/// differs in N at most.
bool is_position_table(const std::string& key, const Shape& found, const Shape& needed);

/// The grid of patches that a file says its model has, as tell_grid writes it; nothing where it does not.
std::optional<Grid> grid_of(const Safetensors& file);
/// Says in the file's metadata what grid_of reads.
void tell_grid(Safetensors& file, const Grid& grid);

/// How `found` rows become the `needed` ones of a model with the grid `to`: what `needed` has beyond its patches stands
/// in front in both. Where nobody says the grid of the found ones, it is a square, as timm takes it to be, else one of
/// the proportions of `to`. Nothing where the numbers are not those of such grids.
std::optional<Resampling> resampling(std::int64_t found, std::int64_t needed, const Grid& to,
                                     const std::optional<Grid>& from);

/// The table [kept + to.rows * to.columns, width] of `table` [kept + from.rows * from.columns, width]: the kept rows as
/// they are, the others resampled by a cubic (a = -0.5) that is widened where the grid shrinks, and whose weights are
/// brought to the sum 1 at the border. Source: timm, resample_abs_pos_embed.
/// PyTorch equivalent: F.interpolate(grid, size, mode="bicubic", antialias=True)
std::vector<float> resample(std::span<const float> table, const Resampling& how);

/// Whether a parameter is a table of relative position biases, if perhaps for another grid: its key ends in
/// "relative_position_bias_table", and its shape [W, heads] differs in W at most.
bool is_relative_table(const std::string& key, const Shape& found, const Shape& needed);

/// As resampling, where a grid of rows x columns has (2 rows - 1)(2 columns - 1) ways to stand, and behind them `kept`.
/// Where nobody says the grid of the found ones, it is a square if their number is, else one of the proportions of
/// `to`.
std::optional<Resampling> relative_resampling(std::int64_t found, std::int64_t needed, const Grid& to,
                                              const std::optional<Grid>& from);

/// The table [(2 to.rows - 1)(2 to.columns - 1) + kept, heads] of `table`: distances are taken to grow geometrically
/// from patch to patch, so that the farthest of `from` stands where the farthest of `to` does; between them biases are
/// linear. The kept rows stay. Source: timm, resize_rel_pos_bias_table, after Bao et al. 2022 (BEiT).
std::vector<float> resample_relative(std::span<const float> table, const Resampling& how);

/// Whether a parameter is a map of learned positions, if perhaps of another grid: its key is that of a table of
/// positions, and its shape [1, rows, columns, D] differs in rows and columns at most. It is resampled as a table is.
bool is_position_map(const std::string& key, const Shape& found, const Shape& needed);

/// Whether a parameter is a table by distance along one axis, if perhaps of fewer or more rows or columns of patches:
/// its key ends in "rel_pos_h" or "rel_pos_w", and its shape [2 n - 1, K] differs in n at most.
bool is_distance_table(const std::string& key, const Shape& found, const Shape& needed);

/// The table [needed, K] of `table` [found, K], linear between its rows. Source: Segment Anything, get_rel_pos.
/// PyTorch equivalent: F.interpolate(table.T[None], size=needed, mode="linear")[0].T
std::vector<float> resample_distances(std::span<const float> table, std::int64_t found, std::int64_t needed);

}  // namespace tessera::runtime
