#include "codegen/cuda/tile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "codegen/error.hpp"

namespace tessera::codegen::cuda {

namespace {

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t blocks_of(const Tile& tile, const Products& p) {
  return ceiling(p.rows, tile.rows) * ceiling(p.columns, tile.columns) * p.count;
}

/// In single precision, by device/product.h: a thread sums `of_thread` by `of_thread`.
Tile simple(int rows, int columns, int of_thread) {
  constexpr int on_multiprocessor = 512;  // threads: 128 registers for each
  const int threads = rows * columns / of_thread / of_thread;
  return {rows, columns, threads, on_multiprocessor / threads, "product", fmt::format("{}", of_thread)};
}

/// By device/tensor_product.h. A thread with 64 sums needs about 200 registers, one with 32 about 150; else 128 do.
Tile tensor(int rows, int columns, int warps_down, int warps_across) {
  const int threads = warps_down * warps_across * 32;
  const int sums = rows * columns / threads, on_multiprocessor = sums > 32 ? 256 : sums == 32 ? 384 : 512;
  const std::string warps = fmt::format("{}, {}", warps_down, warps_across);
  return {rows, columns, threads, on_multiprocessor / threads, "tensor_product", warps};
}

/// Cycles of the busiest multiprocessor, about. What a step of 32 along the depth takes is a guess until it is
/// measured: tensor cores do 1024 multiply-adds a cycle, the second-level cache gives 32 bytes of the factors a cycle,
/// and while a block waits for its factors, the others on the multiprocessor work.
double tensor_cycles(const Tile& tile, const Products& p) {
  constexpr double wait = 700;
  const std::int64_t on_one = ceiling(blocks_of(tile, p), multiprocessors);
  const double step = std::max(tile.rows * tile.columns * 32 / 1024.0, (tile.rows + tile.columns) * 32 * 4 / 32.0);
  return static_cast<double>(ceiling(p.depth, 32)) *
         (static_cast<double>(on_one) * step + static_cast<double>(ceiling(on_one, tile.blocks)) * wait);
}

/// Speeds are guesses until they are measured: a small tile loads more for each multiply-add.
double simple_time(const Tile& tile, const Products& p, double speed) {
  const double at_once = static_cast<double>(std::max(blocks_of(tile, p), multiprocessors));
  return at_once * tile.rows * tile.columns / speed;
}

}  // namespace

Tile choose_tile(Precision precision, const Products& products, const std::string& wanted) {
  struct Candidate {
    Tile tile;
    double time;
  };
  std::vector<Candidate> all;
  if (precision == Precision::bf16) {
    for (const Tile& tile : {tensor(128, 128, 2, 4), tensor(128, 64, 2, 2), tensor(64, 128, 2, 2), tensor(64, 64, 2, 2),
                             tensor(64, 32, 2, 2), tensor(32, 64, 2, 2), tensor(32, 32, 2, 2)})
      all.push_back({tile, tensor_cycles(tile, products)});
  } else {
    struct Speed {
      int rows, columns, of_thread;
      double speed;  ///< multiply-adds a thread and cycle, about, relative to the largest
    };
    for (const Speed& s : {Speed{128, 128, 8, 1.0}, Speed{128, 64, 8, 0.8}, Speed{64, 64, 4, 0.6},
                           Speed{64, 32, 4, 0.45}, Speed{32, 32, 4, 0.35}, Speed{16, 16, 2, 0.12}}) {
      const Tile tile = simple(s.rows, s.columns, s.of_thread);
      all.push_back({tile, simple_time(tile, products, s.speed)});
    }
  }
  const Candidate* best = nullptr;
  for (const Candidate& c : all)
    if ((wanted.empty() || wanted == fmt::format("{}x{}", c.tile.rows, c.tile.columns)) &&
        (!best || c.time < best->time))
      best = &c;
  if (!best) throw Error(fmt::format("there is no tile {}", wanted));
  return best->tile;
}

}  // namespace tessera::codegen::cuda
