// Sequential: modules applied one after the other.
#pragma once

#include <boost/hana/at.hpp>
#include <boost/hana/fold_left.hpp>
#include <boost/hana/fold_right.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>
#include <stdexcept>
#include <string>

#include "dsl/module.hpp"

namespace tessera {

namespace detail {

struct ApplyNext {
  template <class X, class M>
  auto operator()(const X& x, const M& module) const {
    return module(x);
  }
};

struct ApplyBefore {
  template <class M, class X>
  auto operator()(const M& module, const X& x) const {
    return module(x);
  }
};

struct BindNumbered {
  const std::string& path;
  int& number;
  template <class M>
  void operator()(M& module) const {
    tessera::bind(module, join(path, std::to_string(number++)));
  }
};

}  // namespace detail

/// Sequential<Linear<D, M>, Gelu, Linear<M, D>>: each module takes what the one before it gave. Keys are path.0,
/// path.1,
/// ..., where modules without parameters count as well.
/// PyTorch equivalent: torch.nn.Sequential.
template <class... Ms>
struct Sequential {
  static constexpr const char* module_name = "Sequential";
  boost::hana::tuple<Ms...> modules{};

  template <class X>
  auto operator()(const X& x) const {
    return boost::hana::fold_left(modules, x, detail::ApplyNext{});
  }

  /// From the last module to the first.
  template <class X>
  auto backwards(const X& x) const {
    return boost::hana::fold_right(modules, x, detail::ApplyBefore{});
  }

  /// Module number i, for what stands between two of them.
  template <int i>
  const auto& at() const {
    return boost::hana::at_c<i>(modules);
  }

  void bind(const std::string& path) {
    int number = 0;
    boost::hana::for_each(modules, detail::BindNumbered{path, number});
  }
};

/// Modules in turns, as the block of a Stack: the layers of Stack<InTurns<A, B>, 3> blocks are A, B, A, B, A, B, with
/// the keys blocks.0 to blocks.5. It is recorded once for each of the modules, whose parameter keys hold {0:2} and
/// {1:2} for the layer number. Not within Stacks, which number layers of their own.
/// PyTorch equivalent: a torch.nn.ModuleList of modules in turns, applied in a loop.
template <class... Ms>
struct InTurns : Sequential<Ms...> {
  static constexpr const char* module_name = "InTurns";

  void bind(const std::string& path) {
    if (!path.ends_with("{}")) throw std::logic_error(path + " is InTurns, and the block of no Stack");
    int number = 0;
    const std::string turns = ":" + std::to_string(sizeof...(Ms)) + "}";
    boost::hana::for_each(this->modules, [&](auto& module) {
      tessera::bind(module, path.substr(0, path.size() - 1) + std::to_string(number++) + turns);
    });
  }
};

}  // namespace tessera
