// What is stored as bf16, where GEMMs round their factors.
#include "codegen/plan/bf16_storage.hpp"

#include <algorithm>
#include <map>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <set>

#include "codegen/kernels/query.hpp"
#include "codegen/plan/operand.hpp"

namespace tessera::codegen {

namespace {

class Bf16Storage {
 public:
  explicit Bf16Storage(KernelProgram& program) : p_(program) {}

  void run() {
    for (std::size_t k = 0; k < p_.kernels.size(); ++k) {
      if (p_.kernels[k].gemm.dtype != DType::bf16) continue;
      const Expression product = p_.kernels[k].expressions[p_.kernels[k].steps.front().value];
      for (ExprId factor : {product.a, product.b})
        if (!is_stored(p_.kernels[k], factor)) compute_before(k, factor);
    }
    round_behind_sums();
    find_candidates();
    for (const TensorId t : candidates_) p_.tensors[t].element = DType::bf16;
    for (Kernel& k : p_.kernels)
      if (k.gemm.dtype == DType::bf16)
        for (ExprId factor : factors(k)) read_twin(k.expressions[factor]);
    for (Kernel& k : p_.kernels) store_twins(k);
    for (const auto& [original, copy] : twin_) keep_only(original, copy);
  }

 private:
  static std::vector<ExprId> factors(const Kernel& k) {
    const Expression& product = k.expressions[k.steps.front().value];
    return {product.a, product.b};
  }

  bool is_stored(const Kernel& k, ExprId factor) const {
    const Expression& e = k.expressions[factor];
    if (e.kind != Expression::Kind::load) return false;
    const Tensor& t = p_.tensors[e.access.tensor];
    return t.storage == Storage::scratch || t.element == DType::bf16;
  }

  /// A factor that is no value in scratch memory is computed by a kernel of its own, which stores it.
  void compute_before(std::size_t product, ExprId factor) {
    OperandKernel made = kernel_of_operand(p_.kernels[product], factor);
    Tensor tensor;
    tensor.name = p_.kernels[product].name + ".bf16";
    tensor.region = made.kernel.region;
    tensor.shape = made.shape;
    made.stored.tensor = made.read.tensor = p_.tensors.next();
    p_.tensors.push_back(std::move(tensor));
    Step step;
    step.stores.push_back({made.stored, made.value});
    made.kernel.steps.push_back(std::move(step));
    run_before(p_, product, factor, std::move(made));
  }

  /// The tensor that a kernel copies into, changing nothing; of none: it is no copy.
  static TensorId copies_into(const Kernel& k) {
    if (k.anchor != Anchor::elementwise || k.steps.size() != 1 || k.steps[0].stores.size() != 1) return {};
    const Step::Store& store = k.steps[0].stores[0];
    const bool plain = k.expressions[store.value].kind == Expression::Kind::load;
    return plain ? store.to.tensor : TensorId();
  }

  /// Whether a kernel takes the values of a tensor as products do: as a factor, to hand them on, or to sum them up.
  bool takes_rounded(const Kernel& k, TensorId tensor) const {
    const auto reads = [&](const Expression& e) {
      return e.kind == Expression::Kind::load && e.access.tensor == tensor;
    };
    if (!ranges::any_of(k.expressions, reads)) return true;
    if (k.gemm.dtype == DType::bf16) {
      const std::vector<ExprId> taken = factors(k);
      for (const ExprId e : k.expressions.ids())
        if (reads(k.expressions[e]) && std::find(taken.begin(), taken.end(), e) == taken.end()) return false;
      return true;
    }
    if (const TensorId copy = copies_into(k); copy.valid()) return candidates_.contains(copy);
    return k.anchor == Anchor::contraction && k.across_batch && k.steps.front().reduces &&
           reads(k.expressions[k.steps.front().value]) && k.expressions.size() == 2;
  }

  bool is_factor(TensorId tensor) const {
    return ranges::any_of(p_.kernels, [&](const Kernel& k) {
      return k.gemm.dtype == DType::bf16 &&
             ranges::any_of(factors(k), [&](ExprId f) { return k.expressions[f].access.tensor == tensor; });
    });
  }
  bool is_handed_on(TensorId tensor) const {
    return ranges::any_of(p_.kernels, [&](const Kernel& k) {
      const TensorId copy = copies_into(k);
      return copy.valid() && candidates_.contains(copy) && ranges::any_of(k.expressions, [&](const Expression& e) {
               return e.kind == Expression::Kind::load && e.access.tensor == tensor;
             });
    });
  }

  /// What sums go on in, block after block, is of single precision: whoever else reads it reads a copy, which a kernel
  /// makes behind them.
  void round_behind_sums() {
    for (const Kernel& k : p_.kernels)
      if (k.gemm.accumulates_fp32)
        for (const TensorId t : stored_by(k)) sums_.insert(t);
    for (const TensorId t : sums_) {
      const TensorId copy = p_.tensors.next();
      const auto reads = [&](const Item& item) {
        return item.kernel >= 0 && !p_.kernels[item.kernel].gemm.accumulates_fp32 &&
               loaded_by(p_.kernels[item.kernel]).contains(t);
      };
      std::vector<Item>& order = p_.order[p_.tensors[t].region];
      const auto first = std::find_if(order.begin(), order.end(), reads);
      if (first == order.end()) continue;
      order.insert(first, {static_cast<int>(p_.kernels.size()), -1});
      for (Kernel& k : p_.kernels)
        if (!k.gemm.accumulates_fp32)
          for (Expression& e : k.expressions)
            if (e.kind == Expression::Kind::load && e.access.tensor == t) e.access.tensor = copy;
      p_.kernels.push_back(copying(t, copy));
      Tensor rounded = p_.tensors[t];
      rounded.name += ".copy";
      p_.tensors.push_back(std::move(rounded));
    }
  }

  Kernel copying(TensorId from, TensorId to) const {
    const Tensor& t = p_.tensors[from];
    const auto stores = [&](const Kernel& k) { return stored_by(k).contains(from); };
    Kernel k;
    k.name = ranges::find_if(p_.kernels, stores)->name + "_rounded";
    k.region = t.region;
    Access all;
    for (std::size_t d = 0; d < t.shape.size(); ++d) {
      k.axes.push_back({std::string(1, static_cast<char>('a' + d)), t.shape[d]});
      all.index.push_back({0, {{static_cast<int>(d), 1}}});
    }
    all.tensor = from;
    const ExprId value = push_load(k, all);
    all.tensor = to;
    Step step;
    step.stores.push_back({all, value});
    k.steps.push_back(std::move(step));
    return k;
  }

  /// The largest set of tensors of which each is read as products read only, and by a product in the end.
  void find_candidates() {
    for (const TensorId t : p_.tensors.ids()) {
      const Tensor& tensor = p_.tensors[t];
      if (tensor.storage == Storage::scratch && tensor.type == graph::Type::real && !tensor.carry && !sums_.contains(t))
        candidates_.insert(t);
    }
    for (bool again = true; again;) {
      std::set<TensorId> stay;
      for (const TensorId t : candidates_)
        if ((is_factor(t) || is_handed_on(t)) &&
            ranges::all_of(p_.kernels, [&](const Kernel& k) { return takes_rounded(k, t); }))
          stay.insert(t);
      again = stay.size() < candidates_.size();
      candidates_ = std::move(stay);
    }
  }

  /// Of a tensor that others read as it is, a product reads a copy in bf16.
  void read_twin(Expression& factor) {
    const TensorId original = factor.access.tensor;
    const Tensor& t = p_.tensors[original];
    if (t.storage != Storage::scratch || t.element == DType::bf16) return;
    auto [at, fresh] = twin_.try_emplace(original, p_.tensors.next());
    if (fresh) {
      Tensor copy = t;
      copy.name += ".bf16";
      copy.element = DType::bf16;
      p_.tensors.push_back(std::move(copy));
    }
    factor.access.tensor = at->second;
  }

  /// Whoever stores a tensor for good stores its copy as well.
  void store_twins(Kernel& k) {
    std::set<TensorId> stored;
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
  void keep_only(TensorId original, TensorId copy) {
    Tensor& t = p_.tensors[original];
    if (t.slots == 1 || t.carry) return;
    t.slots = 1;
    for (Kernel& k : p_.kernels)
      for (Expression& e : k.expressions)
        if (k.region != t.region && e.kind == Expression::Kind::load && e.access.tensor == original)
          e.access.tensor = copy;
  }

  KernelProgram& p_;
  std::set<TensorId> candidates_;
  std::set<TensorId> sums_;  ///< that GEMMs of single precision store
  std::map<TensorId, TensorId> twin_;
};

}  // namespace

void store_as_bf16(KernelProgram& program) { Bf16Storage(program).run(); }

void store_caches_as_bf16(KernelProgram& program) {
  for (Tensor& t : program.tensors)
    if (t.storage == Storage::cache) t.element = DType::bf16;
}

}  // namespace tessera::codegen
