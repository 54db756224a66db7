// NAME.h, the C99 header of a model, and NAME_kernels.h, which NAME.cpp and the kernels share.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <range/v3/algorithm/any_of.hpp>

#include "codegen/emit/entry.hpp"
#include "codegen/emit/model.hpp"
#include "codegen/passes/optimizer.hpp"

namespace tessera::codegen {

namespace {

std::string update_comment(const graph::Recipe& recipe) {
  const char* kind = recipe.optimizer == graph::Recipe::Optimizer::adam    ? "Adam step"
                     : recipe.optimizer == graph::Recipe::Optimizer::adamw ? "AdamW step"
                                                                           : "step of gradient descent";
  return fmt::format("One {} in place; `step` counts from 1.", kind);
}

/// The functions that read what pack_forward packs: "forward, evaluate and inspect".
std::string readers_of(const ModelFiles& m) {
  std::vector<std::string> more{"forward", "inspect"};
  if (trains(m.plans)) more.insert(more.begin() + 1, "evaluate");
  if (embedding_of(m).features) more.emplace_back("embed");
  if (cache_of(m).reals) more.emplace_back("step");
  const std::string last = more.back();
  more.pop_back();
  return fmt::format("{} and {}", fmt::join(more, ", "), last);
}

std::string schedule_comment(const graph::Recipe& recipe) {
  using Schedule = graph::Recipe::Schedule;
  std::string text = fmt::format("The learning rate of a step, counted from 1: {}",
                                 recipe.schedule == Schedule::cosine  ? "rate, lowered along a cosine"
                                 : recipe.schedule == Schedule::steps ? "rate, lowered in steps"
                                                                      : "rate");
  if (recipe.warmup > 0) text += fmt::format(" after a rise of {} epochs", recipe.warmup);
  return text + ".";
}

}  // namespace

std::vector<tree::Function> api_functions(const ModelFiles& m) {
  const std::string in = "const " + m.real + "*", out = m.real + "*", n = m.name;
  std::vector<tree::Function> functions;
  auto add = [&](const std::string& name, std::vector<tree::Parameter> parameters, std::vector<std::string> comment,
                 const std::string& returns = "int") {
    tree::Function f;
    f.linkage = "";
    f.returns = returns;
    f.name = n + "_" + name;
    f.parameters = std::move(parameters);
    f.comment = std::move(comment);
    functions.push_back(std::move(f));
  };
  const graph::Recipe& recipe = m.forward.recipe;
  const bool tokens = takes_tokens(m.forward);
  const tree::Parameter parameters{in, "parameters"}, packed{in, "packed"},
      images{tokens ? "const int32_t*" : in, input_of(m.forward)}, batch{"int64_t", "batch"}, seed{"uint64_t", "seed"},
      step{"int64_t", "step"}, outputs{out, "outputs"}, loss{out, "loss"}, scratch{"void*", "scratch"};
  std::string isas;
  for (const Target& target : m.targets) isas += fmt::format("{}\"{}\"", isas.empty() ? "" : ", ", target.name);
  add("error", {{"int", "code"}}, {"What an error code means, as a sentence."}, "const char*");
  add("isa", {{"void", ""}},
      {fmt::format("The kernels in use: {}; \"\" when TESSERA_ISA asks for what cannot be had.", isas)}, "const char*");
  add("summary", {{"void", ""}}, {"The shape table."}, "const char*");
  add("init", {{out, "parameters"}, {"uint64_t", "seed"}},
      {"Starting values as declared, by a counter-based generator: a seed gives the same numbers everywhere."});
  const std::string packs =
      m.packed.reals
          ? "Copies the parameters into the form that this processor's kernels read: after every change of them."
          : "For these kernels there is nothing to pack: `packed` is never read.";
  const auto add_forward = [&] {
    add("forward", {parameters, packed, images, batch, outputs, scratch},
        {fmt::format("outputs [batch, {}] of {}.", fmt::join(m.output_shape(), ", "), images.name)});
  };
  const AttentionMaps a = attention_maps(m);
  const auto add_inspect = [&] {
    add("inspect", {parameters, packed, images, batch, {out, "maps"}, {out, "magnitudes"}, scratch},
        {a.layers ? fmt::format(
                        "What each token attends to, rows summing to one: maps [batch, {} layers, {} heads, {}, {}].",
                        a.layers, a.heads, a.rows, a.columns)
                  : "There are no attention maps: `maps` is never written.",
         fmt::format("Magnitudes [batch, {}] are the means of |x| of what the layers of the table {}_layers give.",
                     layers(m).size(), n)});
  };
  const Embedding e = embedding_of(m);
  const Cache cache = cache_of(m);
  const std::string readers = readers_of(m);
  const auto add_step = [&] {
    if (cache.parts.empty()) return;
    add("step",
        {parameters,
         packed,
         {out, "cache"},
         {"int64_t", "position"},
         {"const int32_t*", "tokens"},
         batch,
         outputs,
         scratch},
        {fmt::format("Token by token: of one token [batch] at `position`, from 0 on, the row [batch, {}] that forward",
                     m.output_reals() / m.image_reals()),
         "would give there. The cache, the caller's, keeps what was made of the tokens before: it has to be as the "
         "step",
         fmt::format("of the position before left it, and is cleared at position 0. Of an image it holds {}.",
                     fmt::join(cache.parts, ", "))});
  };
  const auto add_embed = [&] {
    if (!e.features) return;
    std::vector<std::string> gives{
        fmt::format("Features [batch, {}] are {}.", e.features,
                    m.has_head ? "what the last linear map reads" : "the outputs of forward")};
    gives.push_back(
        e.tokens ? fmt::format("Tokens [batch, {}, {}] are those behind the last block and norm.", e.tokens, e.width)
                 : "There are no tokens: `tokens` is never written.");
    gives.push_back(
        e.heads ? fmt::format("Pooling [batch, {} heads, {}] is what the learned query attends to.", e.heads, e.keys)
                : "There is no learned query: `pooling` is never written.");
    add("embed", {parameters, packed, images, batch, {out, "features"}, {out, "tokens"}, {out, "pooling"}, scratch},
        std::move(gives));
  };
  const bool packed_alone = !takes_parameters(m.plan(ProgramKind::forward).program);
  if (!trains(m.plans)) {
    add("pack_forward", {parameters, {out, "packed"}}, {packs});
    if (m.packed.reals && packed_alone)
      functions.back().comment.push_back(
          fmt::format("To {} `parameters` may then be null: they read it no more.", readers));
    add_forward();
    add_inspect();
    add_embed();
    add_step();
    return functions;
  }
  add("pack", {parameters, {out, "packed"}}, {packs});
  add("pack_forward", {parameters, {out, "packed"}},
      {m.packed.forward_reals
           ? fmt::format("As pack, but only what {} read: the first {}_PACKED_FORWARD_FLOATS.", readers, m.upper())
           : fmt::format("For {} there is nothing to pack.", readers)});
  if (m.packed.forward_reals && packed_alone)
    functions.back().comment.push_back(fmt::format(
        "To these {} functions `parameters` may be null: they read it no more.", e.features && cache.reals ? "five"
                                                                                 : e.features || cache.reals
                                                                                     ? "four"
                                                                                     : "three"));
  add_forward();
  const auto wanted_by = [&](const graph::Graph& program) {
    const std::string wanted = compared_with(program);
    return tree::Parameter{wanted == "labels" ? "const int32_t*" : in, wanted};
  };
  const bool of_caller = takes_output_gradients(m.forward);
  const tree::Parameter wanted = wanted_by(m.plan(ProgramKind::loss_and_gradients).program.graph);
  const std::string target_shape = fmt::format("[batch, {}]", fmt::join(m.target_shape(), ", "));
  if (!of_caller) {
    add("evaluate",
        {parameters, packed, images, wanted_by(m.plan(ProgramKind::evaluate).program.graph), batch, outputs, loss,
         scratch},
        {takes_targets(m.forward) ? "As forward, and the loss." : "As forward, and the mean loss over the batch."});
    if (takes_targets(m.forward))
      functions.back().comment.push_back(
          fmt::format("Targets, {}, are what the declared loss compares outputs with.", target_shape));
  }
  const tree::Parameter at_once{"int64_t", "at_once"};
  const bool groups = m.plan(ProgramKind::loss_and_gradients).program.groups;
  add("images_at_once", {batch},
      {groups ? "So many images of a batch fill the threads, and take memory for no more than that: `at_once` below."
              : "All of them: what is computed of an image depends on the others. `at_once` below."},
      "int64_t");
  std::vector<std::string> said{
      "Overwrites gradients, which lie as the parameters do. What dropout drops is a function of seed and step.",
      groups
          ? "Works on `at_once` images at a time, at least on a sixteenth of the batch: the bits are the same for all."
          : "`at_once` is the batch, or more."};
  if (softens(recipe))
    said.push_back(fmt::format("Targets are probabilities, [batch, {}].", fmt::join(m.output_shape(), ", ")));
  if (of_caller) {
    said.push_back(fmt::format(
        "Of a loss whose gradient with respect to the outputs, {}, is given; not divided by the batch.", target_shape));
    add("gradients",
        {parameters, packed, images, wanted, batch, at_once, seed, step, outputs, {out, "gradients"}, scratch},
        std::move(said));
  } else {
    add("loss_and_gradients",
        {parameters, packed, images, wanted, batch, at_once, seed, step, outputs, loss, {out, "gradients"}, scratch},
        std::move(said));
    if (!tokens)
      add("input_gradient",
          {parameters,
           packed,
           images,
           wanted_by(m.plan(ProgramKind::input_gradient).program.graph),
           batch,
           outputs,
           loss,
           {out, "image_gradients"},
           scratch},
          {fmt::format("The gradient of the loss with respect to each pixel: [batch, {}].",
                       fmt::join(m.image_shape(), ", "))});
  }
  if (m.distributed)
    add("loss_and_gradients_by_range",
        {parameters,
         packed,
         images,
         wanted,
         batch,
         at_once,
         seed,
         step,
         outputs,
         loss,
         {out, "gradients"},
         scratch,
         {"tessera_range_ready", "ready"},
         {"void*", "context"}},
        {"The same, and calls `ready` where it is not null, in the calling thread, as soon as a range of gradients is "
         "final:",
         "in the same order each time, each number once. An exchange between processes can begin with it."});
  add_inspect();
  add_embed();
  add_step();
  std::vector<std::string> updates{update_comment(recipe)};
  if (m.packed.reals) updates.emplace_back("Packs the parameters on the way, as pack does.");
  add("update",
      {{out, "parameters"}, {out, "packed"}, {in, "gradients"}, {out, "optimizer"}, step, {"float", "learning_rate"}},
      std::move(updates));
  if (m.distributed) {
    if (recipe.clip_norm > 0)
      add("squares", {{in, "gradients"}, {"int64_t", "first_chunk"}, {"int64_t", "last_chunk"}, {"double*", "squares"}},
          {"squares [64]: the sums of squares of these chunks of the gradients, of which there are 64."});
    add("update_range",
        {{out, "parameters"},
         {in, "gradients"},
         {out, "optimizer"},
         {"int64_t", "from"},
         {"int64_t", "to"},
         {"const double*", "squares"},
         step,
         {"float", "learning_rate"}},
        {"The same step for the parameters in [from, to) alone, multiples of 16, without packing. What `optimizer` "
         "keeps",
         fmt::format("is of these alone. {}", recipe.clip_norm > 0
                                                  ? "Squares are those of all chunks of the gradients: see squares."
                                                  : "`squares` is never read: nothing is clipped.")});
  }
  add("learning_rate", {{"double", "rate"}, {"int64_t", "step"}, {"int64_t", "steps_per_epoch"}, {"int64_t", "steps"}},
      {schedule_comment(recipe)}, "float");
  if (of_caller) return functions;
  add("train_step",
      {{out, "parameters"},
       {out, "packed"},
       {out, "gradients"},
       {out, "optimizer"},
       images,
       wanted,
       batch,
       at_once,
       seed,
       step,
       {"float", "learning_rate"},
       outputs,
       loss,
       scratch},
      {"loss_and_gradients and update in one call: before the first one, pack."});
  return functions;
}

namespace {

/// The type of a callback, for C and C++.
constexpr const char* range_ready = R"c(#ifndef TESSERA_RANGE_READY_DEFINED
#define TESSERA_RANGE_READY_DEFINED
/* Told of the gradients in [from, to), in floats. */
typedef void (*tessera_range_ready)(void* context, int64_t from, int64_t to);
#endif
)c";

std::string names_of(const std::vector<Target>& targets) {
  std::string list;
  for (std::size_t i = 0; i < targets.size(); ++i)
    list += fmt::format("{}{}", i ? i + 1 == targets.size() ? " or " : ", " : "", targets[i].name);
  return list;
}

std::string macro_of_batch(const ModelFiles& m, const std::string& what, const Extent& e,
                           const std::string& images = "batch") {
  return fmt::format("#define {0}_{1}({4}) (INT64_C({2}) + INT64_C({3}) * (int64_t)({4}))\n", m.upper(), what, e.fixed,
                     e.per_batch, images);
}

std::string scratch_macro(const ModelFiles& m, ProgramKind kind) {
  const Extent& e = m.plan(kind).scratch;
  const std::int64_t bytes = m.real == "double" ? 8 : 4;
  return macro_of_batch(m, upper(traits_of(kind).short_name) + "_SCRATCH_BYTES", {e.fixed * bytes, e.per_batch * bytes},
                        traits_of(kind).trains ? "at_once" : "batch");
}

}  // namespace

std::string emit_header(const ModelFiles& m) {
  const std::string u = m.upper(), n = m.name;
  const bool training = trains(m.plans);
  const Embedding e = embedding_of(m);
  const bool tokens = takes_tokens(m.forward);
  std::int64_t tensors = 0;
  for (const ArenaEntry& entry : m.arena.entries) tensors += entry.count;

  std::string out =
      fmt::format(R"c(/* Generated by Tessera from the declaration of {0}. C99.
 *
 * All memory is the caller's; nothing is allocated, printed or kept between calls, but for the size of the processor's
 * second cache, which the first call asks for. A function that returns int returns {1}_OK or an error code that
 * {0}_error puts into words. Memory has to be aligned as its numbers are, scratch as {5}, and is best aligned to
 * {1}_ALIGNMENT bytes. `batch` is the number of images, from 1 on. {6} are [batch, {2}], outputs
 * [batch, {3}], row-major.
 * The environment variable TESSERA_ISA chooses the kernels ({4}); without it the widest that the
 * processor has are used. Every call reads it: the environment must not be changed meanwhile.
 */
#ifndef {1}_H
#define {1}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#ifndef TESSERA_PARAMETER_DEFINED
#define TESSERA_PARAMETER_DEFINED
typedef struct tessera_parameter {{
  const char* name; /* the checkpoint key */
  int32_t rank;
  int32_t decay; /* 1 where weight decay applies */
  int64_t shape[8];
  int64_t offset; /* in floats, from the start of the parameters, and of the gradients alike */
  const char* named_shape; /* "[D=192, C=3]" */
}} tessera_parameter;
#endif

{7})c",
                  n, u, fmt::join(m.image_shape(), ", "), fmt::join(m.output_shape(), ", "), names_of(m.targets),
                  m.real, tokens ? "Tokens" : "Images", m.distributed ? fmt::format("{}\n", range_ready) : "");

  if (const std::string idle = m.why_precision_is_idle(); !idle.empty()) out += fmt::format("/* Here {}. */\n\n", idle);
  auto macro = [&](const std::string& name, std::int64_t value, const std::string& comment = "") {
    out += fmt::format("#define {}_{} {}{}\n", u, name, value, comment.empty() ? "" : " /* " + comment + " */");
  };
  out +=
      fmt::format("/* Changes with the declaration. */\n#define {}_DECLARATION_HASH UINT64_C(0x{:016x})\n", u, m.hash);
  macro("ALIGNMENT", 64);
  if (tokens) {
    macro("TOKENS", m.image_reals(), "of one image");
    macro("CODES", m.codes(), "tokens are below it");
  } else {
    macro("IMAGE_FLOATS", m.image_reals(), "of one image");
  }
  macro("OUTPUT_FLOATS", m.output_reals(),
        m.output_shape().size() == 1 ? "of one row of outputs" : "of one image's outputs");
  const bool on_labels = training && !takes_targets(m.forward) && !takes_output_gradients(m.forward);
  if (on_labels) macro("CLASSES", m.classes(), "labels are below it");
  if (training && takes_targets(m.forward)) macro("TARGET_FLOATS", m.target_reals(), "of one image's targets");
  macro("PARAMETERS", tensors, "rows of the parameter table");
  macro("PARAMETER_FLOATS", m.arena.reals,
        training ? "of the parameters, and of the gradients; gaps are zero" : "of the parameters; gaps are zero");
  const std::string packed =
      m.packed.reals ? "of the packed parameters" : "these kernels read the parameters as they are";
  if (training) {
    macro("PACKED_FLOATS", m.packed.reals, packed);
    macro("PACKED_FORWARD_FLOATS", m.packed.forward_reals, fmt::format("of those that {} read", readers_of(m)));
    macro("OPTIMIZER_FLOATS", static_cast<std::int64_t>(optimizer_state(m.forward.recipe).size()) * m.arena.reals,
          "zero before the first step");
  } else {
    macro("PACKED_FORWARD_FLOATS", m.packed.forward_reals, packed);
  }
  if (e.features) {
    macro("FEATURE_FLOATS", e.features, "of one image's features");
    macro("TOKEN_FLOATS", e.token_reals(), "of one image's tokens");
    macro("POOLING_FLOATS", e.pooling_reals(), "of what the learned query of one image's pooling attends to");
  }
  if (const Cache cache = cache_of(m); cache.reals)
    out += macro_of_batch(m, "CACHE_BYTES", {0, cache.reals * (m.real == "double" ? 8 : 4)});
  macro("ATTENTION_FLOATS", attention_maps(m).of_image(), "of the attention maps of one image");
  macro("LAYERS", static_cast<std::int64_t>(layers(m).size()), "rows of the table of layers");
  for (const Plan& p : m.plans)
    if (!traits_of(p.program.kind).updates) out += scratch_macro(m, p.program.kind);

  const Contract c = contract(m);
  out += fmt::format(R"c(
/* What the model costs: constant expressions, for static_assert. {} all the memory that a
 * call needs: images, outputs and scratch, and the packed parameters or, where there are none, the parameters{}.
 * FLOPs: 2 for each multiply-add of a contraction, 1 for each element of any other operation. */
)c",
                     training ? "FORWARD_BYTES and TRAIN_BYTES are" : "FORWARD_BYTES is",
                     training ? fmt::format("; for a\n * training step both, gradients, optimizer, {} and loss",
                                            on_labels ? "labels" : "targets")
                              : "");
  out += fmt::format("#define {}_PARAMETER_BYTES INT64_C({})\n", u, c.parameter_bytes);
  if (training) out += fmt::format("#define {}_OPTIMIZER_BYTES INT64_C({})\n", u, c.optimizer_bytes);
  out += macro_of_batch(m, "FORWARD_BYTES", c.forward_bytes);
  if (training)
    out += fmt::format(
        "#define {0}_TRAIN_BYTES(batch, at_once) \\\n"
        "  (INT64_C({1}) + INT64_C({2}) * (int64_t)(batch) + {0}_TRAIN_SCRATCH_BYTES(at_once))\n",
        u, c.train_bytes.fixed, c.train_bytes.per_batch);
  out += macro_of_batch(m, "FORWARD_FLOPS", c.forward_flops);
  if (training) out += macro_of_batch(m, "TRAIN_FLOPS", c.train_flops);

  out += fmt::format(R"c(
enum {{
  {0}_OK = 0,
  {0}_ERROR_NULL = 1,  /* a pointer is null */
  {0}_ERROR_BATCH = 2, /* the batch is not positive, or too large for sizes of 64 bits */
)c",
                     u);
  if (on_labels) out += fmt::format("  {}_ERROR_LABEL = 3, /* a label is not in [0, {}) */\n", u, m.classes());
  if (tokens) out += fmt::format("  {}_ERROR_TOKEN = 7, /* a token is not in [0, {}) */\n", u, m.codes());
  if (cache_of(m).reals)
    out += fmt::format("  {}_ERROR_POSITION = 8, /* a position is not in [0, {}) */\n", u, m.image_reals());
  out += fmt::format(
      "  {}_ERROR_ISA = 4{}   /* TESSERA_ISA names kernels that do not exist or that this processor cannot run */\n", u,
      training ? "," : " ");
  if (training)
    out += fmt::format(
        R"c(  {0}_ERROR_STEP = 5,  /* the step is not positive */
  {0}_ERROR_AT_ONCE = 6{2} /* fewer images at once than {1} */
)c",
        u, m.plan(ProgramKind::loss_and_gradients).program.groups ? "a sixteenth of the batch" : "the batch holds",
        m.distributed ? "," : "");
  if (m.distributed) out += fmt::format("  {}_ERROR_RANGE = 7 /* no range of the parameters */\n", u);
  out += fmt::format(R"c(}};

extern const tessera_parameter {0}_parameters[{1}_PARAMETERS];

/* The layers whose magnitudes {0}_inspect gives, in the order in which they run. */
extern const char* const {0}_layers[{1}_LAYERS];
)c",
                     n, u);
  for (const tree::Function& f : api_functions(m)) {
    out += "\n";
    for (const std::string& line : f.comment) out += "/* " + line + " */\n";
    out += tree::print_declaration(f);
  }
  return out + fmt::format("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {}_H */\n", u);
}

std::string emit_kernels_header(const ModelFiles& m) {
  std::string out =
      fmt::format(R"c(// Generated by Tessera from the declaration of {0}. The entry points of each instruction set.
#ifndef {1}_KERNELS_H
#define {1}_KERNELS_H

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <utility>
#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__unix__)
#include <unistd.h>
#endif

/// Bytes of a core's second cache: what the environment says (TESSERA_SECOND_CACHE), else the system, else 1 MiB. How
/// work is cut up follows from it; sums and their order do not.
inline std::int64_t tessera_second_cache() {{
  static const std::int64_t bytes = [] {{
    if (const char* given = std::getenv("TESSERA_SECOND_CACHE"); given && std::atoll(given) > 0)
      return static_cast<std::int64_t>(std::atoll(given));
    std::int64_t of_system = 0;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    of_system = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return of_system > 0 ? of_system : std::int64_t{{1}} << 20;
  }}();
  return bytes;
}}

)c",
                  m.name, m.upper());
  if (m.distributed) out += fmt::format("{}\n", range_ready);
  for (const Target& t : m.targets) {
    for (const Plan& p : m.plans) {
      tree::Function f;
      f.linkage = "";
      f.name = fmt::format("{}_{}_{}", m.name, p.program.name, t.name);
      f.parameters = entry_parameters(p.program, m.real);
      if (m.distributed && p.program.kind == ProgramKind::loss_and_gradients) append_callback(f.parameters);
      out += tree::print_declaration(f);
    }
    if (m.packed.reals)
      for (const std::string pack : {"pack_forward", "pack"}) {
        if (pack == "pack" && !trains(m.plans)) continue;
        tree::Function f;
        f.linkage = "";
        f.name = fmt::format("{}_{}_{}", m.name, pack, t.name);
        f.parameters = pack_parameters(m.real);
        out += tree::print_declaration(f);
      }
    if (trains(m.plans) && ranges::any_of(m.packed.entries, packed_by_rows)) {
      tree::Function f;
      f.linkage = "";
      f.name = fmt::format("{}_update_and_pack_{}", m.name, t.name);
      f.parameters = update_and_pack_parameters(m.plan(ProgramKind::update).program, m.real);
      out += tree::print_declaration(f);
    }
    out += "\n";
  }
  return out + fmt::format("#endif  // {}_KERNELS_H\n", m.upper());
}

}  // namespace tessera::codegen
