#include "codegen/cuda/attention_recompute.hpp"

#include <algorithm>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <set>

#include "codegen/kernels/query.hpp"

namespace tessera::codegen::cuda {

using graph::Op;

namespace {

using Axes = Attention::Axes;

/// Whether an expression follows from the sum of products and from constants.
bool follows_from(const Kernel& k, ExprId e, ExprId sum) {
  if (!e.valid()) return true;
  const Expression& x = expression_of(k, e);
  if (x.kind == Expression::Kind::constant) return true;
  if (x.kind == Expression::Kind::load) return x.access == expression_of(k, sum).access;
  return x.kind == Expression::Kind::op && follows_from(k, x.a, sum) && follows_from(k, x.b, sum) &&
         follows_from(k, x.c, sum);
}

/// A kernel of forward and one of backward, of the same attention.
struct Pair {
  std::size_t forward, backward;
  Attention attention;
  TensorId p;  ///< what backward reads of the softmax; the tensor
  std::int64_t width;
};

/// The tensors that a softmax' last step gives: it may be stored twice, as it is and as bf16.
std::set<TensorId> given_by(const Kernel& softmax) {
  std::set<TensorId> tensors;
  for (const Step::Store& store : softmax.steps[2].stores) tensors.insert(store.to.tensor);
  return tensors;
}

std::optional<Pair> pair_of(const KernelProgram& program, std::size_t forward, std::size_t backward) {
  const Kernel &f = program.kernels[forward], &g = program.kernels[backward];
  if (f.fused.kind != Fused::Kind::attention || g.fused.kind != Fused::Kind::attention_gradient) return {};
  const Kernel &scores = f.fused.part(Fused::Role::scores), &softmax = f.fused.part(Fused::Role::softmax);
  const std::vector<const Kernel*> parts = parts_of_gradient(g);
  const std::optional<AttentionGradient> gradient = attention_gradient_of(program, g);
  const std::optional<Attention> attention = attention_of(program, scores, softmax, f);
  if (!gradient || !attention || gradient->again || softmax.steps.size() != 3) return {};
  const auto part = [&](const AttentionGradient::Part& of) -> const Kernel& { return *parts[of.kernel]; };
  const TensorId p = expression_of(part(gradient->softmax), gradient->p[0]).access.tensor;
  const std::set<TensorId> given = given_by(softmax);
  if (!given.contains(p) || !follows_from(softmax, attention->score, attention->sum)) return {};
  // Nobody else reads what the softmax gives, so that it is nowhere.
  for (const TensorId t : given) {
    if (program.tensors[t].carry) return {};
    for (std::size_t k = 0; k < program.kernels.size(); ++k)
      if (k != forward && k != backward && tensors_of(program.kernels[k]).contains(t)) return {};
    const Storage storage = program.tensors[t].storage;
    if (storage != Storage::scratch && storage != Storage::registers) return {};
  }
  // The same queries and keys.
  const Access &query = expression_of(scores, attention->query).access,
               &key = expression_of(scores, attention->key).access;
  if (query.shift || key.shift || gradient->rows > gradient->most_keys || gradient->rows != attention->rows ||
      gradient->keys != attention->keys || gradient->width != size_of(scores, attention->scores.width) ||
      !same_number(query, attention->scores, expression_of(part(gradient->of_key), gradient->of_key.factor).access,
                   gradient->of_key.axes) ||
      !same_number(key, attention->scores, expression_of(part(gradient->of_query), gradient->of_query.factor).access,
                   gradient->of_query.axes))
    return {};
  return Pair{forward, backward, *attention, p, gradient->width};
}

/// A tensor with a number of each row of p's.
TensorId row_numbers(KernelProgram& program, TensorId p, std::size_t key_dim, const std::string& what) {
  Tensor kept = program.tensors[p];
  kept.name = program.tensors[p].name + "." + what;
  kept.shape.erase(kept.shape.begin() + static_cast<std::ptrdiff_t>(key_dim));
  kept.element = DType::real;
  kept.node = graph::none;
  kept.storage = Storage::scratch;
  return program.tensors.add(std::move(kept));
}

void apply(KernelProgram& program, const Pair& pair) {
  const Attention& a = pair.attention;
  Kernel& softmax = program.kernels[pair.forward].fused.part(Fused::Role::softmax);
  const auto stored = std::find_if(softmax.steps[2].stores.begin(), softmax.steps[2].stores.end(),
                                   [&](const Step::Store& store) { return store.to.tensor == pair.p; });
  const Access p = stored->to;
  const std::vector<int> along = axes_along(p);
  const auto key_dim = static_cast<std::size_t>(std::find(along.begin(), along.end(), a.softmax.key) - along.begin());
  const std::set<TensorId> given = given_by(softmax);

  Access most = p;
  most.index.erase(most.index.begin() + static_cast<std::ptrdiff_t>(key_dim));
  Access inverse = most;
  most.tensor = row_numbers(program, pair.p, key_dim, "most");
  inverse.tensor = row_numbers(program, pair.p, key_dim, "inverse");
  for (const TensorId t : given) program.tensors[t].storage = Storage::registers;

  Kernel again = softmax;
  const ExprId score = a.score, least = push_load(again, most), all = push_load(again, inverse);
  const ExprId exponential = push_op(again, Op::exp, push_op(again, Op::subtract, score, least));
  Step step;
  step.over = {a.softmax.key};
  step.stores = {{p, push_op(again, Op::multiply, exponential, all)}};
  again.steps = {step};

  Step keep;
  Expression one;
  one.value = 1;
  const ExprId first = push(softmax, one), second = push_local(softmax, 1);
  keep.stores = {{most, push_local(softmax, 0)}, {inverse, push_op(softmax, Op::divide, first, second)}};
  softmax.steps.push_back(std::move(keep));

  Fused& backward = program.kernels[pair.backward].fused;
  backward.roles.insert(backward.roles.begin(), {Fused::Role::scores, Fused::Role::softmax});
  backward.parts.insert(backward.parts.begin(),
                        {program.kernels[pair.forward].fused.part(Fused::Role::scores), std::move(again)});
}

}  // namespace

std::optional<AttentionRecompute> attention_recompute_of(const Kernel& k) {
  if (k.anchor != Anchor::row || k.steps.size() != 1 || k.steps[0].reduces || k.steps[0].stores.size() != 1) return {};
  const Step::Store& store = k.steps[0].stores[0];
  if (!is_op(k, store.value, Op::multiply)) return {};
  const Expression& share = expression_of(k, store.value);
  if (!is_op(k, share.a, Op::exp) || !is_op(k, expression_of(k, share.a).a, Op::subtract)) return {};
  const Expression& exponent = expression_of(k, expression_of(k, share.a).a);
  AttentionRecompute found{exponent.a, {}, exponent.b, share.b, store.to};
  for (ExprId e : {found.most, found.inverse})
    if (expression_of(k, e).kind != Expression::Kind::load) return {};
  // Of the loads below the score, of which one is as good as the other.
  const auto below = [&](auto&& self, ExprId e) -> void {
    if (!e.valid()) return;
    const Expression& x = expression_of(k, e);
    if (x.kind == Expression::Kind::load) found.sum = e;
    if (x.kind != Expression::Kind::op) return;
    for (ExprId operand : {x.a, x.b, x.c}) self(self, operand);
  };
  below(below, found.score);
  if (!found.sum.valid()) return {};
  return found;
}

void recompute_attention(KernelProgram& program, bool everywhere) {
  for (std::size_t backward = 0; backward < program.kernels.size(); ++backward)
    for (std::size_t forward = 0; forward < program.kernels.size(); ++forward)
      if (const std::optional<Pair> pair = pair_of(program, forward, backward);
          pair && (everywhere || pair->width <= 64))
        apply(program, *pair);
}

}  // namespace tessera::codegen::cuda
