// GEMMs among the contractions: which they are, what they read packed, how they are tiled.
#include "codegen/plan/gemm.hpp"

#include <algorithm>
#include <map>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/none_of.hpp>
#include <set>
#include <tuple>

#include "codegen/kernels/query.hpp"
#include "codegen/passes/gemm_operands.hpp"
#include "codegen/plan/attention.hpp"
#include "codegen/plan/layout.hpp"
#include "codegen/plan/plan.hpp"
#include "codegen/plan/window_gradient.hpp"

namespace tessera::codegen {

namespace {

bool known(const Kernel& k, int axis) { return k.axes[axis].dim.known(); }

/// Rows of a tile that leave no tail, at most so many.
std::int64_t dividing_rows(std::int64_t rows, std::int64_t most) {
  while (rows % most) --most;
  return most;
}

/// Rows of a tile, at most so many, that make the pass over all rows the shortest: 197 rows are 21 tiles of 9 and one
/// of 8, not 24 of 8 and one of 5.
std::int64_t best_rows(std::int64_t rows, std::int64_t most, std::int64_t columns) {
  // A tile takes a step for each sum in it, at least the eight that hide an addition's latency, and as many as four
  // more.
  const auto steps = [&](std::int64_t r) { return r ? std::max<std::int64_t>(r * columns, 8) + 4 : 0; };
  std::int64_t best = 1, least_steps = 0;
  for (std::int64_t r = 1; r <= std::min(rows, most); ++r) {
    const std::int64_t all = rows / r * steps(r) + steps(rows % r);
    if (r == 1 || all <= least_steps) {
      best = r;
      least_steps = all;
    }
  }
  return best;
}

/// Rows of a tile, at most so many, of tiles as equal as can be.
std::int64_t equal_rows(std::int64_t rows, std::int64_t most) {
  const std::int64_t tiles = (rows + most - 1) / most;
  return (rows + tiles - 1) / tiles;
}

class Finder {
 public:
  explicit Finder(KernelProgram& program) : p_(program) {
    for (const Tensor& t : p_.tensors) layouts_.push_back(layout_for_gemms(t));
  }

  void run() {
    // Weight gradients alone are no reason: in a model of narrow tokens every other kernel wants lanes along tokens.
    if (!ranges::any_of(p_.kernels, [&](const Kernel& k) { return !k.across_batch && find(k).columns >= 0; })) return;
    for (Kernel& k : p_.kernels) {
      if (k.anchor == Anchor::contraction) join_axes(k);
      k.gemm = find(k);
    }
    if (p_.precision == Precision::bf16)
      for (const int k : attention_gradients(p_)) p_.kernels[k].gemm.accumulates_fp32 = true;
    for (Kernel& k : p_.kernels) {
      if (p_.precision == Precision::fp32) find_channels(k);
      if (k.gemm.columns < 0 || k.gemm.windows) continue;
      if (picks_rows(k) && !k.across_batch) continue;  // a sum of one row is exact
      if (p_.precision == Precision::bf16 && has_rows(k) && !k.gemm.accumulates_fp32) k.gemm.dtype = DType::bf16;
      if (quantizes(p_.precision) && scales(k))
        k.gemm.dtype = p_.precision == Precision::int8 ? DType::int8 : DType::int4;
      k.gemm.narrows = k.gemm.accumulates_fp32 || (quantizes(p_.precision) && has_rows(k) && !multiplies_parameter(k));
      pack(k);
    }
  }

 private:
  std::int64_t step(const Access& a, int axis) const { return step_along(a, layouts_[a.tensor], axis); }

  template <class F>
  static void for_accesses(Kernel& k, F f) {
    for (Expression& e : k.expressions)
      if (e.kind == Expression::Kind::load) f(e.access);
    for (Step& s : k.steps)
      for (Step::Store& store : s.stores) f(store.to);
  }

  static bool depends(const Kernel& k, ExprId e, int axis) { return axes_below(k, e).contains(axis); }

  /// Whether a copy of a parameter in panels can be read instead: the columns are its whole first dim.
  bool packs(const Kernel& k, const Access& a, int columns) const {
    const Tensor& t = p_.tensors[a.tensor];
    if (t.storage != Storage::parameter || t.shape.size() < 2) return false;
    for (std::size_t d = 0; d < a.index.size(); ++d) {
      const bool here = ranges::any_of(a.index[d].parts, [&](const Affine::Part& p) { return p.axis == columns; });
      if (here != (d == 0)) return false;
    }
    return a.index[0] == Affine{0, {{columns, 1}}} && t.shape[0].value() == size_of(k, columns);
  }

  /// Whether the left factor has an axis of its own, be it the batch: a vector times a matrix of the same image gains
  /// nothing by being rounded.
  bool has_rows(const Kernel& k) const {
    const Expression& product = k.expressions[k.steps.front().value];
    const ExprId right = right_factor(k, k.gemm.columns), left = right == product.a ? product.b : product.a;
    for (int a = 0; a < static_cast<int>(k.axes.size()); ++a)
      if (!k.axes[a].inner && depends(k, left, a) && !depends(k, right, a) && (!known(k, a) || size_of(k, a) > 1))
        return true;
    return false;
  }

  /// The factor of the product that runs along the columns; none: the axis cannot be the columns.
  ExprId right_factor(const Kernel& k, int columns) const {
    const Expression& product = k.expressions[k.steps.front().value];
    for (auto [right, left] : {std::pair{product.b, product.a}, std::pair{product.a, product.b}}) {
      const Expression& r = k.expressions[right];
      if (r.kind != Expression::Kind::load || depends(k, left, columns)) continue;
      if (step(r.access, columns) == 1 || packs(k, r.access, columns)) return right;
    }
    return {};
  }

  /// A weight of so many values is read once for all images of a batch that have one row each: with fewer, which stay
  /// in L1 and L2 from one image to the next, threads would wait for each other longer than reading takes.
  static constexpr std::int64_t least_weights = 1 << 15;

  /// The outer axis of the images; -1: there is none.
  static int batch_of(const Kernel& k) {
    for (int a = 0; a < static_cast<int>(k.axes.size()); ++a)
      if (!k.axes[a].inner && !known(k, a)) return a;
    return -1;
  }

  /// Whether an integer names the one row of the right factor that is not multiplied by 0.
  static bool picks_rows(const Kernel& k) {
    const Expression& product = k.expressions[k.steps.front().value];
    const auto equals = [&](ExprId e) { return k.expressions[e].kind == Expression::Kind::index_equals; };
    return equals(product.a) || equals(product.b);
  }

  Gemm find(const Kernel& k) const {
    if (k.anchor != Anchor::contraction || !k.steps.front().reduces || k.steps.size() != 2) return {};
    const Expression& product = k.expressions[k.steps.front().value];
    if (product.kind != Expression::Kind::op || product.op != graph::Op::multiply || product.a == product.b) return {};
    std::int64_t depth = 1;
    for (int a : k.steps.front().over)
      if (known(k, a)) depth *= size_of(k, a);
    if (depth < least_n && !k.across_batch) return {};
    for (int columns = static_cast<int>(k.axes.size()); columns-- > 0;) {
      if (k.axes[columns].inner || !known(k, columns) || size_of(k, columns) < least_n) continue;
      const ExprId right = right_factor(k, columns);
      const bool dense = std::all_of(k.steps[1].stores.begin(), k.steps[1].stores.end(), [&](const Step::Store& s) {
        return step(s.to, columns) == 1 || step(s.to, columns) == 0;
      });
      if (!right.valid() || !dense) continue;
      Gemm found{-1, columns};
      for (int a = 0; a < static_cast<int>(k.axes.size()); ++a)
        if (a != columns && !k.axes[a].inner && known(k, a) && !depends(k, right, a) &&
            (found.rows < 0 || size_of(k, a) > size_of(k, found.rows)))
          found.rows = a;
      if (traits_of(p_.kind).steps && (found.rows < 0 || size_of(k, found.rows) == 1))
        if (const int images = batch_of(k);
            images >= 0 && depth * size_of(k, columns) >= least_weights && !depends(k, right, images) && !picks_rows(k))
          found.rows = images;
      if (k.across_batch && !sums_in_place(k, found)) continue;
      return found;
    }
    return k.across_batch ? find_windows(k) : Gemm{};
  }

  /// How many lanes of the widest vectors there are for each point of an axis.
  static double lanes_for_point(std::int64_t extent) {
    constexpr std::int64_t widest = 16;
    return static_cast<double>((extent + widest - 1) / widest * widest) / static_cast<double>(extent);
  }

  /// A convolution of a map whose lines fill vectors badly has lanes along its output channels instead, which are
  /// neighbours in the packed weight, where they fill more of them than a tile's transpose costs.
  void find_channels(Kernel& k) const {
    constexpr double transpose = 16;  // steps of the depth
    if (k.anchor != Anchor::contraction || k.across_batch || k.steps.size() != 2 || !k.steps[0].reduces ||
        !k.steps[1].over.empty() || k.gemm.windows)
      return;
    const Expression& product = k.expressions[k.steps[0].value];
    if (product.kind != Expression::Kind::op || product.op != graph::Op::multiply) return;
    std::int64_t depth = 1;
    for (int a : k.steps[0].over)
      if (known(k, a)) depth *= size_of(k, a);
    const auto outer = [&](int axis, std::int64_t least) {
      return !k.axes[axis].inner && known(k, axis) && size_of(k, axis) >= least;
    };
    const int axes = static_cast<int>(k.axes.size());
    for (int columns = 0; columns < axes && depth >= least_n; ++columns)
      for (int rows = 0; rows < axes && outer(columns, least_n); ++rows) {
        if (rows == columns || !outer(rows, 4) || !stores_along(k, rows)) continue;
        for (auto [right, left] : {std::pair{product.b, product.a}, std::pair{product.a, product.b}}) {
          const Expression &weight = k.expressions[right], &map = k.expressions[left];
          if (weight.kind == Expression::Kind::load && map.kind == Expression::Kind::load &&
              (packs(k, weight.access, columns) || packs_transposed(weight.access, columns)) &&
              !depends(k, left, columns) && !depends(k, right, rows) && depends(k, left, rows) &&
              lanes_for_point(size_of(k, rows)) >
                  (1 + transpose / static_cast<double>(depth)) * lanes_for_point(size_of(k, columns))) {
            k.gemm = {.rows = rows, .columns = columns, .transposes = true};
            return;
          }
        }
      }
  }
  /// Whether all that the second step loads and stores has neighbours along an axis, or one value for all of it.
  bool stores_along(const Kernel& k, int axis) const {
    std::set<ExprId> read;
    for (const Step::Store& s : k.steps[1].stores) {
      if (step(s.to, axis) != 1) return false;
      reach(k, s.value, read);
    }
    return std::all_of(read.begin(), read.end(), [&](ExprId e) {
      const Expression& x = k.expressions[e];
      return x.kind != Expression::Kind::index_equals &&
             (x.kind != Expression::Kind::load || step(x.access, axis) == 0 || step(x.access, axis) == 1);
    });
  }

  Gemm find_windows(const Kernel& k) const {
    const auto outer = [&](int axis, std::int64_t least) {
      return !k.axes[axis].inner && known(k, axis) && size_of(k, axis) >= least;
    };
    for (int columns = 0; columns < static_cast<int>(k.axes.size()); ++columns)
      for (int rows = 0; rows < static_cast<int>(k.axes.size()); ++rows)
        if (rows != columns && outer(columns, least_n) && outer(rows, 4) && dividing_rows(size_of(k, rows), 8) >= 4 &&
            window_gradient(layouts_, k, rows, columns))
          return {rows, columns, DType::real, true};
    return {};
  }

  /// Whether a sum over the batch can be added up where it is stored: there is one plain store, and rows to partition.
  static bool sums_in_place(const Kernel& k, const Gemm& p) {
    const std::vector<Step::Store>& stores = k.steps[1].stores;
    return p.rows >= 0 && k.steps[1].over.empty() && stores.size() == 1 &&
           k.expressions[stores[0].value].kind == Expression::Kind::local && dividing_rows(size_of(k, p.rows), 6) >= 4;
  }

  /// Two axes that run on into each other in everything that the kernel touches are one.
  void join_axes(Kernel& k) const {
    for (bool again = true; again;) {
      again = false;
      for (int a = 0; a + 1 < static_cast<int>(k.axes.size()) && !again; ++a) again = join(k, a, a + 1);
    }
  }
  bool join(Kernel& k, int a, int b) const {
    Axis &first = k.axes[a], &second = k.axes[b];
    if (first.inner != second.inner || !known(k, a) || !known(k, b)) return false;
    const std::int64_t extent = size_of(k, b);
    bool fits = true;
    for_accesses(k, [&](const Access& access) { fits &= step(access, a) == step(access, b) * extent; });
    for (const Expression& e : k.expressions)
      fits &= e.kind != Expression::Kind::keep &&
              ranges::none_of(e.element.parts, [&](const Affine::Part& p) { return p.axis == a || p.axis == b; });
    if (!fits) return false;
    second.dim = first.dim * second.dim;
    second.name = first.name;
    p_.joined = true;
    k.axes.erase(k.axes.begin() + a);
    const auto moved = [&](Affine& index) {
      std::erase_if(index.parts, [&](const Affine::Part& p) { return p.axis == a; });
      for (Affine::Part& p : index.parts) p.axis -= p.axis > a;
    };
    for (Expression& e : k.expressions) for_each_index(e, moved);
    for (Step& s : k.steps) {
      std::erase(s.over, a);
      for (int& axis : s.over) axis -= axis > a;
      for (Step::Store& store : s.stores)
        for (Affine& index : store.to.index) moved(index);
    }
    return true;
  }

  bool multiplies_parameter(const Kernel& k) const {
    std::set<ExprId> below;
    reach(k, k.steps.front().value, below);
    return ranges::any_of(below, [&](ExprId e) {
      const Expression& x = k.expressions[e];
      return x.kind == Expression::Kind::load && p_.tensors[x.access.tensor].storage == Storage::parameter;
    });
  }

  /// Whether a product is one of integers: of a parameter whose columns have a scale each, or one for each group.
  bool scales(const Kernel& k) const {
    const Access& right = k.expressions[right_factor(k, k.gemm.columns)].access;
    return !k.across_batch && reduces_one_axis(k) && packs(k, right, k.gemm.columns);
  }

  void pack(Kernel& k) {
    const bool rounds = k.gemm.dtype == DType::bf16;
    const Expression& product = k.expressions[k.steps.front().value];
    Expression& right = k.expressions[!k.gemm.transposes                      ? right_factor(k, k.gemm.columns)
                                      : depends(k, product.a, k.gemm.columns) ? product.a
                                                                              : product.b];
    const bool transposed =
        k.gemm.transposes ? !packs(k, right.access, k.gemm.columns) : step(right.access, k.gemm.columns) == 1;
    if (transposed && !packs_transposed(right.access, k.gemm.columns)) return;
    if (rounds && !reduces_one_axis(k)) return;
    auto [at, fresh] = packed_.try_emplace({right.access.tensor, transposed, k.gemm.dtype}, p_.tensors.next());
    if (fresh) {
      Tensor copy = p_.tensors[right.access.tensor];
      copy.storage = Storage::packed;
      copy.packing = Packing::panels;
      copy.name += transposed ? ".packed_transposed" : ".packed";
      copy.element = k.gemm.dtype;
      copy.transposed = transposed;
      if (transposed) std::swap(copy.shape[0], copy.shape[1]);
      layouts_.push_back(layout_for_gemms(copy));
      p_.tensors.push_back(std::move(copy));
    }
    right.access.tensor = at->second;
    if (transposed) std::swap(right.access.index[0], right.access.index[1]);
  }

  /// Whether a copy in panels can be read instead of a parameter whose columns are its whole second dim: a matrix, or a
  /// convolution's weight in the gradient of its input.
  bool packs_transposed(const Access& a, int columns) const {
    const Tensor& t = p_.tensors[a.tensor];
    const auto whole = [](const Affine& i) {
      return i.offset == 0 && i.parts.size() == 1 && i.parts[0].coefficient == 1;
    };
    return t.storage == Storage::parameter && t.shape.size() >= 2 &&
           std::all_of(a.index.begin(), a.index.end(), whole) && a.index[1].parts[0].axis == columns;
  }

  KernelProgram& p_;
  Layouts layouts_;
  std::map<std::tuple<TensorId, bool, DType>, TensorId>
      packed_;  ///< parameter, whether transposed, as what -> its copy
};

/// What may lie in L2 while all columns go by; processors have 1 MiB of it or more.
constexpr std::int64_t l2_reals = 3 << 16;

/// Whether sums can wait for the rest of their depth where the first store puts what is made of them.
bool sums_wait_in_store(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel) {
  const Step& last = kernel.steps[1];
  if (!last.over.empty()) return false;
  const Access& to = last.stores.front().to;
  const TensorId t = to.tensor;
  return program.tensors[t].element == DType::real && step_along(to, layouts[t], kernel.gemm.columns) == 1 &&
         !ranges::any_of(kernel.expressions, [&](const Expression& e) {
           return e.kind == Expression::Kind::load && e.access.tensor == to.tensor && e.access.shift == to.shift;
         });
}

/// Where the rows' left factor is larger than L2 and their sums are not: an equal part of the depth of which
/// it holds all rows.
std::int64_t depth_block(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel) {
  const Gemm& p = kernel.gemm;
  if (p.rows < 0 || !known(kernel, p.rows) || !reduces_one_axis(kernel) ||
      !sums_wait_in_store(program, layouts, kernel))
    return 0;
  std::int64_t depth = 1;
  for (int a : kernel.steps.front().over) depth *= size_of(kernel, a);
  const std::int64_t rows = size_of(kernel, p.rows);
  if (rows * depth <= l2_reals || rows * size_of(kernel, p.columns) > l2_reals * 4 / 3) return 0;
  for (std::int64_t blocks = 2; depth / blocks >= 128; ++blocks)
    if (depth % blocks == 0 && rows * depth / blocks <= l2_reals) return depth / blocks;
  return 0;
}

/// Where the rows are images and a panel of so many columns is larger than half of L1: an equal part of the depth that
/// is not. Each tile of images goes through it anew, and its sums keep their order.
std::int64_t depth_block_for_images(const Kernel& kernel, std::int64_t width) {
  constexpr std::int64_t most_reals = 1 << 12;  // 16 KiB
  if (!reduces_one_axis(kernel)) return 0;
  std::int64_t depth = 1;
  for (int a : kernel.steps.front().over) depth *= size_of(kernel, a);
  const std::int64_t most = most_reals / width;
  for (std::int64_t block = most; block > most / 2 && block < depth; --block)
    if (depth % block == 0) return block;
  return 0;
}

}  // namespace

void find_gemms(KernelProgram& program) { Finder(program).run(); }

bool has_gemms(const KernelProgram& program) {
  return ranges::any_of(program.kernels, [](const Kernel& k) { return k.gemm.columns >= 0; });
}

void read_all_packed(KernelProgram& program) {
  for (const Kernel& k : program.kernels)
    for (const Expression& e : k.expressions) {
      if (e.kind != Expression::Kind::load) continue;
      Tensor& t = program.tensors[e.access.tensor];
      if (t.storage == Storage::parameter) t.storage = Storage::packed;
    }
}

bool reduces_one_axis(const Kernel& product) {
  const std::vector<int>& over = product.steps.front().over;
  return std::count_if(over.begin(), over.end(), [&](int a) { return known(product, a); }) <= 1;
}

bool uses_tile_unit(DType dtype, const Target& target) {
  return quantized(dtype) || (target.bf16_tile_rows && dtype == DType::bf16);
}

DType factors_on(const Kernel& kernel, const Target& target) {
  return kernel.gemm.narrows && target.bf16_tile_rows ? DType::bf16 : kernel.gemm.dtype;
}

bool uses_tile_unit(const Kernel& kernel, const Target& target) {
  return uses_tile_unit(factors_on(kernel, target), target) && reduces_one_axis(kernel);
}

int tile_vectors(const Target& target, std::int64_t columns, DType dtype) {
  if (uses_tile_unit(dtype, target)) return static_cast<int>(tile_side / target.lanes);
  if (const auto at = target.tuned_vectors.find(columns); at != target.tuned_vectors.end()) return at->second;
  for (int vectors : target.columns)
    if (vectors > 1 && columns % (vectors * target.lanes) == 0) return vectors;
  for (int vectors : target.columns)
    if (columns >= vectors * target.lanes) return vectors;
  return 1;
}

bool shares_taps(const Target& target) { return target.lanes == 1 || target.accumulators > 16; }

/// Vectors of a tile of one row: as many as hide an addition's latency, where they divide the columns into tiles of 64
/// at most, of which a step may leave out what lies behind its position. Panels of a packed weight are as wide as they
/// are for all rows.
int vectors_of_a_row(const KernelProgram& program, const Kernel& kernel, const Target& target, int vectors) {
  constexpr std::int64_t most = 8, widest = 64;
  const Gemm& p = kernel.gemm;
  const Expression& product = kernel.expressions[kernel.steps.front().value];
  const auto packed = [&](ExprId e) {
    const Expression& x = kernel.expressions[e];
    return x.kind == Expression::Kind::load && program.tensors[x.access.tensor].packing == Packing::panels;
  };
  if (kernel.across_batch || (p.rows >= 0 && (!known(kernel, p.rows) || size_of(kernel, p.rows) > 1)) ||
      packed(product.a) || packed(product.b))
    return vectors;
  for (std::int64_t v = std::min(most, widest / target.lanes); v > vectors; --v)
    if (size_of(kernel, p.columns) % (v * target.lanes) == 0) return static_cast<int>(v);
  return vectors;
}

/// Rows of tiles. A few that 32 leave over would be a slow tile of their own: the others take them up, where they may
/// hold `most`.
std::int64_t tile_rows(std::int64_t rows, std::int64_t most) {
  const std::int64_t tiles = rows / tile_side, over = rows % tile_side;
  return tiles > 0 && over <= most - tile_side ? (rows + tiles - 1) / tiles : tile_side;
}

Schedule gemm_schedule(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel,
                       const Target& target) {
  Schedule s;
  s.tile.assign(kernel.axes.size(), 1);
  const Gemm& p = kernel.gemm;
  const bool tiles = uses_tile_unit(kernel, target);
  s.vector = p.columns;
  const DType factors = factors_on(kernel, target);
  int vectors = tile_vectors(target, size_of(kernel, p.columns), factors);
  // Two vectors and more rows: a part of the map with narrow panels has longer lines and less of an edge.
  if (p.windows) vectors = size_of(kernel, p.columns) > target.lanes ? 2 : 1;
  if (!tiles) vectors = vectors_of_a_row(program, kernel, target, vectors);
  s.tile[p.columns] = vectors;
  const std::int64_t most = std::min(target.product_sums / vectors, 14);
  if (kernel.across_batch) {
    const std::int64_t rows =
        tiles ? tile_side : dividing_rows(size_of(kernel, p.rows), std::min<std::int64_t>(most, 8));
    s.tile[p.rows] = rows;
    s.parallel = p.rows;
    s.block = std::max<std::int64_t>(2, rows);  // 1 would be an image
    return s;
  }
  if (tasks_of(kernel) == Tasks::columns) {
    s.tile[p.rows] = tiles ? tile_side : most;
    if (target.lanes > 1 && factors == DType::real) s.depth = depth_block_for_images(kernel, vectors * target.lanes);
    return s;
  }
  if (p.rows >= 0) {
    const std::int64_t rows = size_of(kernel, p.rows);
    const auto tuned = target.tuned_rows.find({rows, vectors});
    const int sums = shares_taps(target) ? target.product_sums * 2 / 3 : target.product_sums;
    s.tile[p.rows] = p.transposes ? equal_rows(rows, std::clamp<std::int64_t>(sums / vectors, 1, most))
                     : tiles      ? tile_rows(rows, factors == DType::bf16 ? target.bf16_tile_rows : tile_side)
                     : tuned != target.tuned_rows.end() ? tuned->second
                                                        : best_rows(rows, most, vectors);
  }
  for (std::size_t a = 0; a < kernel.axes.size() && s.parallel < 0; ++a)
    if (!kernel.axes[a].inner && !kernel.axes[a].dim.known()) s.parallel = static_cast<int>(a);
  if (!tiles) s.depth = depth_block(program, layouts, kernel);
  return s;
}

}  // namespace tessera::codegen
