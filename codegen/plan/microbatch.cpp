// Sums over the batch that go on from one group of images to the next.
#include "codegen/plan/microbatch.hpp"

#include <algorithm>
#include <map>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <set>

#include "codegen/kernels/query.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

namespace {

class Sums {
 public:
  explicit Sums(KernelProgram& program) : p_(program) {}

  bool run() {
    if (images_need_sums() || !ranges::all_of(p_.kernels, can_go_on)) return false;
    const std::size_t kernels = p_.kernels.size();
    for (std::size_t k = 0; k < kernels; ++k) {
      if (!p_.kernels[k].across_batch) continue;
      if (is_plain(p_.kernels[k]))
        go_on(p_.kernels[k]);
      else
        store_sums_first(k);
    }
    return true;
  }

 private:
  static const Expression& expression(const Kernel& k, ExprId e) { return k.expressions[e]; }

  /// Whether a kernel that goes image by image reads what is made of a sum over the batch.
  bool images_need_sums() const {
    std::set<TensorId> made;
    for (bool again = true; again;) {
      again = false;
      for (const Kernel& k : p_.kernels) {
        const bool reads = ranges::any_of(k.expressions, [&](const Expression& e) {
          return e.kind == Expression::Kind::load && made.contains(e.access.tensor);
        });
        if (reads && tasks_of(k) == Tasks::images) return true;
        if (!reads && !k.across_batch) continue;
        for (const Step& s : k.steps)
          for (const Step::Store& store : s.stores) again |= made.insert(store.to.tensor).second;
      }
    }
    return false;
  }

  static bool can_go_on(const Kernel& k) {
    return !k.across_batch || ranges::all_of(k.steps, [](const Step& s) {
      return s.reduces ? s.reduction == Reduction::sum && s.stores.empty() : s.over.empty();
    });
  }

  /// Whether one sum is what it stores.
  static bool is_plain(const Kernel& k) {
    return k.steps.size() == 2 && k.steps[0].reduces && k.steps[1].stores.size() == 1 &&
           expression(k, k.steps[1].stores[0].value).kind == Expression::Kind::local;
  }

  void go_on(Kernel& k) {
    k.accumulates = true;
    Tensor& t = p_.tensors[k.steps[1].stores[0].to.tensor];
    // The layers' sums all wait for the next group.
    if (t.storage == Storage::scratch && t.slots == 1) {
      t.region = k.region;
      t.slots = p_.graph.regions[k.region].count;
    }
  }

  /// A kernel for each sum, and then what is made of them.
  void store_sums_first(std::size_t at) {
    std::map<int, Access> stored;  // by step
    for (std::size_t s = 0; s < p_.kernels[at].steps.size(); ++s) {
      if (!p_.kernels[at].steps[s].reduces) continue;
      Kernel sum = p_.kernels[at];
      const Kernel& all = p_.kernels[at];
      Tensor t;
      t.name = all.name + ".sum";
      Access whole;
      whole.tensor = p_.tensors.next();
      for (std::size_t a = 0; a < all.axes.size(); ++a)
        if (!all.axes[a].inner) {
          t.shape.push_back(all.axes[a].dim);
          whole.index.push_back({0, {{static_cast<int>(a), 1}}});
        }
      if (t.shape.empty()) {
        t.shape.push_back(Dim::constant(1));
        whole.index.push_back({});
      }
      p_.tensors.push_back(std::move(t));
      sum.name += "_sum_of_batch";
      sum.anchor = Anchor::contraction;
      Expression local;
      local.kind = Expression::Kind::local;
      local.step = 0;
      Step store;
      store.stores.push_back({whole, push(sum, local)});
      sum.steps = {all.steps[s], store};
      eliminate_dead(sum);
      go_on(sum);
      stored[static_cast<int>(s)] = whole;
      std::vector<Item>& order = p_.order[sum.region];
      order.insert(std::find_if(order.begin(), order.end(),
                                [&](const Item& item) { return item.kernel == static_cast<int>(at); }),
                   {static_cast<int>(p_.kernels.size()), -1});
      p_.kernels.push_back(std::move(sum));
    }
    Kernel& rest = p_.kernels[at];
    for (Expression& e : rest.expressions)
      if (e.kind == Expression::Kind::local) {
        const Access from = stored.at(e.step);
        e = {};
        e.kind = Expression::Kind::load;
        e.access = from;
      }
    std::erase_if(rest.steps, [](const Step& s) { return s.reduces; });
    rest.across_batch = false;
    rest.anchor = Anchor::elementwise;
    eliminate_dead(rest);
  }

  /// Leaves out axes and expressions that no step needs.
  static void eliminate_dead(Kernel& k) {
    std::set<ExprId> expressions;
    std::set<int> axes;
    const auto take = [&](auto&& self, ExprId e) -> void {
      if (!e.valid() || !expressions.insert(e).second) return;
      const Expression& x = expression(k, e);
      for (ExprId operand : {x.a, x.b, x.c}) self(self, operand);
    };
    for (const Step& s : k.steps) {
      if (s.reduces) take(take, s.value);
      for (const Step::Store& store : s.stores) take(take, store.value);
      axes.insert(s.over.begin(), s.over.end());
    }
    for (std::size_t a = 0; a < k.axes.size(); ++a)
      if (!k.axes[a].inner) axes.insert(static_cast<int>(a));
    std::map<int, int> axis_of;
    std::map<ExprId, ExprId> expression_of;
    std::vector<Axis> kept_axes;
    Table<Expression, ExprId> kept;
    for (int a : axes) {
      axis_of[a] = static_cast<int>(kept_axes.size());
      kept_axes.push_back(k.axes[a]);
    }
    const auto moved = [&](Affine& i) {
      for (Affine::Part& part : i.parts) part.axis = axis_of.at(part.axis);
    };
    for (ExprId e : expressions) {
      Expression x = expression(k, e);
      for (ExprId* operand : {&x.a, &x.b, &x.c})
        if (operand->valid()) *operand = expression_of.at(*operand);
      for_each_index(x, moved);
      expression_of[e] = kept.add(std::move(x));
    }
    for (Step& s : k.steps) {
      for (int& a : s.over) a = axis_of.at(a);
      if (s.reduces) s.value = expression_of.at(s.value);
      for (Step::Store& store : s.stores) {
        store.value = expression_of.at(store.value);
        for (Affine& i : store.to.index) moved(i);
      }
    }
    k.axes = std::move(kept_axes);
    k.expressions = std::move(kept);
  }

  KernelProgram& p_;
};

}  // namespace

bool accumulate_microbatches(KernelProgram& program) { return Sums(program).run(); }

}  // namespace tessera::codegen
