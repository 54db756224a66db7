#include "codegen/cuda/api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <range/v3/algorithm/any_of.hpp>

#include "codegen/cuda/schedule.hpp"
#include "codegen/cuda/update.hpp"
#include "codegen/emit/entry.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/optimizer.hpp"

namespace tessera::codegen::cuda {

namespace {

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

std::string finish(const Model& m) {
  return fmt::format("  return launch_code({0}_OK, {0}_CUDA_ERROR_LAUNCH, {0}_CUDA_ERROR_SHARED_MEMORY);\n",
                     upper(m.name));
}

}  // namespace

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
  out += "\n" + tree::print_head(functions[0]) + checks(m, functions[0]) +
         (packs(m) ? fmt::format("  launch(pack_parameters, dim3({}), dim3(256), 0, static_cast<Stream>(stream), "
                                 "parameters, static_cast<bf16*>(packed));\n",
                                 (m.arena.reals + 255) / 256)
                   : "  (void)stream;\n") +
         finish(m) + "}\n";
  if (!trains(m.plans)) return out + "\n}  // extern \"C\"\n";
  const bool keeps = !optimizer_state(m.recipe).empty();
  const auto checks_of_update = [&](tree::Function f) {
    std::erase_if(f.parameters, [&](const tree::Parameter& p) {
      return (!keeps && p.name == "optimizer") || (!clips(m) && p.name == "squares");
    });
    return checks(m, f) + (keeps ? "" : "  (void)optimizer;  // nothing is kept from step to step\n");
  };
  out +=
      "\n" + tree::print_head(functions[1]) + checks_of_update(functions[1]) + update_statements(m) + finish(m) + "}\n";
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
    out += "\n" + tree::print_head(update_range) + checks_of_update(update_range) + update_range_statements(m) +
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
