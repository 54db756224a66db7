#include "codegen/cuda/tile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "codegen/cuda/device/attention_shares.h"
#include "codegen/cuda/device/predict.h"
#include "codegen/error.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen::cuda {

namespace {

std::int64_t blocks_of(const CtaTile& tile, const GemmSizes& p) {
  return ceiling(p.rows, tile.down() * tile.rows) * ceiling(p.columns, tile.across() * tile.columns) * tile.cluster *
         p.count;
}

/// In single precision, by device/product.h: a thread sums `of_thread` by `of_thread`.
CtaTile simple(int rows, int columns, int of_thread) {
  constexpr int on_sm = 512;  // threads: 128 registers for each
  const int threads = rows * columns / of_thread / of_thread;
  return {rows, columns, threads, on_sm / threads, CtaTile::Unit::fma, {of_thread}};
}

/// What an SM multiplies, by guesses until they are measured: so many multiply-adds a cycle, in steps of so
/// many depths.
struct Speed {
  double multiply_adds;
  int depth;
  double cached;  ///< bytes of L2 in a cycle
};
constexpr Speed of_mma{1340, 32, 32}, of_wgmma{1710, 64, 38};

/// By device/tensor_product.h. A thread with 128 sums needs up to 255 registers, else 128 do; where it loads numbers by
/// itself, what registers_of says.
constexpr int registers_of_sm = 65536, most_registers = 255;

/// Registers of a thread, about, by what nvcc 13 gives eight tiles of eleven such GEMMs when it may take as many as it
/// likes: sums, A's fragments, a copy's address and place, and what each number takes that it loads by itself, all of a
/// step's at once.
double registers_of(const CtaTile& tile, const GemmSizes& p) {
  constexpr double others = 20, of_copy = 6;
  const double fragments = 4.0 * tile.rows / tile.division[0] / 16;
  const auto of_operand = [&](int points, double of_number) {
    const double numbers = static_cast<double>(points) * of_mma.depth / tile.threads;
    return of_number > 0 ? numbers * of_number : numbers / 8 * of_copy;
  };
  return others + static_cast<double>(tile.rows) * tile.columns / tile.threads + fragments +
         of_operand(tile.rows, p.a_registers) + of_operand(tile.columns, p.b_registers);
}

/// Whether a thread finds room for all that without spilling; of so many nvcc does with a tenth less.
bool has_registers(const CtaTile& tile, const GemmSizes& p) {
  return (p.a_registers == 0 && p.b_registers == 0) || registers_of(tile, p) <= 1.14 * most_registers;
}

CtaTile tensor(const GemmSizes& p, int rows, int columns, int warps_down, int warps_across) {
  constexpr int shared_bytes = 160 * 1024;  // of an A100
  const int threads = warps_down * warps_across * 32, sums = rows * columns / threads;
  const int needed = std::max(4 * (rows + columns) * of_mma.depth * 2, rows * (columns + 8) * 4);
  const int with_most = registers_of_sm / threads / (most_registers + 1);
  CtaTile tile{rows,
               columns,
               threads,
               sums > 64 ? with_most : 512 / threads,
               CtaTile::Unit::mma_sync,
               {warps_down, warps_across}};
  if (p.a_registers > 0 || p.b_registers > 0)
    while (tile.ctas > with_most && registers_of(tile, p) > registers_of_sm / threads / tile.ctas / 8 * 8) --tile.ctas;
  tile.ctas = std::min(tile.ctas, shared_bytes / needed);
  return tile;
}

constexpr int team_threads = 256;  ///< of two warpgroups

/// By device/warpgroup_product.h, for one or two blocks on an SM: as many steps as shared memory has room
/// for, up to six. A cluster is of one, two or four blocks.
CtaTile warpgroup(int rows, int columns, int down, int teams, int blocks, int cluster) {
  constexpr int shared_bytes = 228 * 1024;       // of an H200
  const int taken = 1024 + teams * 16384 + 128;  // by the system, squares and gates of a block
  const int steps = std::min(6, (shared_bytes / blocks - taken) / ((rows + columns) * 128));
  return {rows, columns, teams * team_threads + 32, blocks, CtaTile::Unit::wgmma, {down, teams}, steps, cluster};
}

/// Cycles of the busiest SM, about. A step along the depth takes what the tensor cores need or its factors,
/// of which L2 gives so many bytes a cycle, whichever is longer: copies run while warps multiply. While
/// a block does not multiply, the others on its SM do. How full the last wave is, the batch decides (half)
/// where the number of products hangs on it. Measured on an H200: blocks of a cluster of four wait for one another,
/// which costs a tenth.
double tensor_cycles(const CtaTile& tile, const GemmSizes& p, const Speed& speed) {
  const double waves = static_cast<double>(blocks_of(tile, p)) / static_cast<double>(sms_for(tile.cluster));
  const double on_one = waves <= 1 ? 1 : p.any_batch ? std::ceil(waves) : waves + 0.5;
  const double step =
      speed.depth * std::max(tile.rows * tile.columns / speed.multiply_adds,
                             (tile.rows / tile.across() + tile.columns / tile.down()) * 2 / speed.cached);
  const double multiplies = static_cast<double>(ceiling(p.depth, speed.depth)) * step,
               all = multiplies + exposed_latency(tile, p);
  const double together = tile.cluster > 2 ? 1.1 : 1;
  return together * on_one * std::max(multiplies, all / std::min<double>(tile.ctas * tile.teams(), std::ceil(on_one)));
}

/// A guess, too: a small tile loads more for each multiply-add.
double simple_time(const CtaTile& tile, const GemmSizes& p, double speed) {
  const double at_once = static_cast<double>(std::max(blocks_of(tile, p), sms));
  return at_once * tile.rows * tile.columns / speed;
}

}  // namespace

double exposed_latency(const CtaTile& tile, const GemmSizes& p) {
  constexpr double first_factors = 1000, instructions = 128;  // a cycle, of all lanes
  const double issued = tile.rows * tile.columns * p.storing / instructions;
  if (!p.loads) return first_factors + issued;
  // By Little's law: each thread waits for DRAM once for so many of its sums.
  const int storing = tile.unit == CtaTile::Unit::wgmma ? team_threads : tile.threads;
  const double waits = std::ceil(tile.rows * tile.columns / static_cast<double>(storing * rows_in_flight));
  return first_factors + std::max(issued, waits * prediction::memory_latency);
}

double operand_reduction_cycles(const GemmSizes& p, const CtaTile& tile, int shares) {
  constexpr double storing = 300, of_line = 13;  // instructions, for each of a step's depths
  const double step = of_wgmma.depth * tile.rows * tile.columns / of_wgmma.multiply_adds * tile.ctas;
  const double sums = of_wgmma.depth * of_line / shares;
  return storing + static_cast<double>(ceiling(p.depth, of_wgmma.depth)) * std::max(0.0, sums - step);
}

namespace {

struct Candidate {
  CtaTile tile;
  double time;
};
/// The fastest of those that are wanted.
const Candidate& best_of(const std::vector<Candidate>& all, const std::string& wanted) {
  const Candidate* best = nullptr;
  for (const Candidate& c : all)
    if ((wanted.empty() || wanted == fmt::format("{}x{}", c.tile.rows, c.tile.columns)) &&
        (!best || c.time < best->time))
      best = &c;
  if (!best) throw Error(fmt::format("there is no tile {}", wanted));
  return *best;
}

}  // namespace

CtaTile choose_tile(Precision precision, const GemmSizes& products, const std::string& wanted) {
  std::vector<Candidate> all;
  if (precision == Precision::bf16) {
    struct Tensor {
      int rows, columns, warps_down, warps_across;
    };
    for (const Tensor& t :
         {Tensor{128, 256, 2, 4}, Tensor{128, 128, 2, 4}, Tensor{128, 64, 2, 2}, Tensor{64, 128, 2, 2},
          Tensor{64, 64, 2, 2}, Tensor{64, 32, 2, 2}, Tensor{32, 64, 2, 2}, Tensor{32, 32, 2, 2}})
      if (const CtaTile tile = tensor(products, t.rows, t.columns, t.warps_down, t.warps_across);
          !wanted.empty() || has_registers(tile, products))
        all.push_back({tile, tensor_cycles(tile, products, of_mma)});
  } else {
    struct Simple {
      int rows, columns, of_thread;
      double speed;  ///< multiply-adds a thread and cycle, about, relative to the largest
    };
    for (const Simple& s : {Simple{128, 128, 8, 1.0}, Simple{128, 64, 8, 0.8}, Simple{64, 64, 4, 0.6},
                            Simple{64, 32, 4, 0.45}, Simple{32, 32, 4, 0.35}, Simple{16, 16, 2, 0.12}}) {
      const CtaTile tile = simple(s.rows, s.columns, s.of_thread);
      all.push_back({tile, simple_time(tile, products, s.speed)});
    }
  }
  return best_of(all, wanted).tile;
}

std::optional<CtaTile> choose_wgmma_tile(const GemmSizes& products, const CtaTile& otherwise,
                                         const std::string& wanted) {
  if (wanted == "none") return {};
  std::vector<Candidate> all;
  for (const int cluster : {1, 2, 4})
    for (const CtaTile& tile : {warpgroup(128, 256, 2, 1, 1, cluster), warpgroup(256, 128, 2, 1, 1, cluster),
                                warpgroup(128, 192, 2, 1, 1, cluster), warpgroup(128, 128, 2, 2, 1, cluster),
                                warpgroup(128, 64, 2, 1, 2, cluster), warpgroup(64, 256, 1, 1, 1, cluster),
                                warpgroup(64, 128, 1, 1, 2, cluster)})
      if (products.rows > (tile.down() - 1) * tile.rows && products.columns > (tile.across() - 1) * tile.columns &&
          !(products.sums_rows &&
            (tile.across() > 1 || tile.teams() > 1 || (tile.rows * tile.columns > 128 * 64 && tile.ctas > 1))))
        all.push_back({tile, tensor_cycles(tile, products, of_wgmma)});
  const Candidate& best = best_of(all, wanted);
  if (wanted.empty() && tensor_cycles(otherwise, products, of_mma) < best.time) return {};
  return best.tile;
}

CtaTile alone(CtaTile tile) {
  tile.threads -= (tile.teams() - 1) * team_threads;
  tile.division[1] = tile.ctas = 1;
  return tile;
}

int choose_split_k(const GemmSizes& whole, bool wgmma, const std::string& wanted, const std::string& wanted_of_wgmma) {
  constexpr double of_memory = 4.3e12 / 1.75e9;  // bytes in a cycle, of an H200
  int best = 0;
  double least = 0;
  for (int chunks = 1; chunks <= batch_chunks; ++chunks) {
    GemmSizes p = whole;
    p.count = whole.count * chunks;
    p.depth = ceiling(whole.depth, chunks);
    const CtaTile tile = choose_tile(Precision::bf16, p, wanted);
    double time = tensor_cycles(tile, p, of_mma);
    if (wgmma)
      if (const auto faster = choose_wgmma_tile(p, tile, wanted_of_wgmma)) time = tensor_cycles(*faster, p, of_wgmma);
    time += 4.0 * static_cast<double>(whole.count * p.rows * p.columns * (chunks + 1)) / of_memory;
    if (best == 0 || time < least) {
      best = chunks;
      least = time;
    }
  }
  return best;
}

}  // namespace tessera::codegen::cuda
