// relative_position_bias: what is added to a score by how far the key's patch is from the query's.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dsl/mismatch.hpp"
#include "dsl/ops/reordered.hpp"
#include "dsl/ops/shared_table.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// How many ways there are for a patch to stand from another.
constexpr std::int64_t distances(const Shape& grid) { return (2 * grid[0].value() - 1) * (2 * grid[1].value() - 1); }

constexpr Text relative_position_problem(const Shape& table, const Shape& grid, const Dim& front) {
  Text t;
  const bool sized = grid[0].known() && grid[1].known() && front.known();
  const bool rows = sized && table.rank == 2 && table[0].known();
  if (rows && table[0].value() == distances(grid)) return t;
  if (rows && table[0].value() == distances(grid) + 3 && front.value() == 1) return t;
  t.put("relative position bias of a grid of ");
  grid[0].print(t);
  t.put(" x ");
  grid[1].print(t);
  t.put(" patches needs a table ");
  if (sized) {
    t.put("[").put(distances(grid));
    if (front.value() == 1) t.put(" or ").put(distances(grid) + 3);
    t.put(", heads]");
  } else {
    t.put("of a known size");
  }
  t.put(" and was given ");
  table.print(t);
  if (sized && table.rank == 2) {
    t.put(" (did you mean [").put(distances(grid)).put(", ");
    table[1].print(t);
    t.put("]?)");
  }
  t.put(" [relative-position-table]");
  return t;
}

/// x [2G-1, ...] -> [G keys, G queries, ...] with x[query - key + G-1]: a copy of x for each key, one after the other,
/// read in rows that are one shorter, so that each starts one earlier than the row before.
inline graph::NodeId by_distance(graph::NodeId x, std::int64_t size) {
  graph::Builder& r = recorder();
  const std::vector<Dim> shape = r.shape(x);
  const int rank = static_cast<int>(shape.size());
  const auto sized = [&](std::vector<std::int64_t> first) {
    std::vector<Dim> to;
    for (const std::int64_t n : first) to.push_back(Dim::constant(n));
    to.insert(to.end(), shape.begin() + 1, shape.end());
    return to;
  };
  if (size == 1) {
    std::vector<int> order{-1};
    for (int i = 0; i < rank; ++i) order.push_back(i);
    return reordered(x, order);
  }
  std::vector<int> axes;
  for (int i = 1; i <= rank; ++i) axes.push_back(i);
  const std::int64_t length = 2 * size - 1;
  const graph::NodeId copies = r.broadcast(x, sized({size, length}), axes);
  graph::Rearrangement merge, split;
  merge.atoms = sized({size, length});
  merge.to.push_back({0, 1});
  for (int i = 0; i <= rank; ++i) {
    merge.from.push_back({i});
    if (i > 1) merge.to.push_back({i});
  }
  split.atoms = sized({size, length - 1});
  split.from = merge.to;
  split.to = merge.from;
  const graph::NodeId row = r.rearrange(copies, std::move(merge), sized({size * length}));
  const graph::NodeId rest = r.slice(row, 0, size - 1, Dim::constant(size * (length - 1)));
  const graph::NodeId rows = r.rearrange(rest, std::move(split), sized({size, length - 1}));
  return r.slice(rows, 1, 0, Dim::constant(size));
}

/// table [(2 rows - 1) (2 columns - 1), H] -> [H, rows columns of queries, of keys].
inline graph::NodeId relative_positions(graph::NodeId table, std::int64_t rows, std::int64_t columns) {
  graph::Builder& r = recorder();
  const Dim heads = r.shape(table)[1];
  const Dim y = Dim::constant(rows), x = Dim::constant(columns), patches = Dim::constant(rows * columns);
  const Dim far_y = Dim::constant(2 * rows - 1), far_x = Dim::constant(2 * columns - 1);
  const graph::NodeId grid =
      r.rearrange(table, {{far_y, far_x, heads}, {{0, 1}, {2}}, {{0}, {1}, {2}}}, {far_y, far_x, heads});
  const graph::NodeId down = by_distance(grid, rows);  // [y key, y query, far x, H]
  const graph::NodeId first = reordered(down, {2, 0, 1, 3});
  const graph::NodeId across = by_distance(first, columns);  // [x key, x query, y key, y query, H]
  return r.rearrange(across, {{x, x, y, y, heads}, {{0}, {1}, {2}, {3}, {4}}, {{4}, {3, 1}, {2, 0}}},
                     {heads, patches, patches});
}

/// One row [H] of the table, as [H, queries, keys].
inline graph::NodeId bias_of_row(graph::NodeId table, std::int64_t row, std::int64_t queries, std::int64_t keys) {
  graph::Builder& r = recorder();
  const Dim heads = r.shape(table)[1];
  const graph::NodeId one = reordered(r.slice(table, 0, row, Dim::constant(1)), {1});
  return r.broadcast(one, {heads, Dim::constant(queries), Dim::constant(keys)}, {0});
}

}  // namespace detail

/// What is added to the scores of a grid of GH x GW patches, [H, T, T] of a table [V, H]: for a query in row y and
/// column x and a key in row v and column u it is row (y - v + GH-1) (2 GW - 1) + x - u + GW-1 of the table, whose V is
/// (2 GH - 1) (2 GW - 1). Liu et al. 2021 (Swin). FRONT tokens before the patches get and give 0; or V is three more,
/// and the one token before the patches has rows of its own: from it, to it, to itself (Bao et al. 2022, BEiT).
/// Recorded as slices of a repeated table, which read it at these places without a list of them.
/// Sentence: [relative-position-table].
/// PyTorch equivalent: table[timm.layers.gen_relative_position_index(grid)].permute(2, 0, 1).
template <DimExpression auto GH, DimExpression auto GW, DimExpression auto FRONT = 0_c, AnyTensor Table>
auto relative_position_bias(const Table& table) {
  using Grid = typename Tensor<GH, GW>::dims;
  using T = std::remove_cv_t<decltype(FRONT + GH * GW)>;
  if constexpr (poisoned<Table> || Grid::poisoned || T::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      return detail::relative_position_problem(Table::shape, Grid::shape, detail::dim_of<FRONT>::value);
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      constexpr std::int64_t rows = Grid::shape[0].value(), columns = Grid::shape[1].value();
      constexpr std::int64_t patches = rows * columns, front = detail::dim_of<FRONT>::value.value();
      constexpr std::int64_t distances = detail::distances(Grid::shape);
      graph::Builder& r = recorder();
      const graph::NodeId given = node_of(table);
      const Dim heads = r.shape(given)[1];
      constexpr bool token = Table::shape[0].value() > distances;
      const graph::NodeId among = r.slice(given, 0, 0, Dim::constant(distances));
      graph::NodeId all = detail::relative_positions(among, rows, columns);
      if constexpr (front > 0) {
        const auto from = [&](std::int64_t row, std::int64_t queries, std::int64_t keys) {
          if constexpr (token) return detail::bias_of_row(given, distances + row, queries, keys);
          return r.broadcast(r.constant(0), {heads, Dim::constant(queries), Dim::constant(keys)}, {});
        };
        const Dim tokens = Dim::constant(front + patches);
        const graph::NodeId top = r.concat({from(2, front, front), from(0, front, patches)}, 2, tokens);
        const graph::NodeId below = r.concat({from(1, patches, front), all}, 2, tokens);
        all = r.concat({top, below}, 1, tokens);
      }
      using Heads = typename Table::dims::template at<1>;
      return Tensor<Heads{}, T{}, T{}>(r.slice(r.slice(all, 1, 0, T::value), 2, 0, T::value));
    }
  }
}

namespace detail {

constexpr Text distances_problem(const Shape& table, const Dim& size) {
  Text t;
  const bool sized = size.known() && table.rank == 2 && table[0].known();
  if (sized && table[0].value() == 2 * size.value() - 1) return t;
  t.put("distances along ");
  size.print(t);
  t.put(" need a table ");
  if (size.known())
    t.put("[").put(2 * size.value() - 1).put(", width]");
  else
    t.put("of a known size");
  t.put(" and were given ");
  table.print(t);
  if (size.known() && table.rank == 2) {
    t.put(" (did you mean [").put(2 * size.value() - 1).put(", ");
    table[1].print(t);
    t.put("]?)");
  }
  t.put(" [relative-position-table]");
  return t;
}

}  // namespace detail

/// The rows of a table [2 G - 1, K] by how far a query is from a key along G: [keys, queries, K], where a query at i
/// and a key at j have row i - j + G-1. Sentence: [relative-position-table]. PyTorch equivalent: table[(torch.arange(g)
/// - torch.arange(g)[:, None]) + g - 1].
template <DimExpression auto G, AnyTensor Table>
auto by_distance(const Table& table) {
  using Axis = detail::dim_of<G>;
  if constexpr (poisoned<Table> || Tensor<G>::dims::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::distances_problem(Table::shape, Axis::value); };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      constexpr std::int64_t size = Axis::value.value();
      graph::Builder& r = recorder();
      const graph::NodeId rows = r.slice(node_of(table), 0, 0, Dim::constant(2 * size - 1));
      const graph::NodeId all = detail::by_distance(rows, size);
      return TensorOf<Dims<Axis, Axis, typename Table::dims::template at<1>>>(
          r.slice(r.slice(all, 0, 0, Axis::value), 1, 0, Axis::value));
    }
  }
}

namespace detail {

/// The table [(2 GH - 1) (2 GW - 1), 2] of what `scaled` makes of how far a patch is from another: scaled(d, axis).
template <DimExpression auto GH, DimExpression auto GW, class F>
auto table_of_distances(const std::string& name, const F& scaled) {
  using Table = Tensor<(2_c * GH - 1_c) * (2_c * GW - 1_c), 2_c>;
  using Grid = typename Tensor<GH, GW>::dims;
  if constexpr (Table::dims::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return table_problem("relative_log_positions", Grid::shape); };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      const std::int64_t rows = Grid::shape[0].value(), columns = Grid::shape[1].value();
      const std::string shared =
          "relative_log_positions_" + std::to_string(rows) + "x" + std::to_string(columns) + name;
      return shared_table<Table>(shared, [&] {
        std::vector<double> data;
        for (std::int64_t y = 1 - rows; y < rows; ++y)
          for (std::int64_t x = 1 - columns; x < columns; ++x) {
            data.push_back(scaled(static_cast<double>(y), 0));
            data.push_back(scaled(static_cast<double>(x), 1));
          }
        return data;
      });
    }
  }
}

}  // namespace detail

/// The table [(2 GH - 1) (2 GW - 1), 2] of how far a patch is from another, down and across, as sign(d) log(1 + |d|):
/// what an MLP makes a relative_position_bias of. Liu et al. 2022 (Swin v2), as timm's RelPosMlp in its mode "cr".
/// PyTorch equivalent: timm.layers.gen_relative_log_coords(grid, mode="cr").flatten(0, 1).
template <DimExpression auto GH, DimExpression auto GW>
auto relative_log_positions() {
  return detail::table_of_distances<GH, GW>("",
                                            [](double d, int) { return std::copysign(std::log1p(std::abs(d)), d); });
}

/// The same as sign(d) log8(1 + 8 |d| / (window - 1)), of a window of down x across patches: 1 is from its first patch
/// to its last. Liu et al. 2022 (Swin v2), equation 4. PyTorch equivalent: timm.layers.gen_relative_log_coords(grid,
/// (down, across), mode="swin").flatten(0, 1).
template <DimExpression auto GH, DimExpression auto GW>
auto relative_log_positions(std::int64_t down, std::int64_t across) {
  const std::string window = "_of_" + std::to_string(down) + "x" + std::to_string(across);
  return detail::table_of_distances<GH, GW>(window, [&](double d, int axis) {
    const auto most = static_cast<double>(std::max<std::int64_t>((axis ? across : down) - 1, 1));
    return std::copysign(std::log1p(8 * std::abs(d) / most) / std::log(8.0), d);
  });
}

}  // namespace tessera
