// gather: rows of a table by their numbers; Embedding: a learned table.
#pragma once

#include "dsl/module.hpp"

namespace tessera {

namespace detail {

template <class A, class B>
struct JoinDims;
template <class... As, class... Bs>
struct JoinDims<Dims<As...>, Dims<Bs...>> {
  using type = Dims<As..., Bs...>;
};

}  // namespace detail

/// The rows of a table [V, ...] at integers of any shape: [...numbers, ...row]. They are an input of
/// integers, from 0 to V-1. Sentence: [gather-table].
/// PyTorch equivalent: table[numbers].
template <AnyTensor Table, AnyTensor Numbers>
auto gather(const Table& table, const Numbers& numbers) {
  if constexpr (poisoned<Table, Numbers>) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      Text t;
      const bool room = Table::shape.rank && Table::shape.rank + Numbers::shape.rank - 1 <= Shape::capacity;
      const bool rows = Table::shape.rank == 2 && Numbers::shape.rank > 1 && Numbers::shape.back() == Table::shape[1];
      if (room && !rows) return t;
      t.put("gather of ");
      Table::shape.print(t);
      t.put(" by ");
      Numbers::shape.print(t);
      if (room)
        t.put(": these are rows already, and not their numbers (did you mean the table, weight, itself?)");
      else
        t.put(Table::shape.rank ? ": the result would have more than 12 axes"
                                : ": the table has no rows, needs [V, ...]");
      t.put(" [gather-table]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      using Row = remove_axis<typename Table::dims, 0>;
      return TensorOf<typename detail::JoinDims<typename Numbers::dims, Row>::type>(
          recorder().gather(node_of(table), node_of(numbers)));
    }
  }
}

/// A learned row of D numbers for each of V integers: [...] -> [..., D]. Key: weight [V, D], which starts normal
/// with deviation 1 and does not decay.
/// PyTorch equivalent: torch.nn.Embedding(V, D).
template <DimExpression auto V, DimExpression auto D>
struct Embedding : Module {
  Parameter<V, D> weight{normal(0, 1)};
  TESSERA_MEMBERS(Embedding, weight)

  template <AnyTensor Numbers>
  auto forward(const Numbers& numbers) const {
    return gather(weight, numbers);
  }
};

}  // namespace tessera
