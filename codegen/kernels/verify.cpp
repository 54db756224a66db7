#include "codegen/kernels/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/error.hpp"
#include "codegen/kernels/query.hpp"

namespace tessera::codegen {

namespace {

class Verifier {
 public:
  explicit Verifier(const KernelProgram& p) : p_(p) {}

  void run() {
    for (const Kernel& k : p_.kernels) kernel(k);
    std::vector<int> runs(p_.kernels.size(), 0);
    for (const auto& items : p_.order)
      for (const Item& item : items)
        if (item.kernel >= 0) ++runs[item.kernel];
    for (std::size_t k = 0; k < runs.size(); ++k)
      if (runs[k] != 1) fail(p_.kernels[k], fmt::format("stands {} times in the running order", runs[k]));
  }

 private:
  [[noreturn]] void fail(const Kernel& k, const std::string& what) const {
    throw Error(fmt::format("kernels of {}: {} {}", p_.name, k.name, what));
  }

  void kernel(const Kernel& k) const {
    if (k.steps.empty()) fail(k, "does nothing");
    for (std::size_t s = 0; s < k.steps.size(); ++s) {
      const Step& step = k.steps[s];
      std::set<int> scope;
      for (std::size_t a = 0; a < k.axes.size(); ++a)
        if (!k.axes[a].inner) scope.insert(static_cast<int>(a));
      const bool rows = sums_rows(k, step);
      if (rows)
        for (std::size_t a = 0; a < k.axes.size(); ++a) scope.insert(static_cast<int>(a));
      for (int a : step.over) {
        if (a < 0 || a >= static_cast<int>(k.axes.size()) || k.axes[a].inner == rows)
          fail(k, "sweeps over an axis that is not an inner one");
        scope.insert(a);
      }
      if (step.reduces)
        expression(k, step.value, scope, s);
      else if (step.stores.empty())
        fail(k, "has a step that stores nothing");
      for (const Step::Store& store : step.stores) {
        access(k, store.to, scope, true);
        expression(k, store.value, scope, s);
      }
    }
  }

  void expression(const Kernel& k, ExprId i, const std::set<int>& scope, std::size_t step) const {
    if (!k.expressions.has(i)) fail(k, "names an expression that does not exist");
    const Expression& e = k.expressions[i];
    switch (e.kind) {
      case Expression::Kind::constant:
      case Expression::Kind::extent:
        break;
      case Expression::Kind::load:
        access(k, e.access, scope, false);
        break;
      case Expression::Kind::local:
        if (e.step < 0 || e.step >= static_cast<int>(step) || !k.steps[e.step].reduces)
          fail(k, "reads a reduction before it is done");
        break;
      case Expression::Kind::index:
        within(k, e.element, scope, "takes the index of an axis outside its scope");
        break;
      case Expression::Kind::index_equals:
        within(k, e.element, scope, "compares an axis outside its scope");
        expression(k, e.a, scope, step);
        break;
      case Expression::Kind::keep:
        within(k, e.element, scope, "drops out along an axis outside its scope");
        expression(k, e.a, scope, step);
        break;
      case Expression::Kind::op:
        if (e.a >= i || e.b >= i || e.c >= i) fail(k, "has an expression that reads a later one");
        expression(k, e.a, scope, step);
        if (e.b.valid()) expression(k, e.b, scope, step);
        if (e.c.valid()) expression(k, e.c, scope, step);
        break;
    }
  }

  void within(const Kernel& k, const Affine& index, const std::set<int>& scope, const char* what) const {
    for (const Affine::Part& part : index.parts)
      if (!scope.contains(part.axis)) fail(k, what);
  }

  void access(const Kernel& k, const Access& a, const std::set<int>& scope, bool writes) const {
    if (!p_.tensors.has(a.tensor)) fail(k, "names a tensor that does not exist");
    const Tensor& t = p_.tensors[a.tensor];
    bool fixed = t.storage == Storage::input || t.storage == Storage::labels || t.storage == Storage::parameter ||
                 t.storage == Storage::table;
    if (writes && fixed) fail(k, fmt::format("writes {}, which is not its to change", t.name));
    if (a.index.size() != t.shape.size())
      fail(k, fmt::format("indexes {} with {} numbers for {} dims", t.name, a.index.size(), t.shape.size()));
    // The smallest and the largest index must stay inside for a small and for a large batch.
    for (std::int64_t batch : {1, 1000}) {
      std::int64_t low = 0, high = 0;  // where axes are joined: what runs on from a dim into the one before it
      for (std::size_t d = a.index.size(); d-- > 0;) {
        std::int64_t first = a.index[d].offset + low, last = a.index[d].offset + high;
        for (const Affine::Part& part : a.index[d].parts) {
          if (!scope.contains(part.axis)) fail(k, fmt::format("indexes {} by an axis outside its scope", t.name));
          const std::int64_t reach = part.coefficient * (extent(k.axes[part.axis].dim).at(batch) - 1);
          (reach < 0 ? first : last) += reach;
        }
        const std::int64_t size = extent(t.shape[d]).at(batch);
        const bool runs_on = p_.joined && d > 0;
        low = runs_on && first < 0 ? -((size - 1 - first) / size) : 0;
        high = runs_on && last >= size ? last / size : 0;
        if (last - high * size >= size || first - low * size < 0)
          fail(k, fmt::format("indexes {} past the end of dim {}", t.name, to_string(t.shape[d])));
      }
    }
  }

  const KernelProgram& p_;
};

}  // namespace

void verify(const KernelProgram& program) { Verifier(program).run(); }

}  // namespace tessera::codegen
