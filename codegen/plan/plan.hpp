// The plan: where everything lies and how each kernel is cut up. Read by every back end; holds no text and no
// instruction.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/kernels/kernel.hpp"
#include "codegen/passes/pass.hpp"
#include "codegen/plan/launch.hpp"
#include "codegen/plan/target.hpp"

namespace tessera::codegen {

inline constexpr std::int64_t tile_side = 32;
/// Filled up to whole tiles.
constexpr std::int64_t whole_tiles(std::int64_t values) { return (values + tile_side - 1) / tile_side * tile_side; }
/// The depth of such a product filled up to whole steps of 64 bytes.
constexpr std::int64_t padded_k(DType dtype, std::int64_t depth) {
  const std::int64_t step = 16 * values_in_real(dtype);
  return (depth + step - 1) / step * step;
}
/// A group of int4: so many weights of a column, and the bytes that they and their scale, a bf16, take.
inline constexpr std::int64_t int4_group = 32, int4_group_bytes = int4_group / 2 + 2;
/// Values of a column in a panel for tiles: in int8 a word for their sum lies behind them.
constexpr std::int64_t panel_k(DType dtype, std::int64_t depth) {
  const std::int64_t whole = padded_k(dtype, depth);
  return dtype == DType::int8 ? whole + 4 : dtype == DType::int4 ? whole / int4_group * int4_group_bytes : whole;
}
/// Cache lines of a panel that hold what a cache line of a left factor's row is multiplied by.
constexpr std::int64_t lines_of_panel(DType dtype) {
  return dtype == DType::int4 ? tile_side * int4_group_bytes / int4_group : tile_side;
}
/// How a tensor lies in memory: dims from the outermost to the innermost, dense; the batch is always outermost. A
/// packed parameter lies in panels of as many columns (its first dim) as a target's tiles are wide: all of the panel's
/// columns side by side for each index of the other dims. Its strides are those of a panel of one column.
struct Layout {
  std::vector<int> order;
  std::vector<std::int64_t> stride;   ///< in values, by dim; of the batch, in scratch: an image's arena
  Extent size;                        ///< of one slot, in values
  std::int64_t offset = 0, slot = 0;  ///< of an output that shares the caller's array with others
};

using Layouts = Table<Layout, TensorId>;

/// A range of scratch memory, in reals. Scratch holds what does not grow with the batch, then one arena for each image:
/// what two images share is never written while images are worked on one by one. Values of one stage alone (temporary)
/// lie in the arena of the first image that a thread works on, image after image: there they stay in its caches.
struct Buffer {
  TensorId tensor;  ///< of none: partial sums of `kernel`
  int kernel = -1;
  bool per_image = false;             ///< offset and size are in each image's arena
  bool temporary = false;             ///< of one stage alone
  std::int64_t offset = 0, size = 0;  ///< size: of all slots
  std::int64_t slot = 0;              ///< of one
  int first = 0, last = 0;  ///< kernels in running order, between which it is live (a region's kernels count once)
};

/// Kernels that run without a barrier between them: image by image, or chunk by chunk.
struct Stage {
  Tasks tasks = Tasks::once;
  std::vector<Item> items;
};

/// How one kernel is cut up for one target.
struct Schedule {
  int parallel = -1;               ///< outer axis whose points are partitioned among threads; -1: one task
  std::int64_t block = 1;          ///< points of the parallel axis in a task; 1: an image
  int vector = -1;                 ///< axis across lanes; -1: one lane
  std::vector<std::int64_t> tile;  ///< by axis: how many points (vectors, for the vector axis) are summed at once
  /// Of a GEMM: how many values of its depth are summed before the next ones' turn comes; 0: all at once. For all rows
  /// and columns of an image, and meanwhile the sums lie where the first store puts what is made of them; or for a
  /// panel of columns, where the rows are images, and the sums lie in a small array.
  std::int64_t depth = 0;
  /// Of attention: how many queries of a head go through its kernels before the next ones' turn comes.
  std::int64_t queries = 0;
  /// Of its backward pass: and how many keys, for each block of queries; 0: all at once.
  std::int64_t keys = 0;
  std::vector<Schedule> fused;  ///< of attention: of the kernels that run within it
};

/// Sums over the batch are cut into this many chunks whatever the number of threads, so that the bits do not depend on
/// it. A group of images is whole chunks.
inline constexpr std::int64_t batch_chunks = 16;

struct Plan {
  KernelProgram program;
  Layouts layouts;  ///< by tensor
  std::vector<Buffer> buffers;
  Table<int, TensorId> buffer_of;                          ///< by tensor; -1 where the caller owns it
  std::vector<int> partial_of;                             ///< by kernel; -1 where no partial sums are kept
  std::vector<std::vector<Stage>> stages;                  ///< by region
  Extent scratch;                                          ///< reals; per batch: an image's arena
  Extent lower_bound;                                      ///< the most that is live at once
  std::map<std::string, std::vector<Schedule>> schedules;  ///< by target name, then kernel
  std::vector<std::vector<Launch>> launches;               ///< for a GPU, by kernel: one; two of a split-K sum
  std::vector<Plan> folded{};                              ///< one or none: of what packing computes for it
};

/// Over the kernels of a program.
using Pass = PassOver<KernelProgram>;

Plan make_plan(KernelProgram program, const std::vector<Target>& targets, const PassOptions& options = {});
/// What make_plan changes in the kernels first.
const std::vector<Pass>& cpu_passes();
/// Throws Error when two live buffers overlap: replays the program, layer by layer, over a shadow of the scratch
/// memory.
void verify(const Plan& plan);
std::string print(const Plan& plan);

}  // namespace tessera::codegen
