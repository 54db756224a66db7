// Sums of products with rows and columns, in tiles.
#include <fmt/format.h>

#include <range/v3/algorithm/contains.hpp>

#include "codegen/cuda/emitter.hpp"

namespace tessera::codegen::cuda {

using graph::Op;
using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

Factors Emitter::factors() const {
  Factors f = factors_of(kernel_, plan_.program.precision);
  if (f.left < 0) return f;
  // Neighbouring threads make neighbouring columns: what lies side by side in the result.
  const std::vector<int> order = point_axes();
  if (!order.empty() && ranges::contains(f.rows, order.back())) {
    std::swap(f.left, f.right);
    std::swap(f.rows, f.columns);
  }
  for (std::vector<int>* axes : {&f.rows, &f.columns, &f.groups, &f.depth}) *axes = batch_first(kernel_, *axes);
  return f;
}

bool Emitter::lies_deep(int factor, const std::vector<int>& across, const std::vector<int>& depth) const {
  auto last = [&](const std::vector<int>& axes) {
    for (std::size_t i = axes.size(); i-- > 0;)
      if (extent_of(axes[i]) != 1) return axes[i];
    return -1;
  };
  std::map<int, int> below;
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

bool Emitter::lies_in_eights(int factor, const std::vector<int>& along) const {
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
  static const std::map<Op, double> slow{{Op::exp, 10},  {Op::log, 10},   {Op::sqrt, 8},
                                         {Op::rsqrt, 8}, {Op::divide, 8}, {Op::tanh, 20},
                                         {Op::erf, 30},  {Op::gelu, 35},  {Op::gelu_gradient, 50}};
  if (chunk) return moving + memory;
  std::map<int, int> below;
  double all = moving;
  for (std::size_t s = 1; s < kernel_.steps.size(); ++s)
    for (const Step::Store& store : step(s).stores) {
      reach(store.value, below);
      all += memory;
    }
  for (auto [e, uses] : below) {
    const Expression& x = expression(e);
    if (x.kind == Expression::Kind::load) all += memory;
    if (x.kind == Expression::Kind::keep) all += 100;
    if (x.kind != Expression::Kind::op) continue;
    const auto at = slow.find(x.op);
    all += at == slow.end() ? simple : at->second;
  }
  return all;
}

Emitted Emitter::matrix_product(const Factors& f, bool chunk) {
  Emitted e = fresh();
  const bool tensor = plan_.program.precision == Precision::bf16;
  const Extent row_count = points(f.rows), column_count = points(f.columns), group_count = points(f.groups);
  auto nominal = [](const Extent& x) { return x.at(nominal_batch); };
  const Extent depths = points(f.depth);
  const Products products{nominal(row_count), nominal(column_count),
                          chunk ? ceiling(nominal(depths), batch_chunks) : nominal(depths),
                          chunk ? batch_chunks : nominal(group_count), storing(chunk)};
  const Tile& tile = e.tile = choose_tile(plan_.program.precision, products, wanted_tile());
  if (tensor) e.alone = alone(tile, products);
  e.depth = chunk ? Extent{depths.fixed / batch_chunks, ceiling(depths.per_batch, batch_chunks)} : depths;
  e.threads = tile.threads;
  e.blocks = tile.blocks;
  e.shared_bytes = call(tile.function + "_bytes", {integer(tile.rows), integer(tile.columns)});
  e.grid[0] = blocks_for(row_count, tile.rows);
  e.grid[1] = blocks_for(column_count, tile.columns);
  e.grid[2] = chunk ? integer(batch_chunks) : times_batch(group_count);
  if (!column_count.known()) limit(e, ceiling(column_count.per_batch, tile.columns) + 1);
  if (!group_count.known()) limit(e, group_count.per_batch);
  for (const Extent& x : {row_count, column_count, depths})
    if (!x.known()) e.takes_batch = true;

  const Fused row = fuse(f.rows, "row"), column = fuse(f.columns, "column"), group = fuse(f.groups, "group"),
              depth = fuse(f.depth, "depth");
  Block b;
  if (chunk) declare_chunk(b);
  if (!group.axes.empty()) b.push_back(tree::declare("const int", group.variable, call("block_z", {})));
  stand(group);
  Block functions;
  auto factor = [&](const std::string& which, int value, const Fused& across) {
    functions.push_back(function_of(which, {across, depth}, {}, [&](Block& body) {
      begin({value});
      Expr result = tensor ? address(expression(value).access) : evaluate(body, value);
      body.push_back(tree::give(std::move(result)));
    }));
  };
  factor("left", f.left, row);
  factor("right", f.right, column);
  functions.push_back(function_of("store", {row, column}, {{"real", "sum"}}, [&](Block& body) {
    if (chunk)
      body.push_back(tree::evaluate(binary("=", partial(), name("sum"))));
    else
      store_sums(body);
  }));
  leave();
  Block declared = declare_needed(group);
  b.insert(b.end(), declared.begin(), declared.end());
  b.insert(b.end(), functions.begin(), functions.end());
  const Expr from = chunk ? name("begin") * depths.per_batch : integer(0);
  const Expr to = chunk ? name("end") * depths.per_batch : times_batch(depths);
  std::string function = fmt::format("{}<{}, {}, {}", tile.function, tile.rows, tile.columns, tile.division);
  for (const auto& [value, across] : {std::pair{f.left, f.rows}, std::pair{f.right, f.columns}}) {
    const bool deep = lies_deep(value, across, f.depth);
    function += fmt::format(", {}", deep);
    if (!tensor) continue;
    // A chunk of the depth begins where its first image does.
    const bool begins = !(chunk && deep) || depths.per_batch % 8 == 0;
    function += fmt::format(", {}", begins && lies_in_eights(value, deep ? f.depth : across));
  }
  b.push_back(tree::evaluate(call(function + ">", {times_batch(row_count), times_batch(column_count), from, to,
                                                   name("left"), name("right"), name("store")})));
  if (chunk) e.function.name = kernel_.name + "_partial";
  finish(e, std::move(b), fmt::format("a matrix product in tiles of {} x {}", tile.rows, tile.columns), chunk, chunk);
  return e;
}

std::string Emitter::wanted_tile() const {
  for (const std::string& of : {kernel_.name, std::string()})
    if (auto at = tiles_.find(of); at != tiles_.end()) return at->second;
  return "";
}
}  // namespace tessera::codegen::cuda
