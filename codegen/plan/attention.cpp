// Attention by blocks of queries: scores, softmax and what it weighs as one kernel.
#include "codegen/plan/attention.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <set>
#include <utility>

#include "codegen/plan/gemm.hpp"
#include "codegen/plan/layout.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

namespace {

/// The scores of an image, in reals, from which on they do not stay near: four times a first cache.
constexpr std::int64_t least_scores = 1 << 15;

/// Reals of a block's scores: about a first cache.
constexpr std::int64_t block_reals = 10 << 10;
/// Scores that may lie on a thread's stack: 256 KiB, where one query of an image has no more.
constexpr std::int64_t stack_reals = 1 << 16;

bool is_inner(const Kernel& k, int axis) { return k.axes[axis].inner; }

/// The only access by which a kernel reads a tensor; null: there is none, or several.
const Access* only_load(const Kernel& k, TensorId tensor) {
  const Access* found = nullptr;
  for (const Expression& e : k.expressions) {
    if (e.kind != Expression::Kind::load || e.access.tensor != tensor) continue;
    if (found && *found != e.access) return nullptr;
    found = &e.access;
  }
  return found;
}

/// An access by which a row kernel stores a factor of a product; null: there is none.
const Access* store_for(const Kernel& row, const Kernel& product) {
  const Expression& multiplied = product.expressions[product.steps[0].value];
  for (ExprId e : {multiplied.a, multiplied.b}) {
    const Expression& factor = product.expressions[e];
    if (factor.kind != Expression::Kind::load || !only_load(product, factor.access.tensor)) continue;
    for (const Step& s : row.steps)
      for (const Step::Store& store : s.stores)
        if (store.to.tensor == factor.access.tensor) return &store.to;
  }
  return nullptr;
}

bool is_product_of_image(const Kernel& k) {
  return k.gemm.columns >= 0 && k.gemm.rows >= 0 && !k.across_batch && k.gemm.dtype == DType::real && k.fused.empty();
}

/// Outer axes that stand among `known`.
bool goes_by(const Kernel& k, const std::vector<int>& known, int also) {
  for (int a = 0; a < static_cast<int>(k.axes.size()); ++a)
    if (!is_inner(k, a) && a != also && !ranges::contains(known, a)) return false;
  return true;
}

std::optional<std::array<AttentionAxes, 3>> axes_of(const Kernel& scores, const Kernel& softmax, const Kernel& mix) {
  if (!is_product_of_image(scores) || mix.gemm.columns < 0 || mix.gemm.rows < 0 || softmax.anchor != Anchor::row ||
      softmax.across_batch || scores.steps[1].stores.size() != 1)
    return {};
  const Access& stored = scores.steps[1].stores[0].to;
  const Access *read = only_load(softmax, stored.tensor), *made = store_for(softmax, mix);
  if (!read || !made) return {};
  const std::vector<int> a = axes_along(stored), b = axes_along(*read), c = axes_along(*made),
                         d = axes_along(*only_load(mix, made->tensor));
  if (a.empty() || a.size() != b.size() || c.empty() || c.size() != d.size() || !goes_by(scores, a, -1) ||
      !goes_by(softmax, b, -1) || !goes_by(mix, d, mix.gemm.columns))
    return {};
  std::array<AttentionAxes, 3> axes;
  bool right = true;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto at = std::find(c.begin(), c.end(), b[i]);
    if (at == c.end()) return {};
    const int in_mix = d[at - c.begin()];
    if (a[i] == scores.gemm.columns) {  // the keys
      right = right && is_inner(softmax, b[i]) && is_inner(mix, in_mix);
    } else if (a[i] == scores.gemm.rows) {
      right = right && !is_inner(softmax, b[i]) && in_mix == mix.gemm.rows;
      axes[0].queries = a[i], axes[1].queries = b[i], axes[2].queries = in_mix;
    } else {
      right = right && !is_inner(softmax, b[i]) && !is_inner(mix, in_mix) && in_mix != mix.gemm.columns;
      axes[0].heads.push_back(a[i]), axes[1].heads.push_back(b[i]), axes[2].heads.push_back(in_mix);
    }
  }
  if (!right || axes[0].queries < 0) return {};
  return axes;
}

Access without(Access access, std::size_t dim) {
  access.index.erase(access.index.begin() + static_cast<std::ptrdiff_t>(dim));
  return access;
}

/// What the softmax divides by the sum of a row is left as it is, and what it weighs is multiplied by one over that
/// sum: there are fewer of these. They go from the one to the other in a tensor of their own.
void divide_afterwards(KernelProgram& program, Kernel& softmax, Kernel& mix) {
  const Access stored = *store_for(softmax, mix), taken = *only_load(mix, stored.tensor);
  const auto last = ranges::find_if(
      softmax.steps, [&](const Step& s) { return !s.reduces && s.stores.size() == 1 && s.stores[0].to == stored; });
  if (last == softmax.steps.end()) return;
  const int at = static_cast<int>(last - softmax.steps.begin());
  const auto of = [&](ExprId e) -> const Expression& { return softmax.expressions[e]; };
  const Expression quotient = of(last->stores[0].value);
  if (quotient.kind != Expression::Kind::op || quotient.op != graph::Op::divide ||
      of(quotient.b).kind != Expression::Kind::local || of(quotient.a).kind != Expression::Kind::load ||
      of(quotient.a).access != stored || ranges::any_of(softmax.expressions, [&](const Expression& e) {
        return e.kind == Expression::Kind::local && e.step > at;
      }))
    return;
  const auto keys = ranges::find_if(stored.index, [&](const Affine& i) { return is_inner(softmax, i.parts[0].axis); });
  const auto dim = static_cast<std::size_t>(keys - stored.index.begin());
  Tensor rows = program.tensors[stored.tensor];
  rows.name += ".scale";
  rows.shape.erase(rows.shape.begin() + static_cast<std::ptrdiff_t>(dim));
  const TensorId tensor = program.tensors.next();
  program.tensors.push_back(std::move(rows));

  Expression one, inverse = quotient;
  one.value = 1;
  inverse.a = push(softmax, one);
  Access to = without(stored, dim), from = without(taken, dim);
  to.tensor = from.tensor = tensor;
  softmax.steps.erase(last);
  Step keeps;
  keeps.stores = {{to, push(softmax, inverse)}};
  softmax.steps.push_back(keeps);

  Expression scale, product;
  scale.kind = Expression::Kind::load;
  scale.access = from;
  product.kind = Expression::Kind::op;
  product.op = graph::Op::multiply;
  product.b = push(mix, scale);
  for (Step::Store& store : mix.steps[1].stores)
    for (const ExprId e : mix.expressions.ids())
      if (mix.expressions[e].kind == Expression::Kind::local && needs(mix, store.value, e)) {
        product.a = e;
        store.value = replaced(mix, store.value, e, push(mix, product));
        break;
      }
}

/// Exponentials take the places of the scores that they are made of.
void share_place(Kernel& softmax, Kernel& mix, TensorId of_scores, TensorId weights) {
  const Access read = *only_load(softmax, of_scores);
  Access made = *store_for(softmax, mix);
  made.tensor = of_scores;
  bool over = false, fits = made == read;  // scores are not read any more
  for (const Step& s : softmax.steps) {
    for (const ExprId e : softmax.expressions.ids()) {
      const Expression& x = softmax.expressions[e];
      if (x.kind != Expression::Kind::load || x.access.tensor != of_scores) continue;
      const bool reads = (s.reduces && needs(softmax, s.value, e)) ||
                         ranges::any_of(s.stores, [&](const auto& store) { return needs(softmax, store.value, e); });
      fits = fits && !(over && reads);
    }
    over = over || ranges::any_of(s.stores, [&](const auto& store) { return store.to.tensor == weights; });
  }
  if (!fits) return;
  for (Kernel* k : {&softmax, &mix}) {
    for (Expression& e : k->expressions)
      if (e.access.tensor == weights) e.access.tensor = of_scores;
    for (Step& s : k->steps)
      for (Step::Store& store : s.stores)
        if (store.to.tensor == weights) store.to.tensor = of_scores;
  }
}

/// Whether two kernels give the same in either order.
bool independent(const Kernel& a, const Kernel& b) {
  bool apart = true;
  for_each_access(a, [&](const Access& x, bool writes) {
    for_each_access(b, [&](const Access& y, bool also) { apart &= x.tensor != y.tensor || !(writes || also); });
  });
  return apart;
}

/// How far apart the scores of two queries lie.
std::int64_t reals_of_query(const Layouts& layouts, const Kernel& scores) {
  const Access& to = scores.steps[1].stores[0].to;
  return step_along(to, layouts[to.tensor], scores.gemm.rows);
}

}  // namespace

std::optional<BeforeMix> attention_before(const KernelProgram& program, const std::vector<Item>& order, std::size_t mix,
                                          const IsAttention& is_attention) {
  const auto is_kernel = [&](std::size_t at) { return order[at].kernel >= 0; };
  const auto kernel = [&](std::size_t at) -> const Kernel& { return program.kernels[order[at].kernel]; };
  // Whether a kernel may as well run right before the mix; `but` does so behind it.
  const auto can_wait = [&](std::size_t at, std::size_t but) {
    for (std::size_t between = at + 1; between < mix; ++between)
      if (between != but && !independent(kernel(at), kernel(between))) return false;
    return true;
  };
  if (!is_kernel(mix)) return {};
  for (std::size_t softmax = mix; softmax-- > 1 && is_kernel(softmax);) {
    if (independent(kernel(softmax), kernel(mix))) continue;
    for (std::size_t scores = softmax; scores-- > 0 && is_kernel(scores);)
      if (!independent(kernel(scores), kernel(softmax)) && is_attention(kernel(scores), kernel(softmax), kernel(mix)) &&
          can_wait(softmax, softmax) && can_wait(scores, softmax))
        return BeforeMix{scores, softmax};
  }
  return {};
}

bool attends(const Kernel& kernel) { return kernel.fused.kind == Fused::Kind::attention; }

std::array<AttentionAxes, 3> attention_axes(const Kernel& kernel) {
  return *axes_of(kernel.fused.part(Fused::Role::scores), kernel.fused.part(Fused::Role::softmax), kernel);
}

void attend_in_blocks(KernelProgram& program) {
  std::set<int> gone;
  const auto kernel = [&](int k) -> Kernel& { return program.kernels[k]; };
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 2; i < order.size(); ++i) {
      const std::optional<BeforeMix> before = attention_before(
          program, order, i,
          [](const Kernel& s, const Kernel& w, const Kernel& m) { return is_product_of_image(m) && axes_of(s, w, m); });
      if (!before) continue;
      const int scores = order[before->scores].kernel, softmax = order[before->softmax].kernel, mix = order[i].kernel;
      // What no other kernel touches needs no place in memory.
      const auto inside = [&](TensorId tensor) {
        bool found = program.tensors[tensor].storage == Storage::scratch;
        for (int k = 0; k < static_cast<int>(program.kernels.size()) && found; ++k)
          if (k != scores && k != softmax && k != mix && !gone.contains(k))
            for_each_access(kernel(k), [&](const Access& a, bool) { found &= a.tensor != tensor; });
        return found;
      };
      const TensorId of_scores = kernel(scores).steps[1].stores[0].to.tensor;
      const TensorId weights = store_for(kernel(softmax), kernel(mix))->tensor;
      std::int64_t reals = 1;
      for (const Dim& d : program.tensors[of_scores].shape) reals *= d.known() ? d.value() : 1;
      if (reals < least_scores || !inside(of_scores)) continue;
      program.tensors[of_scores].storage = Storage::registers;
      if (inside(weights)) {
        program.tensors[weights].storage = Storage::registers;
        divide_afterwards(program, kernel(softmax), kernel(mix));
        share_place(kernel(softmax), kernel(mix), of_scores, weights);
      }
      kernel(mix).fused = {
          Fused::Kind::attention, {Fused::Role::scores, Fused::Role::softmax}, {kernel(scores), kernel(softmax)}};
      gone.insert({scores, softmax});
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(before->softmax));
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(before->scores));
      i -= 2;
    }
  remove_kernels(program, gone);
}

Schedule attention_schedule(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel,
                            const Target& target) {
  const Kernel &scores = kernel.fused.part(Fused::Role::scores), &softmax = kernel.fused.part(Fused::Role::softmax);
  Schedule s = gemm_schedule(program, layouts, kernel, target);
  s.depth = 0;  // there are too few rows at once
  s.fused = {gemm_schedule(program, layouts, scores, target),
             choose_schedule(program, layouts, softmax, target, attention_axes(kernel)[1].heads)};
  s.fused[0].depth = 0;
  // Whole tiles of both products, so many that all blocks are about as large. Tiles that do not go together get as many
  // rows as the smaller ones.
  const std::int64_t most = std::max<std::int64_t>(1, block_reals / reals_of_query(layouts, scores));
  std::int64_t& of_mix = s.tile[kernel.gemm.rows];
  std::int64_t& of_scores = s.fused[0].tile[scores.gemm.rows];
  if (std::lcm(of_mix, of_scores) > most) of_mix = of_scores = std::min(of_mix, of_scores);
  // Of images so large that a few queries' scores fill a thread's stack, fewer rows yet.
  if (const std::int64_t fit = std::max<std::int64_t>(1, stack_reals / reals_of_query(layouts, scores));
      std::lcm(of_mix, of_scores) > fit)
    of_mix = of_scores = fit;
  const std::int64_t unit = std::lcm(of_mix, of_scores);
  const std::int64_t queries = scores.axes[scores.gemm.rows].dim.value();
  const auto parts = [](std::int64_t n, std::int64_t of) { return (n + of - 1) / of; };
  s.queries = std::min(queries, parts(parts(queries, parts(queries, most)), unit) * unit);
  return s;
}

}  // namespace tessera::codegen
