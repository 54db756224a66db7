// trace: a declaration, run once, becomes a graph.
#pragma once

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dsl/graph/builder.hpp"
#include "dsl/module.hpp"
#include "dsl/ops/cross_entropy.hpp"
#include "dsl/recipe.hpp"

namespace tessera {

namespace detail {

/// Throws std::logic_error when a result is computed and left out, naming the parameters that would get no gradient.
inline void demand_that_everything_is_used(const graph::Graph& g) {
  std::vector<bool> used(g.nodes.size());
  for (const graph::Output& output : g.outputs) used[static_cast<std::size_t>(output.node)] = true;
  for (const graph::Region& region : g.regions)
    for (const graph::NodeId yield : region.yields) used[static_cast<std::size_t>(yield)] = true;
  for (std::size_t i = g.nodes.size(); i-- > 0;)
    if (used[i])
      for (const graph::NodeId operand : g.nodes[i].operands) used[static_cast<std::size_t>(operand)] = true;
  std::string unused;
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    if (!used[i] && g.nodes[i].op == graph::Op::parameter) unused += (unused.empty() ? "" : ", ") + g.nodes[i].name;
  if (!unused.empty())
    throw std::logic_error(g.name + " computes something and leaves it out, so these would get no gradient: " + unused);
}

}  // namespace detail

/// Runs Model's forward once and returns what it recorded: inputs "images" (the shape forward declares) and "labels"
/// ([B], integers, B being the images' first axis), every parameter under its checkpoint key, outputs "outputs" and
/// "loss" (the recipe's), and the recipe itself.
///
/// Model has one non-template forward of one tensor, and a static constexpr Recipe named recipe. Throws
/// std::logic_error for what only tracing can see: parameters that no output depends on, members missing from
/// TESSERA_MEMBERS, a Stack applied twice.
template <class Model>
graph::Graph trace(std::string name) {
  using Signature = detail::Signature<decltype(&Model::forward)>;
  static_assert(std::tuple_size_v<typename Signature::arguments> == 1,
                "a model's forward takes one tensor, the images");
  using Images = std::tuple_element_t<0, typename Signature::arguments>;

  graph::Graph g;
  g.name = std::move(name);
  if constexpr (!poisoned<Images, typename Signature::result>) {
    static_assert(Images::shape.rank > 0, "the images have a batch axis");
    using Labels = TensorOf<Dims<typename Images::dims::template at<0>>>;
    static_assert(Model::recipe.loss == Loss::cross_entropy);
    g.recipe = Model::recipe.record();

    graph::Builder builder(g);
    RecorderScope scope(builder);
    Model model;
    const Images images(builder.input("images", Images::shape.dims()));
    const Labels labels(builder.input("labels", Labels::shape.dims(), graph::Type::integer));
    bind(model, "");
    const auto outputs = model(images);
    const auto loss = cross_entropy(outputs, labels);
    if constexpr (!poisoned<decltype(outputs), decltype(loss)>) {
      g.outputs.push_back({graph::Output::Kind::value, "outputs", node_of(outputs), graph::none});
      g.outputs.push_back({graph::Output::Kind::loss, "loss", node_of(loss), graph::none});
      detail::demand_that_everything_is_used(g);
    }
  }
  return g;
}

}  // namespace tessera
