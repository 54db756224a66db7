#include "codegen/plan/attention_axes.hpp"

#include <algorithm>
#include <array>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <tuple>
#include <utility>

#include "codegen/kernels/query.hpp"
#include "codegen/plan/online_softmax.hpp"

namespace tessera::codegen {

namespace {

bool is_inner(const Kernel& k, int axis) { return k.axes[axis].inner; }

/// Whether a kernel is a GEMM of one image.
bool is_product(const Kernel& k) { return k.gemm.columns >= 0 && k.gemm.rows >= 0 && !k.across_batch; }

/// Outer axes that stand among `known`.
bool goes_by(const Kernel& k, const std::vector<int>& known, int also) {
  for (int a = 0; a < static_cast<int>(k.axes.size()); ++a)
    if (!is_inner(k, a) && a != also && !ranges::contains(known, a)) return false;
  return true;
}

/// By which a kernel loads the scores that `scores` gives, where it does nothing but store what it makes of each in the
/// place of one; null: it is another one.
const Access* only_adds_to(const Kernel& scores, const Kernel& k) {
  const Access* const loaded = only_load(k, scores.steps[1].stores[0].to.tensor);
  const bool adds = loaded && k.anchor == Anchor::elementwise && !k.across_batch && k.fused.empty() &&
                    k.steps.size() == 1 && k.steps[0].stores.size() == 1 &&
                    k.steps[0].stores[0].to.index == loaded->index;
  return adds ? loaded : nullptr;
}

/// The axis of rows of keys in an index of scores, across * row + column, and how many keys a row has. Nothing: it is
/// another index.
std::optional<std::pair<int, std::int64_t>> rows_of_keys(const Kernel& k, const Affine& index) {
  if (index.offset || index.parts.size() != 2) return {};
  for (const int row : {0, 1}) {
    const Affine::Part &rows = index.parts[row], &columns = index.parts[1 - row];
    if (columns.coefficient == 1 && k.axes[columns.axis].dim.known() &&
        rows.coefficient == k.axes[columns.axis].dim.value())
      return std::pair{rows.axis, rows.coefficient};
  }
  return {};
}

/// The axes of a kernel that touches a tensor by `there`, by those of another one that does so by `here`.
std::optional<AttentionAxes> axes_by(const Access& here, const AttentionAxes& axes, const Access* there) {
  const std::vector<int> from = axes_along(here), to = there ? axes_along(*there) : std::vector<int>{};
  if (from.empty() || from.size() != to.size()) return {};
  const std::vector<int> two = mapped({axes.queries, axes.keys}, from, to);
  const AttentionAxes found{two[0], mapped(axes.heads, from, to), two[1]};
  if (found.queries < 0 || found.keys < 0 || ranges::contains(found.heads, -1)) return {};
  return found;
}

/// Whether a GEMM stores plain sums over an axis of the scores of a head, for each point of the other one: those of a
/// block can go on from what is stored.
bool accumulates(const Kernel& k, const AttentionAxes& axes, int over, int rows) {
  if (k.gemm.rows != rows || k.steps[0].over != std::vector{over} || !k.steps[1].over.empty() ||
      k.steps[1].stores.size() != 1 || !is_local(k, k.steps[1].stores[0].value, 0))
    return false;
  std::vector<int> known = axes.heads;
  known.push_back(rows);
  return goes_by(k, known, k.gemm.columns) && !ranges::contains(axes.heads, k.gemm.columns);
}

/// Whether a GEMM gives scores of all heads.
bool makes_scores(const Kernel& k, const AttentionAxes& axes) {
  std::vector<int> known = axes.heads;
  known.insert(known.end(), {axes.queries, axes.keys});
  return k.gemm.rows == axes.queries && k.gemm.columns == axes.keys && goes_by(k, known, -1);
}

}  // namespace

const Access* only_load(const Kernel& k, TensorId tensor) {
  const Access* found = nullptr;
  for (const Expression& e : k.expressions) {
    if (e.kind != Expression::Kind::load || e.access.tensor != tensor) continue;
    if (found && *found != e.access) return nullptr;
    found = &e.access;
  }
  return found;
}

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

bool is_product_of_image(const Kernel& k) { return is_product(k) && k.fused.empty(); }

bool independent(const Kernel& a, const Kernel& b) {
  bool apart = true;
  for_each_access(a, [&](const Access& x, bool writes) {
    for_each_access(b, [&](const Access& y, bool also) { apart &= x.tensor != y.tensor || !(writes || also); });
  });
  return apart;
}

std::int64_t reals_of(const Tensor& tensor) {
  std::int64_t reals = 1;
  for (const Dim& d : tensor.shape) reals *= d.known() ? d.value() : 1;
  return reals;
}

bool is_inside(const KernelProgram& program, TensorId tensor, const std::set<int>& kernels) {
  bool found = program.tensors[tensor].storage == Storage::scratch;
  for (int k = 0; k < static_cast<int>(program.kernels.size()) && found; ++k)
    if (!kernels.contains(k))
      for_each_access(program.kernels[k], [&](const Access& a, bool) { found &= a.tensor != tensor; });
  return found;
}

void rename(Kernel& kernel, TensorId from, TensorId to) {
  for (Expression& e : kernel.expressions)
    if (e.access.tensor == from) e.access.tensor = to;
  for (Step& s : kernel.steps)
    for (Step::Store& store : s.stores)
      if (store.to.tensor == from) store.to.tensor = to;
}

void share_place(Kernel& softmax, const std::vector<Kernel*>& readers, TensorId of_scores, TensorId weights) {
  const Access read = *only_load(softmax, of_scores);
  Access made = *store_for(softmax, *readers.front());
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
  std::vector<Kernel*> all = readers;
  all.push_back(&softmax);
  for (Kernel* k : all) rename(*k, weights, of_scores);
}

std::optional<ForwardAxes> axes_of(const Kernel& scores, const Kernel* added, const Kernel& softmax,
                                   const Kernel& mix) {
  if (!is_product_of_image(scores) || scores.gemm.dtype != mix.gemm.dtype || mix.gemm.columns < 0 ||
      mix.gemm.rows < 0 || softmax.anchor != Anchor::row || softmax.across_batch || scores.steps[1].stores.size() != 1)
    return {};
  const Access& stored = scores.steps[1].stores[0].to;
  const Access* const summed = added ? only_adds_to(scores, *added) : nullptr;
  if (added && !summed) return {};
  const Access *read = only_load(softmax, added ? added->steps[0].stores[0].to.tensor : stored.tensor),
               *made = store_for(softmax, mix);
  if (!read || !made) return {};
  const std::vector<int> a = axes_along(stored), b = axes_along(*read), c = axes_along(*made),
                         d = axes_along(*only_load(mix, made->tensor));
  if (a.empty() || a.size() != b.size() || c.empty() || c.size() != d.size() || !goes_by(scores, a, -1) ||
      !goes_by(softmax, b, -1) || !goes_by(mix, d, mix.gemm.columns))
    return {};
  ForwardAxes axes;
  bool right = true;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto at = std::find(c.begin(), c.end(), b[i]);
    if (at == c.end()) return {};
    const int in_mix = d[at - c.begin()], in_added = summed ? axis_along(summed->index[i]) : -1;
    if (a[i] == scores.gemm.columns) {
      right = right && is_inner(softmax, b[i]) && is_inner(mix, in_mix);
      axes.scores.keys = a[i], axes.softmax.keys = b[i], axes.mix.keys = in_mix, axes.added.keys = in_added;
      if (!summed || in_added >= 0) continue;
      const auto rows = rows_of_keys(*added, summed->index[i]);
      right = right && rows && i + 1 == a.size();
      if (rows) std::tie(axes.added.keys, axes.added.across) = *rows;
      continue;
    }
    right = right && (!summed || in_added >= 0);
    if (a[i] == scores.gemm.rows) {
      right = right && !is_inner(softmax, b[i]) && in_mix == mix.gemm.rows;
      axes.scores.queries = a[i], axes.softmax.queries = b[i], axes.mix.queries = in_mix, axes.added.queries = in_added;
    } else {
      right = right && !is_inner(softmax, b[i]) && !is_inner(mix, in_mix) && in_mix != mix.gemm.columns;
      axes.scores.heads.push_back(a[i]), axes.softmax.heads.push_back(b[i]), axes.mix.heads.push_back(in_mix);
      axes.added.heads.push_back(in_added);
    }
  }
  if (!right || axes.scores.queries < 0) return {};
  return axes;
}

std::optional<std::vector<AttentionAxes>> axes_of(const Backward& b) {
  for (const Kernel* k : {&b.first, &b.second, &b.values, &b.mix, &b.keys})
    if (!is_product(*k) || k->gemm.dtype != DType::real) return {};
  if (b.first.steps[1].stores.size() != 1) return {};
  const Access& given = b.first.steps[1].stores[0].to;
  const Access *const read = only_load(b.second, given.tensor), *const changes = store_for(b.second, b.mix);
  // Of the probabilities; null: the first kernel gives them.
  const Access* const again = store_for(b.second, b.values);
  if (!read || !changes) return {};
  AttentionAxes own{b.second.gemm.rows, {}, b.second.gemm.columns};
  for (const int axis : axes_along(*changes))
    if (axis != own.queries && axis != own.keys) own.heads.push_back(axis);
  const auto of_first = axes_by(*read, own, &given);
  const auto of_values = again ? axes_by(*again, own, only_load(b.values, again->tensor))
                               : axes_by(*read, own, only_load(b.values, given.tensor));
  const auto of_mix = axes_by(*changes, own, only_load(b.mix, changes->tensor));
  const auto of_keys = axes_by(*changes, own, only_load(b.keys, changes->tensor));
  if (!of_first || !of_values || !of_mix || !of_keys || !makes_scores(b.second, own) ||
      !makes_scores(b.first, *of_first) || !accumulates(b.values, *of_values, of_values->queries, of_values->keys) ||
      !accumulates(b.mix, *of_mix, of_mix->keys, of_mix->queries) ||
      !accumulates(b.keys, *of_keys, of_keys->queries, of_keys->keys))
    return {};
  return std::vector{*of_first, own, *of_values, *of_mix, *of_keys};
}

bool attends(const Kernel& kernel) {
  return kernel.fused.kind == Fused::Kind::attention || kernel.fused.kind == Fused::Kind::attention_gradient;
}

std::vector<AttentionAxes> attention_axes(const Kernel& kernel) {
  using enum Fused::Role;
  const Fused& f = kernel.fused;
  if (f.kind == Fused::Kind::attention_gradient)
    return *axes_of({f.parts[0], f.parts[1], f.part(gradient), f.part(mix), kernel});
  const ForwardAxes axes = *axes_of(f.part(scores), f.has(added) ? &f.part(added) : nullptr, f.part(softmax), kernel);
  std::vector<AttentionAxes> all;
  for (const Fused::Role role : f.roles)
    all.push_back(role == scores    ? axes.scores
                  : role == added   ? axes.added
                  : role == softmax ? axes.softmax
                                    : axes_around(axes.mix));
  all.push_back(axes.mix);
  return all;
}

}  // namespace tessera::codegen
