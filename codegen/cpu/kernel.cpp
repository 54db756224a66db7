#include "codegen/cpu/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/contains.hpp>

#include "codegen/cpu/attention.hpp"
#include "codegen/cpu/epilogue.hpp"
#include "codegen/cpu/function.hpp"
#include "codegen/cpu/gemm.hpp"
#include "codegen/cpu/gemm_prefetch.hpp"
#include "codegen/cpu/reduction.hpp"
#include "codegen/cpu/rowwise.hpp"
#include "codegen/cpu/split_k.hpp"
#include "codegen/cpu/threads.hpp"
#include "codegen/cpu/weight_gradient.hpp"
#include "codegen/kernels/kernel.hpp"
#include "codegen/passes/ops.hpp"
#include "codegen/plan/attention.hpp"
#include "codegen/plan/gemm.hpp"
#include "codegen/plan/positions.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// The batch, and every axis whose points a caller passes `begin` and `end` of.
LoopBounds bounds_of_batch(const Values& v, const Expr& first, const Expr& limit) {
  LoopBounds bounds;
  for (std::size_t a = 0; a < v.extent.size(); ++a)
    if (v.extent[a] < 0) bounds[static_cast<int>(a)] = {first, limit};
  return bounds;
}

/// Where an axis of positions ends: a sum's behind the position, and else with its block, so that sums along lanes have
/// the order of all positions.
Block stop_at_position(Values& v, LoopBounds& bounds) {
  for (std::size_t a = 0; a < v.kernel.axes.size(); ++a) {
    const Axis& axis = v.kernel.axes[a];
    if (!axis.last.valid()) continue;
    const Expr at = tree::index(name(v.argument({axis.last, 0, {Affine{}}}, false)), integer(0));
    const bool sums = v.kernel.anchor == Anchor::contraction && axis.inner && static_cast<int>(a) != v.vector;
    const Expr block = tree::binary("/", at, integer(position_block)) * position_block + integer(position_block);
    bounds[static_cast<int>(a)] = {integer(0), name("seen"), true};
    return {
        tree::declare("const std::int64_t", "seen", sums ? at + integer(1) : tree::least(integer(v.extent[a]), block))};
  }
  return {};
}

/// Of a sum whose terms are 0 but for that which an image's integer names, as a row of a table, that one alone is added
/// up: the bits are the same.
void pick_terms(Values& v, LoopBounds& bounds) {
  const Step& sum = v.kernel.steps.front();
  if (v.kernel.anchor != Anchor::contraction || sum.reduction != Reduction::sum || v.schedule.depth ||
      uses_tile_unit(v.kernel, v.target))
    return;
  const Expression& product = v.expression(sum.value);
  if (product.kind != Expression::Kind::op || product.op != graph::Op::multiply) return;
  for (const ExprId factor : {product.a, product.b}) {
    const Expression& x = v.expression(factor);
    const int picked = axis_along(x.element);
    if (x.kind != Expression::Kind::index_equals || picked == v.vector || !ranges::contains(sum.over, picked)) continue;
    const Access& integers = v.expression(x.a).access;
    const bool one = ranges::all_of(integers.index, [&](const Affine& index) {
      return ranges::all_of(index.parts, [&](const Affine::Part& p) {
        return v.extent[p.axis] == 1 || (p.axis == v.schedule.parallel && v.schedule.block == 1);
      });
    });
    if (!one) continue;
    const Expr at = tree::index(name(v.argument(integers, false)), v.offset_of(integers));
    bounds[picked] = {at, at + integer(1)};
  }
}

/// Once, image by image, or a block of points of one axis.
Emitted whole(Values& v, bool in_team) {
  const Kernel& kernel = v.kernel;
  const Schedule& schedule = v.schedule;
  const bool gemm = kernel.gemm.columns >= 0;
  Emitted e;
  e.function.name = kernel.name;
  // Compilers would keep a caller's values in registers that the accumulators need.
  e.function.noinline = gemm && v.target.lanes > 1;
  LoopBounds bounds;
  Partition partition;
  if (schedule.parallel >= 0) {
    e.parallel = schedule.parallel;
    e.block = schedule.block;
    if (schedule.block == 1) {
      e.tasks = Emitted::Tasks::images;
      v.set(schedule.parallel, nullptr);
      if (in_team) partition = partition_of(v);
      bounds = bounds_of(partition, kernel);
      e.shared = !partition.empty();
      if (e.shared) e.function.parameters.push_back({"const Team&", "team"});
    } else {
      e.tasks = Emitted::Tasks::blocks;
      e.function.parameters.push_back({"const std::int64_t", "begin"});
      e.function.parameters.push_back({"const std::int64_t", "end"});
      bounds = bounds_of_batch(v, name("begin"), name("end"));
      bounds[schedule.parallel] = {name("begin"), name("end")};
    }
  } else if (kernel.across_batch) {
    e.tasks = Emitted::Tasks::batch;
    bounds = bounds_of_batch(v, integer(0), images(kernel));
    add_images(kernel, e);
  }
  for (std::size_t a = 0; a < kernel.axes.size(); ++a)
    if (const ExprId only = kernel.axes[a].only; only.valid()) {
      const Expr at = tree::index(name(v.argument(v.expression(only).access, false)), integer(0));
      bounds[static_cast<int>(a)] = {at, at + integer(1)};
    }
  const Block positions = stop_at_position(v, bounds);
  pick_terms(v, bounds);
  add_numbers(v, e);
  e.function.body = kernel.anchor == Anchor::contraction ? contraction(v, bounds) : passes_over_rows(v, bounds);
  if (uses_tile_unit(kernel, v.target)) e.function.body.push_back(tree::evaluate(call("t_release", {})));
  if (e.shared) e.function.body.push_back(tree::evaluate(call("team.wait", {})));
  Block before = declare_bounds(v, partition);
  if (e.tasks == Emitted::Tasks::images && gemm) {
    const GemmOperands g = operands_of(v);
    const Block stash =
        prefetch_image(v, [&](const Access& a) { return is_stash(v, a) && !prefetched_by_tile(v, g, a); }, nullptr);
    before.insert(before.end(), stash.begin(), stash.end());
  }
  before.insert(before.begin(), positions.begin(), positions.end());
  e.function.body.insert(e.function.body.begin(), before.begin(), before.end());
  finish(v, e);
  return e;
}

/// A block of a GEMM's rows, summed over the batch. Where an image alone has much to sum, its sums are added to what is
/// stored (weight_gradient.hpp); else the sums go on over all images.
Emitted sum_over_images(Values& v) {
  Emitted e;
  const int rows = v.kernel.gemm.rows;
  e.function.name = v.kernel.name;
  e.tasks = Emitted::Tasks::parts;
  e.parallel = rows;
  e.block = v.schedule.tile[rows];
  e.function.parameters = {{"const std::int64_t", "begin"}, {"const std::int64_t", "end"}};
  add_images(v.kernel, e);
  add_layer(v.kernel, e);
  const std::string gradient = gradient_function(v);
  LoopBounds bounds = bounds_of_batch(v, integer(0), images(v.kernel));
  bounds[rows] = {name("begin"), name("end")};
  e.function.body = gradient.empty() ? contraction(v, bounds) : weight_gradient(v);
  finish(v, e, {gradient});
  return e;
}

/// A block of a GEMM's columns for all images, which are its rows: its weights are read once.
Emitted rows_of_images(Values& v) {
  const Gemm& gemm = v.kernel.gemm;
  Emitted e;
  e.function.name = v.kernel.name;
  e.function.noinline = v.target.lanes > 1;
  e.tasks = Emitted::Tasks::parts;
  e.parallel = gemm.columns;
  e.block = v.columns_of_tile();
  e.function.parameters = {{"const std::int64_t", "begin"}, {"const std::int64_t", "end"}};
  add_images(v.kernel, e);
  add_layer(v.kernel, e);
  e.function.body =
      contraction(v, {{gemm.columns, {name("begin"), name("end"), true}}, {gemm.rows, {integer(0), images(v.kernel)}}});
  if (uses_tile_unit(v.kernel, v.target)) e.function.body.push_back(tree::evaluate(call("t_release", {})));
  finish(v, e);
  return e;
}

/// The first image of a chunk.
Expr chunk_bound(const Kernel& kernel, Expr chunk) {
  if (kernel.accumulates) return call("group.at", {std::move(chunk)});
  return tree::binary("/", tree::binary("*", std::move(chunk), name("batch")), integer(batch_chunks));
}

/// Split-K: the partials of one chunk of the batch.
Emitted partials(Values& v) {
  Emitted e;
  e.tasks = Emitted::Tasks::chunks;
  e.function.name = v.kernel.name + "_partial";
  e.function.parameters = {{"const std::int64_t", "chunk"}};
  add_images(v.kernel, e);
  if (uses_batch(v.kernel) && v.kernel.accumulates) e.function.parameters.push_back({"const std::int64_t", "batch"});
  add_layer(v.kernel, e);
  e.function.body = {tree::declare("const std::int64_t", "begin", chunk_bound(v.kernel, name("chunk"))),
                     tree::declare("const std::int64_t", "end", chunk_bound(v.kernel, name("chunk") + integer(1)))};
  const Block sums = contraction(v, bounds_of_batch(v, name("begin"), name("end")), SumsTo::partials);
  e.function.body.insert(e.function.body.end(), sums.begin(), sums.end());
  finish(v, e);
  e.function.parameters.push_back({"real*", "partial"});
  e.arguments.push_back({TensorId(), 0, true, "partial"});
  return e;
}

/// Reduces the partials of all chunks in their order, then stores.
Emitted reduce_partials(Values& v) {
  Emitted e;
  e.function.name = v.kernel.name + "_sum";
  std::vector<int> outer = v.outer_axes();
  v.restart(partial_vector(v));
  // Few sums are added up by one thread: waking another would cost more.
  std::int64_t sums = batch_chunks;
  for (int a : outer) sums *= v.extent[a];
  int parallel = -1;
  if (outer.size() > 1 && sums > 100000) parallel = outer[0] == v.vector ? outer[1] : outer[0];
  if (parallel >= 0) {
    e.tasks = Emitted::Tasks::points;
    e.parallel = parallel;
    e.function.parameters.push_back({"const std::int64_t", v.axis_name(parallel)});
    v.set(parallel, name(v.axis_name(parallel)));
  }
  if (v.kernel.accumulates) add_images(v.kernel, e);
  if (uses_batch(v.kernel)) e.function.parameters.push_back({"const std::int64_t", "batch"});
  add_layer(v.kernel, e);
  const Expr first = v.kernel.accumulates ? name("group.chunk") : integer(0);
  const Expr end = v.kernel.accumulates ? name("group.end") : integer(batch_chunks);
  std::vector<int> loops;
  for (int a : outer)
    if (a != parallel && a != v.vector) loops.push_back(a);
  if (v.vector >= 0) loops.push_back(v.vector);
  e.function.body = nest(v, loops, {}, [&](Block& b) {
    v.reset();
    int reduction = 0;
    for (std::size_t s = 0; s < v.kernel.steps.size(); ++s) {
      if (!v.step(s).reduces) continue;
      std::string sum = fmt::format("sum{}", reduction);
      b.push_back(tree::declare("vec", sum, identity(v.step(s))));
      if (v.kernel.accumulates)
        add_to_earlier(b, "group.first", {tree::assign(sum, v.load(v.step(1).stores.front().to))});
      Expr at = name("partial") + partial_index(v, reduction, name("chunk"));
      Block body{tree::assign(sum, accumulate(v.step(s), name(sum), v.dense_load(at)))};
      b.push_back(tree::loop("chunk", first, tree::binary("<", name("chunk"), end), 1, body));
      v.locals[{static_cast<int>(s), v.offsets_of_outer()}] = name(sum);
      ++reduction;
    }
    stores(v, b);
  });
  finish(v, e);
  e.function.parameters.push_back({"const real*", "partial"});
  e.arguments.push_back({TensorId(), 0, false, "partial"});
  return e;
}

}  // namespace

std::int64_t points_of_image(const Kernel& kernel) {
  std::int64_t points = 1;
  for (const Axis& a : kernel.axes)
    if (a.dim.known()) points *= a.dim.value();
  if (attends(kernel))
    for (const Kernel& part : kernel.fused.parts) points += points_of_image(part);
  return points;
}

const std::set<std::string>& known_names() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all{"lanes",
                              "group.first",
                              "group.images",
                              "group.chunk",
                              "group.end",
                              "group.at",
                              "group_of",
                              "team.wait",
                              "team.begin",
                              "team.end",
                              "team.tiles",
                              "mine.begin",
                              "mine.end",
                              "mine.left",
                              "mine.right",
                              "std::min<std::int64_t>",
                              "v_set",
                              "v_zero",
                              "v_iota",
                              "v_load",
                              "v_load_n",
                              "v_load_strided",
                              "v_store",
                              "v_store_n",
                              "v_store_strided",
                              "v_max",
                              "v_fma",
                              "v_fms",
                              "v_fnma",
                              "nullptr",
                              "true",
                              "false",
                              "t_configure",
                              "t_release",
                              "t_pack_left",
                              "t_pack_right",
                              "t_product",
                              "t_product_in_blocks",
                              "v_set_bf16",
                              "v_load_bf16",
                              "v_load_n_bf16",
                              "v_load_strided_bf16",
                              "v_store_bf16",
                              "v_store_n_bf16",
                              "v_store_strided_bf16",
                              "v_store_int8",
                              "v_store_n_int8",
                              "v_store_strided_int8",
                              "v_load_int32",
                              "v_div_one",
                              "v_rsqrt_one",
                              "v_keep",
                              "v_keep_n",
                              "v_keep_some",
                              "v_fma_some",
                              "along_row",
                              "each_widened",
                              "widen_panel",
                              "widened",
                              "axpy",
                              "rank_one_update",
                              "v_copy_transposed",
                              "v_store_transposed",
                              "v_fill",
                              "v_fetch",
                              "v_fetch_near",
                              "v_fetch_line",
                              "v_fetch_rows",
                              "v_load_some",
                              "v_store_some",
                              "v_load_some_bf16",
                              "v_store_some_bf16",
                              "v_store_some_int8",
                              "tessera_l2_bytes",
                              "v_one",
                              "v_sum",
                              "v_max_lane",
                              "static_cast<int>",
                              "static_cast<real>"};
    for (const graph::Op op : elementwise_ops) all.insert(std::string(row_of(op).cpu));
    return all;
  }();
  return names;
}

std::vector<Emitted> emit(const Plan& plan, int kernel, const Target& target, bool in_team, const Put& put) {
  if (attends(plan.program.kernels[kernel])) return {attention(plan, kernel, target, in_team, put)};
  Values v(plan, kernel, target);
  const Tasks tasks = tasks_of(v.kernel);
  if (tasks == Tasks::rows) return {sum_over_images(v)};
  if (tasks == Tasks::columns) return {rows_of_images(v)};
  if (tasks != Tasks::chunks) return {whole(v, in_team)};
  Emitted sums = partials(v);
  return {std::move(sums), reduce_partials(v)};
}

}  // namespace tessera::codegen::cpu
