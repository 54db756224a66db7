#include "codegen/cuda/api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <tuple>

#include "codegen/cuda/schedule.hpp"
#include "codegen/emit/entry.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/optimizer.hpp"

namespace tessera::codegen::cuda {

namespace {

constexpr std::int64_t update_reals = 256;  // scratch of the update: 64 doubles, then its numbers
constexpr int numbers_at = 128;             // in reals

constexpr const char* step_type = R"c(#ifndef TESSERA_CUDA_STEP_DEFINED
#define TESSERA_CUDA_STEP_DEFINED
/* Which step of training it is; in memory of the GPU, so that a captured graph reads it anew. */
typedef struct tessera_cuda_step {
  uint64_t seed;
  int64_t step; /* counted from 1 */
  float learning_rate;
  int32_t stopped; /* not 0: update leaves everything as it is */
} tessera_cuda_step;
#endif

)c";

std::string comment_of(ProgramKind kind, const std::string& input) {
  switch (kind) {
    case ProgramKind::forward:
      return fmt::format("outputs of {}.", input);
    case ProgramKind::evaluate:
      return "As forward, and the mean loss over the batch.";
    case ProgramKind::loss_and_gradients:
      return "Overwrites gradients, which lie as the parameters do. What dropout drops is a function of the step's "
             "seed "
             "and number.";
    case ProgramKind::input_gradient:
      return "The gradient of the loss with respect to each pixel.";
    case ProgramKind::inspect:
      return "Attention maps and magnitudes, as on the CPU.";
    case ProgramKind::embed:
      return "Features and tokens, as on the CPU.";
    case ProgramKind::step:
    case ProgramKind::update:
      break;  // its function is not that of its program alone
  }
  throw Error(fmt::format("there is no comment for {}", name_of(kind)));
}

/// Whether products read a copy of the parameters as bf16.
bool packs(const Model& m) { return m.plans.front().program.precision == Precision::bf16; }

/// The C function of a program: parameters and their copy, what else it takes, with the random state as the step, and
/// the stream.
tree::Function function_of(const Model& m, const Plan& plan) {
  tree::Function f;
  f.linkage = "";
  f.returns = "int";
  f.name = fmt::format("{}_cuda_{}", m.name, plan.program.name);
  f.comment = {comment_of(plan.program.kind, input_of(plan.program.graph))};
  if (m.recipe.phase && traits_of(plan.program.kind).trains)
    f.comment = {
        "Overwrites gradients, which lie as the parameters do: zeros of what this phase does not train, and the new",
        "values of the buffers that it changes. The factor, one number, is that of the adversarial losses. losses has",
        fmt::format("the numbers of the table {}_losses; loss is the one that is made small.", m.name)};
  f.parameters = {{"const float*", "parameters"}, {"const void*", "packed"}};
  if (traits_of(plan.program.kind).embeds) {
    f.parameters.insert(f.parameters.end(), {{"const float*", "images"},
                                             {"int64_t", "batch"},
                                             {"float*", "features"},
                                             {"float*", "tokens"},
                                             {"float*", "pooling"},
                                             {"void*", "scratch"},
                                             {"void*", "stream"}});
    return f;
  }
  for (const tree::Parameter& p : entry_parameters(plan.program, "float")) {
    if (p.name == "batch" && traits_of(plan.program.kind).trains)
      f.parameters.push_back({"const tessera_cuda_step*", "step"});
    if (p.name == "parameters" || p.name == "packed" || p.name == "random") continue;
    if (p.name == "magnitudes" && !has_attention(plan.program)) f.parameters.push_back({"float*", "maps"});
    if (p.name == "batch")
      f.parameters.push_back({"int64_t", "batch"});
    else if (p.name == "labels" || p.name == "tokens")
      f.parameters.push_back({"const int32_t*", p.name});
    else if (p.name == "scratch")
      f.parameters.push_back({"void*", "scratch"});
    else
      f.parameters.push_back(p);
  }
  f.parameters.push_back({"void*", "stream"});
  return f;
}

/// What the loss of a training step compares the outputs with.
std::string wanted_by_training(const Model& m) {
  for (const Plan& plan : m.plans)
    if (traits_of(plan.program.kind).trains) return compared_with(plan.program.graph);
  return "";
}

/// What a training step reads: "images" or "tokens".
std::string read_by_training(const Model& m) { return input_of(m.plans.front().program.graph); }

/// Whether several batches may make one step.
bool gathers(const Model& m) { return m.recipe.accumulate > 1 || m.distributed; }

/// Whether the gradients' norm is clipped.
bool clips(const Model& m) { return m.recipe.clip_norm > 0; }

/// Where the parameters lie that a step gives new values, in the place of gradients.
std::vector<std::pair<std::int64_t, std::int64_t>> assigned_runs(const Model& m) {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (const ArenaEntry& e : m.arena.entries)
    if (e.assigned) runs.emplace_back(e.offset, e.offset + e.reals);
  return runs;
}

/// How many numbers a phase of a training step tells beside its loss; of a whole step 0.
std::int64_t reported_losses(const Model& m) {
  for (const Plan& plan : m.plans)
    if (traits_of(plan.program.kind).trains) return std::ssize(plan.program.graph.losses);
  return 0;
}

/// pack and, where something is trained, update, next_step, check, train_step unless it is a phase, and, where several
/// batches make one step, gather; where GPUs share a step, gather_range, update_range and, where gradients are clipped,
/// squares.
std::vector<tree::Function> functions_of_steps(const Model& m) {
  const tree::Parameter step{"const tessera_cuda_step*", "step"}, counted{"tessera_cuda_step*", "step"},
      scratch{"void*", "scratch"}, stream{"void*", "stream"};
  const std::string compared = wanted_by_training(m);
  const tree::Parameter wanted{compared == "labels" ? "const int32_t*" : "const float*", compared};
  const std::string reads = read_by_training(m);
  std::vector<tree::Function> functions;
  auto add = [&](const std::string& name, std::vector<tree::Parameter> parameters, const std::string& comment) {
    tree::Function f;
    f.linkage = "";
    f.returns = "int";
    f.name = fmt::format("{}_cuda_{}", m.name, name);
    f.parameters = std::move(parameters);
    f.comment = {comment};
    functions.push_back(std::move(f));
  };
  add("pack", {{"const float*", "parameters"}, {"void*", "packed"}, stream},
      packs(m) ? fmt::format("Copies the parameters as bf16, which is what products read: after every change{}.",
                             trains(m.plans) ? " but those by update" : "")
               : "For these kernels there is nothing to pack: `packed` is never read, and may be null.");
  if (!trains(m.plans)) return functions;
  add("update",
      {{"float*", "parameters"},
       {"void*", "packed"},
       {"const float*", "gradients"},
       {"float*", "optimizer"},
       step,
       scratch,
       stream},
      fmt::format("One step of the optimiser in place, with the step's number and learning rate{}; nothing where "
                  "step->stopped.",
                  assigned_runs(m).empty() ? "" : ", and the new values of buffers"));
  if (!m.recipe.phase)
    add("train_step",
        {{"float*", "parameters"},
         {"void*", "packed"},
         {"float*", "gradients"},
         {"float*", "optimizer"},
         {reads == "tokens" ? "const int32_t*" : "const float*", reads},
         wanted,
         step,
         {"int64_t", "batch"},
         {"float*", "outputs"},
         {"float*", "loss"},
         scratch,
         stream},
        "loss_and_gradients and update.");
  add("next_step", {counted, stream}, "Counts the step on.");
  std::vector<tree::Parameter> checked{{"const float*", "loss"}, {"const float*", "gradients"}, counted, stream};
  if (m.recipe.phase) checked.insert(checked.begin(), {"const float*", "losses"});
  add("check", std::move(checked),
      fmt::format("Sets step->stopped where {} or a gradient is not a number.",
                  m.recipe.phase ? "one of the losses" : "the loss"));
  if (gathers(m))
    add("gather", {{"float*", "sum"}, {"const float*", "gradients"}, {"float", "kept"}, {"float", "weight"}, stream},
        "sum = kept * sum + weight * gradients, element by element; where kept is 0, sum may hold anything before.");
  if (m.distributed)
    add("gather_range",
        {{"float*", "sum"},
         {"const float*", "gradients"},
         {"int64_t", "count"},
         {"float", "kept"},
         {"float", "weight"},
         stream},
        "The same of so many elements, with the same rounding: of slices that GPUs exchange.");
  if (m.distributed)
    add("update_range",
        {{"float*", "parameters"},
         {"void*", "packed"},
         {"const float*", "gradients"},
         {"float*", "optimizer"},
         {"int64_t", "from"},
         {"int64_t", "to"},
         {"const double*", "squares"},
         step,
         scratch,
         stream},
        fmt::format("update of the parameters in [from, to) alone, multiples of 16, which optimizer is of, too. {}",
                    clips(m) ? "squares: of all chunks." : "squares is never read."));
  if (m.distributed && clips(m))
    add("squares",
        {{"const float*", "gradients"},
         {"int32_t", "first_chunk"},
         {"int32_t", "last_chunk"},
         {"double*", "squares"},
         stream},
        "Sums of squares of these of the 64 chunks of the gradients, each at its number in squares [64].");
  return functions;
}

/// What lies between the parameters of the arena, each of which begins on a multiple of 16 reals.
std::vector<std::pair<std::int64_t, std::int64_t>> gaps(const Model& m) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (const ArenaEntry& e : m.arena.entries)
    for (int layer = 0; layer < e.count; ++layer)
      if (e.reals % 16) found.emplace_back(e.at(layer) + e.reals, e.at(layer) + (e.reals + 15) / 16 * 16);
  return found;
}

/// Of what is not trained nothing else writes gradients.
bool trains_all(const Model& m) { return ranges::all_of(m.arena.entries, &ArenaEntry::trained); }

/// What a number of the update is made of: an expression over t, rate and norm.
std::string number_of(const graph::Recipe& r, const std::string& number) {
  if (number == "learning_rate") return "rate";
  if (number == "learning_rate_corrected") return fmt::format("rate / (1 - pow({}, t))", r.beta1);
  if (number == "second_correction") return fmt::format("1 / sqrt(1 - pow({}, t))", r.beta2);
  if (number == "decay")
    return r.optimizer == graph::Recipe::Optimizer::adamw ? fmt::format("{} * rate", r.weight_decay)
                                                          : fmt::format("{}", r.weight_decay);
  if (number == "gradient_scale") return fmt::format("fmin(1.0, {} / (norm + 1e-6))", r.clip_norm);
  return fmt::format("t == 1 ? 0.0 : {}", r.average);  // average_kept
}

/// So many blocks look at the gradients: 16 of them, or more, for each thread.
std::int64_t check_blocks(const Model& m) { return std::clamp<std::int64_t>(m.arena.reals / (256 * 16), 1, 1024); }

/// The name of a program's largest batch in NAME_cuda.cu.
std::string largest_batch_of(ProgramKind kind) { return fmt::format("largest_batch_of_{}", name_of(kind)); }

/// `of_batch`: the program that takes a batch, or none.
std::string checks(const Model& m, const tree::Function& f, std::optional<ProgramKind> of_batch = {}) {
  const std::string u = upper(m.name);
  const bool has_maps = ranges::any_of(m.plans, [](const Plan& p) { return has_attention(p.program); });
  const auto given = [&](const std::string& output) {
    return ranges::any_of(m.plans, [&](const Plan& p) { return gives(p.program, output); });
  };
  std::string nulls, ignored;
  for (const tree::Parameter& p : f.parameters) {
    if (p.name == "maps" && !has_maps)
      ignored = "  (void)maps;  // there are none\n";
    else if (p.type == "float*" && (p.name == "tokens" || p.name == "pooling") && !given(p.name))
      ignored += fmt::format("  (void){};  // there are none\n", p.name);
    else if (p.type.ends_with("*") && p.name != "stream" && (p.name != "packed" || packs(m)))
      nulls += fmt::format("{}!{}", nulls.empty() ? "" : " || ", p.name);
  }
  std::string out = fmt::format("  if ({}) return {}_ERROR_NULL;\n", nulls, u);
  if (!packs(m) && f.parameters[1].name == "packed") out += "  (void)packed;\n";
  out += ignored;
  if (of_batch)
    out += fmt::format("  if (batch < 1 || batch > {}) return {}_ERROR_BATCH;\n", largest_batch_of(*of_batch), u);
  return out;
}

std::string pack_kernel(const Model& m) {
  return fmt::format(R"cpp(
// The parameters as bf16.
__global__ void __launch_bounds__(256) pack_parameters(const real* parameters, bf16* packed) {{
  const int i = block_x() * 256 + thread_x();
  if (i < {}) packed[i] = rounded(parameters[i]);
}}
)cpp",
                     m.arena.reals);
}

std::string finish(const Model& m) {
  return fmt::format("  return launch_code({0}_OK, {0}_CUDA_ERROR_LAUNCH, {0}_CUDA_ERROR_SHARED_MEMORY);\n",
                     upper(m.name));
}

}  // namespace

std::vector<std::tuple<std::int64_t, std::int64_t, bool>> decay_runs(const Model& m) {
  std::map<std::int64_t, std::optional<bool>> decays;  // by offset; nothing: not trained
  for (const ArenaEntry& e : m.arena.entries)
    for (int layer = 0; layer < e.count; ++layer)
      decays[e.at(layer)] = e.trained ? std::optional<bool>(m.recipe.weight_decay <= 0 || e.decay) : std::nullopt;
  std::vector<std::tuple<std::int64_t, std::int64_t, bool>> runs;
  for (auto at = decays.begin(); at != decays.end(); ++at) {
    const auto next = std::next(at);
    const std::int64_t end = next == decays.end() ? m.arena.reals : next->first;
    if (!at->second) continue;
    if (!runs.empty() && std::get<1>(runs.back()) == at->first && std::get<2>(runs.back()) == *at->second)
      std::get<1>(runs.back()) = end;
    else
      runs.emplace_back(at->first, end, *at->second);
  }
  return runs;
}

std::string update_kernels(const Model& m) {
  if (!trains(m.plans)) return packs(m) ? pack_kernel(m) : "";
  std::string out = R"cpp(
// The next step's number.
__global__ void __launch_bounds__(32) count_on(tessera_cuda_step* step) {
  if (thread_x() == 0) step->step += 1;
}
)cpp";
  out += fmt::format(R"cpp(
// Whether {2} and all gradients are numbers: of an infinity, too, the difference to itself is none.
__global__ void __launch_bounds__(256) find_no_number({3}const real* loss, const real* gradients, std::int32_t* stopped) {{
  bool found = block_x() == 0 && thread_x() == 0 && loss[0] - loss[0] != 0;
{4}  for (int i = block_x() * 256 + thread_x(); i < {0}; i += {1} * 256) found = found || gradients[i] - gradients[i] != 0;
  if (found) stopped[0] = 1;
}}
)cpp",
                     m.arena.reals, check_blocks(m), m.recipe.phase ? "the losses" : "the loss",
                     m.recipe.phase ? "const real* losses, " : "",
                     m.recipe.phase
                         ? fmt::format("  if (block_x() == 0)\n    for (int i = thread_x(); i < {}; i += 256) found = "
                                       "found || losses[i] - losses[i] != 0;\n",
                                       reported_losses(m))
                         : "");
  if (gathers(m))
    out += fmt::format(R"cpp(
// Gradients of several batches, weighted.
__global__ void __launch_bounds__(256) add_weighted(real* sum, const real* gradients, real kept, real weight{1}) {{
  const int i = block_x() * 256 + thread_x();
  if (i < {0}) sum[i] = (kept != 0 ? kept * sum[i] : 0) + weight * gradients[i];
}}
)cpp",
                       m.distributed ? "count" : fmt::format("{}", m.arena.reals), m.distributed ? ", int count" : "");
  if (!trains_all(m)) {
    out += fmt::format(R"cpp(
// Gradients of what is not trained are zero, as is what lies between them.
__global__ void __launch_bounds__(256) zero_gradients(real* gradients) {{
  const int i = block_x() * 256 + thread_x();
  if (i < {}) gradients[i] = 0;
}}
)cpp",
                       m.arena.reals);
  } else if (const auto all = gaps(m); !all.empty()) {
    std::string rows;
    for (const auto& [first, last] : all) rows += fmt::format("    {{{}, {}}},\n", first, last);
    out += fmt::format(R"cpp(
// What lies between the gradients is zero.
__device__ const int gaps[{0}][2] = {{
{1}}};
__global__ void __launch_bounds__(32) zero_gaps(real* gradients) {{
  for (int gap = thread_x(); gap < {0}; gap += 32)
    for (int i = gaps[gap][0]; i < gaps[gap][1]; ++i) gradients[i] = 0;
}}
)cpp",
                       all.size(), rows);
  }
  if (const auto runs = assigned_runs(m); !runs.empty()) {
    std::string rows;
    for (const auto& [first, last] : runs) rows += fmt::format("    {{{}, {}}},\n", first, last);
    out += fmt::format(R"cpp(
// Buffers take the values that stand where other parameters have gradients.
__device__ const int buffers[{0}][2] = {{
{1}}};
__global__ void __launch_bounds__(256) take_buffers(real* parameters{2}, const real* gradients,
                                                     const std::int32_t* stopped) {{
  if (stopped[0]) return;
  for (int i = buffers[block_x()][0] + thread_x(); i < buffers[block_x()][1]; i += 256) {{
    parameters[i] = gradients[i];
{3}  }}
}}
)cpp",
                       runs.size(), rows, packs(m) ? ", bf16* packed" : "",
                       packs(m) ? "    packed[i] = rounded(gradients[i]);\n" : "");
  }
  if (packs(m)) out += pack_kernel(m);
  // Where GPUs share a step each sums what it owns, whole chunks.
  if (clips(m) && m.distributed)
    out += fmt::format(R"cpp(
// Sums of squares of chunks of the gradients, 64 in all, in double precision and always in the same order.
__global__ void __launch_bounds__(256) squares_of(const real* gradients, int first_chunk, double* sums) {{
  double* const of_thread = shared_memory<double>();
  const std::int64_t chunk = first_chunk + block_x(), end = {0} * (chunk + 1) / 64 * 16;
  double sum = 0;
  for (std::int64_t i = {0} * chunk / 64 * 16 + thread_x(); i < end; i += 256)
    sum += double(gradients[i]) * gradients[i];
  of_thread[thread_x()] = sum;
  barrier();
  if (thread_x() == 0) {{
    double all = 0;
    for (int i = 0; i < 256; ++i) all += of_thread[i];
    sums[chunk] = all;
  }}
}}
)cpp",
                       m.arena.reals / 16);
  if (clips(m) && !m.distributed)
    out += fmt::format(R"cpp(
// Sums of squares of 64 parts of the gradients, in double precision and always in the same order.
__global__ void __launch_bounds__(256) squares_of(const real* gradients, double* sums) {{
  double* const of_thread = shared_memory<double>();
  double sum = 0;
  for (int i = block_x() * 256 + thread_x(); i < {}; i += 64 * 256) sum += double(gradients[i]) * gradients[i];
  of_thread[thread_x()] = sum;
  barrier();
  if (thread_x() == 0) {{
    double all = 0;
    for (int i = 0; i < 256; ++i) all += of_thread[i];
    sums[block_x()] = all;
  }}
}}
)cpp",
                       m.arena.reals);
  std::string body;
  if (clips(m)) body += "  double norm = 0;\n  for (int i = 0; i < 64; ++i) norm += sums[i];\n  norm = sqrt(norm);\n";
  const std::vector<std::string> numbers = optimizer_numbers(m.recipe);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    body +=
        fmt::format("  numbers[{}] = static_cast<real>({});  // {}\n", i, number_of(m.recipe, numbers[i]), numbers[i]);
  body += fmt::format("  numbers[{}] = 0;\n", numbers.size());
  const bool counts = body.find("t)") != std::string::npos || body.find("t == 1") != std::string::npos;
  out += fmt::format(R"cpp(
// The numbers of an update that change from step to step. Adam's corrections: Kingma and Ba 2015, algorithm 1.
__global__ void __launch_bounds__(32) update_numbers(const tessera_cuda_step* step, {}real* numbers) {{
  if (thread_x() > 0) return;
{}  const double rate = step->learning_rate;
{}}}
)cpp",
                     clips(m) ? "const double* sums, " : "",
                     counts ? "  const double t = static_cast<double>(step->step);\n" : "", body);
  return out;
}

std::string emit_header(const Model& m) {
  const std::string u = upper(m.name);
  const bool training = trains(m.plans);
  std::string out = fmt::format(R"c(/* Generated by Tessera from the declaration of {0}. C99: the model on a GPU.
 *
 * As {0}.h, with these differences: every pointer is to memory of the GPU; a call only puts work into the stream (a
 * cudaStream_t, null for the default one) and returns; nothing waits, allocates or copies, so that calls can be captured
 * in a CUDA graph{2}
 * as on the CPU.
 */
#ifndef {1}_CUDA_H
#define {1}_CUDA_H

#include <stdint.h>

#include "{0}.h"

#ifdef __cplusplus
extern "C" {{
#endif

{3}#define {1}_CUDA_ERROR_LAUNCH 6 /* CUDA refused a launch: cudaPeekAtLastError has more */
#define {1}_CUDA_ERROR_SHARED_MEMORY 7 /* a kernel needs more than this GPU gives a block: sm_80 and sm_90 have enough */

/* What all functions have room for but {0}_cuda_inspect, whose maps are those of all layers: above it that one's limit.
 * Larger batches are {1}_ERROR_BATCH. */
int64_t {0}_cuda_largest_batch(void);
int64_t {0}_cuda_largest_inspected_batch(void);

)c",
                                m.name, u,
                                training ? "; a label outside of its range is not found out. Parameters, gradients, "
                                           "optimizer, images and outputs lie"
                                         : ". Parameters, images and outputs lie",
                                training ? step_type : "");
  auto macro = [&](const std::string& name, Extent reals, std::int64_t least) {
    out += fmt::format("#define {}_CUDA_{}_SCRATCH_BYTES(batch) (INT64_C({}) + INT64_C({}) * (int64_t)(batch))\n", u,
                       name, 4 * std::max(reals.fixed, least), 4 * reals.per_batch);
  };
  for (const Plan& p : m.plans) {
    const ProgramTraits& traits = traits_of(p.program.kind);
    if (!traits.updates) macro(upper(traits.short_name), p.scratch, traits.trains ? update_reals : 0);
  }
  if (training) out += fmt::format("#define {}_CUDA_UPDATE_SCRATCH_BYTES {}\n", u, 4 * update_reals);
  out += fmt::format("#define {}_CUDA_PACKED_BYTES INT64_C({})\n", u, packs(m) ? 2 * m.arena.reals : 0);
  auto declare = [&](const tree::Function& f) {
    out += "\n";
    for (const std::string& line : f.comment) out += "/* " + line + " */\n";
    out += tree::print_declaration(f);
  };
  for (const Plan& p : m.plans)
    if (!traits_of(p.program.kind).updates) declare(function_of(m, p));
  for (const tree::Function& f : functions_of_steps(m)) declare(f);
  return out + fmt::format("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {}_CUDA_H */\n", u);
}

std::string api(const Model& m, const LargestBatches& largest) {
  const std::string u = upper(m.name);
  std::string limits;
  std::int64_t of_all = most_blocks;
  for (const Plan& p : m.plans) {
    const ProgramTraits& traits = traits_of(p.program.kind);
    if (traits.updates) continue;
    limits +=
        fmt::format("constexpr std::int64_t {} = {};\n", largest_batch_of(p.program.kind), largest.at(p.program.kind));
    if (!traits.inspects) of_all = std::min(of_all, largest.at(p.program.kind));
  }
  std::string out = fmt::format(R"cpp(
namespace {{

// Kernels count with int, and a grid has 65535 blocks along y and z.
{0}
}}  // namespace

extern "C" {{

int64_t {1}_cuda_largest_batch(void) {{ return {2}; }}
int64_t {1}_cuda_largest_inspected_batch(void) {{ return {3}; }}
)cpp",
                                limits, m.name, of_all, largest_batch_of(ProgramKind::inspect));
  for (const Plan& p : m.plans) {
    if (traits_of(p.program.kind).updates) continue;
    const tree::Function f = function_of(m, p);
    std::vector<std::string> passed;
    for (const tree::Parameter& q : entry_parameters(p.program, "float"))
      passed.push_back(q.name == "random"    ? "reinterpret_cast<const std::int32_t*>(step)"
                       : q.name == "scratch" ? "static_cast<real*>(scratch)"
                       : q.name == "packed"  ? "static_cast<const bf16*>(packed)"
                                             : q.name);
    passed.push_back("static_cast<Stream>(stream)");
    std::vector<tree::Expr> arguments;
    for (const std::string& a : passed) arguments.push_back(tree::name(a));
    std::string zeros;
    if (traits_of(p.program.kind).trains && !trains_all(m))
      zeros = fmt::format("  launch(zero_gradients, dim3({}), dim3(256), 0, static_cast<Stream>(stream), gradients);\n",
                          (m.arena.reals + 255) / 256);
    else if (traits_of(p.program.kind).trains && !gaps(m).empty())
      zeros = "  launch(zero_gaps, dim3(1), dim3(32), 0, static_cast<Stream>(stream), gradients);\n";
    out += "\n" + tree::print_head(f) + checks(m, f, p.program.kind) + zeros +
           tree::print({tree::evaluate(tree::call("run_" + p.program.name, arguments))}, 1) + finish(m) + "}\n";
  }

  const std::vector<tree::Function> functions = functions_of_steps(m);
  const std::vector<std::string> numbers = optimizer_numbers(m.recipe), state = optimizer_state(m.recipe);
  out += "\n" + tree::print_head(functions[0]) + checks(m, functions[0]) +
         (packs(m) ? fmt::format("  launch(pack_parameters, dim3({}), dim3(256), 0, static_cast<Stream>(stream), "
                                 "parameters, static_cast<bf16*>(packed));\n",
                                 (m.arena.reals + 255) / 256)
                   : "  (void)stream;\n") +
         finish(m) + "}\n";
  if (!trains(m.plans)) return out + "\n}  // extern \"C\"\n";
  // The arguments of run_update for the parameters from `first` to `last`.
  const auto update_of = [&](const auto& at, const std::vector<tree::Expr>& kept, const auto& number,
                             const tree::Expr& first, const tree::Expr& last) {
    std::vector<tree::Expr> arguments{at("parameters")};
    if (packs(m)) arguments.push_back(at("static_cast<bf16*>(packed)"));
    arguments.push_back(at("gradients"));
    arguments.insert(arguments.end(), kept.begin(), kept.end());
    for (std::size_t i = 0; i < numbers.size(); ++i) arguments.push_back(number(i));
    for (const tree::Expr& last_ones : {first, last, tree::name("&step->stopped"), tree::name("s")})
      arguments.push_back(last_ones);
    return tree::evaluate(tree::call("run_update", std::move(arguments)));
  };
  const std::string numbers_in_scratch = fmt::format(
      "  real* const numbers = static_cast<real*>(scratch) + {};\n  const Stream s = static_cast<Stream>(stream);\n",
      numbers_at);
  const std::string nothing_kept = state.empty() ? "  (void)optimizer;  // nothing is kept from step to step\n" : "";
  const auto checks_of_update = [&](tree::Function f) {
    std::erase_if(f.parameters, [&](const tree::Parameter& p) {
      return (state.empty() && p.name == "optimizer") || (!clips(m) && p.name == "squares");
    });
    return checks(m, f) + nothing_kept;
  };
  const auto number_at = [&](std::size_t i) {
    return tree::name("numbers") + tree::integer(static_cast<std::int64_t>(i));
  };
  {
    std::string body = checks_of_update(functions[1]) + numbers_in_scratch;
    if (clips(m))
      body += "  double* const sums = static_cast<double*>(scratch);\n" +
              fmt::format("  launch(squares_of, dim3(64), dim3(256), 256 * sizeof(double), s, gradients, {}sums);\n",
                          m.distributed ? "0, " : "") +
              "  launch(update_numbers, dim3(1), dim3(32), 0, s, step, static_cast<const double*>(sums), numbers);\n";
    else
      body += "  launch(update_numbers, dim3(1), dim3(32), 0, s, step, numbers);\n";
    std::vector<tree::Expr> kept;
    for (std::size_t i = 0; i < state.size(); ++i)
      kept.push_back(tree::name("optimizer") + tree::integer(static_cast<std::int64_t>(i) * m.arena.reals));
    for (const auto& [first, last, decays] : decay_runs(m)) {
      const bool decays_here = decays;
      const auto number = [&](std::size_t i) {
        return number_at(numbers[i] == "decay" && !decays_here ? numbers.size() : i);
      };
      body += tree::print({update_of([](const char* name) { return tree::name(name); }, kept, number,
                                     tree::integer(first), tree::integer(last))},
                          1);
    }
    if (const auto runs = assigned_runs(m); !runs.empty())
      body +=
          fmt::format("  launch(take_buffers, dim3({}), dim3(256), 0, s, parameters,{} gradients, &step->stopped);\n",
                      runs.size(), packs(m) ? " static_cast<bf16*>(packed)," : "");
    out += "\n" + tree::print_head(functions[1]) + body + finish(m) + "}\n";
  }
  std::size_t next = 2;
  if (!m.recipe.phase)
    out +=
        "\n" + tree::print_head(functions[next++]) +
        fmt::format(
            R"cpp(  const int code = {0}_cuda_loss_and_gradients(parameters, packed, {2}, {1}, step, batch, outputs, loss,
                                              gradients, scratch, stream);
  return code ? code : {0}_cuda_update(parameters, packed, gradients, optimizer, step, scratch, stream);
}}
)cpp",
            m.name, wanted_by_training(m), read_by_training(m));
  const auto begin = [&]() {
    const tree::Function& f = functions[next++];
    return "\n" + tree::print_head(f) + checks(m, f);
  };
  out += begin() + "  launch(count_on, dim3(1), dim3(32), 0, static_cast<Stream>(stream), step);\n" + finish(m) + "}\n";
  out += begin() +
         fmt::format(
             "  launch(find_no_number, dim3({}), dim3(256), 0, static_cast<Stream>(stream), {}loss, gradients, "
             "&step->stopped);\n",
             check_blocks(m), m.recipe.phase ? "losses, " : "") +
         finish(m) + "}\n";
  if (functions.size() > next)
    out += begin() +
           fmt::format(
               "  launch(add_weighted, dim3({}), dim3(256), 0, static_cast<Stream>(stream), sum, gradients, kept, "
               "weight{});\n",
               (m.arena.reals + 255) / 256, m.distributed ? fmt::format(", {}", m.arena.reals) : "") +
           finish(m) + "}\n";
  if (functions.size() > next)
    out += begin() +
           fmt::format(
               "  if (count < 0 || count > {0}) return {1}_ERROR_RANGE;\n"
               "  if (count == 0) return {1}_OK;\n"
               "  launch(add_weighted, dim3((static_cast<unsigned>(count) + 255) / 256), dim3(256), 0, "
               "static_cast<Stream>(stream), sum,\n         gradients, kept, weight, static_cast<int>(count));\n",
               m.arena.reals, upper(m.name)) +
           finish(m) + "}\n";
  if (functions.size() > next) {
    const tree::Function& update_range = functions[next++];
    std::string rows;
    const auto runs = decay_runs(m);
    for (const auto& [first, last, decays] : runs) rows += fmt::format("      {{{}, {}, {}}},\n", first, last, decays);
    std::vector<tree::Expr> kept;
    for (std::size_t i = 0; i < state.size(); ++i)
      kept.push_back(tree::name(
          i == 0 ? std::string("optimizer + (begin - from)")
                 : fmt::format("optimizer + {}(to - from) + (begin - from)", i == 1 ? "" : fmt::format("{} * ", i))));
    const auto number = [&](std::size_t i) {
      return numbers[i] != "decay"
                 ? number_at(i)
                 : tree::name("numbers") + tree::name(fmt::format("(stretch.decays ? {} : {})", i, numbers.size()));
    };
    const auto at = [](const char* name) { return tree::name(name) + tree::name("begin"); };
    out += "\n" + tree::print_head(update_range) + checks_of_update(update_range) +
           fmt::format(
               "  if (from < 0 || from > to || to > {} || from % 16 != 0 || to % 16 != 0) return {}_ERROR_RANGE;\n",
               m.arena.reals, u) +
           (clips(m) ? "" : "  (void)squares;  // nothing is clipped\n") + numbers_in_scratch +
           fmt::format("  launch(update_numbers, dim3(1), dim3(32), 0, s, step, {}numbers);\n",
                       clips(m) ? "squares, " : "") +
           fmt::format(R"cpp(  // By whether weight decay applies.
  const struct {{
    int64_t first, last;
    bool decays;
  }} stretches[{}] = {{
{}  }};
  for (const auto& stretch : stretches) {{
    const int64_t begin = from > stretch.first ? from : stretch.first, end = to < stretch.last ? to : stretch.last;
    if (begin >= end) continue;
)cpp",
                       runs.size(), rows) +
           tree::print({update_of(at, kept, number, tree::integer(0), tree::name("end - begin"))}, 2) + "  }\n" +
           finish(m) + "}\n";
  }
  if (functions.size() > next)
    out += begin() +
           fmt::format(
               "  if (first_chunk < 0 || first_chunk > last_chunk || last_chunk > 64) return {0}_ERROR_RANGE;\n"
               "  if (first_chunk == last_chunk) return {0}_OK;\n"
               "  launch(squares_of, dim3(static_cast<unsigned>(last_chunk - first_chunk)), dim3(256), 256 * "
               "sizeof(double),\n         static_cast<Stream>(stream), gradients, static_cast<int>(first_chunk), "
               "squares);\n",
               u) +
           finish(m) + "}\n";
  return out + "\n}  // extern \"C\"\n";
}

}  // namespace tessera::codegen::cuda
