#include "codegen/cuda/tile.hpp"

#include <algorithm>

namespace tessera::codegen::cuda {

Tile choose_tile(std::int64_t rows, std::int64_t columns, std::int64_t products) {
  // Speeds are guesses until they are measured: a small tile loads more for each multiply-add.
  static constexpr Tile tiles[] = {{128, 128, 8, 1.0}, {128, 64, 8, 0.8}, {64, 64, 4, 0.6},
                                   {64, 32, 4, 0.45},  {32, 32, 4, 0.35}, {16, 16, 2, 0.12}};
  Tile best;
  double least = 0;
  for (const Tile& tile : tiles) {
    const std::int64_t count =
        (rows + tile.rows - 1) / tile.rows * ((columns + tile.columns - 1) / tile.columns) * products;
    const double at_once = static_cast<double>(std::max(count, multiprocessors));
    const double time = at_once * tile.rows * tile.columns / tile.speed;
    if (best.rows == 0 || time < least) {
      best = tile;
      least = time;
    }
  }
  return best;
}

}  // namespace tessera::codegen::cuda
