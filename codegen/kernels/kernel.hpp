// Kernels: the graph regrouped into loop nests. What a back end schedules; no text, no instruction set, no address yet.
//
// A kernel has outer axes (its result's space) and inner axes (what it reduces over, or the row that it passes over
// several times). Its steps run in order for every point of the outer axes: a reduction over inner axes into a local,
// or stores over inner axes. Every value is an expression tree over loads with affine indices, so views (slices,
// splits, permutations, broadcasts) cost nothing and need no kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/extent.hpp"
#include "codegen/ids.hpp"
#include "codegen/precision.hpp"
#include "codegen/program_kind.hpp"
#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

using graph::NodeId;

struct Tensor;
using TensorId = Id<Tensor>;
struct Expression;
using ExprId = Id<Expression>;

/// offset + sum of coefficient * axis: the position along one dim of a tensor.
struct Affine {
  struct Part {
    int axis = 0;
    std::int64_t coefficient = 1;
    bool operator==(const Part&) const = default;
    auto operator<=>(const Part&) const = default;
  };
  std::int64_t offset = 0;
  std::vector<Part> parts;  ///< sorted by axis

  bool operator==(const Affine&) const = default;
  auto operator<=>(const Affine&) const = default;
};

/// An element of a tensor, or of the layer `shift` away from the running one (0 or 1: a carry's next value).
struct Access {
  TensorId tensor;
  int shift = 0;
  std::vector<Affine> index;  ///< one for each dim of the tensor
  bool operator==(const Access&) const = default;
  auto operator<=>(const Access&) const = default;
};

/// The axis that an index runs along as it is; -1: it does not.
int axis_along(const Affine& index);
/// The axis that each dim of an access runs along as it is; nothing where one does not.
std::vector<int> axes_along(const Access& access);

/// A node of a kernel's expression tree; its operands stand before it in Kernel::expressions.
struct Expression {
  enum class Kind : std::uint8_t { load, constant, extent, local, index, index_equals, keep, op };
  Kind kind = Kind::constant;
  graph::Op op = graph::Op::add;  ///< of an op: an elementwise one
  ExprId a, b, c;                 ///< operands of an op; the integer load of index_equals or keep
  int step = -1;                  ///< of a local: what has reduced it
  double value = 0;               ///< of a constant; of keep: the rate
  Affine element;  ///< of index: its value; of index_equals: 1 where it is the loaded integer; of keep: which factor
  std::int64_t dropout = 0;  ///< of keep: which dropout
  Dim dim;
  Access access;
};

enum class Reduction : std::uint8_t { sum, maximum };

/// What the values of a tensor are stored as. int8: integers from -127 to 127, times a scale. int4, of weights in
/// panels: two integers from -8 to 7 in a byte, which counts as one value, times a scale for each group of a column.
enum class DType : std::uint8_t { real, bf16, int8, int4 };
constexpr bool quantized(DType e) { return e == DType::int8 || e == DType::int4; }
constexpr std::int64_t values_in_real(DType e) { return quantized(e) ? 4 : e == DType::bf16 ? 2 : 1; }
constexpr const char* name_of(DType e) {
  constexpr std::array names{"real", "bf16", "int8", "int4"};
  return names.at(static_cast<std::size_t>(e));
}

/// One step for each point of the outer axes: reduce `value` over the inner axes `over`, or store values over them.
struct Step {
  struct Store {
    Access to;
    ExprId value;
  };
  bool reduces = false;
  Reduction reduction = Reduction::sum;
  std::vector<int> over;      ///< inner axes
  ExprId value;               ///< of a reduction
  std::vector<Store> stores;  ///< of a store step; of a reduction: what it keeps of the values that it reduces
};

/// What a back end should see in a kernel.
enum class Anchor : std::uint8_t {
  elementwise,  ///< no inner axes
  row,          ///< passes over a row: softmax, layer norm, their gradients
  contraction,  ///< sums products over inner axes, then stores: GEMMs with their epilogues
};

struct Axis {
  std::string name;  ///< "b", "n": letters for the reader
  Dim dim;
  bool inner = false;
  ExprId only{};  ///< of a kernel that writes one row of a cache: the load of the integer that the axis stands at alone
  TensorId last{};  ///< of positions: an integer, behind which nothing along the axis is read; none: all is
};

/// A contraction as a GEMM: for each point of the other outer axes, every element [row, column] sums products
/// of a left factor, which is the same for all columns, and a right one, whose columns are neighbours in memory.
struct Gemm {
  int rows = -1;              ///< outer axis that the right factor does not know; -1: one row
  int columns = -1;           ///< outer axis; -1: the kernel is no GEMM
  DType dtype = DType::real;  ///< what both are rounded to
  bool windows = false;       ///< a convolution's weight gradient: the columns' factor is windows of a map
  bool transposes = false;    ///< what is stored has the rows as neighbours: tiles of sums are transposed first
  bool narrows = false;       ///< of single precision: they are rounded to bf16 where a target's tile unit takes that
  bool accumulates_fp32 = false;  ///< of single precision in a bf16 model: sums go on from what blocks before stored
};

struct Kernel;

/// Kernels that run within another one, before it: what all of them compute together, and what each is in that.
struct Fused {
  enum class Kind : std::uint8_t {
    none,
    attention,  ///< parts scores, perhaps added, and softmax; the kernel weighs values by what the softmax gives; of
                ///< blocks of keys parts begin and rescale as well
    attention_gradient,  ///< parts of attention's backward pass, the kernel being the last of them
    bias_gradient        ///< the kernel, a weight's gradient, makes the gradient of the bias beside it as well
  } kind = Kind::none;
  enum class Role : std::uint8_t {
    scores,         ///< of attention; of a CPU's backward pass: gives the probabilities' gradient, less its row's sum
    softmax,        ///< of attention; of its backward pass: which makes the probabilities again
    gradient,       ///< a kernel of attention's backward pass; of a CPU's: which gives the values' gradient
    probabilities,  ///< of a CPU's backward pass: makes them again
    mix,            ///< of a CPU's backward pass: gives the queries' gradient
    bias,
    added,   ///< of attention: adds to the scores, as what a query makes of a key's row and column
    begin,   ///< of attention by blocks of keys: what is there before the first block
    rescale  ///< of attention by blocks of keys: adds what a block weighs to what those before it did; runs last
  };
  std::vector<Role> roles;    ///< by part
  std::vector<Kernel> parts;  ///< in the order in which they run

  bool empty() const { return kind == Kind::none; }
  /// Of all parts the one with that role; throws std::out_of_range where there is none.
  const Kernel& part(Role role) const;
  Kernel& part(Role role);
  bool has(Role role) const;
};

struct Kernel {
  std::string name;  ///< by model path: "blocks_mlp_0_forward"
  Anchor anchor = Anchor::elementwise;
  int region = 0;
  std::vector<Axis> axes;
  Table<Expression, ExprId> expressions;
  std::vector<Step> steps;
  std::vector<NodeId> nodes;  ///< of the graph, which it computes
  bool across_batch = false;  ///< an inner axis is the batch
  bool accumulates = false;   ///< sums over the batch are added to what is stored, microbatch after microbatch
  Gemm gemm;                  ///< found when the kernels are planned
  Fused fused;                ///< a pass's choice
  bool by_gemm = false;       ///< the GEMM before it may make its partial sums, while it loads what both read
};

/// Whether expression `e` is `part` or is made of it.
bool needs(const Kernel& kernel, ExprId e, ExprId part);

/// Adds `e` and the expressions that it is made of, but not what is behind locals: those are computed in their own
/// step.
void reach(const Kernel& kernel, ExprId e, std::set<ExprId>& seen);

/// Puts an expression behind the others; says which one it is.
ExprId push(Kernel& kernel, Expression e);
/// The same of an op of these operands, a number, a value in memory, and what an earlier step reduced.
ExprId push_op(Kernel& kernel, graph::Op op, ExprId a, ExprId b = {});
ExprId push_constant(Kernel& kernel, double value);
ExprId push_load(Kernel& kernel, Access access);
ExprId push_local(Kernel& kernel, int step);

/// Expression `e` with `by` in the place of `part`.
ExprId replaced(Kernel& kernel, ExprId e, ExprId part, ExprId by);

/// The pass that reduces `sum` stores a part of what it reduces where `store` is going to put something made of that
/// part, which then reads it from there: so that the part is computed once.
void keep_for_store(Kernel& kernel, Step& sum, ExprId part, Step::Store& store);

/// Calls f(access, writes) for all that a kernel and those within it touch.
template <class F>
void for_each_access(const Kernel& k, F f) {
  for (const Kernel& before : k.fused.parts) for_each_access(before, f);
  for (const Expression& e : k.expressions)
    if (e.kind == Expression::Kind::load) f(e.access, false);
  for (const Step& s : k.steps)
    for (const Step::Store& st : s.stores) f(st.to, true);
}

/// What a kernel's work can be partitioned by.
enum class Tasks : std::uint8_t {
  once,     ///< it does not depend on the batch
  images,   ///< image by image, touching nothing of another image
  chunks,   ///< it sums over the batch: partial sums over fixed chunks of it, then their ordered sum
  rows,     ///< it is a GEMM summed over the batch: by blocks of its rows, image after image
  columns,  ///< it is a GEMM whose rows are the images: by blocks of its columns, all images at once
  serial,   ///< it sums a few numbers over the batch
};
Tasks tasks_of(const Kernel& kernel);

/// Where a tensor lives; registers: between a kernel and those fused into it alone.
enum class Storage : std::uint8_t {
  input,
  labels,
  parameter,
  packed,
  gradient,
  output,
  loss,
  table,
  cache,  ///< the caller's, for the rows of all positions: a kernel writes one, others read all
  scratch,
  registers
};

/// How a copy of a parameter in the packed memory lies: as it is; as a matrix [columns, depth] in panels of columns; or
/// it is what a matrix in panels of int8 needs beside it, the scales of its columns and then their sums; or no copy,
/// but a value that packing computes of parameters (constant folding).
enum class Packing : std::uint8_t { plain, panels, scales, folded };

/// A value that is stored: by the caller, or in scratch memory that the plan lays out.
struct Tensor {
  NodeId node = graph::none;
  std::string name;
  std::vector<Dim> shape;
  graph::Type type = graph::Type::real;
  Storage storage = Storage::scratch;
  int region = 0;  ///< whose layers count its slots
  int slots = 1;   ///< copies, one a layer: kept for the backward region; or a carry's
  DType element = DType::real;
  Packing packing = Packing::plain;  ///< of a packed copy
  bool transposed = false;           ///< of a packed copy: the parameter's last dim became its first
  bool carry = false;                ///< slot (iteration + shift) % slots instead of slot layer
  NodeId parameter = graph::none;    ///< of a parameter, its packed copy or its gradient: the parameter node
  std::size_t made_as = 0;           ///< of a folded value: the hash of how it is computed, in whatever program
};

/// What runs, in order: a kernel, or a region's body once for each layer.
struct Item {
  int kernel = -1;
  int region = -1;
};

/// A whole entry point as kernels.
struct KernelProgram {
  ProgramKind kind = ProgramKind::forward;
  std::string name;  ///< of its kind, but where a test has many programs of one kind
  Precision precision = Precision::fp32;
  graph::Graph graph;
  Table<Tensor, TensorId> tensors;
  std::vector<Kernel> kernels;
  std::vector<std::vector<Item>> order;  ///< by region; region 0 is the program
  bool joined = false;                   ///< axes that run on in memory may be one: past a dim comes the next row
  bool groups = false;                   ///< a batch may be worked on microbatch after microbatch: a plan's choice
  std::vector<KernelProgram> folded{};   ///< one or none: what packing computes for it, with the same tensors
};

/// Whether gradients are what a program computes.
inline bool differentiates(const KernelProgram& program) { return !traits_of(program.kind).gradients.empty(); }

/// What is put behind a name that another program has already: "_train".
std::string suffix_of(const KernelProgram& program);

/// Takes kernels out of a program; nothing runs them any more.
void remove_kernels(KernelProgram& program, const std::set<int>& gone);

}  // namespace tessera::codegen
