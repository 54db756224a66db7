#include "codegen/cpu/transpose.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;

int transposed_axis(const Values& v) {
  if (v.kernel.anchor != Anchor::elementwise || v.target.lanes == 1 || v.vector < 0 || v.kernel.steps.size() != 1 ||
      (v.schedule.parallel >= 0 && v.schedule.block != 1))
    return -1;
  const std::vector<Step::Store>& stores = v.step(0).stores;
  if (stores.size() != 1 || v.expression(stores[0].value).kind != Expression::Kind::load) return -1;
  const Access &to = stores[0].to, &from = v.expression(stores[0].value).access;
  const auto element_of = [&](const Access& a) { return v.tensor(a).element; };
  if (element_of(from) != DType::real || element_of(to) != DType::real || v.lane_step(to) != 1 || v.in_panels(from) ||
      v.lane_step(from) <= 1 || v.extent[v.vector] < v.target.lanes)
    return -1;
  for (int a : v.outer_axes()) {
    const std::int64_t extent = v.extent[a];
    if (a != v.schedule.parallel && extent > 0 && extent % v.target.lanes == 0 && v.step_of(from, a) == 1) return a;
  }
  return -1;
}

Block transposed_copy(Values& v, int axis, const LoopBounds& bounds) {
  std::vector<int> loops;
  for (int a : v.outer_axes())
    if (a != v.vector && a != axis && a != v.schedule.parallel) loops.push_back(a);
  return nest(v, loops, bounds, [&](Block& b) {
    const Step::Store& store = v.step(0).stores[0];
    const Access& from = v.expression(store.value).access;
    Expr depth = integer(v.extent[axis]);
    v.set(axis, nullptr);
    if (const auto part = bounds.find(axis); part != bounds.end()) {
      v.set(axis, part->second.first);
      depth = tree::binary("-", part->second.limit, part->second.first);
    }
    v.set(v.vector, nullptr);
    b.push_back(tree::evaluate(
        call("v_copy_transposed", {v.address(from, false), integer(v.lane_step(from)), v.address(store.to, true),
                                   integer(v.step_of(store.to, axis)), depth, integer(v.extent[v.vector])})));
  });
}

}  // namespace tessera::codegen::cpu
