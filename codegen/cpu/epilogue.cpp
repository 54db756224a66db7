#include "codegen/cpu/epilogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <range/v3/algorithm/any_of.hpp>

#include "codegen/cpu/loop_nest.hpp"
#include "codegen/cpu/reduction.hpp"
#include "codegen/passes/ops.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

void stores(Values& v, Block& b) {
  for (const Step& s : v.kernel.steps) {
    if (s.reduces) continue;
    for (const Step::Store& store : s.stores) v.put(b, store);
  }
}

bool expensive_epilogue(const Kernel& gemm) {
  return ranges::any_of(gemm.expressions, [&](const Expression& e) {
    return e.kind == Expression::Kind::keep || (e.kind == Expression::Kind::op && row_of(e.op).cpu_cost >= 12);
  });
}

void stores_in_loops(Values& v, Block& b, const Tile& tile, std::int64_t width, const char* earlier) {
  const int columns = v.kernel.gemm.columns, rows = v.kernel.gemm.rows;
  const auto [across, down] = pieces_of(v.kernel, tile);
  const std::int64_t lanes = v.target.lanes;
  const std::vector<Place> kept = v.place;
  if (rows >= 0 && !down.one()) move(v, rows, "row");
  const Expr line = !down.one() ? name("row") * width : integer(0);
  const auto one = [&](const Expr& column) {
    Block body;
    v.reset();
    v.locals.clear();
    const char* const load = v.kernel.gemm.dtype == DType::int8 ? "v_load_int32" : "v_load";
    body.push_back(tree::declare(earlier ? "vec" : "const vec", "value", call(load, {name("sums") + (line + column)})));
    if (earlier)
      add_to_earlier(body, earlier,
                     {tree::assign("value", call("v_add", {v.load(v.step(1).stores.front().to), name("value")}))});
    v.locals[{0, v.offsets_of_outer()}] = name("value");
    stores(v, body);
    return body;
  };
  const std::int64_t whole = (across.points - (across.tail ? 1 : 0)) * lanes;
  Block body;
  if (whole) {
    const std::vector<Place> here = v.place;
    move(v, columns, "column");
    body.push_back(tree::loop("column", integer(0), tree::binary("<", name("column"), integer(whole)), lanes,
                              one(name("column"))));
    v.place = here;
  }
  if (across.tail) {
    v.place[columns].offset += whole;
    v.tail = integer(across.tail);
    body.push_back(tree::scope(one(integer(whole))));
    v.tail = nullptr;
  }
  if (!down.one())
    b.push_back(tree::loop("row", integer(0), tree::binary("<", name("row"), down.count()), 1, body));
  else
    b.insert(b.end(), body.begin(), body.end());
  v.place = kept;
  v.reset();
  v.locals.clear();
}

void stores_of_lines(Values& v, Block& b, const Tile& columns, std::int64_t apart) {
  const int axis = v.kernel.gemm.columns, rows = v.kernel.gemm.rows;
  const std::vector<Place> kept = v.place;
  v.vector = rows;
  move(v, axis, "column");
  Block one = nest(v, {rows}, {}, [&](Block& inside) {
    v.reset();
    v.locals.clear();
    const Expr at = name("lines") + name("column") * apart + v.along(rows, 1);
    inside.push_back(tree::declare("const vec", "value", v.dense_load(at)));
    v.locals[{0, v.offsets_of_outer()}] = name("value");
    stores(v, inside);
  });
  v.vector = axis;
  const std::int64_t count = tile_vectors(v, pieces_of(v.kernel, columns).first);
  b.push_back(tree::loop("column", integer(0), tree::binary("<", name("column"), integer(count)), 1, std::move(one)));
  v.place = kept;
  v.reset();
  v.locals.clear();
}

}  // namespace tessera::codegen::cpu
