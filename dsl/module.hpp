// Modules: structs whose members are parameters and modules, reflected with Boost.Hana so that names are checkpoint
// keys.
#pragma once

#include <array>
#include <boost/hana/pair.hpp>
#include <boost/hana/string.hpp>
#include <boost/hana/tuple.hpp>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "dsl/parameter.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// The sentence for a module whose members nobody knows; the same for all, so that it is one error.
template <class...>
struct NoMembers {
  constexpr Text operator()() const {
    Text t;
    t.put("a module has no TESSERA_MEMBERS, by which its parameters get their keys and its forward is called: ");
    t.put("write TESSERA_MEMBERS(Self, member, ...) into it [module-members]");
    return t;
  }
};

}  // namespace detail

/// Base of every module: where it stands in the model, in checkpoint spelling.
struct Module {
  std::string path{};

  /// What a module without TESSERA_MEMBERS has in its place: the sentence [module-members].
  template <class... X>
  auto operator()(const X&...) const {
    if constexpr (poisoned<X...>)
      return Poison{};
    else
      return Refusal<detail::NoMembers<X...>>::poison();
  }
};

/// Base of a module that is a part of the module it stands in: its members' keys are those of that module. A module is
/// put together from such parts: Attention<FusedQkv> has a member of type FusedQkv, and its key is attn.qkv.
struct Part : Module {
  static constexpr bool is_part = true;
};

namespace detail {

/// "blocks" and "norm1" make "blocks.norm1"; the model itself has no name.
inline std::string join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

/// A name as a Hana string, which is what keys of a Hana struct are.
template <fixed_string Name, class Indices>
struct HanaString;
template <fixed_string Name, std::size_t... I>
struct HanaString<Name, std::index_sequence<I...>> {
  using type = boost::hana::string<Name.data[I]...>;
};

/// Reads the member that a pointer points to.
template <auto Pointer>
struct MemberOf {
  template <class M>
  constexpr auto& operator()(M& module) const {
    return module.*Pointer;
  }
};

/// The name of a member and a pointer to it.
template <fixed_string Name, auto Pointer>
struct Member {
  static constexpr const char* name = Name.data;
  static constexpr auto pointer = Pointer;
  using accessor = boost::hana::pair<typename HanaString<Name, std::make_index_sequence<sizeof(Name.data) - 1>>::type,
                                     MemberOf<Pointer>>;
};

/// All members of a module. The tuple of accessors, which makes it a Hana Struct, costs a hundred instantiations a
/// member and is made where somebody asks.
template <class... Members>
struct MemberList {
  static constexpr auto accessors() { return boost::hana::tuple<typename Members::accessor...>{}; }
};

}  // namespace detail

template <class M>
void bind(M& module, const std::string& path);

namespace detail {

/// Where a member of a module at `path` stands; a part stands where the module does.
template <class Member>
std::string path_of(const std::string& path, const char* name) {
  if constexpr (requires { Member::is_part; })
    return path;
  else
    return join(path, name);
}

/// Binds every member.
template <class M, class... Members>
void bind_members(M& module, const std::string& path, const MemberList<Members...>*) {
  bound_modules.push_back({M::module_name, path, &module, &module + 1,
                           [](const void* self, const void* member) {
                             const char* found = nullptr;
                             const void* nearest = self;
                             const auto look = [&](const void* listed, const char* name) {
                               if (!lies_before(listed, member) || lies_before(listed, nearest)) return;
                               nearest = listed;
                               found = name;
                             };
                             (look(&(static_cast<const M*>(self)->*Members::pointer), Members::name), ...);
                             static_cast<void>(look);  // where there are no members
                             return found;
                           },
                           M::module_file, M::module_line, M::module_list});
  (tessera::bind(module.*Members::pointer,
                 path_of<std::remove_cvref_t<decltype(module.*Members::pointer)>>(path, Members::name)),
   ...);
}

/// The parameter and result types of a forward that is no template.
template <class F>
struct Signature;
template <class M, class R, class... X>
struct Signature<R (M::*)(X...) const> {
  using result = R;
  using arguments = std::tuple<std::remove_cvref_t<X>...>;
  static constexpr bool constant = true;
};
template <class M, class R, class... X>
struct Signature<R (M::*)(X...)> : Signature<R (M::*)(X...) const> {
  static constexpr bool constant = false;
};

template <class M>
concept HasSignature = requires { typename Signature<decltype(&M::forward)>::result; };

/// Whether X is several tensors, as chunk and unstack give them.
template <class X>
inline constexpr bool is_tensors = false;
template <AnyTensor X, std::size_t n>
inline constexpr bool is_tensors<std::array<X, n>> = true;

/// Whether X can be passed where Wanted is declared, in words; nothing to say about what is neither a tensor nor some.
template <class Wanted, class X>
constexpr bool argument_fits() {
  if constexpr (AnyTensor<Wanted> && is_tensors<X>) return poisoned<Wanted, typename X::value_type>;
  if constexpr (AnyTensor<Wanted> && AnyTensor<X>) {
    if constexpr (poisoned<Wanted, X>)
      return true;
    else
      return Wanted::shape == X::shape;
  } else {
    return true;
  }
}

template <class M, class Wanted, class X>
constexpr void explain_argument(Text& t) {
  if constexpr (!argument_fits<Wanted, X>()) {
    if (t.size) return;
    t.put(M::module_name).put(" takes ");
    Wanted::shape.print(t);
    t.put(" and was given ");
    if constexpr (is_tensors<X>) {
      t.put(static_cast<std::int64_t>(std::tuple_size_v<X>)).put(" tensors ");
      X::value_type::shape.print(t);
      t.put(" (did you mean one of them?)");
    } else {
      X::shape.print(t);
      t.put(": ");
      explain_mismatch(t, X::shape, Wanted::shape);
    }
    t.put(" [module-input]");
  }
}

/// " ([B, N+1=197, D=192], [D=192])": the shapes of what are tensors and were not refused before.
template <class... Xs>
constexpr void put_arguments(Text& t) {
  const char* before = " (";
  auto put = [&]<class X>(const X*) {
    if constexpr (AnyTensor<X>) {
      if constexpr (!poisoned<X>) {
        t.put(before);
        X::shape.print(t);
        before = ", ";
      }
    }
  };
  (put(static_cast<const Xs*>(nullptr)), ...);
  if (before[0] == ',') t.put(")");
}

/// What is wrong with the arguments of M's forward; nothing where that is a template, which looks for itself.
template <class M, class... X>
struct CallProblem {
  constexpr Text operator()() const {
    Text t;
    if constexpr (HasSignature<M>) {
      if constexpr (!requires { M::module_name; }) return t;  // which has a sentence of its own
      if constexpr (!Signature<decltype(&M::forward)>::constant) {
        t.put(M::module_name).put("::forward has to be const, for a call changes nothing in a module: ");
        t.put("forward(...) const [module-forward]");
        return t;
      }
      explain(t, static_cast<const typename Signature<decltype(&M::forward)>::arguments*>(nullptr));
    }
    return t;
  }

  template <class... Wanted>
  static constexpr void explain(Text& t, const std::tuple<Wanted...>*) {
    if constexpr (sizeof...(Wanted) != sizeof...(X)) {
      t.put(M::module_name).put(" takes ").put(std::int64_t{sizeof...(Wanted)});
      t.put(sizeof...(Wanted) == 1 ? " tensor" : " tensors");
      put_arguments<Wanted...>(t);
      t.put(" and was given ").put(std::int64_t{sizeof...(X)});
      put_arguments<X...>(t);
      t.put(" [module-input]");
    } else {
      (explain_argument<M, Wanted, X>(t), ...);
    }
  }
};

}  // namespace detail

/// Gives every parameter below `module` its node, and every module its path. A Stack binds its block when it is called.
template <class M>
void bind(M& module, const std::string& path) {
  if constexpr (requires { module.bind(path); }) {
    module.bind(path);
  } else if constexpr (!requires { typename M::hana_accessors_impl; }) {
    Refusal<detail::NoMembers<M>>::poison();
  } else {
    module.path = path;
    PathScope scope(path);
    detail::bind_members(module, path, M::member_list());
  }
}

/// A module whose parameters get no gradient: they stay what a checkpoint says. Frozen<Lpips<S>> has Lpips' keys.
template <class M>
struct Frozen : M {
  void bind(const std::string& path) {
    const bool before = std::exchange(recorder().freezes, true);
    tessera::bind(static_cast<M&>(*this), path);
    recorder().freezes = before;
  }
};

}  // namespace tessera

// One TESSERA_MEMBER_ a member; rescanned by TESSERA_EXPAND_ until the list is empty (up to 64 members).
#define TESSERA_MEMBER_(Self, name) ::tessera::detail::Member<#name, &Self::name>
#define TESSERA_AGAIN_() TESSERA_LIST_
#define TESSERA_PARENS_ ()
#define TESSERA_LIST_(Self, name, ...) \
  TESSERA_MEMBER_(Self, name) __VA_OPT__(, TESSERA_AGAIN_ TESSERA_PARENS_(Self, __VA_ARGS__))
#define TESSERA_EXPAND_(...) TESSERA_EXPAND1_(TESSERA_EXPAND1_(TESSERA_EXPAND1_(TESSERA_EXPAND1_(__VA_ARGS__))))
#define TESSERA_EXPAND1_(...) TESSERA_EXPAND2_(TESSERA_EXPAND2_(TESSERA_EXPAND2_(TESSERA_EXPAND2_(__VA_ARGS__))))
#define TESSERA_EXPAND2_(...) TESSERA_EXPAND3_(TESSERA_EXPAND3_(TESSERA_EXPAND3_(TESSERA_EXPAND3_(__VA_ARGS__))))
#define TESSERA_EXPAND3_(...) __VA_ARGS__

/// Inside a module: its name and its members. Makes it a Hana Struct, and gives it an operator() that calls forward
/// under the module's path, after a look at the arguments: TESSERA_MEMBERS(Block, norm1, mhsa, norm2, mlp)
#define TESSERA_MEMBERS(Self, ...)                                                                             \
  [[maybe_unused]] static constexpr const char* module_name = #Self;                                           \
  [[maybe_unused]] static constexpr const char *module_file = __FILE__, *module_list = #__VA_ARGS__;           \
  [[maybe_unused]] static constexpr int module_line = __LINE__;                                                \
  static constexpr auto member_list() {                                                                        \
    using List = ::tessera::detail::MemberList<__VA_OPT__(TESSERA_EXPAND_(TESSERA_LIST_(Self, __VA_ARGS__)))>; \
    return static_cast<const List*>(nullptr);                                                                  \
  }                                                                                                            \
  struct hana_accessors_impl {                                                                                 \
    static constexpr auto apply() { return (*Self::member_list()).accessors(); }                               \
  };                                                                                                           \
  template <class... X>                                                                                        \
  auto operator()(const X&... x) const {                                                                       \
    if constexpr (::tessera::poisoned<X...>) {                                                                 \
      return ::tessera::Poison{};                                                                              \
    } else if constexpr (!::tessera::fits<::tessera::detail::CallProblem<Self, X...>>) {                       \
      return ::tessera::Refusal<::tessera::detail::CallProblem<Self, X...>>::poison();                         \
    } else {                                                                                                   \
      const ::tessera::PathScope scope(this->path);                                                            \
      return this->forward(x...);                                                                              \
    }                                                                                                          \
  }
