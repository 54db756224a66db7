// Attention by blocks of queries: scores, softmax and what it weighs as one kernel.
#include "codegen/plan/attention.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <set>
#include <utility>

#include "codegen/kernels/query.hpp"
#include "codegen/plan/attention_axes.hpp"
#include "codegen/plan/online_softmax.hpp"

namespace tessera::codegen {

namespace {

/// The scores of an image, in reals, from which on they do not stay near: four times a first cache.
constexpr std::int64_t least_scores = 1 << 15;
/// Of more keys attention goes by blocks of them (online_softmax.hpp), and of more than most_keys_to_narrow where it
/// rounds them. Where it cannot: of more keys of bf16 in one block too few queries would be left.
constexpr std::int64_t most_keys = 1536, most_keys_to_narrow = 1024, most_keys_of_bf16 = 2048;

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

Access without(Access access, std::size_t dim) {
  access.index.erase(access.index.begin() + static_cast<std::ptrdiff_t>(dim));
  return access;
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
  const auto keys = ranges::find_if(stored.index, [&](const Affine& i) { return softmax.axes[i.parts[0].axis].inner; });
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

/// Attention's kernels in a running order, or those that it is made of.
struct Forward {
  const Kernel& scores;
  const Kernel* added;  ///< adds to the scores; null: nothing does
  const Kernel& softmax;
  Kernel& mix;
};

/// Has the mix take up what runs before it. False: all of them stay as they are.
bool fuse_attention(KernelProgram& program, const Forward& f, const Inside& inside) {
  const TensorId of_scores = f.scores.steps[1].stores[0].to.tensor, weights = store_for(f.softmax, f.mix)->tensor,
                 summed = f.added ? f.added->steps[0].stores[0].to.tensor : of_scores;
  const std::int64_t keys = f.scores.axes[f.scores.gemm.columns].dim.value();
  const bool in_one_block = f.mix.gemm.dtype != DType::bf16 || keys <= most_keys_of_bf16;
  if (reals_of(program.tensors[of_scores]) < least_scores || !inside(of_scores) || !inside(summed)) return false;
  if (!in_one_block && !inside(weights)) return false;
  const auto tensors = program.tensors;
  Kernel softmax = f.softmax, mix = f.mix;
  program.tensors[of_scores].storage = Storage::registers;
  rename(softmax, summed, of_scores);
  if (inside(weights)) {
    program.tensors[weights].storage = Storage::registers;
    divide_afterwards(program, softmax, mix, inside);
    if (program.tensors[weights].element == DType::real) share_place(softmax, {&mix}, of_scores, weights);
  }
  using Role = Fused::Role;
  Fused fused{Fused::Kind::attention, {Role::scores}, {f.scores}};
  if (f.added) {
    fused.roles.push_back(Role::added);
    fused.parts.push_back(*f.added);
    rename(fused.parts.back(), summed, of_scores);
  }
  fused.roles.push_back(Role::softmax);
  fused.parts.push_back(std::move(softmax));
  const ForwardAxes axes = *axes_of(fused.parts[0], f.added ? &fused.parts[1] : nullptr, fused.parts.back(), mix);
  const bool many = keys > (mix.gemm.narrows ? most_keys_to_narrow : most_keys) && !traits_of(program.kind).steps;
  if (!many || !go_by_keys(program, fused, mix, axes)) {
    if (!in_one_block) {
      program.tensors = tensors;
      return false;
    }
    if (keys > most_keys_to_narrow) fused.parts[0].gemm.narrows = mix.gemm.narrows = false;
  }
  f.mix = std::move(mix);
  f.mix.fused = std::move(fused);
  return true;
}

/// By positions in a running order, before a mix.
struct ForwardAt {
  std::size_t scores, softmax;
  std::optional<std::size_t> added;
};

std::optional<ForwardAt> forward_before(const KernelProgram& program, const std::vector<Item>& order, std::size_t mix) {
  const auto kernel = [&](std::size_t i) -> const Kernel& { return program.kernels[order[i].kernel]; };
  const auto attends_with = [&](const Kernel& s, const Kernel* added, const Kernel& w) {
    return axes_of(s, added, w, kernel(mix)) && multiplies_activations(program, s) &&
           multiplies_activations(program, kernel(mix));
  };
  const auto adds = [&](const BeforeMix& b) {  // to the scores of the kernel before it
    return b.scores > 0 && order[b.scores - 1].kernel >= 0 && is_product_of_image(kernel(b.scores - 1)) &&
           attends_with(kernel(b.scores - 1), &kernel(b.scores), kernel(b.softmax));
  };
  const auto before = attention_before(program, order, mix, [&](const BeforeMix& b) {
    return attends_with(kernel(b.scores), nullptr, kernel(b.softmax)) || adds(b);
  });
  if (!before) return {};
  if (adds(*before)) return ForwardAt{before->scores - 1, before->softmax, before->scores};
  return ForwardAt{before->scores, before->softmax, {}};
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
      if (!independent(kernel(scores), kernel(softmax)) && is_attention({scores, softmax}) &&
          can_wait(softmax, softmax) && can_wait(scores, softmax))
        return BeforeMix{scores, softmax};
  }
  return {};
}

void attend_in_blocks(KernelProgram& program) {
  std::set<int> gone;
  const auto kernel = [&](int k) -> Kernel& { return program.kernels[k]; };
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 2; i < order.size(); ++i) {
      if (order[i].kernel < 0 || !is_product_of_image(kernel(order[i].kernel))) continue;
      const std::optional<ForwardAt> at = forward_before(program, order, i);
      if (!at) continue;
      std::vector<std::size_t> taken{at->scores, at->softmax};
      if (at->added) taken.insert(taken.begin() + 1, *at->added);
      std::set<int> parts;
      for (const std::size_t position : taken) parts.insert(order[position].kernel);
      std::set<int> fused = gone;
      fused.insert(parts.begin(), parts.end());
      fused.insert(order[i].kernel);
      const Forward forward{kernel(order[at->scores].kernel), at->added ? &kernel(order[*at->added].kernel) : nullptr,
                            kernel(order[at->softmax].kernel), kernel(order[i].kernel)};
      if (!fuse_attention(program, forward, [&](TensorId t) { return is_inside(program, t, fused); })) continue;
      gone.insert(parts.begin(), parts.end());
      for (auto position = taken.rbegin(); position != taken.rend(); ++position)
        order.erase(order.begin() + static_cast<std::ptrdiff_t>(*position));
      i -= taken.size();
    }
  remove_kernels(program, gone);
}

}  // namespace tessera::codegen
