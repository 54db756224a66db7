// How a kernel runs on a GPU: what the CUDA back end decides when it plans, and what its printer is handed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codegen/extent.hpp"
#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

/// What one CTA makes of a GEMM, and what multiplies it.
struct CtaTile {
  enum class Unit : std::uint8_t { none, fma, mma_sync, wgmma };
  int rows = 0, columns = 0, threads = 0;
  int ctas = 0;  ///< at least so many on an SM
  Unit unit = Unit::none;
  /// How the tile is divided: fma: rows and columns of a thread; mma_sync: warps down and across; wgmma: warpgroups
  /// down, and pairs of warpgroups that take turns (ping-pong).
  std::vector<int> division;
  int stages = 0;   ///< of wgmma: K-blocks that shared memory holds
  int cluster = 1;  ///< CTAs that load operands for each other: two below each other, or four in a square
  int across() const { return cluster > 2 ? 2 : 1; }  ///< of them beside each other, which share their rows' numbers
  int down() const { return cluster / across(); }     ///< below each other, which share their columns'
  int teams() const { return unit == Unit::wgmma ? division[1] : 1; }  ///< pairs of warpgroups
};

/// An operand of a GEMM, A or B: an expression of the kernel.
struct GemmOperand {
  ExprId value;               ///< none: the kernel is no GEMM worth a tile
  std::vector<int> across;    ///< its axes that the other one does not have: M or N
  bool k_major = false;       ///< neighbours in memory are neighbours along K
  bool vectorisable = false;  ///< lies in whole 16 bytes
};

/// A TMA descriptor for an operand: the arguments of the device's tensor_map.
struct TensorMap {
  TensorId tensor;
  int shift = 0;
  std::int64_t first = 0;  ///< of its numbers
  Extent extents[4] = {{1, 0}, {1, 0}, {1, 0}, {1, 0}};
  std::int64_t strides[3] = {8, 8, 8};          ///< of all but the first
  int box = 0;                                  ///< lines of it
  bool k_major = false;                         ///< lines run along K
  std::map<int, std::int64_t> third, fourth{};  ///< the CTA's place in these extents, by axis
};

/// Column reductions of a kernel of rows: sums over all rows.
struct ColumnReductions {
  int count = 0;                                           ///< sums of an element; 0: none
  std::int64_t length = 0;                                 ///< of a row, filled up to whole warps
  std::int64_t blocks = 0;                                 ///< CTAs of the kernel, whatever the batch is
  int warps = 0;                                           ///< of a CTA
  int resident = 0;                                        ///< CTAs on an SM
  int registers_for = 0;                                   ///< so many have registers there
  bool split_row = false;                                  ///< a row has too much for a warp's registers
  std::int64_t numbers() const { return count * length; }  ///< of a warp, in shared memory
};

/// One __global__ function of a kernel.
struct Launch {
  enum class Form : std::uint8_t {
    point,           ///< a thread for each result
    columns,         ///< sums for results that lie side by side: a lane each, whose warps share the summands
    row,             ///< a warp or a CTA for each row
    row_reductions,  ///< warps that take one row after the other, and sum over the rows
    gemm,            ///< tiles of a GEMM
    attention,       ///< forward
    attention_backward,
    reduce  ///< adds up split-K partials, in their order
  };
  /// CTAs along an axis of the grid: one for each `size` of so many.
  struct Along {
    Extent count{1, 0};
    std::int64_t size = 1;
  };
  /// Of attention's forward pass: what its CTAs are divided by when the number of heads is known.
  struct Attention {
    int rows = 0;        ///< queries of a head
    double of_tile = 0;  ///< cycles in which a warp with a tile of them multiplies nothing
  };

  Form form = Form::point;
  std::string name;
  Along grid[3];
  int threads = 1;                 ///< of a CTA
  int ctas = 0;                    ///< at least so many on an SM; 0: as the compiler likes
  int registers_for = 0;           ///< so many have to have registers there; 0: these
  std::int64_t largest_batch = 0;  ///< that the grid has room for
  bool partials = false;           ///< makes split-K partials
  int split_k = 0;                 ///< of a sum over the batch: into so many
  int lanes = 0;                   ///< of columns: of a warp's lanes that have a result each; of a row: its threads
  int vector = 1;                  ///< of points and rows: neighbours that a thread loads and stores at once
  ColumnReductions sums;           ///< of row_reductions
  Attention attention;
  bool recomputes = false;  ///< of attention_backward: the probabilities, which are not in memory

  // Of a GEMM
  GemmOperand a, b;
  std::vector<int> groups, depth;  ///< axes of which each point is a GEMM; summed over
  CtaTile tile;
  Extent k;                     ///< that a CTA of it sums over
  double latency = 0;           ///< cycles in which a CTA of it multiplies nothing
  std::vector<TensorMap> maps;  ///< of wgmma: of both operands
  std::vector<Launch> wgmma;    ///< in its place on sm_90a: one, or none
  int row_shares = 0;           ///< of wgmma: CTAs among which the sums of A's rows are partitioned; 0: it makes none
  bool without_wgmma = false;   ///< where there are GEMMs by wgmma, the one before it makes what this one does

  /// Of A's rows: the partial sums that it makes for the kernel behind it.
  int row_partials() const { return row_shares * split_k; }
};

}  // namespace tessera::codegen
