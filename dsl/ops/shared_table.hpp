// Tables of fixed numbers: one of a name stands once in a region.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// The table of this name in the region that is being recorded; its numbers are made by fill() when it is new.
template <class Table, class Fill>
Table shared_table(std::string name, const Fill& fill) {
  graph::Builder& r = recorder();
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(r.graph().nodes.size()); ++id) {
    const graph::Node& node = r.graph()[id];
    if (node.op == graph::Op::table && node.name == name && node.region == r.region &&
        node.shape == Table::shape.dims())
      return Table(id);
  }
  return Table(r.table(std::move(name), Table::shape.dims(), fill()));
}

/// The sentence for a table of a size that is not known.
constexpr Text table_problem(const char* op, const Shape& shape) {
  Text t;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape[i].known() || t.size) continue;
    t.put(op).put(" ");
    shape.print(t);
    t.put(" needs sizes that are known when the program is compiled [dim-unknown]");
  }
  return t;
}

}  // namespace detail

/// A table [Ds...] of fixed numbers, row-major, made by fill(): table<L>("rates", [] { return std::vector{...}; }). One
/// of a name stands once in a region. Sentence: [dim-unknown]. PyTorch equivalent: a buffer.
template <DimExpression auto... Ds, class Fill>
auto table(std::string name, const Fill& fill) {
  using Table = Tensor<Ds...>;
  if constexpr (Table::dims::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::table_problem("table", Table::shape); };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else
      return detail::shared_table<Table>(std::move(name), fill);
  }
}

}  // namespace tessera
