// trace: a declaration, run once, becomes a graph.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "dsl/graph/builder.hpp"
#include "dsl/keys.hpp"
#include "dsl/losses.hpp"
#include "dsl/module.hpp"
#include "dsl/ops/arithmetic.hpp"
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
    t.put(Model::module_name).put(is_integers<Images> ? " takes tokens " : " takes images ");
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
    if constexpr (AnyTensor<Result> && HasDepth<Model>) {
      using Images = std::tuple_element_t<0, typename Signature<decltype(&Model::forward)>::arguments>;
      constexpr const Shape &x = Images::shape, &y = Result::shape;
      if (x.rank == 4 && y.rank == 3 && y[0] == x[0] && y[1] == x[2] && y[2] == x[3]) return t;
      t.put(Model::module_name).put(" tells depths, of images ");
      x.print(t);
      t.put(", and returns ");
      y.print(t);
      t.put(": a depth is a number a pixel, [B, height, width] of images [B, C, height, width] [model-output]");
    }
    return t;
  }
};

/// What is wrong with a model's own loss.
template <class Model, class Images, class Outputs>
struct LossProblem {
  constexpr Text operator()() const {
    Text t;
    if constexpr (HasLoss<Model>) {
      t.put(Model::module_name);
      if constexpr (!HasRecipe<Model>) {
        t.put(" has a loss and no recipe, which says how it is trained: static constexpr Recipe recipe{}");
      } else if constexpr (!requires { typename Signature<decltype(&Model::loss)>::result; }) {
        t.put("::loss is no member function with shapes: ").put(as_written);
      } else {
        using Own = Signature<decltype(&Model::loss)>;
        if (!Own::constant)
          t.put("::loss has to be const: ").put(as_written);
        else
          explain(t, static_cast<const typename Own::arguments*>(nullptr));
      }
      if (t.view() == Model::module_name) return {};
      t.put(" [model-loss]");
    }
    return t;
  }

 private:
  static constexpr const char* as_written =
      "Tensor<> loss(Tensor<B, J> outputs, Tensor<B> labels) const, or of targets of another shape";

  template <class... X>
  static constexpr void explain(Text& t, const std::tuple<X...>*) {
    if constexpr (sizeof...(X) != 2)
      t.put("::loss takes ").put(std::int64_t{sizeof...(X)}).put(" and not two: ").put(as_written);
    else
      explain_pair<X...>(t);
  }

  template <class Of, class Wanted>
  static constexpr void explain_pair(Text& t) {
    using Result = typename Signature<decltype(&Model::loss)>::result;
    if constexpr (!AnyTensor<Of> || !AnyTensor<Wanted> || !AnyTensor<Result>) {
      t.put("::loss is not of tensors alone: ").put(as_written);
    } else if constexpr (!poisoned<Of, Wanted, Result>) {
      int known = 1;  // axes of the targets, the batch first
      while (known < Wanted::shape.rank && Wanted::shape[known].known()) ++known;
      if (!(Of::shape == Outputs::shape)) {
        t.put("::loss takes outputs ");
        Of::shape.print(t);
        t.put(", and forward gives ");
        Outputs::shape.print(t);
        t.put(": ");
        explain_mismatch(t, Outputs::shape, Of::shape);
      } else if (!Wanted::shape.rank || !(Wanted::shape[0] == Images::shape[0]) || known < Wanted::shape.rank) {
        t.put("::loss takes targets ");
        Wanted::shape.print(t);
        t.put(": their first axis, and no other, is the batch, ");
        Images::shape[0].print(t);
      } else if (Result::shape.rank) {
        t.put("::loss gives ");
        Result::shape.print(t);
        t.put(": a loss is one number (did you mean the mean of it?)");
      } else if (recipe_of<Model>().loss != Loss::cross_entropy || recipe_of<Model>().labels.any()) {
        t.put(" has a loss of its own, and its recipe ");
        t.put(recipe_of<Model>().labels.any() ? "softens labels, which is for the cross entropy alone"
                                              : "says that it is the caller who has one");
      }
    }
  }
};

template <class Model, class Images>
concept HasLosses =
    requires(const Model& model, const Images& images, const Tensor<>& factor) { model.losses(images, factor); };

/// A phase that does not say what it makes small.
template <class Model, class Images>
struct LossesProblem {
  constexpr Text operator()() const {
    Text t;
    if (recipe_of<Model>().phase.which > 0 && !HasLosses<Model, Images>) {
      t.put(Model::module_name)
          .put(" is a phase of a training step and has no losses: Losses losses(Tensor<...> images, ");
      t.put("Tensor<> factor) const [model-loss]");
    }
    return t;
  }
};

/// What the loss compares the outputs with: labels, targets, or the gradient of the caller's loss.
template <class Model, class Images, class Outputs>
struct Compared {
  static constexpr bool with_gradients = recipe_of<Model>().loss == Loss::of_caller;

  static auto declared() {
    if constexpr (HasLoss<Model>)
      return std::tuple_element_t<1, typename Signature<decltype(&Model::loss)>::arguments>();
    else if constexpr (with_gradients)
      return Outputs();
    else if constexpr (Outputs::shape.rank > 2)
      return IntegersOf<remove_axis<typename Outputs::dims, Outputs::shape.rank - 1>>();
    else
      return TensorOf<Dims<typename Images::dims::template at<0>>>();
  }
  using type = decltype(declared());

  /// Integers, and what has no axis beside the batch, are labels.
  static graph::NodeId record(graph::Builder& builder) {
    const std::vector<Dim> shape = type::shape.dims();
    if (with_gradients) return builder.input("output_gradients", shape);
    if (is_integers<type> || type::shape.rank == 1) return builder.input("labels", shape, graph::Type::integer);
    return builder.input("targets", shape);
  }

  static auto loss(const Model& model, const Outputs& outputs, const type& wanted) {
    if constexpr (HasLoss<Model>)
      return model.loss(outputs, wanted);
    else if constexpr (with_gradients)
      return sum(outputs * wanted);
    else
      return cross_entropy(outputs, wanted);
  }
};

/// Parameters that another phase trains, or none, get no gradient. Throws std::logic_error for those that both phases
/// train, and for those that neither does though they are not frozen: what is left of [phase-keys] where a module binds
/// its members itself.
inline void freeze_other_phase(graph::Graph& g, const Phases& phase) {
  std::string twice, never;
  for (graph::Node& n : g.nodes) {
    if (n.op != graph::Op::parameter || !n.trained) continue;
    const bool first = phase.keys[0].have(n.name), second = phase.keys[1].have(n.name);
    std::string* const wrong = first && second ? &twice : !first && !second ? &never : nullptr;
    if (wrong) *wrong += (wrong->empty() ? "" : ", ") + n.name;
    n.trained = phase.train(n.name);
  }
  if (!twice.empty()) throw std::logic_error(g.name + ": both phases of its training step train " + twice);
  if (!never.empty()) throw std::logic_error(g.name + ": neither phase of its training step trains " + never);
}

/// What the phase's losses gave, as outputs: "loss", "losses", and the new values of buffers.
inline void add_losses(graph::Builder& builder, const Losses& losses) {
  graph::Graph& g = builder.graph();
  std::vector<graph::NodeId> row;
  for (const auto& [name, loss] : losses.reported) {
    g.losses.push_back(name);
    row.push_back(builder.broadcast(node_of(loss), {Dim::constant(1)}, {}));
  }
  if (row.empty()) throw std::logic_error(g.name + "::losses reports no numbers");
  const auto count = static_cast<std::int64_t>(row.size());
  const graph::NodeId all = row.size() == 1 ? row.front() : builder.concat(row, 0, Dim::constant(count));
  g.outputs.push_back({graph::Output::Kind::loss, "loss", node_of(losses.minimised), graph::none});
  g.outputs.push_back({graph::Output::Kind::value, "losses", all, graph::none});
  for (const auto& [parameter, value] : builder.assigned) {
    if (g[parameter].trained)
      throw std::logic_error(g.name + " assigns " + g[parameter].name + ", which its phase of the step trains");
    g.outputs.push_back({graph::Output::Kind::gradient, g[parameter].name, value, parameter});
  }
}

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

/// Runs Model's forward once and returns what it recorded: inputs "images" (the shape forward declares; "tokens" where
/// these are Integers) and "labels" ([B], integers, B being the images' first axis, or [B, T] of outputs [B, T, J]),
/// every parameter under its checkpoint key, outputs "outputs" and "loss" (the recipe's), and the recipe itself. Where
/// the recipe softens labels there is an input "targets" as well, of the shape of the outputs, and "training_loss",
/// which is what is differentiated.
///
/// A model may have a loss of its own, of its outputs and of labels, Tensor<B> or Integers<B, ...>, or real targets of
/// any other shape:
///   Tensor<> loss(Tensor<B, J> outputs, Tensor<B, J> targets) const { return mean(abs(outputs - targets)); }
/// Targets are then the input "targets", in the place of "labels". With Loss::of_caller there is an input
/// "output_gradients" instead, of the shape of the outputs, and "loss" is the sum of their products, whose gradients
/// are those of the caller's loss.
///
/// A phase of a training step (Recipe::phase) has, in the place of a loss, what it makes small and what it reports:
///   Losses losses(Images images, Tensor<> factor) const
/// with an input "factor", one number of the caller, and the outputs "loss" and "losses", a row of what is reported. A
/// parameter of the other phase gets no gradient, nor does a Frozen one; what was assigned is its new value.
///
/// A model that tells how far each pixel of its images is away has a static constexpr Depth named depth.
///
/// Model has one non-template forward of one tensor, and a static constexpr Recipe named recipe. Without a recipe there
/// are neither labels nor a loss, and what is generated is for inference. Throws std::logic_error for what only tracing
/// can see: results and parameters that nothing uses, parameters that would get no gradient, members missing from
/// TESSERA_MEMBERS, a Stack applied twice, a second axis without a size. Sentences: [model-images],
/// [model-output], [model-loss], [module-members], [recipe], [phase-keys].
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
  } else if constexpr (!fits<detail::LossProblem<Model, Images, typename Signature::result>>) {
    Refusal<detail::LossProblem<Model, Images, typename Signature::result>>::poison();
  } else {
    if constexpr (!fits<detail::RecipeProblem<Model>>)
      Refusal<detail::RecipeProblem<Model>>::poison();
    else if constexpr (!fits<detail::PhaseProblem<Model>>)
      Refusal<detail::PhaseProblem<Model>>::poison();
    else if constexpr (!fits<detail::LossesProblem<Model, Images>>)
      Refusal<detail::LossesProblem<Model, Images>>::poison();
    constexpr Recipe recipe = detail::recipe_of<Model>();
    g.recipe = recipe.record();
    if constexpr (detail::HasDepth<Model>) g.depth = static_cast<graph::Depth>(Model::depth);

    graph::Builder builder(g);
    RecorderScope scope(builder);
    Model model;
    const Images images(is_integers<Images> ? builder.input("tokens", Images::shape.dims(), graph::Type::integer)
                                            : builder.input("images", Images::shape.dims()));
    using Compared = detail::Compared<Model, Images, typename Signature::result>;
    [[maybe_unused]] graph::NodeId wanted = graph::none;
    constexpr bool phase = recipe.phase.which > 0 && detail::HasLosses<Model, Images>;
    if constexpr (HasRecipe<Model> && recipe.phase.which == 0) wanted = Compared::record(builder);
    if constexpr (phase) wanted = builder.input("factor", {});
    bind(model, "");
    if constexpr (phase) detail::freeze_other_phase(g, recipe.phase);
    const auto outputs = model(images);
    using Outputs = std::remove_const_t<decltype(outputs)>;
    if constexpr (!poisoned<Outputs>) {
      [[maybe_unused]] const auto add_loss = [&]<class L>(const char* name, const L& loss) {
        if constexpr (!poisoned<L>) g.outputs.push_back({graph::Output::Kind::loss, name, node_of(loss), graph::none});
      };
      g.outputs.push_back({graph::Output::Kind::value, "outputs", node_of(outputs), graph::none});
      if constexpr (phase)
        detail::add_losses(builder, model.losses(images, Tensor<>(wanted)));
      else if constexpr (HasRecipe<Model> && recipe.phase.which == 0)
        add_loss("loss", Compared::loss(model, outputs, typename Compared::type(wanted)));
      detail::demand_that_only_the_batch_is_unknown(g, Images::shape[0]);
      detail::demand_that_everything_is_used(g);
      if constexpr (recipe.labels.any()) {
        using Targets = TensorOf<typename Outputs::dims>;
        add_loss("training_loss", cross_entropy(outputs, Targets(builder.input("targets", Targets::shape.dims()))));
      }
      g.modules = detail::modules_of_declaration();
    }
  }
  return g;
}

}  // namespace tessera
