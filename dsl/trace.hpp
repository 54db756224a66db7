// trace: a declaration, run once, becomes a graph.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "dsl/graph/builder.hpp"
#include "dsl/module.hpp"
#include "dsl/ops/cross_entropy.hpp"
#include "dsl/recipe.hpp"
#include "dsl/unused.hpp"

namespace tessera {

namespace detail {

/// What is wrong with the images that a model takes: the batch comes first, and nothing else may be unknown.
template <class Model, class Images>
struct ImagesProblem {
  constexpr Text operator()() const {
    constexpr const Shape& x = Images::shape;
    Text t;
    int wrong = 0;
    if (x.rank && !x[0].known() && x[0] == Dim::axis(x[0].normal.term[0].factor[0].name))
      for (wrong = 1; wrong < x.rank && x[wrong].known();) ++wrong;
    if (x.rank && wrong == x.rank) return t;
    t.put(Model::module_name).put(" takes images ");
    x.print(t);
    if (!x.rank) {
      t.put(": they have no axis, need the batch first");
    } else {
      t.put(": axis ").put(std::int64_t{wrong}).put(" is ");
      x[wrong].print(t);
      put_definition(t, " (", x[wrong], ")");
      t.put(wrong ? ", needs a size: only the batch, the first axis, is known when the program runs"
                  : ", needs the batch: an axis without a size, as axis<B>");
    }
    t.put(" [model-images]");
    return t;
  }
};

/// What is wrong with what a model returns.
template <class Model, class Result>
struct OutputsProblem {
  constexpr Text operator()() const {
    Text t;
    if (!AnyTensor<Result>)
      t.put(Model::module_name)
          .put("::forward returns what is no tensor; a model has one output: join several with concat ")
          .put("or stack, or declare a model for each [model-output]");
    return t;
  }
};

/// Throws std::logic_error when a size other than the batch is known only when the program runs: nothing would say it.
inline void demand_that_only_the_batch_is_unknown(const graph::Graph& g, const Dim& batch) {
  const Symbol& symbol = batch.normal.term[0].factor[0];
  for (const graph::Node& n : g.nodes)
    for (const Dim& d : n.shape)
      for (int i = 0; i < d.normal.terms; ++i)
        for (int k = 0; k < d.normal.term[i].factors; ++k) {
          const Symbol& s = d.normal.term[i].factor[k];
          if (s.extent || s == symbol) continue;
          throw std::logic_error(g.name + " uses " + std::string(s.name) + " in " + described(g, n) +
                                 ": its size is not known, and only the batch, " + std::string(symbol.name) +
                                 ", may be left to when the program runs");
        }
}

}  // namespace detail

/// Runs Model's forward once and returns what it recorded: inputs "images" (the shape forward declares) and "labels"
/// ([B], integers, B being the images' first axis), every parameter under its checkpoint key, outputs "outputs" and
/// "loss" (the recipe's), and the recipe itself. Where the recipe softens labels there is an input "targets" as well,
/// of the shape of the outputs, and "training_loss", which is what is differentiated.
///
/// Model has one non-template forward of one tensor, and a static constexpr Recipe named recipe. Without a recipe there
/// are neither labels nor a loss, and what is generated is for inference. Throws std::logic_error for what only tracing
/// can see: results and parameters that nothing uses, parameters that would get no gradient, members missing from
/// TESSERA_MEMBERS, a Stack applied twice, a second axis without a size. Sentences: [model-images],
/// [model-output], [module-members].
template <class Model>
graph::Graph trace(std::string name) {
  using Signature = detail::Signature<decltype(&Model::forward)>;
  static_assert(std::tuple_size_v<typename Signature::arguments> == 1,
                "a model's forward takes one tensor, the images");
  using Images = std::tuple_element_t<0, typename Signature::arguments>;

  graph::Graph g;
  g.name = std::move(name);
  using Problem = detail::ImagesProblem<Model, Images>;
  if constexpr (poisoned<Images, typename Signature::result>) {
    return g;
  } else if constexpr (!requires { Model::module_name; }) {
    Refusal<detail::NoMembers<Model>>::poison();
  } else if constexpr (!fits<Problem>) {
    Refusal<Problem>::poison();
  } else if constexpr (!fits<detail::OutputsProblem<Model, typename Signature::result>>) {
    Refusal<detail::OutputsProblem<Model, typename Signature::result>>::poison();
  } else {
    if constexpr (!fits<detail::RecipeProblem<Model>>) Refusal<detail::RecipeProblem<Model>>::poison();
    constexpr Recipe recipe = detail::recipe_of<Model>();
    static_assert(recipe.loss == Loss::cross_entropy);
    g.recipe = recipe.record();

    graph::Builder builder(g);
    RecorderScope scope(builder);
    Model model;
    const Images images(builder.input("images", Images::shape.dims()));
    [[maybe_unused]] graph::NodeId labels = graph::none;
    using Labels = TensorOf<Dims<typename Images::dims::template at<0>>>;
    if constexpr (HasRecipe<Model>) labels = builder.input("labels", Labels::shape.dims(), graph::Type::integer);
    bind(model, "");
    const auto outputs = model(images);
    using Outputs = std::remove_const_t<decltype(outputs)>;
    if constexpr (!poisoned<Outputs>) {
      [[maybe_unused]] const auto add_loss = [&]<class L>(const char* name, const L& loss) {
        if constexpr (!poisoned<L>) g.outputs.push_back({graph::Output::Kind::loss, name, node_of(loss), graph::none});
      };
      g.outputs.push_back({graph::Output::Kind::value, "outputs", node_of(outputs), graph::none});
      if constexpr (HasRecipe<Model>) add_loss("loss", cross_entropy(outputs, Labels(labels)));
      detail::demand_that_only_the_batch_is_unknown(g, Images::shape[0]);
      detail::demand_that_everything_is_used(g);
      if constexpr (recipe.labels.any()) {
        using Targets = TensorOf<typename Outputs::dims>;
        add_loss("training_loss", cross_entropy(outputs, Targets(builder.input("targets", Targets::shape.dims()))));
      }
    }
  }
  return g;
}

}  // namespace tessera
