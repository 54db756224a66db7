#include "codegen/passes/pipeline.hpp"

#include <range/v3/algorithm/contains.hpp>
#include <utility>

#include "codegen/passes/canonical_order.hpp"
#include "codegen/passes/dead_slices.hpp"
#include "codegen/passes/declaration_lines.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/gemm_operands.hpp"
#include "codegen/passes/headless.hpp"
#include "codegen/passes/inspect.hpp"
#include "codegen/passes/recompute.hpp"
#include "codegen/passes/row_sums.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/stepped.hpp"
#include "codegen/passes/subgraph.hpp"

namespace tessera::codegen {

namespace {

bool always(const graph::Graph&) { return true; }

/// What a program's function gives, gradients apart.
std::vector<std::string> values_of(const ProgramTraits& traits) {
  return traits.has_loss ? std::vector<std::string>{"outputs", "loss"} : std::vector<std::string>{"outputs"};
}

/// What is differentiated: the recipe's training loss, where it has one of its own, in the place of the loss.
void take_training_loss(graph::Graph& graph) {
  graph = subgraph(graph, {"outputs", "training_loss"});
  for (graph::Output& o : graph.outputs)
    if (o.kind == graph::Output::Kind::loss) o.name = "loss";
}

}  // namespace

bool softens(const graph::Recipe& recipe) { return recipe.smoothing > 0 || recipe.mixup > 0 || recipe.cutmix > 0; }

bool has_loss(const graph::Graph& declared) {
  return ranges::contains(declared.outputs, graph::Output::Kind::loss, &graph::Output::kind);
}

std::vector<GraphPass> declaration_passes() {
  return {{"declaration_lines", "nodes get the lines of the declaration that they come from",
           [](const graph::Graph& g) { return !g.modules.empty(); },
           [](graph::Graph& g) { g = with_declaration_lines(std::move(g)); }},
          {"canonical_order", "nodes in an order that depends on what they compute only", always,
           [](graph::Graph& g) { g = canonical_order(g); }, true}};
}

std::vector<GraphPass> narrowing_passes() {
  return {{"dead_slices", "of what a slice alone reads, only that slice is computed", always,
           [](graph::Graph& g) { g = eliminate_dead_slices(g); }}};
}

std::vector<GraphPass> program_passes(ProgramKind kind) {
  const ProgramTraits traits = traits_of(kind);
  const auto if_ = [](bool asked) { return [asked](const graph::Graph&) { return asked; }; };
  const bool of_images = kind == ProgramKind::input_gradient;
  return {{"training_loss", "the recipe's training loss takes the place of the loss",
           [traits](const graph::Graph& g) { return traits.trains && softens(g.recipe); }, take_training_loss, true},
          {"evaluation_dropout", "dropout answers its operand", if_(!traits.trains),
           [](graph::Graph& g) { g = without_dropout(g); }, true},
          {"outputs", "only what the program gives is computed", if_(!traits.trains),
           [traits](graph::Graph& g) { g = subgraph(g, values_of(traits)); }, true},
          {"expand_gradients", "gradients within the declaration are computed where they are read",
           [traits](const graph::Graph& g) {
             return !traits.gradients.empty() && ranges::contains(g.nodes, graph::Op::gradient, &graph::Node::op);
           },
           [](graph::Graph& g) { g = expand_gradients(g); }, true},
          {"differentiate", "gradients of the loss behind it", if_(!traits.gradients.empty()),
           [of_images](graph::Graph& g) { g = differentiate(g, of_images); }, true},
          {"image_gradients", "of all gradients, only that of the images is computed", if_(of_images),
           [](graph::Graph& g) { g = subgraph(g, {"outputs", "loss", "images"}); }, true},
          {"inspect", "attention maps and magnitudes are the outputs", if_(traits.inspects),
           [](graph::Graph& g) { g = inspected(g); }, true},
          {"embed", "what the head reads and the tokens are the outputs", if_(traits.embeds),
           [](graph::Graph& g) { g = embedding(g); }, true},
          {"step", "one token at a position, with caches of what later ones read again", if_(traits.steps),
           [](graph::Graph& g) { g = stepped(g).value(); }, true}};
}

std::vector<GraphPass> primitive_passes() {
  return {{"decompose", "composites are taken apart", always, [](graph::Graph& g) { g = decompose(g); }, true},
          {"simplify", "what is computed twice or for nobody is computed once or not at all", always,
           [](graph::Graph& g) { g = simplify(g); }, true}};
}

std::vector<GraphPass> cpu_graph_passes() {
  return {{"row_sums", "the gradient of attention's softmax takes its row sums from what the probabilities weighed",
           always, [](graph::Graph& g) { g = take_row_sums_of_outputs(g); }},
          {"recompute", "the backward pass computes pointwise values and attention's probabilities again", always,
           [](graph::Graph& g) { g = recompute(g); }},
          {"columns_innermost", "an operand of activations alone is copied so that columns lie side by side", always,
           [](graph::Graph& g) { g = copy_operands_n_innermost(g); }}};
}

graph::Graph passed(graph::Graph graph, const std::vector<GraphPass>& passes, const PassOptions& options) {
  run_passes(graph, passes, options);
  return graph;
}

}  // namespace tessera::codegen
