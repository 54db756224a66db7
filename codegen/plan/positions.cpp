#include "codegen/plan/positions.hpp"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/kernels/query.hpp"

namespace tessera::codegen {

namespace {

class Positions {
 public:
  explicit Positions(KernelProgram& program) : p_(program), axis_(program.kernels.size(), -1) {}

  void run() {
    for (const Kernel& k : p_.kernels)
      for (std::size_t a = 0; a < k.axes.size(); ++a)
        if (const ExprId only = k.axes[a].only; only.valid()) {
          position_ = k.expressions[only].access.tensor;
          for (const Step::Store& store : k.steps.front().stores)
            if (!follow(store.to, static_cast<int>(a))) return;
        }
    if (!position_.valid() || !region(0)) return;
    for (std::size_t k = 0; k < axis_.size(); ++k)
      if (axis_[k] >= 0) p_.kernels[k].axes[axis_[k]].last = position_;
  }

 private:
  /// The kernels of a region, in running order.
  bool region(int r) {
    for (const Item& item : p_.order[r])
      if (item.kernel >= 0 ? !kernel(item.kernel) : !region(item.region)) return false;
    return true;
  }

  bool kernel(int number) {
    const Kernel& k = p_.kernels[number];
    for (const Axis& a : k.axes)
      if (a.only.valid()) return true;
    bool fits = true;
    int& axis = axis_[number];
    for_each_access(k, [&](const Access& a, bool writes) {
      const auto at = dim_.find(a.tensor);
      if (writes || at == dim_.end()) return;
      const Affine& index = a.index[at->second];
      const bool plain = k.fused.empty() && index.offset == 0 && index.parts.size() == 1 &&
                         index.parts[0].coefficient == 1 && (axis < 0 || axis == index.parts[0].axis);
      fits &= plain && size_of(k, index.parts[0].axis) >= 2 * position_block;
      if (plain) axis = index.parts[0].axis;
    });
    for (const Step& s : k.steps)
      for (const Step::Store& store : s.stores) fits = fits && follow(store.to, axis);
    return fits;
  }

  /// Whether what is stored along an axis of positions is read by this step alone; its dim of positions is known then.
  bool follow(const Access& to, int axis) {
    for (std::size_t d = 0; axis >= 0 && d < to.index.size(); ++d)
      for (const Affine::Part& part : to.index[d].parts) {
        if (part.axis != axis) continue;
        const Tensor& t = p_.tensors[to.tensor];
        const bool ours = t.storage == Storage::cache || (t.storage == Storage::scratch && t.slots == 1);
        if (!ours || to.index[d] != Affine{0, {{axis, 1}}}) return false;
        const auto [at, fresh] = dim_.try_emplace(to.tensor, d);
        if (!fresh && at->second != d) return false;
      }
    return true;
  }

  KernelProgram& p_;
  std::vector<int> axis_;                ///< by kernel: that of the positions; -1: it has none
  std::map<TensorId, std::size_t> dim_;  ///< of what has one value, or row, for each position
  TensorId position_;
};

}  // namespace

void stop_at_position(KernelProgram& program) { Positions(program).run(); }

}  // namespace tessera::codegen
