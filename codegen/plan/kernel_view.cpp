#include "codegen/plan/kernel_view.hpp"

namespace tessera::codegen {

std::vector<int> KernelView::outer_axes() const {
  std::vector<int> outer;
  for (std::size_t a = 0; a < kernel.axes.size(); ++a)
    if (!kernel.axes[a].inner) outer.push_back(static_cast<int>(a));
  return outer;
}

Extent KernelView::points(const std::vector<int>& axes) const {
  Extent all{1, 0};
  for (int a : axes) {
    const Extent e = extent(axis(a).dim);
    all = e.known() ? Extent{all.fixed * e.fixed, all.per_batch * e.fixed} : Extent{0, all.fixed};
  }
  return all;
}

std::map<int, std::int64_t> KernelView::strides_of(const Access& access, std::int64_t* constant) const {
  const Layout& layout = plan.layouts[access.tensor];
  std::map<int, std::int64_t> strides;
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    if (constant) *constant += access.index[d].offset * layout.stride[d];
    for (const Affine::Part& p : access.index[d].parts) strides[p.axis] += p.coefficient * layout.stride[d];
  }
  return strides;
}

void KernelView::reach(ExprId e, std::map<ExprId, int>& uses) const {
  if (!e.valid() || ++uses[e] > 1) return;
  const Expression& x = expression(e);
  if (x.kind != Expression::Kind::op) return;
  reach(x.a, uses);
  reach(x.b, uses);
  reach(x.c, uses);
}

}  // namespace tessera::codegen
