#include "codegen/plan/window_gradient.hpp"

#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <set>
#include <vector>

#include "codegen/kernels/query.hpp"
#include "codegen/passes/gemm_operands.hpp"
#include "codegen/plan/layout.hpp"

namespace tessera::codegen {

namespace {

/// A row of the gradient is put in another order on a thread's stack: 64 KiB.
constexpr std::int64_t longest_row = 1 << 14;

class Windows {
 public:
  Windows(const Layouts& layouts, const Kernel& kernel, int rows, int columns)
      : layouts_(layouts), k_(kernel), rows_(rows), columns_(columns) {}

  std::optional<WindowGradient> find() {
    if (!k_.across_batch || k_.steps.size() != 2 || !finds_factors() || !finds_axes() || !stores_taps_innermost())
      return {};
    return found_;
  }

 private:
  std::int64_t step(const Access& a, int axis) const { return axis < 0 ? 0 : step_along(a, layouts_[a.tensor], axis); }
  std::int64_t extent(int axis) const { return k_.axes[axis].dim.value(); }
  static bool uses(const Access& a, int axis) {
    return ranges::any_of(a.index, [&](const Affine& index) {
      return ranges::any_of(index.parts, [&](const Affine::Part& p) { return p.axis == axis; });
    });
  }

  bool finds_factors() {
    const Expression& product = k_.expressions[k_.steps.front().value];
    for (const ExprId e : {product.a, product.b}) {
      const Expression& x = k_.expressions[e];
      if (x.kind != Expression::Kind::load) return false;
      (uses(x.access, columns_) ? found_.right : found_.left) = &x.access;
    }
    if (!found_.left || !found_.right || !uses(*found_.left, rows_) || uses(*found_.right, rows_)) return false;
    for (int a = 0; a < static_cast<int>(k_.axes.size()); ++a)
      if (a != rows_ && !k_.axes[a].inner && uses(*found_.left, a)) return false;
    return true;
  }

  /// The dims of the map: the batch, the columns, and one or two along which windows lie.
  bool finds_axes() {
    std::vector<ConvAxis> axes;
    std::set<int> placed{rows_};  // axes, each in one dim
    const std::vector<std::int64_t>& strides = layouts_[found_.right->tensor].stride;
    for (std::size_t d = 0; d < found_.right->index.size(); ++d) {
      const std::vector<Affine::Part>& parts = found_.right->index[d].parts;
      if (parts.empty()) continue;
      const Affine::Part& first = parts.front();
      if (parts.size() == 1 && (first.axis == columns_ || !k_.axes[first.axis].dim.known())) {
        if (first.coefficient != 1 || !placed.insert(first.axis).second) return false;
        continue;
      }
      ConvAxis along;
      along.right_step = strides[d];
      for (const Affine::Part& p : parts) {
        const bool inner = k_.axes[p.axis].inner;
        if (p.axis == columns_ || !k_.axes[p.axis].dim.known() || p.coefficient < 1 || !placed.insert(p.axis).second)
          return false;
        if ((inner ? along.position_axis : along.tap_axis) >= 0) return false;
        (inner ? along.position_axis : along.tap_axis) = p.axis;
        (inner ? along.positions : along.taps) = extent(p.axis);
        (inner ? along.step : along.dilation) = p.coefficient;
      }
      along.left_step = step(*found_.left, along.position_axis);
      axes.push_back(along);
    }
    if (axes.empty() || axes.size() > 2 || placed.size() != k_.axes.size()) return false;
    found_.across = axes.back();
    if (axes.size() == 2) found_.down = axes.front();
    const bool sums = ranges::all_of(axes, [](const ConvAxis& s) { return s.position_axis < 0 || s.left_step > 0; });
    return sums && found_.down.positions * found_.across.positions >= least_n;
  }

  bool stores_taps_innermost() const {
    const std::vector<Step::Store>& stores = k_.steps[1].stores;
    if (!k_.steps[1].over.empty() || stores.size() != 1 ||
        expression_of(k_, stores[0].value).kind != Expression::Kind::local)
      return false;
    const Access& to = stores[0].to;
    const ConvAxis &down = found_.down, &across = found_.across;
    const std::int64_t taps = down.taps * across.taps, row = extent(columns_) * taps;
    return (across.taps == 1 || step(to, across.tap_axis) == 1) &&
           (down.taps == 1 || step(to, down.tap_axis) == across.taps) && step(to, columns_) == taps &&
           step(to, rows_) >= row && row <= longest_row;
  }

  const Layouts& layouts_;
  const Kernel& k_;
  int rows_, columns_;
  WindowGradient found_;
};

}  // namespace

std::optional<WindowGradient> window_gradient(const Layouts& layouts, const Kernel& kernel, int rows, int columns) {
  return Windows(layouts, kernel, rows, columns).find();
}

}  // namespace tessera::codegen
