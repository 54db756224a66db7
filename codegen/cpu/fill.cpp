#include "codegen/cpu/fill.hpp"

#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/find_if.hpp>

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::integer;

bool is_fill(const Values& v) {
  if (v.kernel.anchor != Anchor::elementwise || (v.schedule.parallel >= 0 && v.schedule.block != 1)) return false;
  if (ranges::any_of(v.kernel.axes, [](const Axis& a) { return a.only.valid(); })) return false;
  const bool several = ranges::any_of(v.outer_axes(), [&](int a) { return v.extent[a] > 1; });
  return several && ranges::all_of(v.kernel.steps, [&](const Step& step) {
           return !step.reduces && ranges::all_of(step.stores, [&](const Step::Store& store) {
             return v.expression(store.value).kind == Expression::Kind::constant &&
                    v.tensor(store.to).element == DType::real && !v.in_panels(store.to) && !v.on_stack(store.to);
           });
         });
}

Block fill(Values& v, const LoopBounds& bounds) {
  v.vector = -1;
  Block all;
  for (const Step& step : v.kernel.steps)
    for (const Step::Store& store : step.stores) {
      std::vector<int> loops, run;
      for (int a : v.outer_axes())
        if (a != v.schedule.parallel) (v.extent[a] == 1 && !bounds.contains(a) ? run : loops).push_back(a);
      std::int64_t apart = 0, count = 1;
      const auto lengthen = [&](std::int64_t step_of_next) {
        const auto next = ranges::find_if(loops, [&](int a) {
          return v.extent[a] > 0 && !bounds.contains(a) && v.step_of(store.to, a) == step_of_next;
        });
        if (next == loops.end()) return false;
        count *= v.extent[*next];
        run.push_back(*next);
        loops.erase(next);
        return true;
      };
      for (int a : loops)
        if (const std::int64_t s = v.step_of(store.to, a); v.extent[a] > 0 && !bounds.contains(a) && s > 0)
          apart = apart ? std::min(apart, s) : s;
      while (apart && lengthen(apart * count)) {
      }
      const Block of_store = nest(v, loops, bounds, [&](Block& b) {
        for (int a : run) v.set(a, nullptr);
        b.push_back(tree::evaluate(call("v_fill", {v.address(store.to, true), integer(apart), integer(count),
                                                   tree::real(v.expression(store.value).value)})));
      });
      all.insert(all.end(), of_store.begin(), of_store.end());
    }
  return all;
}

}  // namespace tessera::codegen::cpu
