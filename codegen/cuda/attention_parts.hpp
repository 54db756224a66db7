// What finding attention's kernels, forward and backward, asks of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "codegen/cuda/attention.hpp"
#include "codegen/cuda/plan.hpp"

namespace tessera::codegen::cuda {

inline const Expression& expression_of(const Kernel& k, int e) { return k.expressions[static_cast<std::size_t>(e)]; }
inline std::int64_t size_of(const Kernel& k, int axis) {
  const Dim& dim = k.axes[static_cast<std::size_t>(axis)].dim;
  return dim.known() ? dim.value() : -1;
}

inline bool same(const Kernel& k, int a, int b) {
  if (a == b) return true;
  if (a < 0 || b < 0) return false;
  const Expression &x = expression_of(k, a), &y = expression_of(k, b);
  return x.kind == y.kind && x.op == y.op && x.value == y.value && x.access == y.access && x.axis == y.axis &&
         x.kind != Expression::Kind::keep && x.kind != Expression::Kind::extent && same(k, x.a, y.a) &&
         same(k, x.b, y.b) && same(k, x.c, y.c);
}

inline bool is_op(const Kernel& k, int e, graph::Op op) {
  return expression_of(k, e).kind == Expression::Kind::op && expression_of(k, e).op == op;
}
inline bool is_local(const Kernel& k, int e, int step) {
  return expression_of(k, e).kind == Expression::Kind::local && expression_of(k, e).a == step;
}

inline std::set<int> stored_by(const Kernel& k) {
  std::set<int> tensors;
  for (const Step& s : k.steps)
    for (const Step::Store& store : s.stores) tensors.insert(store.to.tensor);
  for (const Kernel& part : k.fused) tensors.merge(stored_by(part));
  return tensors;
}
inline std::set<int> loaded_by(const Kernel& k) {
  std::set<int> tensors;
  for (const Expression& e : k.expressions)
    if (e.kind == Expression::Kind::load) tensors.insert(e.access.tensor);
  for (const Kernel& part : k.fused) tensors.merge(loaded_by(part));
  return tensors;
}
inline std::set<int> tensors_of(const Kernel& k) {
  std::set<int> tensors = stored_by(k);
  tensors.merge(loaded_by(k));
  return tensors;
}
inline bool meet(const std::set<int>& some, const std::set<int>& others) {
  return std::any_of(some.begin(), some.end(), [&](int t) { return others.contains(t); });
}

/// The axes of one kernel in another one: of those that stand at the same dim of a tensor.
inline std::vector<int> mapped(const std::vector<int>& axes, const std::vector<int>& from, const std::vector<int>& to) {
  std::vector<int> result;
  for (int a : axes) {
    const auto at = std::find(from.begin(), from.end(), a);
    result.push_back(at == from.end() ? -1 : to[static_cast<std::size_t>(at - from.begin())]);
  }
  return result;
}

/// All axes of one of the kernels, in one order.
inline std::vector<int> all_of(const Attention::Axes& axes) {
  std::vector<int> all{axes.row, axes.key, axes.width};
  all.insert(all.end(), axes.groups.begin(), axes.groups.end());
  return all;
}
/// The same number of a tensor, where the axes of one kernel stand for those of another.
inline bool same_number(const Access& a, const Attention::Axes& in_a, const Access& b, const Attention::Axes& in_b) {
  Access moved = a;
  const std::vector<int> from = all_of(in_a), to = all_of(in_b);
  for (Affine& index : moved.index) {
    for (Affine::Part& part : index.parts) part.axis = mapped({part.axis}, from, to)[0];
    std::sort(index.parts.begin(), index.parts.end());
  }
  return moved == b;
}

/// Whether a stored factor's numbers are neighbours along this axis, and begin on multiples of eight.
inline bool in_eights(const KernelProgram& p, const Kernel& k, int factor, int along) {
  const Expression& e = expression_of(k, factor);
  if (e.kind != Expression::Kind::load) return false;
  const Tensor& t = p.tensors[static_cast<std::size_t>(e.access.tensor)];
  const Layout layout = layout_on_gpu(t);
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < e.access.index.size(); ++d) offset += e.access.index[d].offset * layout.stride[d];
  if (t.element != Element::bf16 || offset % 8 || step_along(e.access, layout, along) != 1) return false;
  for (int a = 0; a < static_cast<int>(k.axes.size()); ++a)
    if (a != along && size_of(k, a) != 1 && step_along(e.access, layout, a) % 8) return false;
  return true;
}

}  // namespace tessera::codegen::cuda
