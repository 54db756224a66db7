#include "codegen/cpu/gemm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find_if.hpp>

#include "codegen/cpu/epilogue.hpp"
#include "codegen/cpu/gemm_prefetch.hpp"
#include "codegen/cpu/matrix_unit.hpp"
#include "codegen/cpu/reduction.hpp"
#include "codegen/cpu/split_k.hpp"
#include "codegen/plan/gemm.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// What a tile's code depends on besides its place.
struct Work {
  GemmOperands operands;  ///< of a GEMM
  LoopBounds bounds;
  SumsTo to = SumsTo::epilogue;
  Expr k_block{};          ///< where a K-block begins; null: k is not blocked
  std::int64_t lines = 0;  ///< values of a line of the array that transposed sums wait in; 0: they do not
  bool panel = false;      ///< the columns' numbers of B are widened
  /// The rows are images: the sums of all K-blocks but the last lie in the array `held`.
  bool holds_sums() const { return k_block && to == SumsTo::epilogue; }
  bool epilogue() const { return to == SumsTo::epilogue || to == SumsTo::epilogue_of_memory; }
};

/// A step of k as a call of simd/rank_one.h: where B is contiguous along the tile's vectors, and A is a number for each
/// row. Whether it is.
bool rank_one_update(Values& v, Block& b, const Tile& tile) {
  const std::vector<Values::TileLoop> loops = v.loops_of(tile);
  const Expression& product = v.expression(v.step(0).value);
  if (v.target.lanes == 1 || loops.empty() || loops.back().axis != v.vector || v.inner(v.vector)) return false;
  if (v.step(0).reduction != Reduction::sum || product.kind != Expression::Kind::op ||
      product.op != graph::Op::multiply)
    return false;
  const bool swapped =
      v.expression(product.a).kind == Expression::Kind::load && v.lane_step(v.expression(product.a).access) == 1;
  const Expression &left = v.expression(swapped ? product.b : product.a),
                   &right = v.expression(swapped ? product.a : product.b);
  for (const Expression* operand : {&left, &right})
    if (operand->kind != Expression::Kind::load || v.tensor(operand->access).element != DType::real) return false;
  const int rows = loops.size() == 2 ? loops.front().axis : -1;
  if (v.lane_step(left.access) != 0 || v.lane_step(right.access) != 1) return false;
  if (rows >= 0 && v.step_of(right.access, rows) != 0) return false;
  for (const ExprId operand : {product.a, product.b}) v.argument(v.expression(operand).access, false);
  const std::string tail = fmt::to_string(loops.back().piece.tail);
  const Expr row_of_b = v.address(right.access, false);
  b.push_back(tree::evaluate(
      rows < 0 ? call(fmt::format("axpy<{}>", tail), {name("sum"), v.load(left.access), row_of_b})
               : call(fmt::format("rank_one_update<{}>", tail),
                      {name("sum"), v.address(left.access, false), integer(v.step_of(left.access, rows)), row_of_b})));
  return true;
}

/// The block in which the innermost of nested loops stands.
Block& innermost(Block& loops) {
  const auto is_loop = [](const Block& b) { return b.size() == 1 && b.front().kind == tree::Statement::Kind::loop; };
  Block* at = &loops;
  while (is_loop(*at) && is_loop(at->front().body)) at = &at->front().body;
  return *at;
}

/// The loops over what is summed, the batch outermost.
std::vector<int> loops_along_k(const Values& v) {
  std::vector<int> loops;
  for (int a : v.step(0).over)
    if (v.extent[a] < 0 && a != v.vector) loops.push_back(a);
  for (int a : v.step(0).over)
    if (v.extent[a] >= 0 && a != v.vector) loops.push_back(a);
  if (v.vector >= 0 && v.inner(v.vector)) loops.push_back(v.vector);
  return loops;
}

/// A where its numbers are bf16 and lie next to each other along the innermost loop over k: they are widened once for
/// all columns of a tile. None: A is another, or where k begins is known only when the program runs.
ExprId widened_operand(const Values& v, const Work& work) {
  const Expression& product = v.expression(v.step(0).value);
  const std::vector<int> loops = loops_along_k(v);
  if (v.target.lanes == 1 || loops.empty() || loops.back() == v.vector || v.extent[loops.back()] < v.target.lanes ||
      v.step(0).reduction != Reduction::sum || product.kind != Expression::Kind::op ||
      product.op != graph::Op::multiply || (work.bounds.contains(loops.back()) && !work.k_block))
    return {};
  for (const ExprId operand : {product.a, product.b}) {
    const Expression& x = v.expression(operand);
    if (x.kind == Expression::Kind::load && v.tensor(x.access).element == DType::bf16 && v.lane_step(x.access) == 0 &&
        v.step_of(x.access, loops.back()) == 1)
      return operand;
  }
  return {};
}

std::int64_t widened_steps(const Values& v, const Work& work) {
  return work.k_block ? v.schedule.depth : v.extent[loops_along_k(v).back()];
}

/// The steps along k of a tile of several rows and columns, from where a K-block begins.
void steps_widened(Values& v, Block& b, const Work& work, const Tile& tile, const Leaf& step) {
  const ExprId factor = widened_operand(v, work);
  const Access& a = v.expression(factor).access;
  const int k_axis = loops_along_k(v).back();
  const std::string k = v.axis_name(k_axis);
  v.set(k_axis, work.k_block);
  const Expr first = v.address(a, false);
  v.set(k_axis, work.k_block ? work.k_block + name(k) : name(k));
  Block inside;
  if (work.panel) {
    prefetch_panel(v, inside, tile, work.operands, work.k_block);
    inside.push_back(tree::evaluate(call("rank_one_update<0>", {name("sum"), name("left"), name("widened"),
                                                                name("panel") + name(k) * v.columns_of_tile()})));
  } else {
    v.know({{factor, call("v_set", {tree::index(name("left"), tree::binary("*", name("row"), name("widened")))})}});
    step(inside);
    v.know({});
  }
  const Values::TileLoop rows = v.loops_of(tile).front();
  b.push_back(tree::each(
      "each_widened",
      fmt::format("{}, {}, {}", tree::print(rows.piece.count()), v.step_of(a, rows.axis), widened_steps(v, work)),
      first, {{"auto", "left"}, {"auto", k}}, std::move(inside)));
  b.back().always_inline = true;
}

/// What widens numbers of B, where they are bf16, once for all rows that a panel of whole vectors is multiplied by.
/// Nothing where these are few, or where it would not lie in L2 and on a thread's stack.
Block widened_panel(Values& v, const Work& work, const Piece& columns) {
  constexpr std::int64_t most = 3 << 14, least_tiles = 4;  // reals, which are 192 KiB
  const int rows = v.kernel.gemm.rows;
  const GemmOperands& g = work.operands;
  const std::vector<int> loops = loops_along_k(v);
  if (!widened_operand(v, work).valid() || loops.size() != 1 || v.tensor(g.b.access).element != DType::bf16 ||
      v.lane_step(g.b.access) != 1 || columns.tail || columns.points != v.schedule.tile[v.vector] ||
      columns.points == 1 || rows < 0 || v.schedule.tile[rows] == 1 ||
      v.extent[rows] < least_tiles * v.schedule.tile[rows])
    return {};
  const std::int64_t width = v.columns_of_tile(), steps = widened_steps(v, work),
                     apart = g.b_in_panels ? width : g.b.along;
  if (steps * width > most) return {};
  v.set(loops.back(), work.k_block);
  const Expr first = v.address(g.b.access, false);
  return {
      tree::declare("alignas(64) real", fmt::format("panel[{}]", steps * width), nullptr),
      tree::evaluate(call(fmt::format("widen_panel<{}, {}>", width, steps), {name("panel"), first, integer(apart)}))};
}

void one_tile(Values& v, Block& b, const Work& work, const Tile& tile) {
  const GemmOperands& g = work.operands;
  const auto result_of_tile = [&]() -> const Access& { return v.step(1).stores.front().to; };
  if (uses_tile_unit(v.kernel, v.target)) {
    constexpr std::int64_t few_steps = 16;  // the results of a tile of more have the time of the next one to be stored
    if (has_slack(v) || g.k <= few_steps * padded_k(factors_on(v.kernel, v.target), 1))
      prefetch_results(v, b, tile, g, work.to != SumsTo::memory);
    tile_by_matrix_unit(v, b, tile, g, work.bounds);
    return;
  }
  const Step& st = v.step(0);
  v.locals.clear();
  v.reset();
  if (work.to != SumsTo::partials && !work.holds_sums()) prefetch_results(v, b, tile, g, work.to != SumsTo::memory);
  Expr sum = name("sum");
  std::vector<std::string> counts;
  const std::vector<Values::TileLoop> turns = v.loops_of(tile);
  for (const Values::TileLoop& l : turns) {
    sum = tree::index(sum, name(l.variable));
    counts.push_back(tree::print(l.piece.count()));
  }
  const std::string sums = tree::print(sum);
  const std::string type = counts.empty() ? "vec" : fmt::format("Accumulators<{}>", fmt::join(counts, ", "));
  b.push_back(tree::declare(type, "sum", identity(st)));
  const bool of_groups = v.kernel.accumulates && work.to != SumsTo::partials;
  if (of_groups || v.accumulates_from()) {
    Block stored;
    v.unrolled(stored, tile, [&](Block& each) { each.push_back(tree::assign(sums, v.load(result_of_tile()))); });
    add_to_earlier(b, of_groups ? "group.first" : v.accumulates_from(), std::move(stored));
  }
  /// Where a sum of the tile lies in an array of rows so wide.
  const auto at_sum = [&](Expr first, std::int64_t width) {
    for (const Values::TileLoop& l : turns)
      first = first + name(l.variable) * (l.axis == v.vector ? v.target.lanes : width);
    return first;
  };
  const auto held = [&] {
    const Expr image = tree::binary("-", name(v.axis_name(v.kernel.gemm.rows)), name("top"));
    return at_sum(name("held") + image * v.columns_of_tile(), v.columns_of_tile());
  };
  if (work.holds_sums()) {
    Block earlier;
    v.unrolled(earlier, tile, [&](Block& each) { each.push_back(tree::assign(sums, call("v_load", {held()}))); });
    b.push_back(tree::when(tree::binary(">", work.k_block, integer(0)), std::move(earlier)));
  }
  std::vector<int> loops = loops_along_k(v);
  const bool across = v.vector >= 0 && v.inner(v.vector);
  const auto step_of_k = [&](Block& inside) {
    v.reset();
    prefetch_panel(v, inside, tile, g, work.k_block);
    prefetch_rows(v, inside, tile, g);
    if (!across && rank_one_update(v, inside, tile)) return;
    v.unrolled(inside, tile,
               [&](Block& each) { each.push_back(tree::assign(sums, accumulate(v, st, each, sum, across))); });
  };
  const bool widens = turns.size() == 2 && turns.back().axis == v.vector && widened_operand(v, work).valid();
  if (widens) loops.pop_back();
  Block body = nest(v, loops, work.bounds, [&](Block& inside) {
    if (widens)
      steps_widened(v, inside, work, tile, step_of_k);
    else
      step_of_k(inside);
  });
  if (work.lines && !shares_taps(v.target))
    innermost(body).insert(innermost(body).begin(), tree::pragma("GCC unroll 1"));
  b.insert(b.end(), body.begin(), body.end());
  v.reset();
  if (work.holds_sums()) {
    Block later;
    v.unrolled(later, tile, [&](Block& each) { each.push_back(tree::evaluate(call("v_store", {held(), sum}))); });
    later.push_back(tree::give(nullptr));
    b.push_back(tree::when(tree::binary("<", work.k_block, integer(g.k - v.schedule.depth)), std::move(later)));
  }
  if (work.to == SumsTo::epilogue_of_memory)
    v.unrolled(b, tile, [&](Block& each) {
      const Expr stored = v.dense_load(v.address(result_of_tile(), true));
      each.push_back(tree::assign(sums, call("v_add", {stored, sum})));
    });
  const auto [across_columns, down] = pieces_of(v.kernel, tile);
  const std::int64_t width = across_columns.points * v.target.lanes;
  const auto keep_sums = [&](const char* array) {
    b.push_back(
        tree::declare("alignas(64) real", fmt::format("{}[{}]", array, tree::print(down.count() * width)), nullptr));
    v.unrolled(b, tile, [&](Block& each) {
      each.push_back(tree::evaluate(call("v_store", {at_sum(name(array), width), sum})));
    });
  };
  if (work.lines) {
    keep_sums("sums");
    const Expr to = name("lines") + v.along(v.kernel.gemm.rows, 1);
    b.push_back(tree::evaluate(call(fmt::format("v_store_transposed<{}, {}>", tree::print(down.count()), width),
                                    {name("sums"), to, integer(work.lines)})));
    return;
  }
  if (v.kernel.gemm.columns >= 0 && work.to != SumsTo::memory && expensive_epilogue(v.kernel)) {
    // A function where there are vectors: the constants of its loops would take registers that the accumulators need.
    const bool outlined = v.target.lanes > 1;
    const char* const kept = outlined ? "kept" : "sums";
    keep_sums(kept);
    if (!outlined) return stores_in_loops(v, b, tile, width);
    Block epilogue;
    stores_in_loops(v, epilogue, tile, width);
    b.push_back(tree::lambda_not_inlined("epilogue", {{"const real*", "sums"}}, std::move(epilogue)));
    b.push_back(tree::evaluate(call("epilogue", {name(kept)})));
    return;
  }
  v.unrolled(b, tile, [&](Block& each) {
    Expr result = sum;
    if (across) {
      result = call(st.reduction == Reduction::sum ? "v_sum" : "v_max_lane", {result});
      each.push_back(tree::declare("const vec", "all", call("v_set", {result})));
      result = name("all");
    }
    if (work.to == SumsTo::partials)
      v.dense_store(each, name("partial") + partial_index(v, 0, name("chunk")), result, across);
    else if (work.to == SumsTo::memory)
      v.add(each, v.step(1).stores.front(), result);
    else
      v.locals[{0, v.offsets_of_outer()}] = result;
    if (work.epilogue()) stores(v, each);
  });
}

/// Takes the function of an expensive epilogue out of a lambda over the number of rows: one is compiled for all
/// numbers.
Block outlined_epilogue(Block& tile, const std::string& row) {
  const auto at = ranges::find_if(tile, &tree::Statement::noinline);
  if (at == tile.end()) return {};
  tree::Statement epilogue = std::move(*at);
  tile.erase(at);
  epilogue.parameters.insert(epilogue.parameters.end(), {{"const int", "rows"}, {"const std::int64_t", row}});
  std::vector<Expr> passed = tile.back().value->operands;
  passed.insert(passed.end(), {name("rows"), name(row)});
  tile.back().value = call(epilogue.name, std::move(passed));
  return {std::move(epilogue)};
}

Block tiles(Values& v, const Work& work, const std::vector<int>& axes, std::size_t depth, Tile& tile);
Block tiles_of_images(Values& v, const Work& work, const std::vector<int>& axes, std::size_t depth, Tile& tile);

/// Images that go by while a K-block of a panel lies in L1: so many whole tiles that their sums lie there as well.
Block images_in_k_blocks(Values& v, const Work& work, const std::vector<int>& axes, std::size_t depth, Tile& tile) {
  constexpr std::int64_t tiles_at_once = 8;
  const int a = axes[depth];
  const std::int64_t images = tiles_at_once * v.schedule.tile[a];
  const Expr top = name("top"), bottom = name("bottom"), k = name("depth"), limit = work.bounds.at(a).limit;
  Work one = work;
  one.k_block = k;
  one.bounds[a] = {top, bottom};
  for (int summed : v.step(0).over) one.bounds[summed] = {k, k + integer(v.schedule.depth)};
  const Block products = tiles_of_images(v, one, axes, depth, tile);
  return {tree::declare("alignas(64) real", fmt::format("held[{}]", images * v.columns_of_tile()), nullptr),
          tree::loop("top", integer(0), tree::binary("<", top, limit), images,
                     {tree::declare("const std::int64_t", "bottom", tree::least(limit, top + integer(images))),
                      tree::loop("depth", integer(0), tree::binary("<", k, integer(work.operands.k)), v.schedule.depth,
                                 products)})};
}

/// Tiles of images: whole ones and then, of those that are left over, 4, 2 and 1; those of a matrix unit have as many
/// rows as there are. One text for all of them.
Block tiles_of_images(Values& v, const Work& work, const std::vector<int>& axes, std::size_t depth, Tile& tile) {
  const int a = axes[depth];
  const std::string image = v.axis_name(a);
  const std::int64_t most = v.schedule.tile[a];
  const auto& [first, images, whole_vectors] = work.bounds.at(a);
  v.set(a, name(image));
  const auto inside = [&](const Piece& rows) {
    tile.push_back({a, rows});
    Block body = tiles(v, work, axes, depth + 1, tile);
    tile.pop_back();
    return body;
  };
  if (uses_tile_unit(v.kernel, v.target)) {
    const Piece rows{most, 0, "high"};
    Block body{tree::declare("const std::int64_t", rows.parameter,
                             tree::least(integer(most), tree::binary("-", images, name(image)))),
               tree::evaluate(call("t_configure", {rows.count()}))};
    for (Block more : {before_tiles_of(v, work.operands, {}, a, rows), inside(rows)})
      body.insert(body.end(), more.begin(), more.end());
    return {tree::loop(image, first, tree::binary("<", name(image), images), most, std::move(body))};
  }
  const auto of_rows = [&](std::int64_t rows, Expr at) -> Block {
    return {tree::evaluate(call("tile", {name(fmt::format("constant<{}>", rows)), std::move(at)}))};
  };
  Block one = inside({most, 0, "rows"});
  Block b = outlined_epilogue(one, image);
  b.push_back(tree::lambda_of_constant("tile", "rows", {{"const std::int64_t", image}}, std::move(one)));
  const Expr whole = tree::binary("-", images, integer(most - 1));
  b.push_back(tree::loop(image, first, tree::binary("<", name(image), whole), most, of_rows(most, name(image))));
  for (std::int64_t rows = std::int64_t{1} << 5; rows; rows /= 2) {
    if (rows >= most) continue;
    const Expr left = tree::binary("%", tree::binary("%", images, integer(most)), integer(2 * rows));
    b.push_back(tree::when(tree::binary(">=", left, integer(rows)), of_rows(rows, tree::binary("-", images, left))));
  }
  return b;
}

Block tiles_of_line(Values& v, const Work& work, const std::vector<int>& axes, std::size_t depth, Tile& tile);

Block tiles(Values& v, const Work& work, const std::vector<int>& axes, std::size_t depth, Tile& tile) {
  Block b;
  if (depth == axes.size()) {
    Tile points = tile;
    std::stable_sort(points.begin(), points.end(),
                     [&](const auto& x, const auto& y) { return x.first != v.vector && y.first == v.vector; });
    one_tile(v, b, work, points);
    return b;
  }
  int a = axes[depth];
  if (v.extent[a] < 0)
    return v.schedule.depth ? images_in_k_blocks(v, work, axes, depth, tile)
                            : tiles_of_images(v, work, axes, depth, tile);
  // With one lane what is stored may lie along any axis.
  if (a == v.kernel.gemm.rows && v.kernel.gemm.transposes && v.target.lanes > 1 && !work.lines)
    return tiles_of_line(v, work, axes, depth, tile);
  std::int64_t unit = a == v.vector ? v.target.lanes : 1;
  std::int64_t extent = v.extent[a];
  std::int64_t points = v.schedule.tile[a], span = points * unit;
  std::int64_t full = extent / span * span;
  const auto range = work.bounds.find(a);
  const bool part = range != work.bounds.end();
  const bool matrix_unit = uses_tile_unit(v.kernel, v.target);
  std::vector<Block> pieces;
  auto inside = [&](Piece piece) {
    tile.push_back({a, piece});
    Work of_piece = work;
    Block first = matrix_unit ? before_tiles_of(v, work.operands, work.bounds, a, piece) : Block{};
    if (!matrix_unit && a == v.kernel.gemm.columns && depth + 2 == axes.size() && axes.back() == v.kernel.gemm.rows) {
      first = widened_panel(v, work, piece);
      of_piece.panel = !first.empty();
    }
    Block body = tiles(v, of_piece, axes, depth + 1, tile);
    body.insert(body.begin(), first.begin(), first.end());
    tile.pop_back();
    return body;
  };
  const auto configure = [&](Block& to, std::int64_t rows) {
    if (matrix_unit && a == v.kernel.gemm.rows)
      to.insert(to.begin(), tree::evaluate(call("t_configure", {integer(rows)})));
  };
  if (a == v.schedule.parallel) {  // a block of rows: whole tiles
    v.set(a, name(v.axis_name(a)));
    Block body = inside({points, 0});
    return {tree::loop(v.axis_name(a), range->second.first,
                       tree::binary("<", name(v.axis_name(a)), range->second.limit), span, std::move(body))};
  }
  const bool loops = full > span || (full == span && part);
  if (a == v.kernel.gemm.rows && depth + 1 == axes.size() && !matrix_unit && full && extent > full) {
    // One text for whole tiles and for the rows that are left.
    const std::string row = v.axis_name(a);
    v.set(a, name(row));
    const auto of_rows = [&](std::int64_t rows, Expr first) {
      return tree::evaluate(call("tile", {name(fmt::format("constant<{}>", rows)), std::move(first)}));
    };
    Block one = inside({points, 0, "rows"});
    Block b = outlined_epilogue(one, row);
    b.push_back(tree::lambda_of_constant("tile", "rows", {{"const std::int64_t", row}}, std::move(one)));
    if (loops) {
      const Expr limit = part ? tree::least(range->second.limit, integer(full)) : integer(full);
      b.push_back(tree::loop(row, part ? range->second.first : integer(0), tree::binary("<", name(row), limit), span,
                             {of_rows(points, name(row))}));
    } else {
      b.push_back(of_rows(points, integer(0)));
    }
    const tree::Statement rest = of_rows(extent - full, integer(full));
    b.push_back(part ? tree::when(tree::binary(">", range->second.limit, integer(full)), {rest}) : rest);
    return b;
  }
  if (loops) {
    v.set(a, name(v.axis_name(a)));
    Block body = inside({points, 0});
    Expr first = integer(0), limit = integer(full);
    if (part) {
      first = range->second.first;
      limit = extent > full ? tree::least(range->second.limit, limit) : range->second.limit;
    }
    pieces.push_back(
        {tree::loop(v.axis_name(a), first, tree::binary("<", name(v.axis_name(a)), limit), span, std::move(body))});
    configure(pieces.back(), points);
  } else if (full == span) {
    v.set(a, nullptr);
    pieces.push_back(inside({points, 0}));
    configure(pieces.back(), points);
  }
  if (extent > full) {
    v.set(a, nullptr, full);
    std::int64_t rest = extent - full;
    Block last = inside({(rest + unit - 1) / unit, static_cast<int>(rest % unit)});
    configure(last, rest);
    if (part) last = {tree::when(tree::binary(">", range->second.limit, integer(full)), std::move(last))};
    pieces.push_back(std::move(last));
  }
  return join(std::move(pieces));
}

/// Tiles along a line whose columns are the vectors: transposed sums wait for the epilogue, which has lanes along the
/// whole line.
Block tiles_of_line(Values& v, const Work& work, const std::vector<int>& axes, std::size_t depth, Tile& tile) {
  const int rows = v.kernel.gemm.rows;
  const std::int64_t lanes = v.target.lanes, points = v.schedule.tile[rows], extent = v.extent[rows];
  const std::int64_t last = (extent - 1) / points * points, vectors = (std::min(points, extent) + lanes - 1) / lanes;
  Work one = work;
  one.lines = (last + vectors * lanes + lanes - 1) / lanes * lanes;
  Block b{tree::declare("alignas(64) real", fmt::format("lines[{}]", v.columns_of_tile() * one.lines), nullptr)};
  prefetch_lines(v, b, tile);
  Block sums = tiles(v, one, axes, depth, tile);
  b.insert(b.end(), sums.begin(), sums.end());
  stores_of_lines(v, b, tile, one.lines);
  return b;
}

Block tiles(Values& v, const Work& work, const std::vector<int>& axes) {
  Tile tile;
  return tiles(v, work, axes, 0, tile);
}

/// Zeros where the K-blocks' sums are added up; then all tiles of one K-block after those of another.
Block tiles_in_k_blocks(Values& v, const Work& work, const std::vector<int>& axes) {
  Block b = nest(v, {v.kernel.gemm.rows, v.vector}, work.bounds, [&](Block& zeros) {
    v.dense_store(zeros, v.address(v.step(1).stores.front().to, true), call("v_zero", {}), false);
  });
  const auto block = [&](Expr first, SumsTo to) {
    Work one{work.operands, work.bounds, to, first};
    for (int a : v.step(0).over) one.bounds[a] = {first, first + integer(v.schedule.depth)};
    return tiles(v, one, axes);
  };
  const Expr last = integer(work.operands.k - v.schedule.depth);
  b.push_back(tree::loop("depth", integer(0), tree::binary("<", name("depth"), last), v.schedule.depth,
                         block(name("depth"), SumsTo::memory)));
  const Block rest = block(last, SumsTo::epilogue_of_memory);
  b.insert(b.end(), rest.begin(), rest.end());
  return b;
}

/// Rows of A that all columns are multiplied by before the next ones, so that the caches hold them: each panel of B
/// reads A anew. 0: all rows, where they are few bytes, where a block would be too few rows for what it costs, or where
/// no other columns read them.
std::int64_t rows_of_block(const Values& v, const LoopBounds& bounds, const GemmOperands& g) {
  constexpr std::int64_t least_bytes = 8 << 20, bytes_of_block = 1 << 20, least_rows = 128;
  const auto [columns, rows] = std::pair{v.kernel.gemm.columns, v.kernel.gemm.rows};
  if (rows < 0 || v.extent[rows] < 0 || !bounds.contains(rows) || rows == v.schedule.parallel ||
      v.kernel.gemm.transposes || factors_on(v.kernel, v.target) != DType::real || !reduces_one_axis(v.kernel) ||
      v.target.lanes == 1 || v.extent[columns] <= v.columns_of_tile())
    return 0;
  const std::int64_t bytes_of_row = 4 * (v.schedule.depth ? v.schedule.depth : g.k), high = v.schedule.tile[rows],
                     block = bytes_of_block / bytes_of_row / high * high;
  return v.extent[rows] * bytes_of_row > least_bytes && block >= least_rows ? block : 0;
}

/// Calls f, which makes all columns' products, for one block of rows after the other.
Block in_blocks_of_rows(const Values& v, LoopBounds bounds, const GemmOperands& g,
                        const std::function<Block(const LoopBounds&)>& f) {
  const std::int64_t block = rows_of_block(v, bounds, g);
  if (!block) return f(bounds);
  const auto range = bounds.find(v.kernel.gemm.rows);
  const auto [first, limit, whole] = range->second;
  const Expr top = name("top"), bottom = name("bottom");
  range->second = {top, bottom, whole};
  Block body{tree::declare("const std::int64_t", "bottom", tree::least(limit, top + integer(block)))};
  const Block products = f(bounds);
  body.insert(body.end(), products.begin(), products.end());
  return {tree::loop("top", first, tree::binary("<", top, limit), block, std::move(body))};
}

}  // namespace

Block contraction(Values& v, const LoopBounds& bounds, SumsTo to) {
  std::vector<int> loops, tiled;
  const bool gemm = v.kernel.gemm.columns >= 0, matrix_unit = uses_tile_unit(v.kernel, v.target);
  const GemmOperands g = gemm ? operands_of(v) : GemmOperands{};
  for (int a : v.outer_axes()) {
    if ((a == v.schedule.parallel && v.schedule.block == 1) || ranges::contains(v.block.heads, a)) continue;
    if (v.schedule.tile[a] > 1 || a == v.schedule.parallel || (a == v.vector && v.extent[a] >= 0))
      tiled.push_back(a);
    else
      loops.push_back(a);
  }
  // The columns of a GEMM stay while its rows go by: a panel of B is read from L1.
  // Where rows have to be packed, they stay, unless one panel has to be packed after the other.
  const bool columns_first = gemm && !(matrix_unit && g.packs_a && (g.packs_all_of_b || !g.packs_b()));
  std::stable_sort(tiled.begin(), tiled.end(), [&](int x, int y) {
    return columns_first ? x == v.vector && y != v.vector : x != v.vector && y == v.vector;
  });
  // What the fewer points of a loop read stays in L1 while the others go by.
  const auto points = [&](const std::vector<int>& axes) {
    std::int64_t all = 1;
    for (int axis : axes) all *= std::max<std::int64_t>(v.extent[axis] / v.schedule.tile[axis], 1);
    return all;
  };
  const bool known = ranges::all_of(loops, [&](int axis) { return v.extent[axis] >= 0; });
  if (!gemm && known && points(tiled) < points(loops)) {
    tiled.insert(tiled.end(), loops.begin(), loops.end());
    loops.clear();
  }
  return nest(v, loops, bounds, [&](Block& b) {
    if (matrix_unit) b = before_tiles(v, g, bounds);
    const auto products = [&](const LoopBounds& of_block) {
      const Work work{g, of_block, to, nullptr};
      const bool of_images = gemm && v.kernel.gemm.rows >= 0 && v.extent[v.kernel.gemm.rows] < 0;
      return v.schedule.depth && !of_images ? tiles_in_k_blocks(v, work, tiled) : tiles(v, work, tiled);
    };
    const Block all =
        gemm && !matrix_unit && columns_first ? in_blocks_of_rows(v, bounds, g, products) : products(bounds);
    b.insert(b.end(), all.begin(), all.end());
  });
}

}  // namespace tessera::codegen::cpu
