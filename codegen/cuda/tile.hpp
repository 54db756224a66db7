// Tiles of the matrix products: which of the shapes that device/product.h can do is the fastest for a product's size.
#pragma once

#include <cstdint>

namespace tessera::codegen::cuda {

struct Tile {
  int rows = 0, columns = 0, of_thread = 0;
  double speed = 1;  ///< multiply-adds a thread and cycle, about, relative to the largest
  int threads() const { return rows * columns / of_thread / of_thread; }
  int shared_bytes() const { return 8 * (rows + 1 + columns + 1) * 4; }  ///< product_bytes of device/product.h
};

/// What batches are taken to be where a choice depends on it.
inline constexpr std::int64_t nominal_batch = 64;
/// Of an H200 and an H100; an A100 has 108, for which the same choices are good.
inline constexpr std::int64_t multiprocessors = 132;

/// For `products` products of this size.
Tile choose_tile(std::int64_t rows, std::int64_t columns, std::int64_t products);

}  // namespace tessera::codegen::cuda
