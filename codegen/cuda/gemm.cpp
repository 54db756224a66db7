// Sums of products with rows and columns, in tiles.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/count.hpp>

#include "codegen/cuda/emitter.hpp"
#include "codegen/error.hpp"

namespace tessera::codegen::cuda {

using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// The device's function for a tile: what it needs of shared memory, this and "_bytes" says.
std::string function_of_unit(CtaTile::Unit unit) {
  switch (unit) {
    case CtaTile::Unit::fma:
      return "product";
    case CtaTile::Unit::mma_sync:
      return "tensor_product";
    case CtaTile::Unit::wgmma:
      return "warpgroup_product";
    case CtaTile::Unit::none:
      break;
  }
  throw Error("a GEMM without a tile");
}

}  // namespace

Emitted Emitter::gemm(const Launch& l) {
  Emitted e = of_launch(l);
  of_product(e, l);
  const CtaTile& tile = l.tile;
  const bool chunk = l.partials, tensor = tile.unit == CtaTile::Unit::mma_sync;
  const std::string device = function_of_unit(tile.unit);
  e.shared_bytes = call(device + "_bytes", {integer(tile.rows), integer(tile.columns)});
  for (const Launch& w : l.wgmma) e.wgmma.push_back(Emitter(plan, kernel, table_, axis_of_pairs(w)).gemm_by_wgmma(w));

  const Extent depths = points(l.depth);
  const FlatIndex row = fuse(l.a.across, "row"), column = fuse(l.b.across, "column"), group = fuse(l.groups, "group"),
                  depth = fuse(l.depth, "depth");
  Block b;
  if (chunk) declare_chunk(b);
  declare_group(b, group);
  stand(group);
  Block functions;
  auto factor = [&](const std::string& which, ExprId value, const FlatIndex& across) {
    functions.push_back(function_of(which, {across, depth}, {}, [&](Block& body) {
      begin({value});
      Expr result = tensor ? address(expression(value).access) : evaluate(body, value);
      body.push_back(tree::give(std::move(result)));
    }));
  };
  factor("left", l.a.value, row);
  factor("right", l.b.value, column);
  functions.push_back(store_of_product(row, column, chunk, tile.unit));
  leave();
  Block declared = declare_needed(group);
  b.insert(b.end(), declared.begin(), declared.end());
  b.insert(b.end(), functions.begin(), functions.end());
  const Expr from = chunk ? name("begin") * depths.per_batch : integer(0);
  const Expr to = chunk ? name("end") * depths.per_batch : times_batch(depths);
  std::string function = fmt::format("{}<{}, {}, {}", device, tile.rows, tile.columns, fmt::join(tile.division, ", "));
  for (const GemmOperand* operand : {&l.a, &l.b}) {
    function += fmt::format(", {}", operand->k_major);
    if (tensor) function += fmt::format(", {}", operand->vectorisable);
  }
  b.push_back(tree::evaluate(call(function + ">", {times_batch(points(l.a.across)), times_batch(points(l.b.across)),
                                                   from, to, name("left"), name("right"), name("store")})));
  std::string how = fmt::format("a matrix product in tiles of {} x {}", tile.rows, tile.columns);
  for (const Launch& w : l.wgmma)
    how += fmt::format("; on sm_90a by warpgroups in tiles of {} x {}", w.tile.rows, w.tile.columns);
  finish(e, std::move(b), how, chunk, chunk);
  return e;
}

void Emitter::of_product(Emitted& e, const Launch& l) const {
  for (const std::vector<int>* axes : {&l.a.across, &l.b.across, &l.depth})
    if (!points(*axes).known()) e.takes_batch = true;
}

tree::Statement Emitter::store_of_product(const FlatIndex& row, const FlatIndex& column, bool chunk, CtaTile::Unit unit,
                                          bool pairs) {
  // A sum that is stored as it is, or with what its column has, waits for no memory: rows need not be on their way
  // together, and store_rows spares the registers for that.
  std::map<ExprId, int> read;
  if (!chunk)
    for (const Step::Store& to : stores_of_sum()) reach(to.value, read);
  const auto of_rows = [&](const Access& access) {
    return ranges::any_of(strides_of(access), [&](const auto& along) {
      return along.second != 0 && ranges::contains(row.axes, along.first);
    });
  };
  const bool waits = unit != CtaTile::Unit::fma && ranges::any_of(read, [&](const auto& part) {
                       const Expression& x = expression(part.first);
                       return x.kind == Expression::Kind::load && of_rows(x.access);
                     });
  return function_of("store", {row, column}, {{pairs ? "Pair" : "real", "sum"}}, [&](Block& body) {
    Block stores;
    if (chunk)
      stores.push_back(tree::evaluate(pairs
                                          ? call("store_pair", {name("partial") + partial()->operands[1], name("sum")})
                                          : binary("=", partial(), name("sum"))));
    else
      store_sums(body, stores);
    if (waits) {
      body.push_back(tree::lambda("later", {}, std::move(stores)));
      body.push_back(tree::give(name("later")));
    } else {
      body.insert(body.end(), stores.begin(), stores.end());
    }
  });
}

int Emitter::axis_of_pairs(const Launch& l) const {
  int last = -1;
  for (const int a : l.b.across)
    if (extent_of(a) != 1) last = a;
  if (last < 0 || is_batch(last) || extent_of(last) % 2 != 0) return -1;
  if (!l.partials) return has_pairs(values_of(1, kernel.steps.size())) ? last : -1;
  // Partial sums lie as the points do.
  const std::vector<int> axes = point_axes(*this);
  const auto along = std::find_if(axes.rbegin(), axes.rend(), [&](int a) { return extent_of(a) != 1; });
  return along != axes.rend() && *along == last ? last : -1;
}

// ---- by warpgroups -----------------------------------------------------------------------------------------------

Emitted Emitter::gemm_by_wgmma(const Launch& l) {
  Emitted e = of_launch(l);
  of_product(e, l);
  const CtaTile& tile = l.tile;
  const bool chunk = l.partials;
  const std::string device = function_of_unit(tile.unit);
  const FlatIndex row = fuse(l.a.across, "row"), column = fuse(l.b.across, "column"), group = fuse(l.groups, "group");
  stand(group);
  std::vector<Expr> places;
  for (const TensorMap& map : l.maps) {
    places.push_back(linear(map.third, 0));
    places.push_back(linear(map.fourth, 0));
  }
  e.shared_bytes =
      call(device + "_bytes", {integer(tile.rows), integer(tile.columns), integer(tile.teams()), integer(tile.stages)});

  Block b;
  const Extent depths = points(l.depth);
  Expr from = integer(0), to = times_batch(depths);
  if (chunk) {
    // Chunks of whole steps, whatever image they end in.
    auto bound = [&](Expr chunk) {
      return binary("/", binary("*", std::move(chunk), name("steps")), integer(l.split_k)) * 64;
    };
    b.push_back(tree::declare("const int", "chunk", chunk_of_cta()));
    b.push_back(tree::declare("const int", "steps", binary("/", to + integer(63), integer(64))));
    from = bound(name("chunk"));
    to = bound(name("chunk") + integer(1));
  }
  declare_group(b, group);
  tree::Statement store = store_of_product(row, column, chunk, tile.unit, axis_of_pairs(l) >= 0);
  leave();
  Block declared = declare_needed(group);
  b.insert(b.end(), declared.begin(), declared.end());
  b.push_back(std::move(store));
  std::string division = fmt::format("{}, {}, {}, {}, {}", fmt::join(tile.division, ", "), tile.stages, tile.cluster,
                                     l.a.k_major, l.b.k_major);
  std::vector<Expr> passed{times_batch(points(l.a.across)),
                           times_batch(points(l.b.across)),
                           from,
                           to,
                           name("left_map"),
                           places[0],
                           places[1],
                           name("right_map"),
                           places[2],
                           places[3],
                           name("store")};
  constexpr std::ptrdiff_t few = 2;  // loads, of which a thread has those of four pairs in its registers
  const bool many = !chunk && ranges::count(kernel.expressions, Expression::Kind::load, &Expression::kind) > few + 2;
  if (l.row_shares || many) division += fmt::format(", {}", l.row_shares);
  if (many) division += ", 2";
  if (l.row_shares) {
    passed.push_back(name("store_sum"));
    b.push_back(store_operand_reduction(l.row_shares, points(l.a.across).fixed));
  }
  b.push_back(tree::evaluate(
      call(fmt::format("{}<{}, {}, {}>", device, tile.rows, tile.columns, division), std::move(passed))));
  finish(e, std::move(b),
         fmt::format("a matrix product by warpgroups in tiles of {} x {}{}", tile.rows, tile.columns,
                     l.row_shares ? ", which sums its left factor's rows, too" : ""),
         chunk, chunk);
  if (l.row_shares) {
    e.function.parameters.push_back({"real*", "sums_of_rows"});
    e.arguments.push_back({partial_behind, 0, true, "sums_of_rows"});
  }
  return e;
}

tree::Statement Emitter::store_operand_reduction(int shares, std::int64_t rows) const {
  const Expr at = name("chunk") * shares + name("share");
  return tree::lambda(
      "store_sum", {{"int", "share"}, {"int", "row"}, {"real", "sum"}},
      {tree::evaluate(
          binary("=", tree::index(name("sums_of_rows"), binary("*", at, integer(rows)) + name("row")), name("sum")))});
}
}  // namespace tessera::codegen::cuda
