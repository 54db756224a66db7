// Sums of products with rows and columns, in tiles.
#include <fmt/format.h>

#include <algorithm>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/count.hpp>

#include "codegen/cuda/emitter.hpp"
#include "codegen/cuda/sum_of_rows.hpp"
#include "codegen/passes/ops.hpp"

namespace tessera::codegen::cuda {

using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

Factors Emitter::factors() const {
  Factors f = factors_of(kernel, plan.program.precision);
  if (!f.left.valid()) return f;
  // Neighbouring threads make neighbouring columns: what lies side by side in the result.
  const std::vector<int> order = point_axes();
  if (!order.empty() && ranges::contains(f.rows, order.back())) {
    std::swap(f.left, f.right);
    std::swap(f.rows, f.columns);
  }
  for (std::vector<int>* axes : {&f.rows, &f.columns, &f.groups, &f.depth}) *axes = batch_first(kernel, *axes);
  return f;
}

bool Emitter::lies_deep(ExprId factor, const std::vector<int>& across, const std::vector<int>& depth) const {
  auto last = [&](const std::vector<int>& axes) {
    for (std::size_t i = axes.size(); i-- > 0;)
      if (extent_of(axes[i]) != 1) return axes[i];
    return -1;
  };
  std::map<ExprId, int> below;
  reach(factor, below);
  for (auto [e, uses] : below) {
    if (expression(e).kind != Expression::Kind::load) continue;
    const std::map<int, std::int64_t> strides = strides_of(expression(e).access);
    auto along = strides.find(last(depth)), beside = strides.find(last(across));
    if (along == strides.end() || along->second == 0) continue;
    return beside == strides.end() || beside->second == 0 || along->second < beside->second;
  }
  return false;
}

bool Emitter::lies_in_eights(ExprId factor, const std::vector<int>& along) const {
  const auto whole = [](std::int64_t numbers) { return numbers % 8 == 0; };
  std::int64_t constant = 0;
  std::map<int, std::int64_t> strides = strides_of(expression(factor).access, &constant);
  std::int64_t side_by_side = 1;
  for (std::size_t i = along.size(); i-- > 0;) {
    const std::int64_t extent = extent_of(along[i]);
    if (extent == 1) continue;
    if (strides[along[i]] != side_by_side) {
      // What lies further out begins anew: behind whole eights.
      if (side_by_side == 1 || !whole(side_by_side)) return false;
      break;
    }
    strides.erase(along[i]);
    if (extent < 0) break;
    side_by_side *= extent;
  }
  for (auto [a, stride] : strides)
    if (extent_of(a) != 1 && !whole(stride)) return false;
  return whole(constant);
}

double Emitter::storing(bool chunk) const {
  constexpr double moving = 12, memory = 4, simple = 1;  // through shared memory; a load or a store; an operation
  if (chunk) return moving + memory;
  std::map<ExprId, int> below;
  double all = moving;
  for (std::size_t s = 1; s < kernel.steps.size(); ++s)
    for (const Step::Store& store : step(s).stores) {
      reach(store.value, below);
      all += memory + (rounds(store.to) ? simple : 0);
    }
  for (auto [e, uses] : below) {
    const Expression& x = expression(e);
    if (x.kind == Expression::Kind::load) all += memory;
    if (x.kind == Expression::Kind::keep) all += 100;
    if (x.kind != Expression::Kind::op) continue;
    all += row_of(x.op).cuda_cost;
  }
  return all;
}

Emitted Emitter::matrix_product(const Factors& f, bool chunk) {
  Emitted e = fresh();
  const bool tensor = plan.program.precision == Precision::bf16;
  const Extent row_count = points(f.rows), column_count = points(f.columns), group_count = points(f.groups);
  auto nominal = [&](const Extent& x) { return x.at(chunk ? nominal_summed_batch : nominal_batch); };
  const Extent depths = points(f.depth);
  Products products{nominal(row_count),   nominal(column_count), nominal(depths),
                    nominal(group_count), storing(chunk),        chunk};
  if (chunk && tensor) {
    const std::optional<Map> left = map_of(f.left, f.rows, f.groups, f.depth);
    const bool by_maps = left && map_of(f.right, f.columns, f.groups, f.depth);
    products.sums_rows = by_maps && !left->deep && sum_behind(plan, number(), f.left) >= 0;
    chunks_ = choose_chunks(products, by_maps, wanted_tile(""), wanted_tile("wgmma:"));
    e = fresh();
  }
  if (chunk) {
    products.depth = ceiling(products.depth, chunks_);
    products.count = chunks_;
  }
  Tile tile = choose_tile(plan.program.precision, products, wanted_tile(""));
  const auto in_eights = [&](ExprId value, const std::vector<int>& across) {
    const bool deep = lies_deep(value, across, f.depth);
    // A chunk of the depth begins where its first image does.
    const bool begins = !(chunk && deep) || depths.per_batch % 8 == 0;
    return begins && lies_in_eights(value, deep ? f.depth : across);
  };
  const bool left_eights = tensor && in_eights(f.left, f.rows), right_eights = tensor && in_eights(f.right, f.columns);
  // Beside 64 sums the numbers that come one by one do not fit into 128 registers.
  if (tensor && !(left_eights && right_eights) && tile.rows * tile.columns / tile.threads >= 64)
    tile.blocks = std::min(tile.blocks, 256 / tile.threads);
  blocks_of_product(e, tile, f, chunk, products);
  e.shared_bytes = call(tile.function + "_bytes", {integer(tile.rows), integer(tile.columns)});
  if (tensor) {
    Emitter other(plan, kernel, table_, tiles_);
    other.chunks_ = chunks_;
    e.by_warpgroups = other.product_by_warpgroups(f, chunk, products, tile);
  }

  const FlatIndex row = fuse(f.rows, "row"), column = fuse(f.columns, "column"), group = fuse(f.groups, "group"),
                  depth = fuse(f.depth, "depth");
  Block b;
  if (chunk) declare_chunk(b);
  if (!group.axes.empty()) b.push_back(tree::declare("const int", group.variable, call("block_z", {})));
  stand(group);
  Block functions;
  auto factor = [&](const std::string& which, ExprId value, const FlatIndex& across) {
    functions.push_back(function_of(which, {across, depth}, {}, [&](Block& body) {
      begin({value});
      Expr result = tensor ? address(expression(value).access) : evaluate(body, value);
      body.push_back(tree::give(std::move(result)));
    }));
  };
  factor("left", f.left, row);
  factor("right", f.right, column);
  functions.push_back(store_of_product(row, column, chunk));
  leave();
  Block declared = declare_needed(group);
  b.insert(b.end(), declared.begin(), declared.end());
  b.insert(b.end(), functions.begin(), functions.end());
  const Expr from = chunk ? name("begin") * depths.per_batch : integer(0);
  const Expr to = chunk ? name("end") * depths.per_batch : times_batch(depths);
  std::string function = fmt::format("{}<{}, {}, {}", tile.function, tile.rows, tile.columns, tile.division);
  for (const auto& [deep, eights] : {std::pair{lies_deep(f.left, f.rows, f.depth), left_eights},
                                     std::pair{lies_deep(f.right, f.columns, f.depth), right_eights}}) {
    function += fmt::format(", {}", deep);
    if (tensor) function += fmt::format(", {}", eights);
  }
  b.push_back(tree::evaluate(call(function + ">", {times_batch(row_count), times_batch(column_count), from, to,
                                                   name("left"), name("right"), name("store")})));
  if (chunk) e.function.name = kernel.name + "_partial";
  std::string how = fmt::format("a matrix product in tiles of {} x {}", tile.rows, tile.columns);
  for (const Emitted& w : e.by_warpgroups)
    how += fmt::format("; on sm_90a by warpgroups in tiles of {} x {}", w.tile.rows, w.tile.columns);
  finish(e, std::move(b), how, chunk, chunk);
  return e;
}

void Emitter::blocks_of_product(Emitted& e, const Tile& tile, const Factors& f, bool chunk, const Products& products) {
  const Extent row_count = points(f.rows), column_count = points(f.columns), group_count = points(f.groups),
               depths = points(f.depth);
  e.tile = tile;
  if (plan.program.precision == Precision::bf16) e.alone = alone(tile, products);
  e.depth = chunk ? Extent{depths.fixed / chunks_, ceiling(depths.per_batch, chunks_)} : depths;
  e.threads = tile.threads;
  e.blocks = tile.blocks;
  // A cluster lies along x, whatever the blocks in it stand for.
  e.grid[0] = blocks_for(row_count, tile.rows / tile.across());
  e.grid[1] = blocks_for(column_count, std::int64_t{tile.columns} * tile.across());
  e.grid[2] = chunk ? integer(chunks_) : times_batch(group_count);
  if (!column_count.known()) limit(e, ceiling(column_count.per_batch, tile.columns) + 1);
  if (!group_count.known()) limit(e, group_count.per_batch);
  for (const Extent& x : {row_count, column_count, depths})
    if (!x.known()) e.takes_batch = true;
}

tree::Statement Emitter::store_of_product(const FlatIndex& row, const FlatIndex& column, bool chunk) {
  return function_of("store", {row, column}, {{"real", "sum"}}, [&](Block& body) {
    if (chunk)
      body.push_back(tree::evaluate(binary("=", partial(), name("sum"))));
    else
      store_sums(body);
  });
}

std::string Emitter::wanted_tile(const std::string& kind) const {
  for (const std::string& of : {kernel.name, std::string()})
    if (auto at = tiles_.find(kind + of); at != tiles_.end()) return at->second;
  return "";
}

// ---- by warpgroups -----------------------------------------------------------------------------------------------

std::optional<Map> Emitter::map_of(ExprId factor, const std::vector<int>& across, const std::vector<int>& groups,
                                   const std::vector<int>& depth) {
  const Expression& x = expression(factor);
  if (x.kind != Expression::Kind::load || !rounds(x.access)) return {};
  Map map;
  map.tensor = {x.access.tensor, x.access.shift, false, ""};
  std::map<int, std::int64_t> strides = strides_of(x.access, &map.first);
  // Axes that run on from one to the next are one extent of the map.
  struct Run {
    Extent extent{1, 0};
    std::int64_t stride = 0;
    std::map<int, std::int64_t> place;  ///< in it, by axis
  };
  auto runs_of = [&](const std::vector<int>& axes) {
    std::vector<Run> runs;
    for (std::size_t i = axes.size(); i-- > 0;) {
      const int a = axes[i];
      const std::int64_t stride = strides[a];
      if (extent_of(a) == 1 || stride == 0) continue;
      if (runs.empty() || !runs.back().extent.known() || stride != runs.back().stride * runs.back().extent.fixed)
        runs.push_back({{1, 0}, stride, {}});
      Run& run = runs.back();
      run.place[a] = run.extent.fixed;
      const Extent more = extent(axis(a).dim);
      run.extent = more.known() ? Extent{run.extent.fixed * more.fixed, 0} : Extent{0, run.extent.fixed};
    }
    return runs;
  };
  const std::vector<Run> points = runs_of(across), depths = runs_of(depth), others = runs_of(groups);
  for (const std::vector<int>* axes : {&across, &depth})
    for (int a : *axes)
      if (extent_of(a) != 1 && strides[a] == 0) return {};
  if (points.size() != 1 || depths.size() != 1 || others.size() > 2) return {};
  map.deep = depths[0].stride == 1;
  if (!map.deep && points[0].stride != 1) return {};
  const Run &along = map.deep ? depths[0] : points[0], &beside = map.deep ? points[0] : depths[0];
  map.extents[0] = along.extent;
  map.extents[1] = beside.extent;
  map.strides[0] = beside.stride;
  map.third = map.fourth = integer(0);
  for (std::size_t i = 0; i < others.size(); ++i) {
    map.extents[2 + i] = others[i].extent;
    map.strides[1 + i] = others[i].stride;
    (i == 0 ? map.third : map.fourth) = linear(others[i].place, 0);
  }
  const auto whole = [](std::int64_t numbers) { return numbers % 8 == 0; };
  if (!whole(map.first) || !std::all_of(map.strides, map.strides + 3, whole)) return {};
  return map;
}

std::vector<Emitted> Emitter::product_by_warpgroups(const Factors& f, bool chunk, const Products& products,
                                                    const Tile& otherwise) {
  Emitted e = fresh();
  const FlatIndex row = fuse(f.rows, "row"), column = fuse(f.columns, "column"), group = fuse(f.groups, "group");
  stand(group);
  std::optional<Map> left = map_of(f.left, f.rows, f.groups, f.depth),
                     right = map_of(f.right, f.columns, f.groups, f.depth);
  std::optional<Tile> tile = choose_warpgroup_tile(products, otherwise, wanted_tile("wgmma:"));
  if (tile && !(left && right) && tiles_.contains("wgmma:" + kernel.name))
    refuse("has a factor that no tensor map can bring");
  if (!left || !right || !tile) return {};
  // Where all of so many tensors lie that are added to a sum would have no room in the registers of one block of two.
  constexpr std::ptrdiff_t many = 24;
  if (ranges::count(kernel.expressions, Expression::Kind::load, &Expression::kind) > many) tile->blocks = 1;
  left->lines = (left->deep ? tile->rows : 64) / tile->across();
  right->lines = (right->deep ? tile->columns : 64) / tile->down();
  blocks_of_product(e, *tile, f, chunk, products);
  e.shared_bytes = call(tile->function + "_bytes", {integer(tile->rows), integer(tile->columns), integer(tile->steps)});

  Block b;
  const Extent depths = points(f.depth);
  Expr from = integer(0), to = times_batch(depths);
  if (chunk) {
    // Chunks of whole steps, whatever image they end in.
    auto bound = [&](Expr chunk) {
      return binary("/", binary("*", std::move(chunk), name("steps")), integer(chunks_)) * 64;
    };
    b.push_back(tree::declare("const int", "chunk", call("block_z", {})));
    b.push_back(tree::declare("const int", "steps", binary("/", to + integer(63), integer(64))));
    from = bound(name("chunk"));
    to = bound(name("chunk") + integer(1));
  }
  if (!group.axes.empty()) b.push_back(tree::declare("const int", group.variable, call("block_z", {})));
  tree::Statement store = store_of_product(row, column, chunk);
  leave();
  Block declared = declare_needed(group);
  b.insert(b.end(), declared.begin(), declared.end());
  b.push_back(std::move(store));
  std::string division = tile->division + fmt::format(", {}, {}", left->deep, right->deep);
  std::vector<Expr> passed{times_batch(points(f.rows)),
                           times_batch(points(f.columns)),
                           from,
                           to,
                           name("left_map"),
                           left->third,
                           left->fourth,
                           name("right_map"),
                           right->third,
                           right->fourth,
                           name("store")};
  if (products.sums_rows) {
    const int shares = shares_of_rows(products, *tile);
    division += fmt::format(", {}", shares);
    passed.push_back(name("store_sum"));
    b.push_back(sum_of_rows(shares, points(f.rows).fixed));
    e.sums_of_rows = shares * chunks_;
    e.alone += summing_rows(products, *tile, shares);
  }
  b.push_back(tree::evaluate(
      call(fmt::format("{}<{}, {}, {}>", tile->function, tile->rows, tile->columns, division), std::move(passed))));
  e.maps = {*left, *right};
  e.function.name = kernel.name + (chunk ? "_partial_wgmma" : "_wgmma");
  finish(e, std::move(b),
         fmt::format("a matrix product by warpgroups in tiles of {} x {}{}", tile->rows, tile->columns,
                     e.sums_of_rows ? ", which sums its left factor's rows, too" : ""),
         chunk, chunk);
  if (e.sums_of_rows) {
    e.function.parameters.push_back({"real*", "sums_of_rows"});
    e.arguments.push_back({partial_behind, 0, true, "sums_of_rows"});
  }
  return {std::move(e)};
}

int Emitter::shares_of_rows(const Products& products, const Tile& tile) const {
  return static_cast<int>(std::clamp<std::int64_t>(batch_chunks / chunks_, 1, ceiling(products.columns, tile.columns)));
}

tree::Statement Emitter::sum_of_rows(int shares, std::int64_t rows) const {
  const Expr at = name("chunk") * shares + name("share");
  return tree::lambda(
      "store_sum", {{"int", "share"}, {"int", "row"}, {"real", "sum"}},
      {tree::evaluate(
          binary("=", tree::index(name("sums_of_rows"), binary("*", at, integer(rows)) + name("row")), name("sum")))});
}
}  // namespace tessera::codegen::cuda
