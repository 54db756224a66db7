// The plan: where everything lies and how each kernel is cut up. Read by every back end; holds no text and no
// instruction.
#pragma once

#include <array>
#include <functional>
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
constexpr std::int64_t whole_steps(Element factors, std::int64_t depth) {
  const std::int64_t step = 16 * values_in_real(factors);
  return (depth + step - 1) / step * step;
}
/// Values of a column in a panel for tiles: in int8 a word for their sum lies behind them.
constexpr std::int64_t panel_depth(Element factors, std::int64_t depth) {
  return whole_steps(factors, depth) + (factors == Element::int8 ? 4 : 0);
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
  int parallel = -1;               ///< outer axis whose points are shared out among threads; -1: one task
  std::int64_t block = 1;          ///< points of the parallel axis in a task; 1: an image
  int vector = -1;                 ///< axis across lanes; -1: one lane
  std::vector<std::int64_t> tile;  ///< by axis: how many points (vectors, for the vector axis) are summed at once
  /// Of a matrix product: how many values of its depth are summed, for all its rows and columns, before the next ones'
  /// turn comes; until then the sums lie where the first store puts what is made of them. 0: all at once.
  std::int64_t depth = 0;
  /// Of attention: how many queries of a head go through its kernels before the next ones' turn comes.
  std::int64_t queries = 0;
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

// The pieces of make_plan
Layout layout_of(const Tensor& tensor, int innermost);
/// Row-major, rows of the last dim `apart` values apart.
Layout layout_with_rows(const Tensor& tensor, std::int64_t apart);
/// Row-major as matrix products want it: rows of scratch tensors begin with lines of memory where that costs little.
Layout layout_for_products(const Tensor& tensor);
/// Chooses the innermost dim of every scratch tensor: the assignment with the lowest estimated cost.
Layouts choose_layouts(const KernelProgram& program, const Target& target);
Schedule choose_schedule(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel,
                         const Target& target);
/// An estimate of the instructions that a kernel runs for 32 images, vectorised over `axis`.
double estimate(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel, int axis,
                const Target& target);
void place_buffers(Plan& plan);
/// The outputs of `inspect` lie in two arrays, in the order in which they are computed: the attention maps, of an image
/// [layers, maps of a layer, ...], and the magnitudes.
void place_inspected(Plan& plan);

/// Where the gradient of a softmax is one of what has been dropped from, a row's sum and its result both need each
/// value times its factor of dropout: the sweep that sums stores them in the result's place.
void drop_once(KernelProgram& program);

/// How far apart in memory two neighbours along a kernel's axis are, for one access.
std::int64_t step_along(const Access& access, const Layout& layout, int axis);
/// Finds the matrix products. Where there are any, their parameters get packed copies to read, axes that run on in
/// every tensor become one, and all tensors lie as declared.
void find_products(KernelProgram& program);
/// Whether it has found some.
bool has_products(const KernelProgram& program);
/// Has the other parameters read from the packed memory as well: those who only infer then need no other.
void read_all_packed(KernelProgram& program);
/// Stores as bf16 what matrix products read, where they round it: in the place of the fp32 values where nobody else
/// reads them (but copies, and the sums that are gradients of biases), else beside them. What backward needs of each
/// layer is kept as bf16 only.
void store_factors_as_bf16(KernelProgram& program);
/// Stores as int8 what products with a parameter read, by a kernel before the product: each row's values less their
/// middle, over a scale of its own. What is made of a product's sums takes them times the scales of row and column, and
/// the row's middle times the column's sum.
void store_factors_as_int8(KernelProgram& program);
/// Has sums over the batch be added to what is stored, so that a batch can go by group after group of images, and
/// scratch memory has to hold the images of one group alone. Sums of which more is made are stored first. False, and
/// nothing is changed, where an image needs a sum over the batch.
bool sum_in_groups(KernelProgram& program);
/// Whether both factors of a weight gradient are copied, tile by tile, before they are multiplied: they lie side by
/// side for each of so many tokens.
bool copies_factors(const Layouts& layouts, const Kernel& kernel);
/// Has such weight gradients, of single precision, add up the gradients of the biases beside them, while they copy what
/// both are made of.
void sum_biases_with_weights(KernelProgram& program);
/// Positions in a running order of the scores and the softmax whose weights the product at `mix` takes, if a back end
/// says that the three are attention; what runs between them and it, as the values that it weighs, may as well run
/// before them.
struct BeforeMix {
  std::size_t scores, softmax;
};
using IsAttention = std::function<bool(const Kernel& scores, const Kernel& softmax, const Kernel& mix)>;
std::optional<BeforeMix> attention_before(const KernelProgram& program, const std::vector<Item>& order, std::size_t mix,
                                          const IsAttention& is_attention);
/// Scores, their softmax and what it weighs become one kernel where the scores of an image are larger than near memory:
/// it goes by blocks of queries of one head, whose scores lie on the stack. The last one takes up the other two.
void attend_in_blocks(KernelProgram& program);
/// Whether a kernel is made of those three.
bool attends(const Kernel& kernel);
/// Of one of them: which axis are the queries, and the other axes that all three go by (the batch, heads), in one
/// order.
struct AttentionAxes {
  int queries = -1;
  std::vector<int> heads;
};
/// Of the two that run within it and of itself.
std::array<AttentionAxes, 3> attention_axes(const Kernel& kernel);
Schedule attention_schedule(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel,
                            const Target& target);
/// Whether a product sums over one axis besides the batch, or none.
bool sums_along_one_axis(const Kernel& product);
/// Whether a target computes products of such factors in tiles of 32 columns.
bool by_tiles(Element factors, const Target& target);
/// The same of a kernel.
bool by_tiles(const Kernel& kernel, const Target& target);
/// How many vectors wide the tiles of a matrix product with that many columns are: the same for all that read a panel.
int columns_of(const Target& target, std::int64_t columns, Element factors);
Schedule product_schedule(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel,
                          const Target& target);

/// Runs of kernels of one kind.
std::vector<std::vector<Stage>> make_stages(const KernelProgram& program);

}  // namespace tessera::codegen
