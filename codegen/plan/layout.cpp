// Layouts and schedules by an estimate of instructions: gathers are dear, half-filled vectors are waste.
#include "codegen/plan/layout.hpp"

#include <algorithm>
#include <range/v3/algorithm/contains.hpp>
#include <set>
#include <vector>

#include "codegen/passes/ops.hpp"
#include "codegen/plan/attention.hpp"
#include "codegen/plan/gemm.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

namespace {

constexpr std::int64_t estimate_batch = 32;

double points(const Axis& axis) { return static_cast<double>(extent(axis.dim).at(estimate_batch)); }

bool uses_axis(const Access& access, int axis) {
  for (const Affine& a : access.index)
    for (const Affine::Part& p : a.parts)
      if (p.axis == axis) return true;
  return false;
}

std::vector<const Access*> loads_of(const Kernel& kernel, const Step& step) {
  std::set<ExprId> seen;
  reach(kernel, step.value, seen);
  std::vector<const Access*> loads;
  for (ExprId e : seen) {
    const Expression& x = kernel.expressions[e];
    if (x.kind == Expression::Kind::load) loads.push_back(&x.access);
  }
  return loads;
}

}  // namespace

std::int64_t step_along(const Access& access, const Layout& layout, int axis) {
  std::int64_t step = 0;
  for (std::size_t d = 0; d < access.index.size(); ++d)
    for (const Affine::Part& p : access.index[d].parts)
      if (p.axis == axis) step += p.coefficient * layout.stride[d];
  return step;
}

Layout layout_of(const Tensor& tensor, int innermost) {
  Layout l;
  int dims = static_cast<int>(tensor.shape.size());
  auto is_batch = [&](int d) { return !tensor.shape[d].known(); };
  for (int d = 0; d < dims; ++d)
    if (is_batch(d)) l.order.push_back(d);
  for (int d = 0; d < dims; ++d)
    if (!is_batch(d) && d != innermost) l.order.push_back(d);
  if (innermost >= 0 && !is_batch(innermost)) l.order.push_back(innermost);
  l.stride.assign(tensor.shape.size(), 0);
  l.size = {1, 0};
  for (std::size_t i = l.order.size(); i-- > 0;) {
    Extent e = extent(tensor.shape[l.order[i]]);
    l.stride[l.order[i]] = l.size.fixed;
    l.size = e.known() ? Extent{l.size.fixed * e.fixed, 0} : Extent{l.size.fixed * e.fixed, l.size.fixed * e.per_batch};
  }
  return l;
}

Layout layout_with_rows(const Tensor& tensor, std::int64_t apart) {
  Layout l = layout_of(tensor, static_cast<int>(tensor.shape.size()) - 1);
  const std::int64_t row = tensor.shape.back().value();
  for (std::size_t d = 0; d + 1 < tensor.shape.size(); ++d) l.stride[d] = l.stride[d] / row * apart;
  l.size = {l.size.fixed / row * apart, l.size.per_batch / row * apart};
  return l;
}

Layout layout_for_gemms(const Tensor& tensor) {
  constexpr std::int64_t line = 16;  // values: rows that begin with lines of memory are not read across two of them
  const auto declared = [&] { return layout_of(tensor, static_cast<int>(tensor.shape.size()) - 1); };
  const bool ours = tensor.storage == Storage::scratch || tensor.storage == Storage::registers ||
                    (tensor.storage == Storage::packed && tensor.packing == Packing::folded);
  if (!ours || tensor.shape.size() < 2 || !tensor.shape.back().known()) return declared();
  const std::int64_t row = tensor.shape.back().value(), whole = (row + line - 1) / line * line;
  return whole == row || whole - row > row / 8 ? declared() : layout_with_rows(tensor, whole);
}

double estimate(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel, int axis,
                const Target& target) {
  (void)program;
  double total = 0;
  auto lane_cost = [&](const Access& a, double dense, double gather) {
    if (axis < 0) return 1.0;
    std::int64_t step = step_along(a, layouts[a.tensor], axis);
    return step == 0 ? 0.5 : step == 1 ? dense : gather * target.lanes;
  };
  for (const Step& step : kernel.steps) {
    double iterations = 1;
    auto count = [&](int a) {
      double p = points(kernel.axes[a]);
      if (a == axis) {
        p = static_cast<double>((static_cast<std::int64_t>(p) + target.lanes - 1) / target.lanes);
      }
      iterations *= p;
    };
    for (std::size_t a = 0; a < kernel.axes.size(); ++a)
      if (!kernel.axes[a].inner) count(static_cast<int>(a));
    double outer = iterations;
    for (int a : step.over) count(a);
    std::set<ExprId> seen;
    reach(kernel, step.value, seen);
    for (const Step::Store& s : step.stores) reach(kernel, s.value, seen);
    double cost = 1;
    double reuse = kernel.anchor == Anchor::contraction && step.reduces ? 0.4 : 1;
    for (ExprId e : seen) {
      const Expression& x = kernel.expressions[e];
      if (x.kind == Expression::Kind::load) cost += reuse * lane_cost(x.access, 1, 1);
      if (x.kind == Expression::Kind::op) cost += row_of(x.op).cpu_cost;
      if (x.kind == Expression::Kind::index || x.kind == Expression::Kind::index_equals) cost += 2;
      if (x.kind == Expression::Kind::keep) cost += 100;
    }
    for (const Step::Store& s : step.stores) cost += lane_cost(s.to, 1, 1.5);
    total += iterations * cost;
    bool across = std::find(step.over.begin(), step.over.end(), axis) != step.over.end();
    if (step.reduces && across) total += outer * 8;  // the horizontal sum
  }
  return total;
}

namespace {

/// Whether different lanes along an axis would compare with different labels: there are no vectors of integers.
bool labels_vary_along(const Kernel& kernel, int axis) {
  return std::any_of(kernel.expressions.begin(), kernel.expressions.end(), [&](const Expression& e) {
    return e.kind == Expression::Kind::index_equals && uses_axis(kernel.expressions[e.a].access, axis);
  });
}

/// The cheapest axis to vectorise over that is not among `fixed`, and its cost.
std::pair<int, double> best_axis(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel,
                                 const Target& target, const std::vector<int>& fixed = {}) {
  std::pair<int, double> best{-1, 0};
  for (int a = 0; a < static_cast<int>(kernel.axes.size()); ++a) {
    // The batch is partitioned among threads; lanes run over it only where there is nothing else to sum over, and where
    // it is summed at once.
    if (!kernel.axes[a].dim.known() && (tasks_of(kernel) != Tasks::serial || kernel.accumulates)) continue;
    if (labels_vary_along(kernel, a) || kernel.axes[a].only.valid() || ranges::contains(fixed, a)) continue;
    double cost = estimate(program, layouts, kernel, a, target);
    if (best.first < 0 || cost < best.second) best = {a, cost};
  }
  if (best.first < 0) best.second = estimate(program, layouts, kernel, -1, target);
  return best;
}

}  // namespace

Layouts choose_layouts(const KernelProgram& program, const Target& target) {
  auto free_to_choose = [&](const Tensor& t) { return t.storage == Storage::scratch || t.storage == Storage::table; };
  Table<std::vector<int>, TensorId> readers(program.tensors.size());  // kernels that touch a tensor
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    std::set<TensorId> touched;
    for (const Expression& e : program.kernels[k].expressions)
      if (e.kind == Expression::Kind::load) touched.insert(e.access.tensor);
    for (const Step& s : program.kernels[k].steps)
      for (const Step::Store& st : s.stores) touched.insert(st.to.tensor);
    for (const TensorId t : touched) readers[t].push_back(static_cast<int>(k));
  }
  auto cost_of = [&](const Layouts& layouts, const std::vector<int>& kernels) {
    double sum = 0;
    for (int k : kernels) sum += best_axis(program, layouts, program.kernels[k], target).second;
    return sum;
  };
  std::vector<int> all;
  for (std::size_t k = 0; k < program.kernels.size(); ++k) all.push_back(static_cast<int>(k));

  // Starting points: everything as declared; and, for each extent, every tensor that has such a dim with it innermost.
  std::set<std::int64_t> extents{0};
  for (const Tensor& t : program.tensors)
    for (const Dim& d : t.shape)
      if (d.known()) extents.insert(d.value());
  Layouts best;
  double best_cost = 0;
  for (std::int64_t start : extents) {
    Layouts layouts;
    for (const Tensor& t : program.tensors) {
      int innermost = static_cast<int>(t.shape.size()) - 1;
      if (free_to_choose(t))
        for (std::size_t d = 0; d < t.shape.size(); ++d)
          if (start && t.shape[d].known() && t.shape[d].value() == start) {
            innermost = static_cast<int>(d);
            break;
          }
      layouts.push_back(layout_of(t, innermost));
    }
    for (bool better = true; better;) {
      better = false;
      for (const TensorId t : program.tensors.ids()) {
        const Tensor& tensor = program.tensors[t];
        if (!free_to_choose(tensor) || tensor.shape.size() < 2) continue;
        double now = cost_of(layouts, readers[t]);
        for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
          if (!tensor.shape[d].known()) continue;
          Layout kept = layouts[t];
          layouts[t] = layout_of(tensor, static_cast<int>(d));
          double then = cost_of(layouts, readers[t]);
          if (then < now * 0.999) {
            now = then;
            better = true;
          } else {
            layouts[t] = kept;
          }
        }
      }
    }
    double cost = cost_of(layouts, all);
    if (best.empty() || cost < best_cost * 0.999) {
      best = layouts;
      best_cost = cost;
    }
  }
  return best;
}

Schedule choose_schedule(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel,
                         const Target& target, const std::vector<int>& fixed) {
  if (attends(kernel)) return attention_schedule(program, layouts, kernel, target);
  if (kernel.gemm.columns >= 0) return gemm_schedule(program, layouts, kernel, target);
  Schedule s;
  s.tile.assign(kernel.axes.size(), 1);
  s.vector = best_axis(program, layouts, kernel, target, fixed).first;
  for (std::size_t a = 0; a < kernel.axes.size() && s.parallel < 0; ++a)
    if (!kernel.axes[a].inner && !kernel.axes[a].dim.known()) s.parallel = static_cast<int>(a);
  if (s.parallel < 0 && kernel.axes.size() == 1 && !kernel.axes[0].inner) {
    s.parallel = 0;
    s.block = 1024;
  }
  if (kernel.anchor != Anchor::contraction || s.vector < 0) return s;

  // A tile of sums: points of one or two outer axes whose loads are shared. Fewest loads for each product wins.
  auto known_extent = [&](int a) { return kernel.axes[a].dim.value(); };
  const std::vector<const Access*> loads = loads_of(kernel, kernel.steps.front());
  bool vector_is_inner = kernel.axes[s.vector].inner;
  std::vector<int> outer;
  for (std::size_t a = 0; a < kernel.axes.size(); ++a)
    if (!kernel.axes[a].inner && static_cast<int>(a) != s.parallel && kernel.axes[a].dim.known())
      outer.push_back(static_cast<int>(a));
  double best = -1;
  std::vector<std::int64_t> best_tile = s.tile;
  auto consider = [&](const std::vector<std::int64_t>& tile) {
    double sums = 1, loaded = 0, waste = 1;
    for (std::size_t a = 0; a < tile.size(); ++a) {
      sums *= static_cast<double>(tile[a]);
      if (tile[a] == 1) continue;
      std::int64_t unit = static_cast<int>(a) == s.vector ? target.lanes : 1;
      std::int64_t vectors = (known_extent(static_cast<int>(a)) + unit - 1) / unit;
      if (tile[a] > vectors) return;
      std::int64_t passes = (vectors + tile[a] - 1) / tile[a];
      if (passes * tile[a] != vectors) waste *= 1.2;  // a second, smaller tile: more code, fewer sums at once
    }
    if (sums > target.accumulators) return;
    for (const Access* load : loads) {
      double distinct = 1;
      for (std::size_t a = 0; a < tile.size(); ++a)
        if (tile[a] > 1 && uses_axis(*load, static_cast<int>(a))) distinct *= static_cast<double>(tile[a]);
      loaded += distinct;
    }
    double cost = (loaded / sums + 2.0 / sums) * waste;  // loads, and the latency that few sums leave open
    if (best < 0 || cost < best - 1e-9) {
      best = cost;
      best_tile = tile;
    }
  };
  static constexpr std::int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int u : outer)
    for (std::int64_t m : sizes)
      for (int w : outer)
        for (std::int64_t n : sizes) {
          if (w == u || (!vector_is_inner && u != s.vector && w != s.vector && (m > 1 && n > 1))) continue;
          std::vector<std::int64_t> tile(kernel.axes.size(), 1);
          tile[u] = m;
          tile[w] = n;
          consider(tile);
        }
  if (outer.size() == 1)
    for (std::int64_t m : sizes) {
      std::vector<std::int64_t> tile(kernel.axes.size(), 1);
      tile[outer[0]] = m;
      consider(tile);
    }
  s.tile = best_tile;
  return s;
}

}  // namespace tessera::codegen
