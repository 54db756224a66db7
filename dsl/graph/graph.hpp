// The graph: what a declaration becomes when it is traced. Tensor operations in SSA order, as a plain value.
//
// The generator reads this and nothing else of dsl/. Nodes are appended in topological order; a region (a block
// repeated `count` times) is a contiguous run of nodes that stands once and runs `count` times.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "dsl/polynomial.hpp"

namespace tessera::graph {

using NodeId = std::int32_t;
inline constexpr NodeId none = -1;

enum class Type : std::uint8_t { real, integer };

/// Operations. "same shape" means that all operands and the result have equal dims; broadcasting is always explicit.
enum class Op : std::uint8_t {
  // leaves
  input,      ///< name; fed by the caller, batch first
  parameter,  ///< name is the checkpoint key; in a region "{}" stands for the layer's number, "{8}" for 8 more
  table,      ///< fixed numbers in data, row-major
  constant,   ///< value; no dims
  arange,     ///< [T]: 0, 1, 2, ... as reals
  extent,     ///< the value of dim (a real, no dims): for means over dims known only at run time
  keep,  ///< operand: integers [4], the random state. Dropout's factors: 0 with probability value, else 1 / (1 - value)
  // elementwise, same shape
  add,
  subtract,
  multiply,
  divide,
  maximum,
  negate,
  exp,
  log,
  sqrt,
  rsqrt,  ///< 1 / sqrt(x)
  tanh,
  sin,  ///< of radians, as cos
  cos,
  erf,
  gelu,           ///< x * Phi(x), exact (erf)
  gelu_gradient,  ///< d gelu(x) / dx
  relu,
  step,    ///< 1 where x > 0, else 0
  equal,   ///< 1 where the operands agree, else 0
  select,  ///< the second operand where the first is > 0, else the third
  copy,    ///< the operand's value in memory of its own; made by the generator where a value must stand twice
  // structure
  broadcast,  ///< axes[i] is the result's dim that operand dim i becomes; the other result dims are new
  integers,   ///< what the operand holds, as integers
  one_hot,    ///< operand: integers [d...]; result [d..., J]: 1 where the last index equals the integer
  rearrange,  ///< split, permute and merge dims; see Rearrangement
  slice,      ///< along axes[0], from offset, as long as the result's dim
  concat,     ///< along axes[0]
  unfold,  ///< windows along axes[0], which becomes [kernel, windows]: element [k, w] is the operand's at offset + w *
           ///< stride + k * dilation, 0 outside it
  cache,   ///< operands: a row, of extent 1 along axes[0], and integers [1], its number: the caller's array, row by row
  // contraction and reduction
  einsum,      ///< one or two operands; letters[k] are operand k's letters, letters.back() the result's
  reduce_sum,  ///< over axes (removed from the shape)
  reduce_max,  ///< over axes (removed from the shape)
  // composites, taken apart by the generator
  softmax,        ///< over axes[0]
  log_softmax,    ///< over axes[0]
  layer_norm,     ///< operands x, weight, bias; over axes; value is epsilon; weight and bias have those dims in order
  cross_entropy,  ///< operands logits [d..., J], integers [d...]; mean of logsumexp(row) - row[label]; no dims
  gather,         ///< operands [V, d...], integers [i...]: the operand's rows at these integers, [i..., d...]
  stop_gradient,  ///< the operand, to which no gradient is passed on
  fold,  ///< the transpose of unfold: operand [kernel, windows] at axes[0] and behind it; sums where windows overlap
  gradient,  ///< operands y, of no dims, and x: the gradient of y with respect to x, of x's dims
  dropout,   ///< times factors that vary over axes, 0 with probability value; offset: which dropout. Evaluation: x
  // regions
  carry,      ///< the value that enters a layer: operand 0 on the first, what the layer before yielded afterwards
  carry_out,  ///< in the parent region: what the last layer yielded for carry operand 0
};

/// einops' grammar as numbers: every input dim is a product of atoms (outermost first), every output dim likewise.
/// Each atom stands exactly once on each side. A dim of extent 1 may have no atoms.
struct Rearrangement {
  std::vector<Dim> atoms;
  std::vector<std::vector<int>> from, to;
};

/// How a parameter starts. PyTorch's defaults: Linear is uniform(+-1/sqrt(fan_in)), LayerNorm one and zero.
struct Init {
  enum class Kind : std::uint8_t { constant, uniform, normal } kind = Kind::constant;
  double a = 0;  ///< constant: the value; uniform: the lower end; normal: the mean
  double b = 0;  ///< uniform: the upper end; normal: the standard deviation
};

struct Node {
  Op op = Op::constant;
  Type type = Type::real;
  int region = 0;  ///< 0: the model's top level
  std::vector<NodeId> operands;
  std::vector<Dim> shape;
  std::string
      path;         ///< the module that recorded it, in checkpoint spelling: "blocks.{}.mlp.0"; empty: the model itself
  int line = none;  ///< of Graph::lines, from which it comes; none: nobody has looked, or it is of no module
  std::string name;  ///< of an input, parameter or table
  std::vector<int> axes;
  std::int64_t offset = 0;  ///< of a slice, unfold, fold; of dropout and keep: which dropout of the model, so that each
                            ///< has its own factors
  std::int64_t stride = 1, dilation = 1;  ///< of unfold and fold; a dilation may be negative
  double value = 0;
  Dim dim;
  std::vector<std::vector<int>> letters;
  Rearrangement rearrangement;
  std::vector<double> data;
  Init init;
  bool decay = true;    ///< of a parameter: whether weight decay applies (not to norms, biases, positions, tokens)
  bool trained = true;  ///< of a parameter: whether it gets a gradient; else it is frozen, or a buffer
};

/// A block repeated `count` times. Region 0 is the whole model and runs once.
struct Region {
  std::string path;       ///< "blocks", or "blocks.8-11" where stacks of other blocks are numbered with it
  int parent = 0;         ///< always 0 so far: regions do not nest
  int count = 1;          ///< layers
  int mirror = none;      ///< of a backward region: the forward region whose values, of the same layer, it may read
  bool reversed = false;  ///< layers run from the last to the first
  std::vector<NodeId> carries;  ///< carry nodes, inside the region
  std::vector<NodeId> yields;   ///< same length: what each layer hands to the next, inside the region
};

/// A struct of the declaration with TESSERA_MEMBERS: a module, or a part of one, whose path it has.
struct Module {
  std::string path;  ///< as nodes have it
  std::string name;  ///< the struct's
  std::string file;  ///< where its TESSERA_MEMBERS stands, and on which line
  int line = 0;
  bool library = false;  ///< one of the DSL's own, as Linear: who calls it has declared something
};

/// A line of the declaration.
struct Line {
  std::string module, file;  ///< the struct in which it stands, and its file's name without folders
  std::string text;          ///< empty: one of those of the struct, and nobody knows which
};

/// What leaves the graph. A buffer's new value goes the way of gradients: it lies among them in the buffer's place.
struct Output {
  enum class Kind : std::uint8_t { value, loss, gradient } kind = Kind::value;
  std::string name;  ///< "outputs"; "loss"; for gradients the parameter's (or input's) name
  NodeId node = none;
  NodeId parameter = none;  ///< of a gradient: whose
};

/// How a model is trained, as declared: the numbers of dsl/recipe.hpp, which says what each means.
struct Recipe {
  enum class Optimizer : std::uint8_t { adam, adamw, sgd } optimizer = Optimizer::adam;
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0, clip_norm = 0;
  enum class Schedule : std::uint8_t { constant, cosine, steps } schedule = Schedule::constant;
  double warmup = 0, floor = 0, every = 1, factor = 0.1;
  std::int64_t batch = 128, accumulate = 1, epochs = 5;
  std::uint64_t seed = 1;
  std::array<double, 3> input_mean{}, input_deviation{1, 1, 1};  ///< of red, green, blue
  double input_crop = 0;
  bool input_bilinear = false;
  enum class Fit : std::uint8_t { cut, squash, pad } input_fit = Fit::cut;
  double smoothing = 0, mixup = 0, cutmix = 0;
  std::int64_t crop = 0;
  bool flip = false;
  int operations = 0, magnitude = 9;
  double erase = 0;
  double average = 0;
  std::int64_t patience = 0;
  int phase = 0;  ///< of a training step: 1 or 2, which the model is; 0: a step is one
};

/// What outputs [B, height, width] of images of as many pixels tell: nothing of this kind, the inverse of how far each
/// pixel is away, or how many metres.
enum class Depth : std::uint8_t { none, inverse, metres };

struct Graph {
  std::string name;
  Recipe recipe;
  Depth depth = Depth::none;
  std::vector<Node> nodes;
  std::vector<Region> regions{Region{}};
  std::vector<Output> outputs;
  std::vector<std::string> losses;  ///< names of the numbers of the output "losses"
  std::vector<Module> modules;      ///< of the declaration
  std::vector<Line> lines;          ///< from which nodes come

  const Node& operator[](NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
  Node& operator[](NodeId id) { return nodes[static_cast<std::size_t>(id)]; }
};

}  // namespace tessera::graph
