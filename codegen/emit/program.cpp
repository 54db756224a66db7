#include "codegen/emit/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "codegen/emit/contract.hpp"
#include "codegen/emit/entry.hpp"
#include "codegen/emit/onnx.hpp"
#include "codegen/emit/summary.hpp"
#include "codegen/passes/optimizer.hpp"

namespace tessera::codegen {

namespace {

/// What the runtime calls the optimiser's state in checkpoints.
std::string state_keys(const graph::Recipe& recipe) {
  static const std::map<std::string, std::string> keys{{"moment1", "optimizer.m."},
                                                       {"moment2", "optimizer.v."},
                                                       {"velocity", "optimizer.velocity."},
                                                       {"average", "average."}};
  std::vector<std::string> quoted;
  for (const std::string& state : optimizer_state(recipe)) quoted.push_back(fmt::format("\"{}\"", keys.at(state)));
  return fmt::format("{}", fmt::join(quoted, ", "));
}

/// The fields of the recipe beyond those that every program has.
std::string further_fields(const graph::Recipe& r) {
  const graph::Recipe plain;
  std::string out;
  auto field = [&](const char* name, const auto& value, const auto& unless) {
    if (value != unless) out += fmt::format("    .{} = {},\n", name, value);
  };
  field("accumulate", r.accumulate, plain.accumulate);
  field("patience", r.patience, plain.patience);
  field("smoothing", r.smoothing, plain.smoothing);
  field("mixup", r.mixup, plain.mixup);
  field("cutmix", r.cutmix, plain.cutmix);
  if (r.crop > 0 || r.flip || r.operations > 0 || r.erase > 0)
    out += fmt::format("    .augment = {{.crop = {}, .flip = {}, .operations = {}, .magnitude = {}, .erase = {}}},\n",
                       r.crop, r.flip, r.operations, r.magnitude, r.erase);
  return out;
}

/// The optimiser in words: "AdamW, betas 0.9 and 0.999, weight decay 0.05".
std::string optimizer_text(const graph::Recipe& r) {
  using Optimizer = graph::Recipe::Optimizer;
  const bool sgd = r.optimizer == Optimizer::sgd;
  std::string out = sgd ? "SGD" : r.optimizer == Optimizer::adam ? "Adam" : "AdamW";
  if (!sgd) out += fmt::format(", betas {} and {}, epsilon {}", r.beta1, r.beta2, r.epsilon);
  if (r.momentum > 0) out += fmt::format(", {}momentum {}", r.nesterov ? "Nesterov " : "", r.momentum);
  if (r.weight_decay > 0) out += fmt::format(", weight decay {}", r.weight_decay);
  if (r.clip_norm > 0) out += fmt::format(", gradients clipped to norm {}", r.clip_norm);
  if (r.average > 0) out += fmt::format(", parameters averaged with decay {}", r.average);
  return out;
}

/// The schedule of the learning rate in words.
std::string schedule_text(const graph::Recipe& r) {
  using Schedule = graph::Recipe::Schedule;
  std::string out = r.schedule == Schedule::constant ? "constant"
                    : r.schedule == Schedule::cosine
                        ? fmt::format("along a cosine to {}", r.floor)
                        : fmt::format("times {} every {} {}", r.factor, r.every, r.every == 1 ? "epoch" : "epochs");
  if (r.warmup > 0) out += fmt::format(", after a rise over {} {}", r.warmup, r.warmup == 1 ? "epoch" : "epochs");
  return out;
}

/// The field of the model's table that tells the shape of the attention maps; nothing where there are none.
std::string attention_entry(const ModelFiles& m) {
  const AttentionMaps a = attention_maps(m);
  if (a.layers == 0) return "";
  return fmt::format("    .attention = {{{}, {}, {}, {}}},\n", a.layers, a.heads, a.rows, a.columns);
}

/// A call, filled up to 120 columns as clang-format does; further lines begin below the first argument.
std::string filled(const std::string& head, const std::vector<std::string>& arguments, const std::string& tail) {
  std::string out, line = head;
  const std::string margin(line.size(), ' ');
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string word = arguments[i] + (i + 1 == arguments.size() ? tail : ",");
    if (line.size() + word.size() + (line.back() == '(' || line == margin ? 0 : 1) > 120) {
      out += line + "\n";
      line = margin;
    }
    if (line.back() != '(' && line != margin) line += ' ';
    line += word;
  }
  return out + line + "\n";
}

/// The body of the function that `bench` times.
std::string timed_step(const ModelFiles& m) {
  return filled("  return " + m.name + "_train_step(",
                {"parameters", "packed", "gradients", "optimizer", "batch.images",
                 softens(m.forward.recipe) ? "batch.targets" : "batch.labels", "batch.size",
                 m.name + "_images_at_once(batch.size)", "1", "1", "1e-4f", "outputs", "loss", "scratch"},
                ");");
}

/// What one turn of the loop over batches does on the CPU, up to the step's record. Where there are ranks,
/// each updates its slice of the parameters.
std::string turn_on_cpu(const ModelFiles& m, const std::string& margin) {
  const std::string n = m.name, targets = softens(m.forward.recipe) ? "targets" : "labels";
  const auto call = [&](const std::string& function, const std::vector<std::string>& arguments) {
    return filled(margin + "run.check(" + function + "(", arguments, "));");
  };
  const bool gathers = m.forward.recipe.accumulate > 1 || m.distributed;
  std::string step;
  if (!m.distributed) {
    step = call(n + "_update", {"run.parameters()", "run.packed()", gathers ? "run.gathered()" : "run.gradients()",
                                "run.optimizer()", "run.step()", "learning_rate"});
  } else {
    if (m.forward.recipe.clip_norm > 0)
      step += call(n + "_squares",
                   {"run.gathered()", "run.slice().first_chunk", "run.slice().last_chunk", "run.squares()"}) +
              margin + "run.share_squares();\n";
    step += call(n + "_update_range", {"run.parameters()", "run.gathered()", "run.optimizer()", "run.slice().first",
                                       "run.slice().last", "run.squares()", "run.step()", "learning_rate"}) +
            margin + "run.share_parameters();\n" + call(n + "_pack", {"run.parameters()", "run.packed()"});
  }
  std::vector<std::string> gradients{
      "run.parameters()", "run.packed()",  "batch->images",     "batch->" + targets,
      "batch->size",      "run.at_once()", "run.recipe().seed", gathers ? "run.part()" : "run.step()",
      "run.outputs()",    "&loss",         "run.gradients()",   "run.scratch()"};
  if (m.distributed) gradients.insert(gradients.end(), {"run.ready()", "&run"});
  return margin + "float loss = 0;\n" +
         call(n + (m.distributed ? "_loss_and_gradients_by_range" : "_loss_and_gradients"), gradients) + margin +
         (gathers ? "if (!run.gather(loss)) continue;  // until enough batches make a step\n"
                  : "run.count(loss);  // ends the run where something is not a number\n") +
         step;
}

/// What one turn does.
std::string turn(const ModelFiles& m, bool cuda) {
  const std::string step =
      cuda ? "      if (run.on_gpu()) {\n        if (!run.step_on_gpu(learning_rate)) continue;\n      } else {\n" +
                 turn_on_cpu(m, "        ") + "      }\n"
           : turn_on_cpu(m, "      ");
  return step + "      if (!run.record()) return run.stop();\n";
}

/// What a program declares and calls on a GPU, and the fields of the model's table for it.
std::string cuda_declarations(const ModelFiles& m) {
  return fmt::format(R"cpp(extern const tessera::runtime::Cuda {0}_on_cuda;  // {0}_cuda_program.cu
std::string {0}_predict(const std::string& architecture, std::int64_t batch);

)cpp",
                     m.name);
}
std::string cuda_entries(const ModelFiles& m) {
  return fmt::format(R"cpp(    .predict = {0}_predict,
#if defined(TESSERA_CUDA)  // it is compiled for a GPU, too
    .cuda = &{0}_on_cuda,
#endif
)cpp",
                     m.name);
}

/// What a program that runs as several ranks knows of them, and the fields of the model's table for it.
std::string ranks_declarations(const ModelFiles& m) {
  std::vector<std::string> isas;
  for (const Target& target : m.targets) isas.push_back(fmt::format("\"{}\"", target.name));
  return fmt::format(
      "// The instruction sets, of which all ranks have to use the same.\nconst char* const isas[] = {{{}}};\n\n",
      fmt::join(isas, ", "));
}

/// Of one whose ranks may have a GPU each.
const std::string gpu_ranks_entry = R"cpp(#if defined(TESSERA_NCCL)  // it is linked with it
    .gpu_ranks = &ranks_over_nccl,
#endif
)cpp";

/// The training loop.
std::string training_loop(const ModelFiles& m, bool cuda) {
  return fmt::format(
      R"cpp(/// The training loop. Each epoch sees every image once, in an order that (seed, epoch) decides.
int train(Session& run) {{
  if (run.is_new()) run.check({0}_init(run.parameters(), run.recipe().seed));
  {3}run.check({0}_pack(run.parameters(), run.packed()));

  for (std::int64_t epoch = run.epoch(); epoch < run.recipe().epochs{1}; ++epoch) {{
    run.begin_epoch();
    while (const Batch* batch = run.next_batch()) {{
      const float learning_rate =
          {0}_learning_rate(run.recipe().learning_rate, run.step(), run.steps_per_epoch(), run.steps());
{2}    }}
    run.end_epoch();
  }}
  return run.finish();
}}

)cpp",
      m.name, m.forward.recipe.patience > 0 ? " && run.improves()" : "", turn(m, cuda),
      cuda ? "if (!run.on_gpu()) " : "");
}

/// The declared recipe; of a forward pass alone what its pictures go through.
std::string recipe_table(const ModelFiles& m) {
  const graph::Recipe& recipe = m.forward.recipe;
  const std::string input = fmt::format("    .input = {},\n", preprocessing(recipe));
  if (!trains(m.plans))
    return "// What pictures go through, as declared; nothing is trained.\nconst Recipe declared{\n" + input + "};\n";
  return fmt::format(R"cpp(// The recipe, as declared. The command line can change the first four.
const Recipe declared{{
    .batch = {},
    .epochs = {},
    .learning_rate = {},
    .seed = {},
{}{}}};
)cpp",
                     recipe.batch, recipe.epochs, recipe.learning_rate, recipe.seed, input, further_fields(recipe));
}

}  // namespace

std::string emit_program(const ModelFiles& m, bool cuda, bool serve) {
  const bool distributed = m.distributed;
  const graph::Recipe& recipe = m.forward.recipe;
  const bool training = trains(m.plans);
  const std::string n = m.name, u = m.upper();
  std::string sizes, entries;  // functions that tell how much memory a program takes, and the fields that name them
  const auto size_of = [&](const std::string& program, const std::string& macro, const std::string& images) {
    sizes += fmt::format("std::int64_t {}_scratch_bytes(std::int64_t {}) {{ return {}_{}_SCRATCH_BYTES({}); }}\n",
                         program, images, u, macro, images);
    entries += fmt::format("    .{0}_scratch_bytes = {0}_scratch_bytes,\n", program);
  };
  size_of("forward", "FORWARD", "batch");
  if (training) {
    size_of("evaluate", "EVALUATE", "batch");
    size_of("train", "TRAIN", "at_once");
    entries += fmt::format("    .images_at_once = {}_images_at_once,\n", n);
  }
  size_of("inspect", "INSPECT", "batch");
  const Embedding e = embedding_of(m);
  if (e.features) size_of("embed", "EMBED", "batch");
  for (const std::string function : {"error", "isa", "init", "pack", "pack_forward", "forward"})
    if (training || function != "pack") entries += fmt::format("    .{0} = {1}_{0},\n", function, n);
  if (training) entries += fmt::format("    .evaluate = {}_evaluate,\n    .train_step = train_step,\n", n);
  entries += fmt::format("    .inspect = {}_inspect,\n", n);
  if (e.features) entries += embedding_entry(m);
  const std::string step =
      training
          ? "int train_step(float* parameters, float* packed, float* gradients, float* optimizer, const Batch& batch, "
            "float* outputs,\n               float* loss, void* scratch) {\n" +
                timed_step(m) + "}\n\n"
          : "";
  const std::string taught = training ? fmt::format("    .optimizer = \"{}\",\n    .schedule = \"{}\",\n",
                                                    optimizer_text(recipe), schedule_text(recipe))
                                      : "";
  return fmt::format(
      R"cpp(// Generated by Tessera from the declaration of {0}. The program{2}.
#include "{0}.h"
#include "runtime/program.hpp"
{20}
{3}namespace {{

using namespace tessera::runtime;

{4}
{5}
// The forward pass in the words of ONNX, for export --onnx: see runtime/onnx.hpp.
const char onnx[] = R"onnx(
{19})onnx";

{6}{23}const Model model{{
    .name = "{0}",
    .declaration_hash = {1}_DECLARATION_HASH,
    .parameters = {0}_parameters,
    .parameter_floats = {1}_PARAMETER_FLOATS,
{7}    .packed_forward_floats = {1}_PACKED_FORWARD_FLOATS,
{8}    .image_shape = {{{9}}},
{10}    .classes = {11},
    .alignment = {1}_ALIGNMENT,
    .outputs_are_probabilities = {12},
{22}    .summary = {0}_summary(),
{13}    .onnx = onnx,
{14}{15}    .layers = {0}_layers,
{16}{24}}};

{17}}}  // namespace

int main(int argc, char** argv) {{ return program(model, declared, {18}, argc, argv{21}); }}
)cpp",
      n, u, training ? ": its recipe, its training loop" : ": for inference", cuda ? cuda_declarations(m) : "",
      recipe_table(m), sizes, step, training ? fmt::format("    .packed_floats = {}_PACKED_FLOATS,\n", u) : "",
      training ? fmt::format("    .optimizer_state = {{{}}},\n", state_keys(recipe)) : "",
      fmt::join(m.image_shape(), ", "), patches_entry(m), m.classes(), ends_in_softmax(m.forward) ? "true" : "false",
      taught, entries, attention_entry(m), cuda ? cuda_entries(m) : "", training ? training_loop(m, cuda) : "",
      training ? "train" : "nullptr", onnx_text(m.forward),
      std::string(serve ? "#include \"runtime/serve/command.hpp\"\n" : "") +
          (distributed ? "#include \"runtime/ranks_mpi.hpp\"\n" : "") +
          (distributed && cuda ? "#include \"runtime/ranks_nccl.hpp\"\n" : ""),
      serve ? ", serve::command(declared)" : "",
      tells_depths(m)             ? depth_entry(m)
      : e.features && !m.has_head ? "    .outputs_are_features = true,\n"
                                  : "",
      distributed ? ranks_declarations(m) : "",
      distributed ? (cuda ? gpu_ranks_entry : std::string()) + "    .ranks = &ranks_over_mpi,\n    .isas = isas,\n"
                  : "");
}

}  // namespace tessera::codegen
