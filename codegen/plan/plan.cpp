// A plan from kernels: layouts, memory, schedules; and its text.
#include "codegen/plan/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "codegen/kernels/print.hpp"
#include "codegen/kernels/verify.hpp"
#include "codegen/plan/attention.hpp"
#include "codegen/plan/bf16_storage.hpp"
#include "codegen/plan/bias_gradient.hpp"
#include "codegen/plan/constant_folding.hpp"
#include "codegen/plan/dropout_mask.hpp"
#include "codegen/plan/gemm.hpp"
#include "codegen/plan/int8_quantize.hpp"
#include "codegen/plan/layout.hpp"
#include "codegen/plan/memory.hpp"
#include "codegen/plan/microbatch.hpp"
#include "codegen/plan/positions.hpp"

namespace tessera::codegen {

const std::vector<Pass>& cpu_passes() {
  const auto always = [](const KernelProgram&) { return true; };
  static const std::vector<Pass> passes{
      {"matrix_products", "GEMMs are found, and their parameters get packed copies", always, find_gemms},
      {"bf16_caches", "a step's caches are stored as bf16, where products round what they read",
       [](const KernelProgram& p) { return traits_of(p.kind).steps && p.precision != Precision::fp32 && has_gemms(p); },
       store_caches_as_bf16},
      {"bf16_storage", "what GEMMs read is stored as bf16",
       [](const KernelProgram& p) { return p.precision == Precision::bf16 && has_gemms(p); }, store_as_bf16, true},
      {"int8_quantize", "what GEMMs with a parameter read is stored as int8",
       [](const KernelProgram& p) { return quantizes(p.precision) && has_gemms(p); }, quantize_to_int8, true},
      {"constant_folding", "what inference computes of parameters alone is computed when they are packed",
       [](const KernelProgram& p) { return has_gemms(p) && !differentiates(p) && !traits_of(p.kind).inspects; },
       fold_constants},
      {"packed_parameters", "programs of inference read all parameters from the packed copy",
       [](const KernelProgram& p) { return has_gemms(p) && !differentiates(p); }, read_all_packed},
      {"bias_gradients", "weight gradients add up the gradients of the biases beside them", has_gemms,
       fuse_bias_gradients},
      {"dropout_mask", "the gradient of a softmax that drops out draws its mask once", always, draw_mask_once},
      {"microbatch", "training goes by a batch in groups of images, whose gradients are accumulated",
       [](const KernelProgram& p) { return traits_of(p.kind).trains; },
       [](KernelProgram& p) { p.groups = accumulate_microbatches(p); }},
      {"attention_gradient", "attention's backward pass becomes one kernel by blocks of queries, where scores are many",
       [](const KernelProgram& p) { return differentiates(p) && has_gemms(p); }, differentiate_attention_in_blocks},
      {"attention", "scores, softmax and mix become one kernel, where the scores are larger than L1", has_gemms,
       attend_in_blocks},
      {"positions", "a step reads caches up to its position",
       [](const KernelProgram& p) { return traits_of(p.kind).steps; }, stop_at_position}};
  return passes;
}

namespace {

/// `layout_as_gemms`: whatever the kernels are.
Plan plan_of(KernelProgram program, const std::vector<Target>& targets, bool layout_as_gemms) {
  Plan plan;
  plan.program = std::move(program);
  // One layout for all targets: the memory plan is shared. Where there are no GEMMs to decide it, it is
  // chosen for the widest vectors.
  if (layout_as_gemms)
    for (const Tensor& t : plan.program.tensors) plan.layouts.push_back(layout_for_gemms(t));
  else
    plan.layouts = choose_layouts(plan.program, targets.back());
  lay_out_blocks(plan.program, plan.layouts);
  plan.stages = make_stages(plan.program);
  place_buffers(plan);
  if (traits_of(plan.program.kind).inspects) place_inspected(plan);
  if (traits_of(plan.program.kind).steps) place_cache(plan);
  for (const Target& target : targets)
    for (const Kernel& kernel : plan.program.kernels)
      plan.schedules[std::string(target.name)].push_back(choose_schedule(plan.program, plan.layouts, kernel, target));
  verify(plan);
  return plan;
}

}  // namespace

Plan make_plan(KernelProgram program, const std::vector<Target>& targets, const PassOptions& options) {
  run_passes(program, cpu_passes(), options);
  const bool products = has_gemms(program) || !program.folded.empty();  // folded values lie alike in both
  std::vector<KernelProgram> folded = std::exchange(program.folded, {});
  Plan plan = plan_of(std::move(program), targets, products);
  for (KernelProgram& p : folded) plan.folded.push_back(plan_of(std::move(p), targets, products));
  return plan;
}

namespace {

/// Rows, depth (of an image) and columns: "197 x 192 x 768".
std::string sizes_of_product(const Kernel& kernel) {
  const auto size = [&](int axis) { return axis < 0 ? 1 : kernel.axes[axis].dim.value(); };
  const bool of_batch = tasks_of(kernel) == Tasks::columns;
  std::int64_t depth = 1;
  for (int a : kernel.steps.front().over)
    if (kernel.axes[a].dim.known()) depth *= size(a);
  std::int64_t taps = 1;
  for (int a = 0; kernel.gemm.windows && a < static_cast<int>(kernel.axes.size()); ++a)
    if (!kernel.axes[a].inner && a != kernel.gemm.rows && a != kernel.gemm.columns) taps *= size(a);
  return fmt::format("{} x {} x {}", of_batch ? "batch" : std::to_string(size(kernel.gemm.rows)), depth,
                     size(kernel.gemm.columns) * taps);
}

std::string print(const Kernel& kernel, const Schedule& s) {
  const auto axis = [&](int a) { return kernel.axes[a].name; };
  std::string out = "  " + kernel.name;
  if (s.parallel >= 0) out += fmt::format(" threads {}", axis(s.parallel));
  if (s.block > 1) out += fmt::format(" by {}", s.block);
  if (tasks_of(kernel) == Tasks::chunks) out += fmt::format(" threads {} chunks of the batch", batch_chunks);
  if (kernel.accumulates) out += " group after group";
  if (!attends(kernel))
    for (const Kernel& with : kernel.fused.parts) out += " with " + with.name;
  if (kernel.gemm.columns >= 0) out += " product of " + sizes_of_product(kernel);
  if (kernel.gemm.transposes) out += " transposed";
  if (kernel.gemm.dtype != DType::real) out += fmt::format(" in {}", name_of(kernel.gemm.dtype));
  if (kernel.gemm.narrows) out += " in bf16 by tile units";
  if (s.vector >= 0) out += fmt::format(" lanes {}", axis(s.vector));
  for (std::size_t a = 0; a < s.tile.size(); ++a)
    if (s.tile[a] > 1) out += fmt::format(" tile {} {}", kernel.axes[a].name, s.tile[a]);
  if (s.depth) out += fmt::format(" depth by {}", s.depth);
  if (s.queries) {
    for (const Kernel& with : kernel.fused.parts) out += " with " + with.name;
    out += fmt::format(" by {} queries of a head", s.queries);
    if (s.keys) out += fmt::format(" and {} keys", s.keys);
  }
  return out + "\n";
}

const char* name_of(Launch::Form form) {
  switch (form) {
    case Launch::Form::point:
      return "a thread a result";
    case Launch::Form::columns:
      return "a lane a column";
    case Launch::Form::row:
      return "rows";
    case Launch::Form::row_reductions:
      return "rows with column reductions";
    case Launch::Form::gemm:
      return "GEMM";
    case Launch::Form::attention:
      return "attention";
    case Launch::Form::attention_backward:
      return "attention's backward pass";
    case Launch::Form::reduce:
      return "reduce partials";
  }
  return "";
}

const char* name_of(CtaTile::Unit unit) {
  switch (unit) {
    case CtaTile::Unit::none:
      return "";
    case CtaTile::Unit::fma:
      return "FMA";
    case CtaTile::Unit::mma_sync:
      return "mma.sync";
    case CtaTile::Unit::wgmma:
      return "WGMMA";
  }
  return "";
}

/// "197 * batch by 128": CTAs along an axis of the grid.
std::string print(const Launch::Along& along) {
  std::string text = to_string(along.count);
  return along.size == 1 ? text : text + fmt::format(" by {}", along.size);
}

std::string print(const Launch& l) {
  std::string out = fmt::format("  {}: {}", l.name, name_of(l.form));
  if (l.tile.unit != CtaTile::Unit::none)
    out += fmt::format(" by {}, tile {} x {}", name_of(l.tile.unit), l.tile.rows, l.tile.columns);
  if (l.partials || l.form == Launch::Form::reduce) out += fmt::format(", split-K {}", l.split_k);
  if (l.tile.stages) out += fmt::format(", {} stages, clusters of {}", l.tile.stages, l.tile.cluster);
  if (l.tile.teams() > 1) out += ", ping-pong";
  if (l.vector > 1) out += fmt::format(", vectors of {}", l.vector);
  if (l.recomputes) out += ", recomputes the probabilities";
  if (l.row_shares) out += fmt::format(", sums A's rows among {} CTAs", l.row_shares);
  if (l.sums.count)
    out += fmt::format(", {} column reductions of {}{}", l.sums.count, l.sums.length,
                       l.sums.split_row ? " in two parts" : "");
  out +=
      fmt::format("; CTAs [{}, {}, {}] of {} threads", print(l.grid[0]), print(l.grid[1]), print(l.grid[2]), l.threads);
  if (l.ctas) out += fmt::format(", {} an SM", l.ctas);
  if (l.registers_for) out += fmt::format(", registers for {}", l.registers_for);
  if (l.latency > 0) out += fmt::format(", exposed latency {:.0f} cycles", l.latency);
  if (l.without_wgmma) out += "; where WGMMA is not";
  out += "\n";
  for (const Launch& w : l.wgmma) out += "  on sm_90a" + print(w);
  return out;
}

}  // namespace

std::string print(const Plan& plan) {
  const KernelProgram& p = plan.program;
  std::string out = fmt::format("plan of {}: scratch {} reals, lower bound {}\n", p.name, to_string(plan.scratch),
                                to_string(plan.lower_bound));
  out += "tensors\n";
  for (const TensorId t : p.tensors.ids()) {
    const Tensor& tensor = p.tensors[t];
    std::vector<std::string> dims;
    for (int d : plan.layouts[t].order) dims.push_back(to_string(tensor.shape[d]));
    out += fmt::format("  {} [{}]", tensor.name, fmt::join(dims, ", "));
    if (tensor.element != DType::real) out += fmt::format(" {}", name_of(tensor.element));
    if (tensor.slots > 1) out += fmt::format(" x {}", tensor.slots);
    if (tensor.packing == Packing::folded) out += " folded";
    if (int b = plan.buffer_of[t]; b >= 0) {
      const Buffer& buffer = plan.buffers[b];
      out += fmt::format(" at {}{}, live {} to {}", buffer.offset, buffer.per_image ? " of each image" : "",
                         buffer.first, buffer.last);
    }
    out += "\n";
  }
  for (const auto& [target, schedules] : plan.schedules) {
    out += fmt::format("{}\n", target);
    for (std::size_t k = 0; k < schedules.size(); ++k) {
      const Kernel& kernel = p.kernels[k];
      for (std::size_t part = 0; part < schedules[k].fused.size(); ++part)
        out += print(kernel.fused.parts[part], schedules[k].fused[part]);
      out += print(kernel, schedules[k]);
    }
  }
  if (!plan.launches.empty()) out += "launches\n";
  for (const std::vector<Launch>& launches : plan.launches)
    for (const Launch& launch : launches) out += print(launch);
  for (const Plan& folded : plan.folded) out += "when parameters are packed, " + print(folded);
  return out;
}

}  // namespace tessera::codegen
