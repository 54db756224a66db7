// Contracts: how many parameters a model has and what they weigh, from the declaration alone.
//
//   static_assert(parameter_count<VitBase>() == 86'567'656);
//   static_assert(parameter_bytes<VitBase>() + optimizer_bytes<VitBase>() < 2_GiB);
//
// Nothing is traced and nothing is generated. What depends on the batch (activations, FLOPs, all that a training step
// needs) is known when the kernels are planned and stands in the emitted header: NAME_TRAIN_BYTES(batch, at_once).
#pragma once

#include <boost/hana/accessors.hpp>
#include <boost/hana/integral_constant.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/unpack.hpp>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "dsl/list.hpp"
#include "dsl/module.hpp"
#include "dsl/parameter.hpp"
#include "dsl/recipe.hpp"
#include "dsl/repeat.hpp"
#include "dsl/sequential.hpp"
#include "dsl/stack.hpp"

namespace tessera {

namespace detail {

/// How many numbers are learned in an M: the sum over the members of a module.
template <class M>
struct ParameterCount {
  template <class... Members>
  struct OfMembers {
    static constexpr std::int64_t value =
        (std::int64_t{0} + ... +
         ParameterCount<
             std::remove_cvref_t<decltype(boost::hana::second(std::declval<Members>())(std::declval<M&>()))>>::value);
  };
  template <class... Members>
  static OfMembers<Members...> members(const boost::hana::tuple<Members...>&);

  static constexpr std::int64_t value = decltype(members(boost::hana::accessors<M>()))::value;
};

template <auto... Ds>
struct ParameterCount<Parameter<Ds...>> {
  static constexpr std::int64_t value = Parameter<Ds...>::count();
};

template <class Block, auto Count>
struct ParameterCount<Stack<Block, Count>> {
  static constexpr std::int64_t value = count_of<Count>() * ParameterCount<Block>::value;
};

template <class... Parts>
struct ParameterCount<Stacks<Parts...>> {
  static constexpr std::int64_t value = (std::int64_t{0} + ... + ParameterCount<Parts>::value);
};

template <class M, auto Count>
struct ParameterCount<List<M, Count>> {
  static constexpr std::int64_t value = count_of<Count>() * ParameterCount<M>::value;
};

template <class... Ms>
struct ParameterCount<Sequential<Ms...>> {
  static constexpr std::int64_t value = (std::int64_t{0} + ... + ParameterCount<Ms>::value);
};

template <class... Ms>
struct ParameterCount<InTurns<Ms...>> : ParameterCount<Sequential<Ms...>> {};

/// The block that is repeated is a member of its own, and its weights are the same every time.
template <auto Count>
struct ParameterCount<Repeat<Count>> {
  static constexpr std::int64_t value = 0;
};

}  // namespace detail

/// How many numbers a model, or any part of one, learns: what is shared counts once, each layer of a Stack by itself.
/// PyTorch equivalent: sum(p.numel() for p in model.parameters()).
template <class Model>
consteval std::int64_t parameter_count() {
  return detail::ParameterCount<Model>::value;
}

/// The bytes of a model's parameters in single precision, and of their gradients. What is emitted may have gaps between
/// layers, so that they start at round addresses: NAME_PARAMETER_BYTES has them.
/// PyTorch equivalent: sum(p.numel() * p.element_size() for p in model.parameters()).
template <class Model>
consteval std::int64_t parameter_bytes() {
  return 4 * parameter_count<Model>();
}

/// The bytes of what a model's optimiser keeps, in single precision: of each parameter two moments for Adam, a velocity
/// for descent with momentum, and an average where the recipe wants one. NAME_OPTIMIZER_BYTES has the gaps as well.
template <class Model>
consteval std::int64_t optimizer_bytes() {
  constexpr bool descent = Model::recipe.optimizer.kind == Optimizer::sgd;
  constexpr int moments = descent ? (Model::recipe.optimizer.momentum > 0 ? 1 : 0) : 2;
  constexpr int averages = Model::recipe.average > 0 ? 1 : 0;
  return (moments + averages) * parameter_bytes<Model>();
}

namespace literals {

/// Sizes of memory, to compare with: 8_GiB is 8 * 2^30 bytes.
consteval std::int64_t operator""_KiB(unsigned long long n) { return static_cast<std::int64_t>(n) << 10; }
consteval std::int64_t operator""_MiB(unsigned long long n) { return static_cast<std::int64_t>(n) << 20; }
consteval std::int64_t operator""_GiB(unsigned long long n) { return static_cast<std::int64_t>(n) << 30; }

}  // namespace literals

}  // namespace tessera
