// Tiles of the GEMMs: which of the shapes that the device's products can do is the fastest for a product's
// size.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "codegen/plan/launch.hpp"

namespace tessera::codegen::cuda {

constexpr std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// What batches are taken to be where a choice depends on it; and where a product sums over the batch, which takes long
/// in training with large ones.
inline constexpr std::int64_t nominal_batch = 64, nominal_summed_batch = 256;
/// Of an H200 and an H100; an A100 has 108, for which the same choices are good.
inline constexpr std::int64_t sms = 132;
/// Those on which clusters of so many blocks find room: they stay within one of the groups that SMs come
/// in, of which some have 18.
constexpr std::int64_t sms_for(int cluster) { return cluster > 2 ? 128 : sms; }

/// Tiles that somebody asks for, as "128x64", by the name of the kernel; by the empty name, of all others. Those of
/// warpgroups by "wgmma:" and the name; "none": they are not used.
using Tiles = std::map<std::string, std::string>;

/// A number of equal products.
struct GemmSizes {
  std::int64_t rows = 0, columns = 0, depth = 0, count = 0;
  double storing = 0;      ///< instructions of what becomes of a sum, about
  bool any_batch = false;  ///< there are so many of them whatever the batch is
  bool sums_rows = false;  ///< by warpgroups the left factor's rows are summed, too, which no other CTA loads
  bool loads = false;      ///< what becomes of a sum needs numbers of its row from memory
  /// Registers of a thread for each number of A (B) that it loads by itself, where no 16-byte copies bring them: 0.
  double a_registers = 0, b_registers = 0;
};
/// Rows of its column that a thread has on their way at a time when it stores sums: of device/tensor_product.h.
constexpr int rows_in_flight = 8;
/// Cycles in which a block multiplies nothing: it waits for its first factors, and stores its sums.
double exposed_latency(const CtaTile& tile, const GemmSizes& products);

/// Cycles more where a block's warp that loads operands also sums rows, for one step of so many: while the others
/// multiply, but for what takes longer than that, and storing.
double operand_reduction_cycles(const GemmSizes& products, const CtaTile& tile, int shares);

/// The fastest tile, or that of the `wanted` size ("128x64"). Throws Error where there is none.
CtaTile choose_tile(Precision precision, const GemmSizes& products, const std::string& wanted);
/// The same by warpgroups of sm_90a; nothing where `otherwise` is faster.
std::optional<CtaTile> choose_wgmma_tile(const GemmSizes& products, const CtaTile& otherwise,
                                         const std::string& wanted);

/// The same tile by wgmma, by one CTA of one team on an SM, which has all registers.
CtaTile alone(CtaTile tile);

/// Into how many chunks the depth of a product is best cut, whose sums another kernel adds up. `wgmma`: its
/// factors lie so.
int choose_split_k(const GemmSizes& whole, bool wgmma, const std::string& wanted, const std::string& wanted_of_wgmma);

}  // namespace tessera::codegen::cuda
