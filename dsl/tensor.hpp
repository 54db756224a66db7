// Tensors: the shape is in the type, the value is a node of the graph that is being traced.
#pragma once

#include <concepts>
#include <stdexcept>
#include <type_traits>

#include "dsl/mismatch.hpp"
#include "dsl/recorder.hpp"
#include "dsl/shape.hpp"

namespace tessera {

/// Tensor<B, N + 1_c, D>. Tensors whose dims have equal normal forms convert into each other, which is the identity and
/// makes the declared names the ones that are shown; every other conversion is the sentence [conversion]. A plain
/// number among the dims is [dim-number].
template <auto... Ds>
struct Tensor {
  using dims = Dims<detail::dim_of<Ds>...>;
  static constexpr Shape shape = dims::shape;

  graph::NodeId id = graph::none;

  Tensor() = default;
  explicit Tensor(graph::NodeId node) : id(node) {}
  Tensor(Poison) {}

  // constexpr, though a recorded value is no constant: of what a header includes clangd leaves out the bodies of other
  // functions whose type is declared, and with this one's the sentence.
  template <auto... Es>
  constexpr Tensor(const Tensor<Es...>& other) : id(other.id) {
    constexpr auto problem = [] {
      Text t;
      using Other = typename Tensor<Es...>::dims;
      if (dims::poisoned || Other::poisoned || Other::shape == shape) return t;
      t.put("conversion of ");
      Other::shape.print(t);
      t.put(" to the declared ");
      shape.print(t);
      t.put(": ");
      Text idea;
      explain_mismatch(idea, Other::shape, shape, "a ");
      if (!says_what_was_meant(idea)) {
        const bool in_brackets = idea.size > 0 && idea.view().back() == ')';
        if (in_brackets) --idea.size;
        idea.put(in_brackets ? "; " : " (").put("did you mean to declare ");
        Other::shape.print(idea);
        idea.put("?)");
      }
      t.put(idea.view());
      t.put(" [conversion]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) Refusal<decltype(problem)>::poison();
    // The same numbers under the names that the declaration gives them: this is what summaries and emitted code show.
    if (id != graph::none) recorder().graph()[id].shape = shape.dims();
  }
};

/// Integers<B, T>: integers of 32 bits, as tokens and labels are. They are rows of a table (gather), positions of
/// ones (one_hot) or the labels of a cross entropy; the generator refuses arithmetic on them.
template <auto... Ds>
struct Integers : Tensor<Ds...> {
  using Tensor<Ds...>::Tensor;
};

template <class X>
inline constexpr bool is_integers = false;
template <auto... Ds>
inline constexpr bool is_integers<Integers<Ds...>> = true;

/// A tensor, a parameter, or the poison of a refused operation.
template <class X>
concept AnyTensor = std::same_as<X, Poison> || requires {
  typename X::dims;
  X::shape;
};

/// Whether an error was already reported for X: then nothing more is to be said about it.
template <class X>
constexpr bool is_poisoned() {
  if constexpr (std::same_as<X, Poison>)
    return true;
  else if constexpr (AnyTensor<X>)
    return X::dims::poisoned;
  else
    return false;
}
template <class... X>
inline constexpr bool poisoned = (is_poisoned<X>() || ...);

namespace detail {

template <class D>
struct MakeTensor;
template <class... Es>
struct MakeTensor<Dims<Es...>> {
  using type = Tensor<Es{}...>;
};

}  // namespace detail

/// The tensor whose shape is a Dims.
template <class D>
using TensorOf = typename detail::MakeTensor<D>::type;

namespace detail {

template <class D>
struct MakeIntegers;
template <class... Es>
struct MakeIntegers<Dims<Es...>> {
  using type = Integers<Es{}...>;
};

}  // namespace detail

/// The integers whose shape is a Dims.
template <class D>
using IntegersOf = typename detail::MakeIntegers<D>::type;

/// The node of a tensor, to be an operand. Throws std::logic_error for one that nothing has computed.
template <AnyTensor X>
graph::NodeId node_of(const X& x) {
  if (x.id == graph::none) {
    detail::demand_listed(&x);
    throw std::logic_error("a default Tensor is used, which has no value");
  }
  return x.id;
}

}  // namespace tessera
