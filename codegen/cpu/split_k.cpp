#include "codegen/cpu/split_k.hpp"

#include <algorithm>

namespace tessera::codegen::cpu {

using tree::Expr;
using tree::integer;

int partial_vector(const Values& v) {
  std::vector<int> outer = v.outer_axes();
  if (outer.empty()) return -1;
  return v.schedule.vector >= 0 && !v.inner(v.schedule.vector) ? v.schedule.vector : outer.back();
}

Expr partial_index(const Values& v, int reduction, Expr chunk) {
  std::int64_t stride = 1;
  Expr at = integer(0);
  std::vector<int> order = v.outer_axes();
  int last = partial_vector(v);
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return x != last && y == last; });
  for (std::size_t i = order.size(); i-- > 0;) {
    at = v.along(order[i], stride) + at;
    stride *= v.extent[order[i]];
  }
  std::int64_t reductions =
      std::count_if(v.kernel.steps.begin(), v.kernel.steps.end(), [](const Step& s) { return s.reduces; });
  return std::move(chunk) * (stride * reductions) + at + integer(stride * reduction);
}

}  // namespace tessera::codegen::cpu
