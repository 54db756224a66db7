// Repeat: one block applied several times, with the same parameters every time; traced once.
#pragma once

#include <stdexcept>
#include <string>

#include "dsl/module.hpp"

namespace tessera {

/// Applies a block `Count` times, the output of one time being the input of the next: Repeat<6> blocks; and then
/// blocks(x, block). The block is a module, or a function of one tensor, whose parameters are bound elsewhere: it is
/// recorded once, as a region that runs Count times and has no parameters of its own, so that all times share the
/// weights and their gradients add up. It returns the shape that it takes, else [repeat-shape]. A Repeat has no
/// checkpoint keys; its name is that of the region.
/// PyTorch equivalent: for _ in range(count): x = block(x).
///
/// Throws std::logic_error while tracing when one Repeat is applied twice or stands within another, or in a Stack.
template <auto Count>
struct Repeat {
  std::string path{};

  template <AnyTensor X, class Block>
  auto operator()(const X& x, const Block& block) const {
    using Out = decltype(block(x));
    constexpr auto problem = [] {
      Text t;
      if constexpr (!poisoned<X, Out>) {
        if (X::shape == Out::shape) return t;
        t.put("Repeat applies a block that takes ");
        X::shape.print(t);
        t.put(" and returns ");
        Out::shape.print(t);
        t.put(": ");
        explain_mismatch(t, Out::shape, X::shape);
        t.put("; it has to return the shape it takes [repeat-shape]");
      }
      return t;
    };
    if constexpr (poisoned<X, Out>) {
      return Poison{};
    } else if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      using Value = TensorOf<typename X::dims>;
      graph::Builder& builder = recorder();
      if (builder.region != 0) throw std::logic_error(path + " stands within another repeated block; they do not nest");
      for (const graph::Region& region : builder.graph().regions)
        if (region.path == path) throw std::logic_error(path + " is applied twice; declare a Repeat for each");
      builder.begin_region(path, count_of<Count>());
      const Value carried(builder.carry(node_of(x)));
      const Value left = block(carried);
      return Value(builder.end_region({node_of(left)}).front());
    }
  }

  void bind(const std::string& where) { path = where; }
};

}  // namespace tessera
