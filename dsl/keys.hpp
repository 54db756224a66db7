// The keys of a module's parameters, as they are known when a declaration is compiled; and what is wrong with the
// groups of keys of a step's two phases.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "dsl/diagnostic.hpp"
#include "dsl/list.hpp"
#include "dsl/module.hpp"
#include "dsl/parameter.hpp"
#include "dsl/recipe.hpp"
#include "dsl/sequential.hpp"
#include "dsl/stack.hpp"
#include "dsl/text.hpp"

namespace tessera {

namespace detail {

constexpr Text key_of(const Text& path, std::string_view name) {
  Text key = path;
  if (key.size) key.put(".");
  return key.put(name);
}
constexpr Text key_of(const Text& path, std::int64_t number) {
  Text key = path;
  if (key.size) key.put(".");
  return key.put(number);
}

/// visit(path, look) calls look(key) for each parameter of a module of type M at `path` that can be trained: neither a
/// buffer nor within Frozen. A module that binds its members itself has none here, and is looked at by trace alone.
template <class M>
struct TrainableKeys {
  template <class Look>
  static constexpr void visit(const Text& path, Look& look) {
    if constexpr (requires { typename M::hana_accessors_impl; }) members(path, look, M::member_list());
  }
  template <class Look, class... Members>
  static constexpr void members(const Text& path, Look& look, const MemberList<Members...>*) {
    (member<std::remove_cvref_t<decltype(std::declval<M&>().*Members::pointer)>>(path, Members::name, look), ...);
  }
  template <class Own, class Look>
  static constexpr void member(const Text& path, const char* name, Look& look) {
    if constexpr (requires { Own::is_part; })
      TrainableKeys<Own>::visit(path, look);
    else
      TrainableKeys<Own>::visit(key_of(path, name), look);
  }
};
template <auto... Ds>
struct TrainableKeys<Parameter<Ds...>> {
  template <class Look>
  static constexpr void visit(const Text& path, Look& look) {
    look(path.view());
  }
};
template <class M>
struct TrainableKeys<Frozen<M>> {
  template <class Look>
  static constexpr void visit(const Text&, Look&) {}
};
template <class... Ms>
struct TrainableKeys<Sequential<Ms...>> {
  template <class Look>
  static constexpr void visit(const Text& path, Look& look) {
    std::int64_t number = 0;
    (TrainableKeys<Ms>::visit(key_of(path, number++), look), ...);
  }
};
template <class... Ms>
struct TrainableKeys<InTurns<Ms...>> {
  /// Of a path that ends in "{}".
  template <class Look>
  static constexpr void visit(const Text& path, Look& look) {
    std::int64_t number = 0;
    (TrainableKeys<Ms>::visit(turn(path, number++), look), ...);
  }
  static constexpr Text turn(const Text& path, std::int64_t number) {
    Text key;
    key.put(path.view().substr(0, path.size - 1)).put(number).put(":").put(std::int64_t{sizeof...(Ms)});
    return key.put("}");
  }
};
template <class M, auto Count>
struct TrainableKeys<List<M, Count>> {
  template <class Look>
  static constexpr void visit(const Text& path, Look& look) {
    for (std::int64_t i = 0; i < count_of<Count>(); ++i) TrainableKeys<M>::visit(key_of(path, i), look);
  }
};
template <class Block, auto Count>
struct TrainableKeys<Stack<Block, Count>> {
  template <class Look>
  static constexpr void visit(const Text& path, Look& look) {
    TrainableKeys<Block>::visit(key_of(path, "{}"), look);
  }
};

template <class... Parts>
struct TrainableKeys<Stacks<Parts...>> {
  template <class Look>
  static constexpr void visit(const Text& path, Look& look) {
    std::int64_t first = 0;
    (numbered(path, look, first, static_cast<const Parts*>(nullptr)), ...);
  }
  template <class Look, class Block, auto Count>
  static constexpr void numbered(const Text& path, Look& look, std::int64_t& first, const Stack<Block, Count>*) {
    Text layer;
    layer.put("{");
    if (first) layer.put(first);
    layer.put("}");
    TrainableKeys<Block>::visit(key_of(path, layer.view()), look);
    first += count_of<Count>();
  }
};

/// "scale", or "scale and 2 others".
struct KeysFound {
  Text first;
  std::int64_t count = 0;

  constexpr void add(std::string_view key) {
    if (!count++) first.put(key);
  }
  constexpr void put_into(Text& t) const {
    t.put(first.view());
    if (count > 1) t.put(" and ").put(count - 1).put(count > 2 ? " others" : " other");
  }
};

/// What is wrong with the groups of keys of a model that is a phase of a step.
template <class Model>
struct PhaseProblem {
  constexpr Text operator()() const {
    Text t;
    constexpr Recipe recipe = recipe_of<Model>();
    if constexpr (recipe.phase.which > 0) {
      KeysFound twice, never;
      auto look = [&](std::string_view key) {
        const bool first = recipe.phase.keys[0].have(key), second = recipe.phase.keys[1].have(key);
        if (first && second) twice.add(key);
        if (!first && !second) never.add(key);
      };
      TrainableKeys<Model>::visit(Text{}, look);
      if (!twice.count && !never.count) return t;
      t.put("phase.keys of ")
          .put(Model::module_name)
          .put(twice.count ? ": both phases train " : ": neither phase trains ");
      (twice.count ? twice : never).put_into(t);
      t.put(twice.count ? "; each parameter belongs to one" : "; what neither trains has to be Frozen or a Buffer");
      t.put(" [phase-keys]");
    }
    return t;
  }
};

/// What is wrong with a key as that of a parameter that the phase `Model` trains.
template <class Model, fixed_string key>
struct HalfParameterProblem {
  constexpr Text operator()() const {
    Text t;
    bool found = false;
    auto look = [&](std::string_view known) { found = found || known == key.view(); };
    TrainableKeys<Model>::visit(Text{}, look);
    if (found && recipe_of<Model>().phase.train(key.view())) return t;
    t.put(key.view()).put(found ? " is not trained by " : " is no parameter of ").put(Model::module_name);
    if (found) t.put(", which is phase ").put(recipe_of<Model>().phase.which).put(" of its step");
    return t.put(" [phase-keys]");
  }
};

template <fixed_string key, std::size_t from, class M>
const auto& parameter_at(const M& module);

template <fixed_string key, std::size_t from, class M, class First, class... Rest>
const auto& parameter_among(const M& module, const MemberList<First, Rest...>*) {
  constexpr std::string_view rest = key.view().substr(from), name = First::name;
  if constexpr (rest == name)
    return module.*First::pointer;
  else if constexpr (rest.starts_with(name) && rest[name.size()] == '.')
    return parameter_at<key, from + name.size() + 1>(module.*First::pointer);
  else
    return parameter_among<key, from>(module, static_cast<const MemberList<Rest...>*>(nullptr));
}

template <fixed_string key, std::size_t from, class... Ms>
const auto& parameter_among(const Sequential<Ms...>& modules) {
  constexpr std::string_view rest = key.view().substr(from);
  constexpr std::size_t end = rest.find('.');
  constexpr int number = [] {
    int value = 0;
    for (const char digit : rest.substr(0, end)) value = 10 * value + (digit - '0');
    return value;
  }();
  return parameter_at<key, from + end + 1>(modules.template at<number>());
}

template <fixed_string key, std::size_t from, class M>
const auto& parameter_at(const M& module) {
  if constexpr (requires { typename M::hana_accessors_impl; })
    return parameter_among<key, from>(module, M::member_list());
  else
    return parameter_among<key, from>(module);
}

}  // namespace detail

/// The parameter of this key, of those that the phase trains: phase_parameter<"decoder.conv_out.weight">(*this). Its
/// path leads through modules with TESSERA_MEMBERS and Sequentials. Sentence: [phase-keys].
template <fixed_string key, class Model>
decltype(auto) phase_parameter(const Model& phase) {
  using Problem = detail::HalfParameterProblem<Model, key>;
  if constexpr (!fits<Problem>)
    return Refusal<Problem>::poison();
  else
    return detail::parameter_at<key, 0>(phase);
}

}  // namespace tessera
