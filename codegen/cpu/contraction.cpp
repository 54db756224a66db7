// Contractions: tiles of sums in registers, and what is made of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>

#include "codegen/cpu/emitter.hpp"
#include "codegen/passes/ops.hpp"

namespace tessera::codegen::cpu {

using graph::Op;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

Block Emitter::contraction() {
  std::vector<int> loops, tiled;
  for (int a : outer_axes()) {
    if ((a == schedule_.parallel && schedule_.block == 1) || ranges::contains(block_.heads, a)) continue;
    if (schedule_.tile[a] > 1 || a == schedule_.parallel || (a == vector_ && extent_[a] >= 0))
      tiled.push_back(a);
    else
      loops.push_back(a);
  }
  // The columns of a product stay while its rows go by: a panel of the right factor is read from near memory.
  // Where rows have to be packed, they stay, unless one panel has to be packed after the other.
  const bool columns_first =
      kernel.product.columns >= 0 && !(by_tiles() && packs_left() && (packs_whole_right() || !packs_right()));
  std::stable_sort(tiled.begin(), tiled.end(), [&](int x, int y) {
    return columns_first ? x == vector_ && y != vector_ : x != vector_ && y == vector_;
  });
  return nest(loops, [&](Block& b) {
    if (by_tiles()) b = before_tiles();
    Tile tile;
    Block all = schedule_.depth ? tiles_in_depth_blocks(tiled) : tiles(tiled, 0, tile);
    b.insert(b.end(), all.begin(), all.end());
  });
}

Block Emitter::zeros(const std::vector<int>& axes) {
  return nest(axes,
              [&](Block& b) { dense_store(b, address(step(1).stores.front().to, true), call("v_zero", {}), false); });
}

Block Emitter::tiles_in_depth_blocks(const std::vector<int>& axes) {
  Tile tile;
  Block b = zeros({kernel.product.rows, vector_});
  depth_first_ = name("depth");
  adds_ = true;
  b.push_back(tree::loop("depth", integer(0), tree::binary("<", name("depth"), integer(depth() - schedule_.depth)),
                         schedule_.depth, tiles(axes, 0, tile)));
  adds_ = false;
  depth_first_ = integer(depth() - schedule_.depth);
  goes_on_ = true;
  Block last = tiles(axes, 0, tile);
  goes_on_ = false;
  depth_first_ = nullptr;
  b.insert(b.end(), last.begin(), last.end());
  return b;
}

Block Emitter::tiles(const std::vector<int>& axes, std::size_t depth, Tile& tile) {
  Block b;
  if (depth == axes.size()) {
    Tile points = tile;
    std::stable_sort(points.begin(), points.end(),
                     [&](const auto& x, const auto& y) { return x.first != vector_ && y.first == vector_; });
    one_tile(b, points);
    return b;
  }
  int a = axes[depth];
  std::int64_t unit = a == vector_ ? target_.lanes : 1;
  std::int64_t extent = extent_[a];
  std::int64_t points = schedule_.tile[a], span = points * unit;
  std::int64_t full = extent / span * span;
  const auto [own_first, own_limit] = shared_part(a);
  std::vector<Block> pieces;
  auto inside = [&](Piece piece) {
    tile.push_back({a, piece});
    Block first = by_tiles() ? before_tiles_of(a, piece) : Block{};
    Block body = tiles(axes, depth + 1, tile);
    body.insert(body.begin(), first.begin(), first.end());
    tile.pop_back();
    return body;
  };
  const auto configure = [&](Block& to, std::int64_t rows) {
    if (by_tiles() && a == kernel.product.rows)
      to.insert(to.begin(), tree::evaluate(call("t_configure", {integer(rows)})));
  };
  if (a == schedule_.parallel) {  // a block of rows: whole tiles
    set(a, name(axis_name(a)));
    Block body = inside({points, 0});
    return {tree::loop(axis_name(a), name("begin"), tree::binary("<", name(axis_name(a)), name("end")), span,
                       std::move(body))};
  }
  if (full > span || (full == span && own_first)) {
    set(a, name(axis_name(a)));
    Block body = inside({points, 0});
    Expr first = integer(0), limit = integer(full);
    if (own_first) first = own_first, limit = extent > full ? tree::least(own_limit, limit) : own_limit;
    pieces.push_back(
        {tree::loop(axis_name(a), first, tree::binary("<", name(axis_name(a)), limit), span, std::move(body))});
    configure(pieces.back(), points);
  } else if (full == span) {
    set(a, nullptr);
    pieces.push_back(inside({points, 0}));
    configure(pieces.back(), points);
  }
  if (extent > full) {
    set(a, nullptr, full);
    std::int64_t rest = extent - full;
    Block last = inside({(rest + unit - 1) / unit, static_cast<int>(rest % unit)});
    configure(last, rest);
    if (own_limit) last = {tree::when(tree::binary(">", own_limit, integer(full)), std::move(last))};
    pieces.push_back(std::move(last));
  }
  return join(std::move(pieces));
}

void Emitter::for_points(const Tile& tile, const std::function<void()>& f, std::size_t depth) {
  if (depth == tile.size()) {
    f();
    return;
  }
  auto [a, piece] = tile[depth];
  Place kept = place_[a];
  Expr kept_tail = tail_;
  for (std::int64_t i = 0; i < piece.points; ++i) {
    place_[a].offset = kept.offset + i * (a == vector_ ? target_.lanes : 1);
    if (a == vector_) tail_ = piece.tail && i + 1 == piece.points ? integer(piece.tail) : nullptr;
    for_points(tile, f, depth + 1);
  }
  place_[a] = kept;
  tail_ = kept_tail;
}

void Emitter::one_tile(Block& b, const Tile& tile) {
  if (by_tiles()) {
    constexpr std::int64_t few_steps = 16;  // the results of a tile of more have the time of the next one to be stored
    if (has_time() || depth() <= few_steps * whole_steps(kernel.product.factors, 1)) fetch_results(b, tile);
    product_by_tiles(b, tile);
    return;
  }
  const Step& st = step(0);
  locals_.clear();
  reset();
  if (!to_partials_) fetch_results(b, tile);
  std::map<std::vector<std::int64_t>, std::string> sums;
  for_points(tile, [&] {
    std::string sum = fmt::format("sum{}", sums.size());
    sums[offsets_of_outer()] = sum;
    b.push_back(tree::declare("vec", sum, identity(st)));
  });
  if (kernel.goes_on && !to_partials_) {
    Block stored;
    for_points(tile,
               [&] { stored.push_back(tree::assign(sums.at(offsets_of_outer()), load(step(1).stores.front().to))); });
    go_on(b, std::move(stored));
  }
  std::vector<int> loops;
  for (int a : st.over)
    if (extent_[a] < 0 && a != vector_) loops.push_back(a);
  for (int a : st.over)
    if (extent_[a] >= 0 && a != vector_) loops.push_back(a);
  bool across = vector_ >= 0 && inner(vector_);
  if (across) loops.push_back(vector_);
  Block body = nest(loops, [&](Block& inside) {
    reset();
    fetch_next_panel(inside);
    fetch_next_rows(inside);
    for_points_keeping_tail(tile, across, [&] {
      std::string sum = sums.at(offsets_of_outer());
      inside.push_back(tree::assign(sum, accumulate(st, inside, name(sum), across)));
    });
  });
  b.insert(b.end(), body.begin(), body.end());
  reset();
  if (goes_on_)
    for_points(tile, [&] {
      const std::string& sum = sums.at(offsets_of_outer());
      const Expr stored = dense_load(address(step(1).stores.front().to, true));
      b.push_back(tree::assign(sum, call("v_add", {stored, name(sum)})));
    });
  if (kernel.product.columns >= 0 && !adds_ && elaborate()) {
    std::int64_t width = 1;
    for (const auto& [axis, piece] : tile) width *= piece.points;
    b.push_back(tree::declare("alignas(64) real", fmt::format("sums[{}]", width * target_.lanes), nullptr));
    std::int64_t at = 0;
    for_points(tile, [&] {
      b.push_back(tree::evaluate(call("v_store", {name("sums") + integer(at), name(sums.at(offsets_of_outer()))})));
      at += target_.lanes;
    });
    store_in_loops(b, tile);
    return;
  }
  for_points(tile, [&] {
    Expr result = name(sums.at(offsets_of_outer()));
    if (across) {
      result = call(st.reduction == Reduction::sum ? "v_sum" : "v_max_lane", {result});
      std::string all = "all" + sums.at(offsets_of_outer()).substr(3);
      b.push_back(tree::declare("const vec", all, call("v_set", {result})));
      result = name(all);
    }
    if (to_partials_)
      dense_store(b, name("partial") + partial_index(0, name("chunk")), result, across);
    else if (adds_)
      add(b, step(1).stores.front(), result);
    else
      locals_[{0, offsets_of_outer()}] = result;
  });
  if (!to_partials_ && !adds_) for_points(tile, [&] { stores(b); });
}

void Emitter::fetch_next_panel(Block& b) {
  const auto [columns, rows] = std::pair{kernel.product.columns, kernel.product.rows};
  if (columns < 0 || rows < 0 || target_.lanes == 1) return;
  const Access right = factor(true).access;
  if (!in_panels(right)) return;
  const Layout& layout = plan.layouts[right.tensor];
  const std::int64_t depth = layout.stride[0], width = columns_of_tile();
  const std::int64_t high = schedule_.tile[rows];
  const std::int64_t tiles = (extent_[rows] + high - 1) / high;
  const std::int64_t part = (width + tiles - 1) / tiles;
  if (part > 16) return;  // a line would not be enough
  const std::int64_t at_once = schedule_.depth ? schedule_.depth : depth;
  Expr ahead = along(columns, depth) + integer(width * depth) + along(rows, part * at_once / high);
  if (depth_first_) ahead = ahead + depth_first_ * (width - part);
  for (std::size_t d = 1; d < right.index.size(); ++d)
    for (const Affine::Part& p : right.index[d].parts)
      ahead = ahead + along(p.axis, p.coefficient * layout.stride[d] * part);
  b.push_back(tree::evaluate(call("v_fetch_line", {name(argument(right, false)), ahead})));
  // What follows in a panel that no nearest cache holds, soon enough for the second one to bring it.
  constexpr std::int64_t near_reals = 10 << 10, line = 16, steps = 8;
  if (at_once * width <= near_reals || kernel.product.factors != Element::real) return;
  for (std::int64_t at = 0; at < width; at += line)
    b.push_back(tree::evaluate(
        call("v_fetch_near", {name(argument(right, false)), offset_of(right) + integer(steps * width + at)})));
}

void Emitter::fetch_next_rows(Block& b) {
  constexpr std::int64_t line = 16, least_sums = 16;  // in a step of fewer there is no time for it
  const auto [columns, rows] = std::pair{kernel.product.columns, kernel.product.rows};
  if (columns < 0 || rows < 0 || target_.lanes == 1 || !in_panels(factor(true).access)) return;
  if (!place_[rows].variable) return;  // these are the last ones
  const std::int64_t high = schedule_.tile[rows];
  const Factor left = factor(false);
  if (kernel.product.factors != Element::real || !sums_along_one_axis(kernel) || left.along != 1 ||
      high * columns_of_tile() < least_sums * target_.lanes)
    return;
  const std::vector<Place> kept = place_;
  set(depth_axis(), nullptr);
  Expr ahead = offset_of(left.access) + integer(high * left.across);
  place_ = kept;
  const Expr place = along(depth_axis(), 1);
  if (!schedule_.depth && left.across == depth())  // they lie side by side
    ahead = ahead + place * high;
  else if (high <= line)
    ahead =
        ahead + tree::binary("%", place, integer(line)) * left.across + tree::binary("/", place, integer(line)) * line;
  else
    return;
  b.push_back(tree::evaluate(call("v_fetch_line", {name(argument(left.access, false)), ahead})));
}

bool Emitter::fetched_by_tile(const Access& access) const {
  if (!has_time() || target_.lanes == 1 || lane_step(access) != 1) return false;
  const Access right = factor(true).access;
  return access.tensor != right.tensor || access.index != right.index;
}

void Emitter::fetch_results(Block& b, const Tile& tile) {
  std::int64_t line = 64;  // values
  const int columns = kernel.product.columns, rows = kernel.product.rows;
  if (columns < 0 || kernel.across_batch || target_.lanes == 1) return;
  const std::vector<Place> kept = place_;
  const auto [across, down] = pieces_of(tile);
  if (down.points > 1) move(rows, "row");
  move(columns, "column");
  Block body;
  const auto fetch = [&](const Access& access, bool stored) {
    line = std::min(line, 16 * values_in_real(tensor(access).element));
    body.push_back(tree::evaluate(call("v_fetch_line", {name(argument(access, stored)), offset_of(access)})));
  };
  for (const Step::Store& store : step(1).stores)
    if (lane_step(store.to) == 1 && !on_stack(store.to)) fetch(store.to, true);
  if (!adds_)
    for (const Expression& e : kernel.expressions)
      if (e.kind == Expression::Kind::load && saved(e.access) && fetched_by_tile(e.access)) fetch(e.access, false);
  place_ = kept;
  if (body.empty()) return;
  const Expr width = integer(columns_of_piece(across));
  body = {tree::loop("column", integer(0), tree::binary("<", name("column"), width), line, std::move(body))};
  if (down.points > 1)
    body = {tree::loop("row", integer(0), tree::binary("<", name("row"), integer(down.points)), 1, std::move(body))};
  b.insert(b.end(), body.begin(), body.end());
}

std::pair<Piece, Piece> Emitter::pieces_of(const Tile& tile) const {
  std::pair<Piece, Piece> pieces{{1, 0}, {1, 0}};
  for (const auto& [axis, piece] : tile) (axis == kernel.product.columns ? pieces.first : pieces.second) = piece;
  return pieces;
}

void Emitter::move(int axis, const char* by) {
  Place& p = place_[axis];
  p.variable = p.variable ? p.variable + name(by) : name(by);
}

bool Emitter::elaborate() const {
  return ranges::any_of(kernel.expressions, [&](const Expression& e) {
    return keeps(e) || (e.kind == Expression::Kind::op && row_of(e.op).cpu_cost >= 12);
  });
}

void Emitter::store_in_loops(Block& b, const Tile& tile) {
  const int columns = kernel.product.columns, rows = kernel.product.rows;
  const auto [across, down] = pieces_of(tile);
  const std::int64_t lanes = target_.lanes, width = by_tiles() ? tile_side : across.points * lanes;
  const std::vector<Place> kept = place_;
  if (rows >= 0 && down.points > 1) move(rows, "row");
  const Expr line = down.points > 1 ? name("row") * width : integer(0);
  const auto one = [&](const Expr& column) {
    Block body;
    reset();
    locals_.clear();
    const char* const load = kernel.product.factors == Element::int8 ? "v_load_int32" : "v_load";
    body.push_back(tree::declare("const vec", "sum", call(load, {name("sums") + (line + column)})));
    locals_[{0, offsets_of_outer()}] = name("sum");
    stores(body);
    return body;
  };
  const std::int64_t whole = (across.points - (across.tail ? 1 : 0)) * lanes;
  Block body;
  if (whole) {
    const std::vector<Place> here = place_;
    move(columns, "column");
    body.push_back(tree::loop("column", integer(0), tree::binary("<", name("column"), integer(whole)), lanes,
                              one(name("column"))));
    place_ = here;
  }
  if (across.tail) {
    place_[columns].offset += whole;
    tail_ = integer(across.tail);
    body.push_back(tree::scope(one(integer(whole))));
    tail_ = nullptr;
  }
  if (down.points > 1)
    b.push_back(tree::loop("row", integer(0), tree::binary("<", name("row"), integer(down.points)), 1, body));
  else
    b.insert(b.end(), body.begin(), body.end());
  place_ = kept;
  reset();
  locals_.clear();
}

void Emitter::for_points_keeping_tail(const Tile& tile, bool across, const std::function<void()>& f) {
  Expr kept = tail_;
  for_points(tile, [&] {
    if (across) tail_ = kept;
    f();
  });
}

void Emitter::stores(Block& b) {
  for (const Step& s : kernel.steps) {
    if (s.reduces) continue;
    for (const Step::Store& store : s.stores) put(b, store);
  }
}

int Emitter::partial_vector() const {
  std::vector<int> outer = outer_axes();
  if (outer.empty()) return -1;
  return schedule_.vector >= 0 && !inner(schedule_.vector) ? schedule_.vector : outer.back();
}

Expr Emitter::partial_index(int reduction, Expr chunk) {
  std::int64_t stride = 1;
  Expr at = integer(0);
  std::vector<int> order = outer_axes();
  int last = partial_vector();
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return x != last && y == last; });
  for (std::size_t i = order.size(); i-- > 0;) {
    at = along(order[i], stride) + at;
    stride *= extent_[order[i]];
  }
  std::int64_t reductions =
      std::count_if(kernel.steps.begin(), kernel.steps.end(), [](const Step& s) { return s.reduces; });
  return std::move(chunk) * (stride * reductions) + at + integer(stride * reduction);
}

Expr Emitter::identity(const Step& s) {
  return s.reduction == Reduction::sum ? call("v_zero", {}) : call("v_set", {tree::real(-INFINITY)});
}

Expr Emitter::accumulate(const Step& s, Expr sum, Expr value) {
  return call(s.reduction == Reduction::sum ? "v_add" : "v_max", {std::move(sum), std::move(value)});
}

Expr Emitter::accumulate(const Step& s, Block& b, Expr sum, bool across) {
  const Expression& e = expression(s.value);
  bool product = s.reduction == Reduction::sum && e.kind == Expression::Kind::op && e.op == Op::multiply;
  bool zero_in_tail =
      product && expression(e.a).kind == Expression::Kind::load && expression(e.b).kind == Expression::Kind::load;
  if (product && (!across || !tail_ || zero_in_tail)) {
    Expr a = evaluate(b, e.a), c = evaluate(b, e.b);
    return call("v_fma", {std::move(a), std::move(c), std::move(sum)});
  }
  return accumulate(s, std::move(sum), masked(s, evaluate(b, s.value), across));
}

Expr Emitter::masked(const Step& s, Expr value, bool across) {
  if (!across || !tail_) return value;
  return call("v_keep_n", {std::move(value), tail_, tree::real(s.reduction == Reduction::sum ? 0 : -INFINITY)});
}

}  // namespace tessera::codegen::cpu
