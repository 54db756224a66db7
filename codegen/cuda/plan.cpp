#include "codegen/cuda/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "codegen/cuda/attention.hpp"
#include "codegen/cuda/attention_gradient.hpp"
#include "codegen/cuda/attention_recompute.hpp"
#include "codegen/cuda/column_reduction.hpp"
#include "codegen/cuda/merge_sums.hpp"
#include "codegen/cuda/norm_gradients.hpp"
#include "codegen/cuda/norm_recompute.hpp"
#include "codegen/cuda/operand_reduction.hpp"
#include "codegen/cuda/residual_epilogue.hpp"
#include "codegen/cuda/schedule.hpp"
#include "codegen/error.hpp"
#include "codegen/kernels/print.hpp"
#include "codegen/kernels/query.hpp"
#include "codegen/kernels/verify.hpp"
#include "codegen/plan/bf16_storage.hpp"
#include "codegen/plan/layout.hpp"
#include "codegen/plan/memory.hpp"

namespace tessera::codegen::cuda {

namespace {

/// Whether several axes together have fewer points; the batch has many.
bool fewer(const Kernel& k, const std::vector<int>& axes, std::int64_t points) {
  std::int64_t all = 1;
  for (int a : axes) {
    const Dim& dim = k.axes[a].dim;
    if (!dim.known()) return false;
    all *= dim.value();
  }
  return all < points;
}

/// A copy of all parameters as bf16, laid out as they are: what products read, and `update` writes.
class Parameters {
 public:
  explicit Parameters(KernelProgram& program) : p_(program) {}

  /// A factor that is a parameter is read from the copy.
  void read(Expression& factor) {
    if (factor.kind != Expression::Kind::load) return;
    const TensorId original = factor.access.tensor;
    if (p_.tensors[original].storage == Storage::parameter) factor.access.tensor = copy_of(original);
  }
  void store() {
    for (Kernel& k : p_.kernels)
      for (Step& s : k.steps)
        for (std::size_t i = 0; i < s.stores.size(); ++i) {
          if (p_.tensors[s.stores[i].to.tensor].name != "parameters") continue;
          Step::Store copied = s.stores[i];
          copied.to.tensor = copy_of(copied.to.tensor);
          s.stores.push_back(std::move(copied));
        }
  }

 private:
  TensorId copy_of(TensorId original) {
    auto [at, fresh] = copies_.try_emplace(original, p_.tensors.next());
    if (fresh) {
      Tensor copy = p_.tensors[original];
      copy.name = copy.storage == Storage::parameter ? copy.name + ".bf16" : "packed";
      copy.storage = Storage::packed;
      copy.element = DType::bf16;
      p_.tensors.push_back(std::move(copy));
    }
    return at->second;
  }

  KernelProgram& p_;
  std::map<TensorId, TensorId> copies_;
};

void store_factors(KernelProgram& program) {
  Parameters parameters(program);
  if (traits_of(program.kind).updates) return parameters.store();
  for (Kernel& k : program.kernels) {
    const Operands f = operands_of(k, program.precision);
    if (!f.a.valid()) continue;
    k.gemm = {.rows = f.rows.back(), .columns = f.columns.back(), .dtype = DType::bf16};
    parameters.read(k.expressions[f.a]);
    parameters.read(k.expressions[f.b]);
  }
  store_as_bf16(program);
  for (Kernel& k : program.kernels) k.gemm = {};  // here its sums over the batch are cut into chunks like others
}

}  // namespace

Layout layout_on_gpu(const Tensor& t) {
  constexpr std::int64_t eight = 8, long_row = 16;  // values; eight are copied at once
  if (t.element == DType::bf16 && t.storage == Storage::scratch && t.shape.size() >= 2 && t.shape.back().known()) {
    const std::int64_t row = t.shape.back().value();
    if (row >= long_row) return layout_with_rows(t, (row + eight - 1) / eight * eight);
  }
  return layout_of(t, static_cast<int>(t.shape.size()) - 1);
}

bool vectorisable_along(const KernelProgram& p, const Kernel& k, ExprId factor, int along) {
  const Expression& e = expression_of(k, factor);
  if (e.kind != Expression::Kind::load) return false;
  const Tensor& t = p.tensors[e.access.tensor];
  const Layout layout = layout_on_gpu(t);
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < e.access.index.size(); ++d) offset += e.access.index[d].offset * layout.stride[d];
  if (t.element != DType::bf16 || offset % 8 || step_along(e.access, layout, along) != 1) return false;
  for (int a = 0; a < static_cast<int>(k.axes.size()); ++a)
    if (a != along && size_of(k, a) != 1 && step_along(e.access, layout, a) % 8) return false;
  return true;
}

Operands operands_of(const Kernel& k, Precision precision) {
  if (k.anchor != Anchor::contraction) return {};
  const Step& sum = k.steps.front();
  if (!sum.reduces || sum.reduction != Reduction::sum || !sum.stores.empty()) return {};
  for (std::size_t s = 1; s < k.steps.size(); ++s)
    if (k.steps[s].reduces || !k.steps[s].over.empty()) return {};
  const Expression& product = k.expressions[sum.value];
  if (product.kind != Expression::Kind::op || product.op != graph::Op::multiply) return {};
  for (ExprId factor : {product.a, product.b})
    if (k.expressions[factor].kind == Expression::Kind::index_equals) return {};  // it picks, and multiplies nothing
  Operands f{product.a, product.b, {}, {}, {}, sum.over};
  const std::set<int> left = axes_below(k, f.a), right = axes_below(k, f.b);
  for (int a = 0; a < static_cast<int>(k.axes.size()); ++a) {
    if (k.axes[a].inner) continue;
    if (left.contains(a) == right.contains(a))
      f.groups.push_back(a);
    else
      (left.contains(a) ? f.rows : f.columns).push_back(a);
  }
  // What bf16 means does not hang on sizes: there, each product with rows and columns is one.
  const std::int64_t worth_it = precision == Precision::bf16 ? 2 : 4;
  for (const std::vector<int>* axes : {&f.rows, &f.columns, &f.depth})
    if (fewer(k, *axes, worth_it)) return {};
  return f;
}

std::vector<int> batch_first(const Kernel& kernel, std::vector<int> axes) {
  const auto is_batch = [&](int a) { return !kernel.axes[a].dim.known(); };
  std::sort(axes.begin(), axes.end());
  std::stable_partition(axes.begin(), axes.end(), is_batch);
  return axes;
}

std::vector<Pass> cuda_passes(const PassOptions& options) {
  const auto value_of = [&](std::string_view pass) {
    const auto at = options.values.find(pass);
    return at == options.values.end() ? std::string() : at->second;
  };
  const std::string recompute = value_of("attention_recompute");
  const bool everywhere = recompute == "on";
  if (!recompute.empty() && !everywhere && recompute != "off")
    throw Error(fmt::format("the pass attention_recompute takes on or off, not {}", recompute));
  const bool recomputes = recompute != "off";
  std::int64_t ctas = 0;
  if (const std::string text = value_of("column_reductions"); !text.empty()) {
    std::from_chars(text.data(), text.data() + text.size(), ctas);
    if (std::to_string(ctas) != text || ctas < 1 || ctas > 65535)
      throw Error(fmt::format("the pass column_reductions takes a number of CTAs from 1 to 65535, not {}", text));
  }
  const auto always = [](const KernelProgram&) { return true; };
  const auto in_bf16 = [](const KernelProgram& p) { return p.precision == Precision::bf16; };
  return {
      {"bf16_storage", "what GEMMs read is stored as bf16", in_bf16, store_factors, true},
      {"attention", "scores, softmax and mix become one kernel", in_bf16, fuse_attention},
      {"attention_gradient", "the backward pass of attention becomes one kernel", in_bf16, fuse_attention_gradients},
      {"attention_recompute", "the backward pass of attention computes the probabilities again",
       [=](const KernelProgram& p) { return recomputes && in_bf16(p); },
       [=](KernelProgram& p) { recompute_attention(p, everywhere); }, false, "on|off"},
      {"merge_sums", "sums over the batch of one element become one kernel", always, merge_sums},
      {"residual_epilogue", "the residual connection before a norm is an epilogue of the GEMM", always,
       fuse_residual_epilogues},
      {"norm_gradients", "gradients that linear layers hand to norms are stored as bf16",
       [=](const KernelProgram& p) { return in_bf16(p) && differentiates(p); }, round_gradients_of_norms},
      {"column_reductions", "kernels of rows sum over their rows what they have of each element", always,
       [ctas](KernelProgram& p) { fuse_column_reductions(p, ctas); }, false, "CTAS"},
      {"norm_recompute", "the backward pass of a norm computes its input's norm again", always, recompute_norms},
      {"operand_row_reductions", "the gradient of a bias comes behind that of the weight, which may sum it", in_bf16,
       order_operand_reductions}};
}

Plan plan_for_gpu(KernelProgram program, const PassOptions& options, const Tiles& tiles) {
  Plan plan;
  plan.program = std::move(program);
  run_passes(plan.program, cuda_passes(options), options);
  for (const Tensor& t : plan.program.tensors) plan.layouts.push_back(layout_on_gpu(t));
  plan.stages = make_stages(plan.program);
  place_buffers(plan);
  if (traits_of(plan.program.kind).inspects) place_inspected(plan);
  verify(plan);
  // Buffers that do not meet in an image's arena do not meet when each is as long as the batch: offsets and sizes grow
  // alike.
  for (const Buffer& b : plan.buffers)
    if (b.per_image) plan.layouts[b.tensor] = layout_on_gpu(plan.program.tensors[b.tensor]);
  choose_launches(plan, tiles);
  return plan;
}

Extent where_of(const Plan& plan, const Buffer& buffer) {
  if (buffer.per_image) return {plan.scratch.fixed, buffer.offset - plan.scratch.fixed};
  return {buffer.offset, 0};
}

Extent slot_of(const Buffer& buffer) { return buffer.per_image ? Extent{0, buffer.slot} : Extent{buffer.slot, 0}; }

}  // namespace tessera::codegen::cuda
