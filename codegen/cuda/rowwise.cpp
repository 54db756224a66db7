// A warp or a block of threads for each row of what a kernel makes.
#include <fmt/format.h>

#include <range/v3/algorithm/none_of.hpp>

#include "codegen/cuda/column_reduction.hpp"
#include "codegen/cuda/emitter.hpp"

namespace tessera::codegen::cuda {

using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

Emitted Emitter::rows(const Launch& l) {
  Emitted e = of_launch(l);
  const bool chunk = l.partials, whole_block = l.lanes > 32;
  const FlatIndex row = fuse(point_axes(*this), "row"), image = fuse(batch_axes(*this, false), "");
  const std::int64_t count = points(row.axes).fixed, warps = l.grid[0].size;
  if (whole_block) e.shared_bytes = integer(l.threads / 32 * 4);
  Block b;
  if (!image.axes.empty()) blocks_for_images(b, image);
  if (chunk) {
    e.takes_batch = true;
    declare_chunk(b);
  }
  if (!batch_axes(*this, true).empty()) e.takes_batch = true;
  const Expr thread = call("thread_x", {});
  b.push_back(
      tree::declare("const int", "lane", whole_block || warps == 1 ? thread : binary("%", thread, integer(32))));
  stand(row);
  Block inside;
  row_passes(inside, l.lanes, whole_block ? "block_" : "warp_", chunk);
  if (chunk)
    inside.push_back(tree::when(binary("==", name("lane"), integer(0)),
                                {tree::evaluate(binary("=", partial(), name(result_of(0, step(0)))))}));
  leave();
  if (!image.axes.empty()) leave();
  Block declared = declare_needed(row);
  inside.insert(inside.begin(), declared.begin(), declared.end());
  if (count == 1) {
    b.insert(b.end(), inside.begin(), inside.end());
  } else {
    Expr at = whole_block ? call("block_x", {})
                          : binary("*", call("block_x", {}), integer(warps)) + binary("/", thread, integer(32));
    b.push_back(tree::declare("const int", row.variable, at));
    if (count % warps == 0)
      b.insert(b.end(), inside.begin(), inside.end());
    else
      b.push_back(tree::when(binary("<", name(row.variable), integer(count)), std::move(inside)));
  }
  finish(e, std::move(b), whole_block ? "a block for each row" : "a warp for each row", chunk, chunk);
  return e;
}

Emitted Emitter::rows_and_sums(const Launch& l) {
  Emitted e = of_launch(l);
  const ColumnReductions& sums = l.sums;
  std::vector<int> axes = batch_axes(*this, false);
  for (int a : point_axes(*this)) axes.push_back(a);
  const FlatIndex row = fuse(axes, "row");
  const std::int64_t at_a_time = sums.blocks * sums.warps;
  e.takes_batch = true;
  e.shared_bytes = integer(4 * sums.warps * sums.numbers());
  Block b, inside;
  b.push_back(tree::declare("const int", "lane", binary("%", call("thread_x", {}), integer(32))));
  b.push_back(tree::declare("real* const", "sums", call("sums_of_warp", {integer(sums.numbers())})));
  stand(row);
  row_passes(inside, 32, "warp_", false);
  leave();
  Block declared = declare_needed(row);
  inside.insert(inside.begin(), declared.begin(), declared.end());
  b.push_back(
      tree::loop("int", row.variable,
                 binary("*", call("block_x", {}), integer(sums.warps)) + binary("/", call("thread_x", {}), integer(32)),
                 binary("<", name(row.variable), times_batch(points(row.axes))), at_a_time, std::move(inside)));
  const Access& partial = kernel.steps.back().stores.front().to;
  b.push_back(
      tree::evaluate(call("store_sums_of_warps",
                          {integer(sums.numbers()), name(argument(partial, true)) +
                                                        binary("*", call("block_x", {}), integer(sums.numbers()))})));
  finish(e, std::move(b), "a warp for each row, and the rows' sums", false, false);
  return e;
}

void Emitter::row_passes(Block& b, int lanes, const std::string& reducer, bool chunk) {
  const std::size_t steps = steps_of_row(kernel);
  for (std::size_t first = 0, end = 0; first < steps; first = end) {
    end = first + 1;
    while (end < steps && joins_pass(first, end)) ++end;
    row_pass(b, first, end, lanes, reducer, chunk);
    if (chunk) break;
  }
}

void Emitter::row_pass(Block& b, std::size_t first, std::size_t end, int lanes, const std::string& reducer,
                       bool chunk) {
  for (std::size_t s = first; s < end; ++s)
    if (step(s).reduces) b.push_back(tree::declare("real", result_of(s, step(s)), start_of(step(s))));
  const FlatIndex element = fuse(batch_first(kernel, step(first).over), "element");
  stand(element);
  Block inside;
  // Sums over the rows come last, when all that they are made of is there.
  const std::size_t last = end == steps_of_row(kernel) ? kernel.steps.size() : end;
  begin(values_of(first, last));
  for (std::size_t s = first; s < end; ++s) {
    if (step(s).reduces) inside.push_back(accumulate(step(s), result_of(s, step(s)), evaluate(inside, step(s).value)));
    if (!chunk)
      for (const Step::Store& store : step(s).stores) put(inside, store);
  }
  for (std::size_t s = end; s < last; ++s) {
    const Expr sum = tree::index(name("sums"), linear({{step(first).over.front(), 1}},
                                                      static_cast<std::int64_t>(s - end) * launch_->sums.length));
    inside.push_back(tree::evaluate(binary("+=", sum, evaluate(inside, step(s).value))));
  }
  leave();
  Block declared = declare_needed(element);
  inside.insert(inside.begin(), declared.begin(), declared.end());
  if (element.axes.empty()) {
    b.push_back(tree::when(binary("==", name("lane"), integer(0)), std::move(inside)));
  } else {
    const Extent count = points(element.axes);
    // Few warps stand for many rows: with a known number of steps, all of a row's loads may be on their way at once.
    const ColumnReductions& sums = launch_->sums;
    const std::int64_t known = sums.count && count.fixed % lanes == 0 ? count.fixed / lanes : 0;
    if (known)
      inside.insert(inside.begin(), tree::declare("const int", element.variable,
                                                  name("lane") + binary("*", name("step"), integer(lanes))));
    if (known && ranges::none_of(kernel.steps.begin() + static_cast<std::ptrdiff_t>(first),
                                 kernel.steps.begin() + static_cast<std::ptrdiff_t>(end), &Step::reduces)) {
      b.push_back(tree::lambda("elements", {{"int", "step"}}, std::move(inside)));
      const std::int64_t at_once = sums.split_row && known % 2 == 0 ? known / 2 : known;
      b.push_back(tree::evaluate(call(fmt::format("unrolled<{}, {}>", known, at_once), {name("elements")})));
    } else if (known) {
      b.push_back(
          tree::loop("int", "step", integer(0), binary("<", name("step"), integer(known)), 1, std::move(inside)));
    } else {
      Expr from = name("lane");
      Expr to = times_batch(count);
      if (chunk) {
        from = name("begin") * count.per_batch + from;
        to = name("end") * count.per_batch;
      }
      b.push_back(
          tree::loop("int", element.variable, from, binary("<", name(element.variable), to), lanes, std::move(inside)));
    }
  }
  for (std::size_t s = first; s < end; ++s) {
    if (!step(s).reduces) continue;
    const std::string result = result_of(s, step(s));
    const std::string function = reducer + (step(s).reduction == Reduction::sum ? "sum" : "maximum");
    if (!element.axes.empty()) b.push_back(tree::assign(result, call(function, {name(result)})));
    locals_[static_cast<int>(s)] = name(result);
  }
}
}  // namespace tessera::codegen::cuda
