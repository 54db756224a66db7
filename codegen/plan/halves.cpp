// What is stored as bf16, where matrix products round their factors.
#include <algorithm>
#include <map>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <set>

#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

namespace {

class Halves {
 public:
  explicit Halves(KernelProgram& program) : p_(program) {}

  void run() {
    for (std::size_t k = 0; k < p_.kernels.size(); ++k) {
      if (p_.kernels[k].product.columns < 0) continue;
      const Expression product = p_.kernels[k].expressions[static_cast<std::size_t>(p_.kernels[k].steps.front().value)];
      for (int factor : {product.a, product.b})
        if (!is_stored(p_.kernels[k], factor)) compute_before(k, factor);
    }
    find_candidates();
    for (int t : candidates_) p_.tensors[static_cast<std::size_t>(t)].half = true;
    for (Kernel& k : p_.kernels)
      if (k.product.columns >= 0)
        for (int factor : factors(k)) read_twin(k.expressions[static_cast<std::size_t>(factor)]);
    for (Kernel& k : p_.kernels) store_twins(k);
    for (const auto& [original, copy] : twin_) keep_only(original, copy);
  }

 private:
  static std::vector<int> factors(const Kernel& k) {
    const Expression& product = k.expressions[static_cast<std::size_t>(k.steps.front().value)];
    return {product.a, product.b};
  }

  bool is_stored(const Kernel& k, int factor) const {
    const Expression& e = k.expressions[static_cast<std::size_t>(factor)];
    if (e.kind != Expression::Kind::load) return false;
    const Tensor& t = p_.tensors[static_cast<std::size_t>(e.access.tensor)];
    return t.storage == Storage::scratch || t.half;
  }

  static void reach(const Kernel& k, int e, std::set<int>& seen) {
    if (e < 0 || !seen.insert(e).second) return;
    const Expression& x = k.expressions[static_cast<std::size_t>(e)];
    if (x.kind == Expression::Kind::op || x.kind == Expression::Kind::index_equals || x.kind == Expression::Kind::keep)
      for (int operand : {x.a, x.b, x.c}) reach(k, operand, seen);
  }
  static std::vector<Affine*> indices(Expression& e) {
    std::vector<Affine*> all{&e.element};
    for (Affine& i : e.access.index) all.push_back(&i);
    return all;
  }

  /// A factor that is no value in scratch memory is computed by a kernel of its own, which stores it.
  void compute_before(std::size_t product, int factor) {
    Kernel& k = p_.kernels[product];
    std::set<int> needed, used;
    reach(k, factor, needed);
    for (int e : needed) {
      Expression& x = k.expressions[static_cast<std::size_t>(e)];
      if (x.kind == Expression::Kind::index_equals) used.insert(x.axis);
      for (const Affine* i : indices(x))
        for (const Affine::Part& part : i->parts) used.insert(part.axis);
    }
    // The batch outermost, and what vectors lie along innermost: the columns, else what is summed over.
    std::vector<int> axes(used.begin(), used.end());
    const auto rank = [&](int a) {
      const Axis& axis = k.axes[static_cast<std::size_t>(a)];
      return !axis.dim.known() ? 0 : a == k.product.columns ? 3 : axis.inner ? 2 : 1;
    };
    std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return rank(a) < rank(b); });

    Kernel made;
    made.name = k.name + "_factor";
    made.region = k.region;
    Tensor tensor;
    tensor.name = k.name + ".bf16";
    tensor.region = k.region;
    Access stored, read;
    stored.tensor = read.tensor = static_cast<int>(p_.tensors.size());
    std::map<int, int> axis_of, expression_of;
    for (int a : axes) {
      axis_of[a] = static_cast<int>(made.axes.size());
      made.axes.push_back(k.axes[static_cast<std::size_t>(a)]);
      made.axes.back().inner = false;
      tensor.shape.push_back(made.axes.back().dim);
      stored.index.push_back({0, {{axis_of[a], 1}}});
      read.index.push_back({0, {{a, 1}}});
    }
    for (int e : needed) {
      Expression x = k.expressions[static_cast<std::size_t>(e)];
      for (int* operand : {&x.a, &x.b, &x.c})
        if (*operand >= 0) *operand = expression_of.at(*operand);
      if (x.axis >= 0) x.axis = axis_of.at(x.axis);
      for (Affine* i : indices(x)) {
        for (Affine::Part& part : i->parts) part.axis = axis_of.at(part.axis);
        std::sort(i->parts.begin(), i->parts.end());
      }
      expression_of[e] = static_cast<int>(made.expressions.size());
      made.expressions.push_back(std::move(x));
    }
    Step step;
    step.stores.push_back({stored, expression_of.at(factor)});
    made.steps.push_back(std::move(step));

    Expression load;
    load.kind = Expression::Kind::load;
    load.access = read;
    k.expressions[static_cast<std::size_t>(factor)] = load;
    forget_unused(k);
    std::vector<Item>& order = p_.order[static_cast<std::size_t>(k.region)];
    const auto at = std::find_if(order.begin(), order.end(),
                                 [&](const Item& item) { return item.kernel == static_cast<int>(product); });
    order.insert(at, {static_cast<int>(p_.kernels.size()), -1});
    p_.tensors.push_back(std::move(tensor));
    p_.kernels.push_back(std::move(made));
  }

  /// What no step needs any more reads nothing.
  static void forget_unused(Kernel& k) {
    std::set<int> needed;
    for (const Step& s : k.steps) {
      if (s.reduces) reach(k, s.value, needed);
      for (const Step::Store& store : s.stores) reach(k, store.value, needed);
    }
    for (int e = 0; e < static_cast<int>(k.expressions.size()); ++e)
      if (!needed.contains(e)) k.expressions[static_cast<std::size_t>(e)] = {};
  }

  /// The tensor that a kernel copies into, changing nothing; -1: it is no copy.
  static int copies_into(const Kernel& k) {
    if (k.anchor != Anchor::elementwise || k.steps.size() != 1 || k.steps[0].stores.size() != 1) return -1;
    const Step::Store& store = k.steps[0].stores[0];
    const bool plain = k.expressions[static_cast<std::size_t>(store.value)].kind == Expression::Kind::load;
    return plain ? store.to.tensor : -1;
  }

  /// Whether a kernel takes the values of a tensor as products do: as a factor, to hand them on, or to sum them up.
  bool takes_rounded(const Kernel& k, int tensor) const {
    const auto reads = [&](const Expression& e) {
      return e.kind == Expression::Kind::load && e.access.tensor == tensor;
    };
    if (!ranges::any_of(k.expressions, reads)) return true;
    if (k.product.columns >= 0) {
      const std::vector<int> taken = factors(k);
      for (int e = 0; e < static_cast<int>(k.expressions.size()); ++e)
        if (reads(k.expressions[static_cast<std::size_t>(e)]) &&
            std::find(taken.begin(), taken.end(), e) == taken.end())
          return false;
      return true;
    }
    if (const int copy = copies_into(k); copy >= 0) return candidates_.contains(copy);
    return k.anchor == Anchor::contraction && k.across_batch && k.steps.front().reduces &&
           reads(k.expressions[static_cast<std::size_t>(k.steps.front().value)]) && k.expressions.size() == 2;
  }

  bool is_factor(int tensor) const {
    return ranges::any_of(p_.kernels, [&](const Kernel& k) {
      return k.product.columns >= 0 && ranges::any_of(factors(k), [&](int f) {
               return k.expressions[static_cast<std::size_t>(f)].access.tensor == tensor;
             });
    });
  }
  bool is_handed_on(int tensor) const {
    return ranges::any_of(p_.kernels, [&](const Kernel& k) {
      const int copy = copies_into(k);
      return copy >= 0 && candidates_.contains(copy) && ranges::any_of(k.expressions, [&](const Expression& e) {
               return e.kind == Expression::Kind::load && e.access.tensor == tensor;
             });
    });
  }

  /// The largest set of tensors of which each is read as products read only, and by a product in the end.
  void find_candidates() {
    for (int t = 0; t < static_cast<int>(p_.tensors.size()); ++t) {
      const Tensor& tensor = p_.tensors[static_cast<std::size_t>(t)];
      if (tensor.storage == Storage::scratch && tensor.type == graph::Type::real && !tensor.carry)
        candidates_.insert(t);
    }
    for (bool again = true; again;) {
      std::set<int> stay;
      for (int t : candidates_)
        if ((is_factor(t) || is_handed_on(t)) &&
            ranges::all_of(p_.kernels, [&](const Kernel& k) { return takes_rounded(k, t); }))
          stay.insert(t);
      again = stay.size() < candidates_.size();
      candidates_ = std::move(stay);
    }
  }

  /// Of a tensor that others read as it is, a product reads a copy in bf16.
  void read_twin(Expression& factor) {
    const int original = factor.access.tensor;
    const Tensor& t = p_.tensors[static_cast<std::size_t>(original)];
    if (t.storage != Storage::scratch || t.half) return;
    auto [at, fresh] = twin_.try_emplace(original, static_cast<int>(p_.tensors.size()));
    if (fresh) {
      Tensor copy = t;
      copy.name += ".bf16";
      copy.half = true;
      p_.tensors.push_back(std::move(copy));
    }
    factor.access.tensor = at->second;
  }

  /// Whoever stores a tensor for good stores its copy as well.
  void store_twins(Kernel& k) {
    std::set<int> stored;
    for (std::size_t s = k.steps.size(); s-- > 0;) {
      std::vector<Step::Store> more;
      for (const Step::Store& store : k.steps[s].stores)
        if (auto at = twin_.find(store.to.tensor); at != twin_.end() && !stored.contains(store.to.tensor)) {
          more.push_back(store);
          more.back().to.tensor = at->second;
        }
      for (const Step::Store& store : k.steps[s].stores) stored.insert(store.to.tensor);
      k.steps[s].stores.insert(k.steps[s].stores.end(), more.begin(), more.end());
    }
  }

  /// What is kept of every layer for another region is kept once: as bf16.
  void keep_only(int original, int copy) {
    Tensor& t = p_.tensors[static_cast<std::size_t>(original)];
    if (t.slots == 1 || t.carry) return;
    t.slots = 1;
    for (Kernel& k : p_.kernels)
      for (Expression& e : k.expressions)
        if (k.region != t.region && e.kind == Expression::Kind::load && e.access.tensor == original)
          e.access.tensor = copy;
  }

  KernelProgram& p_;
  std::set<int> candidates_;
  std::map<int, int> twin_;
};

}  // namespace

void store_factors_as_bf16(KernelProgram& program) { Halves(program).run(); }

}  // namespace tessera::codegen
