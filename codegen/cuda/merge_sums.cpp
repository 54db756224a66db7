#include "codegen/cuda/merge_sums.hpp"

#include <algorithm>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/count_if.hpp>

#include "codegen/cuda/plan.hpp"
#include "codegen/kernels/query.hpp"

namespace tessera::codegen::cuda {

namespace {

bool same_axes(const Kernel& a, const Kernel& b) {
  return a.steps[0].over == b.steps[0].over &&
         std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(),
                    [](const Axis& x, const Axis& y) { return x.dim == y.dim && x.inner == y.inner; });
}

bool read_the_same(const Kernel& a, const Kernel& b) {
  return ranges::any_of(a.expressions, [&](const Expression& x) {
    return x.kind == Expression::Kind::load && ranges::any_of(b.expressions, [&](const Expression& y) {
             return y.kind == Expression::Kind::load && x.access == y.access;
           });
  });
}

/// Whether `later` may run before this kernel does.
bool independent(const Kernel& later, const Kernel& k) {
  return !meet(loaded_by(later), stored_by(k)) && !meet(stored_by(later), tensors_of(k));
}

}  // namespace

void fuse_sums(Kernel& a, const Kernel& b) {
  const auto sums = static_cast<int>(ranges::count_if(a.steps, [](const Step& s) { return s.reduces; }));
  const auto behind = [before = a.expressions.next().number()](ExprId e) { return ExprId(e.number() + before); };
  for (Expression e : b.expressions) {
    if (e.kind == Expression::Kind::local) e.step += sums;
    for (ExprId* operand : {&e.a, &e.b, &e.c})
      if (operand->valid()) *operand = behind(*operand);
    a.expressions.push_back(std::move(e));
  }
  // Sums first, then stores.
  auto at = a.steps.begin() + sums;
  for (Step s : b.steps) {
    if (s.reduces) s.value = behind(s.value);
    for (Step::Store& store : s.stores) store.value = behind(store.value);
    at = a.steps.insert(s.reduces ? at : a.steps.end(), std::move(s)) + 1;
  }
  a.nodes.insert(a.nodes.end(), b.nodes.begin(), b.nodes.end());
  const auto differ = std::mismatch(a.name.begin(), a.name.end(), b.name.begin(), b.name.end()).second;
  const std::size_t word = b.name.rfind('_', static_cast<std::size_t>(differ - b.name.begin()));
  a.name += "_and_" + b.name.substr(word == std::string::npos ? 0 : word + 1);
}

bool is_plain_sum(const KernelProgram& program, const Kernel& k) {
  if (tasks_of(k) != Tasks::chunks || k.anchor != Anchor::contraction || !k.fused.empty() || k.accumulates)
    return false;
  if (operands_of(k, program.precision).a.valid()) return false;
  bool sums = true;
  for (const Step& s : k.steps) {
    if (s.reduces && (!sums || s.reduction != Reduction::sum || !s.stores.empty() || s.over != k.steps[0].over))
      return false;
    if (!s.reduces && !s.over.empty()) return false;
    sums = s.reduces;
  }
  for (const Expression& e : k.expressions) {
    if (e.kind == Expression::Kind::keep) return false;
    if (e.kind != Expression::Kind::load || e.access.index.empty()) continue;
    const std::vector<Affine::Part>& last = e.access.index.back().parts;
    if (last.size() != 1 || k.axes[last[0].axis].inner) return false;
  }
  return k.steps[0].reduces;
}

void merge_sums(KernelProgram& program) {
  std::set<int> gone;
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i].kernel < 0) continue;
      Kernel& first = program.kernels[order[i].kernel];
      if (!is_plain_sum(program, first)) continue;
      for (std::size_t j = i + 1; j < order.size() && order[j].kernel >= 0;) {
        const Kernel& other = program.kernels[order[j].kernel];
        bool may = is_plain_sum(program, other) && same_axes(first, other) && read_the_same(first, other);
        for (std::size_t between = i; may && between < j; ++between)
          may = independent(other, program.kernels[order[between].kernel]);
        if (!may) {
          ++j;
          continue;
        }
        fuse_sums(first, other);
        gone.insert(order[j].kernel);
        order.erase(order.begin() + static_cast<std::ptrdiff_t>(j));
      }
    }
  remove_kernels(program, gone);
}

}  // namespace tessera::codegen::cuda
