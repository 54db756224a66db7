// rope and rope_mixed: rotary positions of patches in a grid, for queries and keys.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "dsl/mismatch.hpp"
#include "dsl/ops/shared_table.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// Which two of a head's K numbers are turned together.
enum class RopePairs : std::uint8_t {
  neighbours,  ///< 2i and 2i + 1: Su et al. 2021
  halves,      ///< i and i + K/2: DINOv3
};

/// Where a patch stands.
enum class RopePlaces : std::uint8_t {
  numbers,  ///< at the number of its row and column
  centres,  ///< its centre, from -1 to 1 over the rows and over the columns, in turns: times 2 pi (DINOv3)
};

/// What rotary positions can differ in. The defaults are timm's.
struct Rope {
  double temperature = 10000;
  RopePairs pairs = RopePairs::neighbours;
  RopePlaces places = RopePlaces::numbers;
  bool columns_first = false;          ///< angles of columns before those of rows (timm's grid_indexing "xy")
  double offset = 0;                   ///< added to the numbers of rows and columns
  std::int64_t rows = 0, columns = 0;  ///< the grid that numbers are scaled to, that of pretraining; 0: as they are
};

namespace detail {

/// Whether tokens are defined as the patches of a grid and others before them, GH*GW + 1, and that grid is not this
/// one.
constexpr bool is_of_another_grid(const Polynomial& tokens, const Polynomial& patches) {
  bool grid = false;
  for (int i = 0; i < tokens.terms; ++i) {
    if (patches.terms == 1 && tokens.term[i].same_factors(patches.term[0])) return false;
    grid |= tokens.term[i].factors == 2;
  }
  return grid && patches.terms == 1 && patches.term[0].factors == 2;
}

/// A tensor of heads ends in tokens and K numbers a head, of which 4 divides K.
constexpr Text rope_problem(const Shape& x, const Dim& rows, const Dim& columns) {
  Text t;
  const bool shaped = x.rank >= 2 && x[x.rank - 2].known() && x.back().known() && rows.known() && columns.known();
  const std::int64_t patches = shaped ? rows.value() * columns.value() : 0;
  const bool tokens = shaped && x[x.rank - 2].value() >= patches;
  const bool other_grid = tokens && is_of_another_grid(x[x.rank - 2].normal, (rows * columns).normal);
  if (tokens && !other_grid && x.back().value() % 4 == 0) return t;
  t.put("rope of a grid of ");
  rows.print(t);
  t.put(" x ");
  columns.print(t);
  t.put(" patches cannot turn ");
  x.print(t);
  t.put(": ");
  if (!shaped) {
    t.put("it needs [..., tokens, numbers of a head], of known sizes");
  } else if (!tokens) {
    t.put("axis ").put(std::int64_t{x.rank - 2}).put(" is ");
    x[x.rank - 2].print(t);
    t.put(", needs ").put(patches).put(" tokens or more, those before the patches first");
    Shape swapped = x;
    if (x.rank > 2 && x[x.rank - 3].known() && x[x.rank - 3].value() >= patches) {
      swapped.dim[x.rank - 2] = x.dim[x.rank - 3];
      swapped.dim[x.rank - 3] = x.dim[x.rank - 2];
      if (suggest_rearrange(t, " (", x, swapped)) t.put(")");
    }
  } else if (other_grid) {
    t.put("axis ").put(std::int64_t{x.rank - 2}).put(" is ");
    x[x.rank - 2].print(t);
    t.put(" of another grid (");
    x[x.rank - 2].shown.print(t);
    t.put(" := ");
    x[x.rank - 2].normal.print(t);
    t.put("; did you mean that one?)");
  } else {
    t.put("a head has angles of rows and of columns, each for two numbers, and 4 does not divide ");
    x.back().print(t);
    t.put("; nearest that work: ");
    const std::int64_t below = x.back().value() / 4 * 4;
    if (below) t.put(below).put(" or ");
    t.put(below + 4);
  }
  t.put(" [rope-shape]");
  return t;
}

/// The rows and columns, in the order of their angles, of each token: those before the patches stand at 0, where
/// nothing is turned.
inline std::vector<double> rope_places(const Rope& rope, std::int64_t rows, std::int64_t columns, std::int64_t tokens) {
  const auto at = [&](std::int64_t i, std::int64_t size, std::int64_t trained) {
    const double place = static_cast<double>(i) + rope.offset, extent = static_cast<double>(size);
    if (rope.places == RopePlaces::centres) return 2 * std::numbers::pi * (2 * (place + 0.5) / extent - 1);
    return trained ? place / extent * static_cast<double>(trained) : place;
  };
  std::vector<double> places(static_cast<std::size_t>(2 * (tokens - rows * columns)), 0.0);
  for (std::int64_t y = 0; y < rows; ++y)
    for (std::int64_t x = 0; x < columns; ++x) {
      const double row = at(y, rows, rope.rows), column = at(x, columns, rope.columns);
      places.push_back(rope.columns_first ? column : row);
      places.push_back(rope.columns_first ? row : column);
    }
  return places;
}

/// A name for each table: tables of one name are one.
inline std::string rope_table(const char* what, const Rope& rope, std::int64_t rows, std::int64_t columns) {
  std::string name = std::string("rope_") + what + "_" + std::to_string(rows) + "x" + std::to_string(columns);
  const auto add = [&](bool differs, const char* letter, double value) {
    if (!differs) return;
    std::string digits = std::to_string(value);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
    for (char& c : digits)
      if (c == '.') c = 'p';
    name += letter + digits;
  };
  add(true, "_t", rope.temperature);
  add(rope.offset != 0, "_o", rope.offset);
  add(rope.rows != 0, "_r", static_cast<double>(rope.rows));
  add(rope.columns != 0, "_c", static_cast<double>(rope.columns));
  if (rope.places == RopePlaces::centres) name += "_centres";
  if (rope.columns_first) name += "_xy";
  return name;
}

/// Turns each pair (a, b) of x's last axis by an angle: (a cos - b sin, a sin + b cos). `cosine` and `sine` have the
/// end of x's shape, with half of its last axis.
inline graph::NodeId turned(graph::NodeId x, graph::NodeId cosine, graph::NodeId sine, RopePairs pairs) {
  graph::Builder& r = recorder();
  const std::vector<Dim> shape = r.shape(x);
  const int rank = static_cast<int>(shape.size());
  const bool halves = pairs == RopePairs::halves;
  const int two = halves ? rank - 1 : rank;
  // Axes before the last as they are; the last is (P 2), or (2 P) where halves are turned.
  graph::Rearrangement split, merge, drop, lift;
  std::vector<Dim> apart, half(shape);
  half.back() = Dim::constant(shape.back().value() / 2);
  apart = half;
  apart.insert(halves ? apart.end() - 1 : apart.end(), Dim::constant(2));
  split.atoms = apart;
  for (int i = 0; i < rank - 1; ++i) split.from.push_back({i});
  split.from.push_back({rank - 1, rank});
  for (int i = 0; i <= rank; ++i) split.to.push_back({i});
  merge.atoms = split.atoms;
  merge.from = split.to;
  merge.to = split.from;
  drop.atoms = half;
  for (int i = 0; i < rank; ++i) drop.to.push_back({i});
  drop.from = drop.to;
  drop.from.insert(drop.from.begin() + two, std::vector<int>{});
  lift.atoms = drop.atoms;
  lift.from = drop.to;
  lift.to = drop.from;
  std::vector<Dim> one = apart;
  one[static_cast<std::size_t>(two)] = Dim::constant(1);

  // Halves have no name: the axis is K under its number alone until the pairs are joined again.
  const Dim width = Dim::constant(shape.back().value());
  std::vector<Dim> numbered = shape;
  numbered.back() = width;
  const graph::NodeId both = r.rearrange(r.slice(x, rank - 1, 0, width), std::move(split), apart);
  const graph::NodeId a = r.rearrange(r.slice(both, two, 0, Dim::constant(1)), drop, half);
  const graph::NodeId b = r.rearrange(r.slice(both, two, 1, Dim::constant(1)), drop, half);
  const auto spread = [&](graph::NodeId angle) {
    std::vector<int> axes;
    for (int i = rank - static_cast<int>(r.shape(angle).size()); i < rank; ++i) axes.push_back(i);
    return r.broadcast(angle, half, axes);
  };
  const graph::NodeId c = spread(cosine), s = spread(sine);
  const graph::NodeId first = r.subtract(r.multiply(a, c), r.multiply(b, s));
  const graph::NodeId second = r.add(r.multiply(a, s), r.multiply(b, c));
  const graph::NodeId joined =
      r.concat({r.rearrange(first, lift, one), r.rearrange(second, lift, one)}, two, Dim::constant(2));
  return r.slice(r.rearrange(joined, std::move(merge), numbered), rank - 1, 0, shape.back());
}

}  // namespace detail

/// Rotary positions of patches in a grid of GH x GW, row by row (axial: half of the angles are of rows, half of
/// columns): x [..., T, K] of queries or of keys, whose last GH*GW tokens are the patches; those before are left as
/// they are. A patch at place p turns pair i of K/4 by p * temperature^(-i / (K/4)). The tables stand once in a region.
/// Su et al. 2021; Fang et al. 2023 (EVA-02); Simeoni et al. 2025 (DINOv3). Sentence: [rope-shape].
/// PyTorch equivalent: timm.layers.apply_rot_embed_cat(x, RotaryEmbeddingCat(K, ...).get_embed()).
template <Rope R, DimExpression auto GH, DimExpression auto GW, AnyTensor X>
auto rope(const X& x) {
  using Grid = typename Tensor<GH, GW>::dims;
  if constexpr (poisoned<X> || Grid::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::rope_problem(X::shape, Grid::shape[0], Grid::shape[1]); };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      constexpr std::int64_t rows = Grid::shape[0].value(), columns = Grid::shape[1].value();
      constexpr std::int64_t tokens = X::shape[X::shape.rank - 2].value(), pairs = X::shape.back().value() / 2;
      using Tokens = typename X::dims::template at<X::shape.rank - 2>;
      using Angles = Tensor<Tokens{}, Constant<pairs>{}>;
      const auto table = [&](const char* name, double (*of)(double)) {
        return detail::shared_table<Angles>(detail::rope_table(name, R, rows, columns), [&] {
          const std::vector<double> places = detail::rope_places(R, rows, columns, tokens);
          std::vector<double> data;
          for (const double place : places)
            for (std::int64_t i = 0; i < pairs / 2; ++i)
              data.push_back(of(place * std::pow(R.temperature, -2.0 * static_cast<double>(i) / pairs)));
          return data;
        });
      };
      const Angles cosine = table("cos", [](double angle) { return std::cos(angle); });
      const Angles sine = table("sin", [](double angle) { return std::sin(angle); });
      return TensorOf<typename X::dims>(detail::turned(node_of(x), node_of(cosine), node_of(sine), R.pairs));
    }
  }
}

namespace detail {

constexpr Text rope_mixed_problem(const Shape& x, const Shape& frequencies, const Dim& rows, const Dim& columns) {
  Text t = rope_problem(x, rows, columns);
  if (t.size) return t;
  const bool ranks = x.rank >= 3 && frequencies.rank == 3;
  const bool sizes = ranks && frequencies[0].known() && frequencies[0].value() == 2 &&
                     frequencies[1].lines_up_with(x[x.rank - 3]) && frequencies[2].known() &&
                     2 * frequencies[2].value() == x.back().value();
  if (sizes) return t;
  t.put("rope of ");
  x.print(t);
  t.put(" by learned frequencies needs them for rows and columns, heads and pairs, ");
  if (x.rank >= 3) {
    t.put("[2, ");
    x[x.rank - 3].print(t);
    t.put(", ").put(x.back().value() / 2).put("], and was given ");
  } else {
    t.put("and heads in front of the tokens; it was given ");
  }
  frequencies.print(t);
  t.put(" [rope-frequencies]");
  return t;
}

}  // namespace detail

/// Rotary positions with learned frequencies, each of which a row and a column number are both multiplied by (mixed):
/// x [..., H, T, K] and frequencies [2, H, K/2], of columns and of rows where columns are first. Pair i of head h is
/// turned by first * frequencies[0, h, i] + second * frequencies[1, h, i]. Heo et al. 2024 (RoPE-ViT). Sentences:
/// [rope-shape], [rope-frequencies].
/// PyTorch equivalent: timm.layers.apply_rot_embed_cat(x, get_mixed_freqs(frequencies, t_x, t_y)).
template <Rope R, DimExpression auto GH, DimExpression auto GW, AnyTensor X, AnyTensor F>
auto rope_mixed(const X& x, const F& frequencies) {
  using Grid = typename Tensor<GH, GW>::dims;
  if constexpr (poisoned<X, F> || Grid::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      return detail::rope_mixed_problem(X::shape, F::shape, Grid::shape[0], Grid::shape[1]);
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      constexpr std::int64_t rows = Grid::shape[0].value(), columns = Grid::shape[1].value();
      constexpr std::int64_t tokens = X::shape[X::shape.rank - 2].value();
      using Tokens = typename X::dims::template at<X::shape.rank - 2>;
      using Places = Tensor<Tokens{}, 2_c>;
      const auto places = detail::shared_table<Places>(detail::rope_table("places", R, rows, columns),
                                                       [&] { return detail::rope_places(R, rows, columns, tokens); });
      graph::Builder& r = recorder();
      const graph::NodeId pairs = r.slice(node_of(frequencies), 2, 0, Dim::constant(F::shape[2].value()));
      const graph::NodeId angle = r.einsum({node_of(places), pairs}, {{0, 1}, {1, 2, 3}, {2, 0, 3}});
      const graph::NodeId cosine = r.unary(graph::Op::cos, angle), sine = r.unary(graph::Op::sin, angle);
      return TensorOf<typename X::dims>(detail::turned(node_of(x), cosine, sine, R.pairs));
    }
  }
}

}  // namespace tessera
