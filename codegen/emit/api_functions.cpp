#include "codegen/emit/api_functions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <initializer_list>

#include "codegen/emit/entry.hpp"
#include "codegen/passes/optimizer.hpp"

namespace tessera::codegen {

namespace {

std::string update_comment(const graph::Recipe& recipe) {
  const char* kind = recipe.optimizer == graph::Recipe::Optimizer::adam    ? "Adam step"
                     : recipe.optimizer == graph::Recipe::Optimizer::adamw ? "AdamW step"
                                                                           : "step of gradient descent";
  return fmt::format("One {} in place; `step` counts from 1.", kind);
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

std::string readers_of(const ModelFiles& m) {
  std::vector<std::string> more{"forward", "inspect"};
  if (trains(m.plans)) more.insert(more.begin() + 1, "evaluate");
  if (embedding_of(m).features) more.emplace_back("embed");
  if (cache_of(m).reals) more.emplace_back("step");
  const std::string last = more.back();
  more.pop_back();
  return fmt::format("{} and {}", fmt::join(more, ", "), last);
}

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
      {fmt::format("The kernels in use: {}; \"\" when TESSERA_ISA names kernels that cannot be had.", isas)},
      "const char*");
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
         fmt::format("of the position before left it, and is cleared at position 0. Of an image it holds {}{}.",
                     fmt::join(cache.parts, ", "), cache.element == DType::bf16 ? ", of bf16" : "")});
  };
  const auto add_embed = [&] {
    if (!e.features) return;
    const bool map = e.layers && m.output_shape().back() != e.width;
    std::vector<std::string> gives{fmt::format("Features [batch, {}] are {}.", shape_of_features(e),
                                               m.has_head ? "what the last linear map reads"
                                               : map      ? "the pixels of the map that forward gives"
                                                          : "the outputs of forward")};
    gives.push_back(
        map        ? fmt::format("Tokens [batch, {}, {}] are the same.", e.tokens, e.width)
        : e.tokens ? fmt::format("Tokens [batch, {}, {}] are those behind the last block and norm.", e.tokens, e.width)
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
  const bool of_caller = takes_output_gradients(m.forward), phase = recipe.phase > 0;
  const tree::Parameter wanted = wanted_by(m.plan(ProgramKind::loss_and_gradients).program.graph);
  const std::string target_shape = fmt::format("[batch, {}]", fmt::join(m.target_shape(), ", "));
  if (!of_caller && !phase) {
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
  const auto of_step = [&](std::initializer_list<tree::Parameter> results) {
    std::vector<tree::Parameter> all{parameters, packed, images, wanted, batch, at_once, seed, step, outputs};
    all.insert(all.end(), results);
    return all;
  };
  std::vector<std::string> said{
      "Overwrites gradients, which lie as the parameters do. What dropout drops is a function of seed and step.",
      groups
          ? "Works on `at_once` images at a time, at least on a sixteenth of the batch: the bits are the same for all."
          : "`at_once` is the batch, or more."};
  if (softens(recipe))
    said.push_back(fmt::format("Targets are probabilities, [batch, {}].", fmt::join(m.output_shape(), ", ")));
  if (phase) {
    said = {
        "Overwrites gradients, which lie as the parameters do: zeros of what this phase does not train, and the new "
        "values of",
        "the buffers that it changes. The factor, one number, is that of the adversarial losses. losses has the "
        "numbers",
        fmt::format("of the table {}_losses; loss is the one that is made small. `at_once` is the batch, or more.", n)};
    add("loss_and_gradients", of_step({{out, "losses"}, loss, {out, "gradients"}, scratch}), std::move(said));
  } else if (of_caller) {
    said.push_back(fmt::format(
        "Of a loss whose gradient with respect to the outputs, {}, is given; not divided by the batch.", target_shape));
    add("gradients", of_step({{out, "gradients"}, scratch}), std::move(said));
  } else {
    add("loss_and_gradients", of_step({loss, {out, "gradients"}, scratch}), std::move(said));
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
        of_step({loss, {out, "gradients"}, scratch, {"tessera_range_ready", "ready"}, {"void*", "context"}}),
        {"The same, and calls `ready` where it is not null, in the calling thread, as soon as a range of gradients is "
         "final:",
         "in the same order each time, each number once. An exchange between processes can begin with it."});
  add_inspect();
  add_embed();
  add_step();
  std::vector<std::string> updates{update_comment(recipe)};
  if (phase) updates.emplace_back("Of the keys that this phase trains; buffers take their new values.");
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
  if (of_caller || phase) return functions;
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

}  // namespace tessera::codegen
