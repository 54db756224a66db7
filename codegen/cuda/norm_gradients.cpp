#include "codegen/cuda/norm_gradients.hpp"

#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/find_if.hpp>

#include "codegen/cuda/merge_sums.hpp"
#include "codegen/cuda/plan.hpp"
#include "codegen/error.hpp"
#include "codegen/kernels/query.hpp"

namespace tessera::codegen::cuda {

namespace {

class Gradients {
 public:
  explicit Gradients(const KernelProgram& program) : p_(program) {
    const auto loss =
        ranges::find_if(p_.graph.outputs, [](const graph::Output& o) { return o.kind == graph::Output::Kind::loss; });
    if (loss != p_.graph.outputs.end()) loss_ = loss->node;
  }

  /// The tensor that a kernel hands on so; of none: there is none.
  TensorId handed_on_by(const Kernel& k) const {
    if (loss_ == graph::none || k.across_batch || !k.fused.empty() || !is_of_linear_layer(k)) return {};
    if (k.steps.size() != 2 || k.steps[1].stores.size() != 1) return {};
    // With a residual stream's gradient, or another, it is what further layers add to.
    const Step::Store& store = k.steps[1].stores[0];
    if (expression_of(k, store.value).kind != Expression::Kind::local || store.to.shift != 0) return {};
    const Tensor& t = p_.tensors[store.to.tensor];
    const bool passes = t.storage == Storage::scratch && t.element == DType::real && t.slots == 1 && !t.carry;
    return passes && t.node > loss_ && goes_to_rows(k, store.to.tensor) ? store.to.tensor : TensorId();
  }

 private:
  /// Of a product, whether it multiplies by a parameter.
  bool is_of_linear_layer(const Kernel& k) const {
    const Operands f = operands_of(k, p_.precision);
    if (!f.a.valid()) return false;
    return ranges::any_of(std::vector{f.a, f.b}, [&](ExprId factor) {
      const Expression& e = expression_of(k, factor);
      return e.kind == Expression::Kind::load && p_.tensors[e.access.tensor].storage == Storage::packed;
    });
  }

  /// Whether kernels of rows read it, and else only those that sum it over the batch.
  bool goes_to_rows(const Kernel& maker, TensorId tensor) const {
    bool rows = false;
    for (const Kernel& k : p_.kernels) {
      if (!loaded_by(k).contains(tensor) && (&k == &maker || !stored_by(k).contains(tensor))) continue;
      const bool row = k.anchor == Anchor::row && k.fused.empty();
      if (stored_by(k).contains(tensor) || (!row && !is_plain_sum(p_, k))) return false;
      rows = rows || row;
    }
    return rows;
  }

  const KernelProgram& p_;
  graph::NodeId loss_ = graph::none;
};

}  // namespace

void round_gradients_of_norms(KernelProgram& program) {
  const Gradients gradients(program);
  for (const Kernel& k : program.kernels)
    if (const TensorId tensor = gradients.handed_on_by(k); tensor.valid())
      program.tensors[tensor].element = DType::bf16;
}

}  // namespace tessera::codegen::cuda
