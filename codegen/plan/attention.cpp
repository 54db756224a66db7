// Attention by blocks of queries: scores, softmax and what it weighs as one kernel; its backward pass as another one.
#include "codegen/plan/attention.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <set>
#include <utility>

#include "codegen/kernels/query.hpp"
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

/// The same of factors of bf16: each block packs or widens all keys and values, so that it is larger, and has as many
/// queries as there is room for on the stack beside these copies, up to so many. Of more keys too few would be left.
constexpr std::int64_t bf16_block_reals = 24 << 10, bf16_queries = 64, bf16_stack_bytes = 376 << 10;
constexpr std::int64_t most_keys_of_bf16 = 2048, most_keys_to_narrow = 1024;

/// The same of a backward pass, of probabilities and of their gradients each. Below the first, blocks gain nothing.
/// Each block adds to all rows of two gradients, so that it is larger.
constexpr std::int64_t least_gradient_scores = 1 << 17;
constexpr std::int64_t gradient_block_reals = 32 << 10;
/// Where a block of all keys had fewer queries than that, it has this many keys: what it reads and adds to of keys and
/// values, and of as many queries, stays in L2.
constexpr std::int64_t least_queries = 24, keys_of_block = 192;

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

/// Whether a kernel is a GEMM of one image.
bool is_product(const Kernel& k) { return k.gemm.columns >= 0 && k.gemm.rows >= 0 && !k.across_batch; }
bool is_product_of_image(const Kernel& k) { return is_product(k) && k.fused.empty(); }

/// Whether both factors of a GEMM are activations. Blocks of two linear maps with a norm between them would read all
/// weights once for each block.
bool multiplies_activations(const KernelProgram& program, const Kernel& k) {
  const Expression& product = k.expressions[k.steps[0].value];
  return ranges::all_of(std::array{product.a, product.b}, [&](ExprId factor) {
    const Expression& e = k.expressions[factor];
    if (e.kind != Expression::Kind::load) return true;
    const Storage storage = program.tensors[e.access.tensor].storage;
    return storage != Storage::parameter && storage != Storage::packed;
  });
}

/// Outer axes that stand among `known`.
bool goes_by(const Kernel& k, const std::vector<int>& known, int also) {
  for (int a = 0; a < static_cast<int>(k.axes.size()); ++a)
    if (!is_inner(k, a) && a != also && !ranges::contains(known, a)) return false;
  return true;
}

std::optional<std::array<AttentionAxes, 3>> axes_of(const Kernel& scores, const Kernel& softmax, const Kernel& mix) {
  if (!is_product_of_image(scores) || scores.gemm.dtype != mix.gemm.dtype || mix.gemm.columns < 0 ||
      mix.gemm.rows < 0 || softmax.anchor != Anchor::row || softmax.across_batch || scores.steps[1].stores.size() != 1)
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

/// The axes of a kernel that touches a tensor by `there`, by those of another one that does so by `here`.
std::optional<AttentionAxes> axes_by(const Access& here, const AttentionAxes& axes, const Access* there) {
  const std::vector<int> from = axes_along(here), to = there ? axes_along(*there) : std::vector<int>{};
  if (from.empty() || from.size() != to.size()) return {};
  const std::vector<int> two = mapped({axes.queries, axes.keys}, from, to);
  const AttentionAxes found{two[0], mapped(axes.heads, from, to), two[1]};
  if (found.queries < 0 || found.keys < 0 || ranges::contains(found.heads, -1)) return {};
  return found;
}

/// The kernels of attention's backward pass, where probabilities are recomputed, in the order in which a block runs
/// through them. One of the first two gives the probabilities, of the scores, row max and row sum of exponentials; the
/// later one the scores' gradient, which is made of what the other one gives.
struct Backward {
  const Kernel &first, &second;
  const Kernel& values;  ///< the values' gradient, a sum over the queries of probabilities and of what comes in
  const Kernel& mix;     ///< the queries' gradient, a sum over the keys
  const Kernel& keys;    ///< the keys' gradient, a sum over the queries of the scores' gradient and of them
};

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

Access without(Access access, std::size_t dim) {
  access.index.erase(access.index.begin() + static_cast<std::ptrdiff_t>(dim));
  return access;
}

/// Whether a tensor is needed by the kernels alone that become one, so that it needs no place in memory.
using Inside = std::function<bool(TensorId)>;

/// Has a kernel read and store one tensor in the place of another one.
void rename(Kernel& kernel, TensorId from, TensorId to) {
  for (Expression& e : kernel.expressions)
    if (e.access.tensor == from) e.access.tensor = to;
  for (Step& s : kernel.steps)
    for (Step::Store& store : s.stores)
      if (store.to.tensor == from) store.to.tensor = to;
}

/// What the softmax divides by the sum of a row is left as it is, and what it weighs is multiplied by one over that
/// sum: there are fewer of these. They go from the one to the other in a tensor of their own. In bf16 what is divided
/// was a tensor of single precision, which nothing else may read: it is rounded instead, and the tensor is gone.
void divide_afterwards(KernelProgram& program, Kernel& softmax, Kernel& mix, const Inside& inside) {
  const Access stored = *store_for(softmax, mix), taken = *only_load(mix, stored.tensor);
  const auto to_stored = [&](const Step::Store& store) { return store.to == stored; };
  const auto last =
      ranges::find_if(softmax.steps, [&](const Step& s) { return !s.reduces && ranges::any_of(s.stores, to_stored); });
  if (last == softmax.steps.end()) return;
  const int at = static_cast<int>(last - softmax.steps.begin());
  const auto of = [&](ExprId e) -> const Expression& { return softmax.expressions[e]; };
  const Expression quotient = of(ranges::find_if(last->stores, to_stored)->value);
  if (quotient.kind != Expression::Kind::op || quotient.op != graph::Op::divide ||
      of(quotient.b).kind != Expression::Kind::local || of(quotient.a).kind != Expression::Kind::load ||
      ranges::any_of(softmax.expressions,
                     [&](const Expression& e) { return e.kind == Expression::Kind::local && e.step > at; }))
    return;
  const Access divided = of(quotient.a).access;
  Access narrow = divided;
  narrow.tensor = stored.tensor;
  if (narrow != stored || (divided != stored && !inside(divided.tensor)) ||
      ranges::any_of(last->stores, [&](const Step::Store& s) { return s.to != stored && s.to != divided; }))
    return;
  const auto keys = ranges::find_if(stored.index, [&](const Affine& i) { return is_inner(softmax, i.parts[0].axis); });
  const auto dim = static_cast<std::size_t>(keys - stored.index.begin());
  Tensor rows = program.tensors[stored.tensor];
  rows.name += ".scale";
  rows.element = DType::real;
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
  rename(softmax, divided.tensor, stored.tensor);

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

/// What a softmax gives takes the places of the scores that it is made of, in whatever else reads it too.
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

bool attends(const Kernel& kernel) {
  return kernel.fused.kind == Fused::Kind::attention || kernel.fused.kind == Fused::Kind::attention_gradient;
}

std::vector<AttentionAxes> attention_axes(const Kernel& kernel) {
  using enum Fused::Role;
  const Fused& f = kernel.fused;
  if (f.kind == Fused::Kind::attention_gradient)
    return *axes_of({f.parts[0], f.parts[1], f.part(gradient), f.part(mix), kernel});
  const auto axes = *axes_of(f.part(scores), f.part(softmax), kernel);
  return {axes.begin(), axes.end()};
}

namespace {

/// Whether a tensor is needed by these kernels alone, so that it needs no place in memory.
bool is_inside(const KernelProgram& program, TensorId tensor, const std::set<int>& kernels) {
  bool found = program.tensors[tensor].storage == Storage::scratch;
  for (int k = 0; k < static_cast<int>(program.kernels.size()) && found; ++k)
    if (!kernels.contains(k))
      for_each_access(program.kernels[k], [&](const Access& a, bool) { found &= a.tensor != tensor; });
  return found;
}

/// The reals of a tensor, of one image.
std::int64_t reals_of(const Tensor& tensor) {
  std::int64_t reals = 1;
  for (const Dim& d : tensor.shape) reals *= d.known() ? d.value() : 1;
  return reals;
}

}  // namespace

void attend_in_blocks(KernelProgram& program) {
  std::set<int> gone;
  const auto kernel = [&](int k) -> Kernel& { return program.kernels[k]; };
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 2; i < order.size(); ++i) {
      if (order[i].kernel < 0 || !is_product_of_image(kernel(order[i].kernel))) continue;
      const std::optional<BeforeMix> before =
          attention_before(program, order, i, [&](const Kernel& s, const Kernel& w, const Kernel& m) {
            return axes_of(s, w, m) && multiplies_activations(program, s) && multiplies_activations(program, m);
          });
      if (!before) continue;
      const int scores = order[before->scores].kernel, softmax = order[before->softmax].kernel, mix = order[i].kernel;
      std::set<int> fused = gone;
      fused.insert({scores, softmax, mix});
      const Inside inside = [&](TensorId tensor) { return is_inside(program, tensor, fused); };
      const TensorId of_scores = kernel(scores).steps[1].stores[0].to.tensor;
      const TensorId weights = store_for(kernel(softmax), kernel(mix))->tensor;
      const std::int64_t keys = kernel(scores).axes[kernel(scores).gemm.columns].dim.value();
      if (kernel(mix).gemm.dtype == DType::bf16 && keys > most_keys_of_bf16) continue;
      if (keys > most_keys_to_narrow) kernel(scores).gemm.narrows = kernel(mix).gemm.narrows = false;
      if (reals_of(program.tensors[of_scores]) < least_scores || !inside(of_scores)) continue;
      program.tensors[of_scores].storage = Storage::registers;
      if (inside(weights)) {
        program.tensors[weights].storage = Storage::registers;
        divide_afterwards(program, kernel(softmax), kernel(mix), inside);
        if (program.tensors[weights].element == DType::real)
          share_place(kernel(softmax), {&kernel(mix)}, of_scores, weights);
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

namespace {

/// Attention's backward pass in a running order, by positions: its kernels as a block runs through them.
using BackwardAt = std::array<std::size_t, 5>;

Backward backward(const KernelProgram& program, const std::vector<Item>& order, const BackwardAt& at) {
  const auto kernel = [&](std::size_t i) -> const Kernel& { return program.kernels[order[at[i]].kernel]; };
  return {kernel(0), kernel(1), kernel(2), kernel(3), kernel(4)};
}

/// That in which the scores' gradient is what the kernel at `second` gives.
std::optional<BackwardAt> backward_of(const KernelProgram& program, const std::vector<Item>& order,
                                      std::size_t second) {
  std::map<TensorId, std::vector<std::size_t>> loads, stores;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].kernel < 0) continue;
    for (const TensorId t : loaded_by(program.kernels[order[i].kernel])) loads[t].push_back(i);
    for (const TensorId t : stored_by(program.kernels[order[i].kernel])) stores[t].push_back(i);
  }
  const std::set<TensorId> given = stored_by(program.kernels[order[second].kernel]);
  for (const TensorId changes : given) {
    if (stores[changes].size() != 1 || loads[changes].size() != 2) continue;
    for (const TensorId read : loaded_by(program.kernels[order[second].kernel])) {
      if (stores[read].size() != 1 || stores[read][0] == second) continue;
      std::set<TensorId> scores = given;  // one of them are the probabilities
      scores.insert(read);
      for (const std::size_t mix : loads[changes])
        for (const std::size_t keys : loads[changes])
          for (const TensorId weights : scores)
            for (const std::size_t values : loads[weights]) {
              const BackwardAt at{stores[read][0], second, values, mix, keys};
              if (std::set<std::size_t>(at.begin(), at.end()).size() == at.size() &&
                  ranges::all_of(at, [&](std::size_t i) { return program.kernels[order[i].kernel].fused.empty(); }) &&
                  axes_of(backward(program, order, at)))
                return at;
            }
    }
  }
  return {};
}

/// The running order in which these kernels are the last of them alone, and what stands between them runs before it or,
/// where it needs a result, behind; nothing: it cannot.
std::optional<std::vector<Item>> run_as_one(const KernelProgram& program, const std::vector<Item>& order,
                                            const BackwardAt& parts) {
  const auto [first, last] = std::minmax_element(parts.begin(), parts.end());
  std::vector<Item> before(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(*first)), one, behind;
  for (std::size_t i = *first; i <= *last; ++i) {
    if (order[i].kernel < 0) return {};
    const auto apart = [&](const Item& other) {
      return independent(program.kernels[order[i].kernel], program.kernels[other.kernel]);
    };
    const bool waits = !ranges::all_of(behind, apart);
    if (ranges::contains(parts, i)) {
      if (waits) return {};
      one.push_back(order[i]);
    } else {
      (waits || !ranges::all_of(one, apart) ? behind : before).push_back(order[i]);
    }
  }
  before.push_back(order[parts.back()]);
  before.insert(before.end(), behind.begin(), behind.end());
  before.insert(before.end(), order.begin() + static_cast<std::ptrdiff_t>(*last) + 1, order.end());
  return before;
}

}  // namespace

void differentiate_attention_in_blocks(KernelProgram& program) {
  using Role = Fused::Role;
  std::set<int> gone;
  const auto gives_many_scores = [&](const Item& item) {
    const Kernel& k = program.kernels[item.kernel];
    return is_product_of_image(k) && reals_of(program.tensors[k.steps[1].stores[0].to.tensor]) >= least_gradient_scores;
  };
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i].kernel < 0 || !gives_many_scores(order[i])) continue;
      const std::optional<BackwardAt> at = backward_of(program, order, i);
      const auto as_one = at ? run_as_one(program, order, *at) : std::nullopt;
      if (!as_one) continue;
      std::vector<int> numbers;
      for (const std::size_t position : *at) numbers.push_back(order[position].kernel);
      const auto kernel = [&](std::size_t part) -> Kernel& { return program.kernels[numbers[part]]; };
      Kernel &first = kernel(0), &second = kernel(1), &values = kernel(2), &mix = kernel(3), &keys = kernel(4);
      std::set<int> fused = gone;
      fused.insert(numbers.begin(), numbers.end());
      const TensorId given = first.steps[1].stores[0].to.tensor, changes = store_for(second, mix)->tensor;
      std::set<TensorId> scores = stored_by(second);
      scores.insert(given);
      if (!ranges::all_of(scores, [&](TensorId t) { return is_inside(program, t, fused); })) continue;
      for (const TensorId t : scores) program.tensors[t].storage = Storage::registers;
      const bool again = store_for(second, values) != nullptr;
      if (again) share_place(second, {&mix, &keys}, given, changes);
      keys.fused = {Fused::Kind::attention_gradient,
                    {again ? Role::scores : Role::probabilities, again ? Role::probabilities : Role::scores,
                     Role::gradient, Role::mix},
                    {first, second, values, mix}};
      gone.insert(numbers.begin(), numbers.end() - 1);
      order = *as_one;
    }
  remove_kernels(program, gone);
}

namespace {

/// Whether a block of attention's backward pass has some of the keys alone: their scores lie side by side.
bool blocks_keys(const Kernel& kernel) {
  if (kernel.fused.kind != Fused::Kind::attention_gradient) return false;
  const Kernel& scores = kernel.fused.part(Fused::Role::scores);
  const Affine& last = scores.steps[1].stores[0].to.index.back();
  return gradient_block_reals / scores.axes[scores.gemm.columns].dim.value() < least_queries &&
         last.parts.size() == 1 && last.parts[0].axis == scores.gemm.columns;
}

}  // namespace

void lay_out_blocks(const KernelProgram& program, Layouts& layouts) {
  for (const Kernel& kernel : program.kernels)
    if (blocks_keys(kernel))
      for (const Kernel& part : kernel.fused.parts)
        for (const TensorId t : stored_by(part))
          if (program.tensors[t].storage == Storage::registers)
            layouts[t] = layout_with_rows(program.tensors[t], keys_of_block);
}

namespace {

/// Bytes of the stack that attention's last GEMM takes, of factors of bf16: a panel of values, packed or widened, or,
/// where it rounds them, all of them and a tile's probabilities.
std::int64_t bytes_of_copies(const Kernel& mix, const Schedule& s, const Target& target) {
  constexpr std::int64_t most_widened = 192 << 10, tile = 36;
  const std::int64_t keys = whole_tiles(mix.axes[mix.steps[0].over[0]].dim.value());
  if (!uses_tile_unit(mix, target)) return std::min(most_widened, keys * s.tile[mix.gemm.columns] * target.lanes * 4);
  return 2 * keys * (mix.gemm.narrows ? tile + whole_tiles(mix.axes[mix.gemm.columns].dim.value()) : tile_side);
}

/// How many queries a block has at best, and how many fit on a thread's stack.
struct Room {
  std::int64_t best, most;
};

/// `reals`: of one query's scores.
Room room_of(const Kernel& kernel, const Schedule& s, const Target& target, std::int64_t reals) {
  const auto queries_of = [&](std::int64_t all) { return std::max<std::int64_t>(1, all / reals); };
  if (kernel.fused.kind == Fused::Kind::attention_gradient)
    return {queries_of(gradient_block_reals), queries_of(gradient_block_reals)};
  if (factors_on(kernel, target) == DType::real) return {queries_of(block_reals), queries_of(stack_reals)};
  const std::int64_t bytes = kernel.gemm.narrows ? 4 : 6;  // of a score, and of its probability where that is beside it
  const std::int64_t most = queries_of((bf16_stack_bytes - bytes_of_copies(kernel, s, target)) / bytes);
  return {std::min(most, std::max(bf16_queries, queries_of(bf16_block_reals))), most};
}

}  // namespace

Schedule attention_schedule(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel,
                            const Target& target) {
  const Kernel& scores = kernel.fused.part(Fused::Role::scores);
  const std::vector<AttentionAxes> axes = attention_axes(kernel);
  Schedule s = gemm_schedule(program, layouts, kernel, target);
  s.depth = 0;  // there are too few rows at once
  for (std::size_t part = 0; part < kernel.fused.parts.size(); ++part) {
    const Kernel& one = kernel.fused.parts[part];
    s.fused.push_back(one.gemm.columns >= 0 ? gemm_schedule(program, layouts, one, target)
                                            : choose_schedule(program, layouts, one, target, axes[part].heads));
    s.fused.back().depth = 0;
  }
  // Whole tiles of all products with rows of queries, so many that all blocks are about as large. Tiles that do not go
  // together get as many rows as the smaller ones.
  std::vector<std::int64_t*> tiles;
  for (std::size_t part = 0; part < axes.size(); ++part) {
    const bool own = part == kernel.fused.parts.size();
    const Kernel& one = own ? kernel : kernel.fused.parts[part];
    if (one.gemm.columns >= 0 && one.gemm.rows == axes[part].queries)
      tiles.push_back(&(own ? s : s.fused[part]).tile[one.gemm.rows]);
  }
  const auto unit = [&] {
    std::int64_t all = 1;
    for (const std::int64_t* rows : tiles) all = std::lcm(all, *rows);
    return all;
  };
  const auto set = [&](std::int64_t to) {
    for (std::int64_t* rows : tiles) *rows = to;
  };
  const std::int64_t queries = scores.axes[scores.gemm.rows].dim.value();
  const auto parts = [](std::int64_t n, std::int64_t of) { return (n + of - 1) / of; };
  const Room room = room_of(kernel, s, target, reals_of_query(layouts, scores));
  if (uses_tile_unit(kernel, target)) {
    if (room.best >= queries) {
      s.queries = queries;
      return s;
    }
    // A tile of any height, of whole passes of the unit where they fit.
    const std::int64_t pass = target.bf16_tile_rows / (target.matrix_unit == MatrixUnit::none ? 3 : 2);
    s.queries = parts(queries, parts(queries, room.best));
    if (room.most >= pass) s.queries = std::min(parts(s.queries, pass), room.most / pass) * pass;
    std::int64_t rows = std::min(s.queries, target.bf16_tile_rows);
    while (s.queries % rows) --rows;
    set(rows);
    return s;
  }
  if (unit() > room.best)
    set(**std::min_element(tiles.begin(), tiles.end(), [](const auto* a, const auto* b) { return *a < *b; }));
  // Of images so large that a few queries' scores fill a thread's stack, fewer rows yet.
  if (unit() > room.most) set(room.most);
  if (blocks_keys(kernel)) {
    // Whole tiles of keys as well: of those that they are the columns of, and of those that they are the rows of.
    std::int64_t columns = 1;
    for (std::size_t part = 0; part < 2; ++part)
      columns = std::lcm(columns, s.fused[part].tile[axes[part].keys] * target.lanes);
    s.keys = keys_of_block / columns * columns;
    for (std::int64_t* rows : {&s.fused[2].tile[axes[2].keys], &s.tile[axes.back().keys]})
      while (s.keys % *rows) --*rows;
  }
  s.queries = std::min(queries, parts(parts(queries, parts(queries, room.best)), unit()) * unit());
  if (factors_on(kernel, target) == DType::bf16) s.queries = std::min(s.queries, room.most / unit() * unit());
  return s;
}

}  // namespace tessera::codegen
