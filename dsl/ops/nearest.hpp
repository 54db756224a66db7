// nearest: for each row the row of a table that is nearest to it; integers: reals that rows are taken by.
#pragma once

#include "dsl/mismatch.hpp"
#include "dsl/ops/argmax.hpp"
#include "dsl/ops/einsum.hpp"
#include "dsl/ops/embedding.hpp"

namespace tessera {

namespace detail {

constexpr Text nearest_problem(const Shape& rows, const Shape& table) {
  Text t;
  if (rows.rank >= 1 && table.rank == 2 && rows.back() == table[1] && table[0].known()) return t;
  t.put("nearest of ");
  rows.print(t);
  t.put(" among ");
  table.print(t);
  if (rows.rank >= 1 && table.rank == 2 && rows.back() == table[1]) {
    t.put(" needs the number of codes, which is known only when the program runs [dim-unknown]");
    return t;
  }
  if (rows.rank < 1 || table.rank != 2) {
    t.put(": it needs rows [..., D] and a table of codes [K, D]");
  } else {
    t.put(": axis ").put(std::int64_t{rows.rank} - 1).put(" of the rows is ");
    rows.back().print(t);
    t.put(", needs ");
    table[1].print(t);
    Shape moved;  // with the width of a code last
    int width = 0;
    while (width < rows.rank && !(rows[width] == table[1])) ++width;
    for (int i = 0; i < rows.rank; ++i)
      if (i != width) moved.dim[moved.rank++] = rows.dim[i];
    moved.dim[moved.rank++] = table.dim[1];
    if (rows.back() == table[0]) {
      t.put(" (did you mean a table ");
      Shape{2, {table.dim[1], table.dim[0]}}.print(t);
      t.put("?)");
    } else if (width < rows.rank && suggest_rearrange(t, " (", rows, moved)) {
      t.put(")");
    } else {
      suggest(t, rows.back(), table[1], rows.rank - 1);
    }
  }
  t.put(" [nearest-table]");
  return t;
}

}  // namespace detail

/// Which row of a table [K, D] is nearest to each of rows [..., D], as an exact integer [...]; of equal distances
/// the first. The smallest |z - e|^2 is where z.e - |e|^2 / 2 is largest: |z|^2 is the same for all codes and is left
/// out, which rounds less. Of a row with nan it is K, which is no code. It has no gradient. Sentences: [nearest-table],
/// [dim-unknown]. PyTorch equivalent: ((z ** 2).sum(-1, keepdim=True) + (e ** 2).sum(-1) - 2 * z @ e.T).argmin(-1).
template <AnyTensor Rows, AnyTensor Table>
auto nearest(const Rows& rows, const Table& table) {
  if constexpr (poisoned<Rows, Table>) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::nearest_problem(Rows::shape, Table::shape); };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      using D = typename Rows::dims;
      constexpr int last = Rows::shape.rank - 1;
      using Scores = replace_axis<D, last, typename Table::dims::template at<0>>;
      graph::Builder& r = recorder();
      std::vector<int> row, product;
      for (int i = 0; i <= last; ++i) row.push_back(i);
      product = row;
      product.back() = last + 1;
      const graph::NodeId e = node_of(table);
      const graph::NodeId products = r.einsum({node_of(rows), e}, {row, {last + 1, last}, product});
      const graph::NodeId half = r.multiply(r.reduce(graph::Op::reduce_sum, r.multiply(e, e), {1}), r.constant(0.5));
      const graph::NodeId spread = r.broadcast(half, Scores::shape.dims(), {last});
      return argmax<-1>(TensorOf<Scores>(r.subtract(products, spread)));
    }
  }
}

/// Reals that hold integers as integers, which gather, Embedding and one_hot take: gather(codebook,
/// integers(nearest(z, codebook))). They have no gradient.
/// PyTorch equivalent: x.long().
template <AnyTensor X>
auto integers(const X& x) {
  if constexpr (poisoned<X>)
    return Poison{};
  else
    return TensorOf<typename X::dims>(recorder().integers(node_of(x)));
}

}  // namespace tessera
