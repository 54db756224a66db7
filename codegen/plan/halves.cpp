// What is stored as bf16, where matrix products round their factors.
#include <algorithm>
#include <map>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <set>

#include "codegen/plan/factor.hpp"

namespace tessera::codegen {

namespace {

class Halves {
 public:
  explicit Halves(KernelProgram& program) : p_(program) {}

  void run() {
    for (std::size_t k = 0; k < p_.kernels.size(); ++k) {
      if (p_.kernels[k].product.factors != Element::bf16) continue;
      const Expression product = p_.kernels[k].expressions[static_cast<std::size_t>(p_.kernels[k].steps.front().value)];
      for (int factor : {product.a, product.b})
        if (!is_stored(p_.kernels[k], factor)) compute_before(k, factor);
    }
    find_candidates();
    for (int t : candidates_) p_.tensors[static_cast<std::size_t>(t)].element = Element::bf16;
    for (Kernel& k : p_.kernels)
      if (k.product.factors == Element::bf16)
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
    return t.storage == Storage::scratch || t.element == Element::bf16;
  }

  /// A factor that is no value in scratch memory is computed by a kernel of its own, which stores it.
  void compute_before(std::size_t product, int factor) {
    FactorKernel made = kernel_of_factor(p_.kernels[product], factor);
    Tensor tensor;
    tensor.name = p_.kernels[product].name + ".bf16";
    tensor.region = made.kernel.region;
    tensor.shape = made.shape;
    made.stored.tensor = made.read.tensor = static_cast<int>(p_.tensors.size());
    p_.tensors.push_back(std::move(tensor));
    Step step;
    step.stores.push_back({made.stored, made.value});
    made.kernel.steps.push_back(std::move(step));
    run_before(p_, product, factor, std::move(made));
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
    if (k.product.factors == Element::bf16) {
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
      return k.product.factors == Element::bf16 && ranges::any_of(factors(k), [&](int f) {
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
    if (t.storage != Storage::scratch || t.element == Element::bf16) return;
    auto [at, fresh] = twin_.try_emplace(original, static_cast<int>(p_.tensors.size()));
    if (fresh) {
      Tensor copy = t;
      copy.name += ".bf16";
      copy.element = Element::bf16;
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
