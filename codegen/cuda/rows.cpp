// A warp or a block of threads for each row of what a kernel makes.
#include <algorithm>
#include <range/v3/algorithm/any_of.hpp>

#include "codegen/cuda/emitter.hpp"

namespace tessera::codegen::cuda {

using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

constexpr std::int64_t long_row = 1024;  // from here on a row has a block of its own

}  // namespace

bool Emitter::sums_along_memory() const {
  if (kernel_.anchor != Anchor::contraction) return false;
  std::map<int, int> below;
  reach(step(0).value, below);
  for (auto [e, uses] : below) {
    if (expression(e).kind != Expression::Kind::load) continue;
    for (auto [a, stride] : strides_of(expression(e).access))
      if (stride == 1 && extent_of(a) != 1) return axis(a).inner;
  }
  return true;
}

Emitted Emitter::rows(bool chunk) {
  Emitted e = fresh();
  const Fused row = fuse(point_axes(), "row"), image = fuse(batch_axes(false), "");
  const std::int64_t count = points(row.axes).fixed;
  std::int64_t longest = 0;
  for (const Step& s : kernel_.steps) {
    const Extent length = points(s.over);
    longest = std::max(longest, length.known() ? length.fixed : length.per_batch);
  }
  const bool whole_block = longest > long_row;
  const int warps = whole_block ? 1 : static_cast<int>(std::min<std::int64_t>(4, count));
  e.threads = whole_block ? threads_of_points : 32 * warps;
  if (whole_block) e.shared_bytes = integer(threads_of_points / 32 * 4);
  e.grid[0] = integer(ceiling(count, warps));
  Block b;
  if (!image.axes.empty()) blocks_for_images(b, image, e);
  if (chunk) {
    e.takes_batch = true;
    e.grid[2] = integer(chunks_);
    declare_chunk(b);
  }
  if (ranges::any_of(batch_axes(true), [](int) { return true; })) e.takes_batch = true;
  const Expr thread = call("thread_x", {});
  b.push_back(
      tree::declare("const int", "lane", whole_block || warps == 1 ? thread : binary("%", thread, integer(32))));
  stand(row);
  Block inside;
  const std::string reducer = whole_block ? "block_" : "warp_";
  for (std::size_t first = 0, end = 0; first < kernel_.steps.size(); first = end) {
    end = first + 1;
    while (end < kernel_.steps.size() && joins_sweep(first, end)) ++end;
    sweep(inside, first, end, whole_block ? threads_of_points : 32, reducer, chunk);
    if (chunk) break;
  }
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
  if (chunk) e.function.name = kernel_.name + "_partial";
  return e;
}

void Emitter::sweep(Block& b, std::size_t first, std::size_t end, int lanes, const std::string& reducer, bool chunk) {
  for (std::size_t s = first; s < end; ++s)
    if (step(s).reduces) b.push_back(tree::declare("real", result_of(s, step(s)), start_of(step(s))));
  const Fused element = fuse(batch_first(kernel_, step(first).over), "element");
  stand(element);
  Block inside;
  begin(values_of(first, end));
  for (std::size_t s = first; s < end; ++s) {
    if (step(s).reduces) inside.push_back(accumulate(step(s), result_of(s, step(s)), evaluate(inside, step(s).value)));
    if (!chunk)
      for (const Step::Store& store : step(s).stores) put(inside, store);
  }
  leave();
  Block declared = declare_needed(element);
  inside.insert(inside.begin(), declared.begin(), declared.end());
  if (element.axes.empty()) {
    b.push_back(tree::when(binary("==", name("lane"), integer(0)), std::move(inside)));
  } else {
    const Extent count = points(element.axes);
    Expr from = name("lane");
    Expr to = times_batch(count);
    if (chunk) {
      from = name("begin") * count.per_batch + from;
      to = name("end") * count.per_batch;
    }
    b.push_back(
        tree::loop("int", element.variable, from, binary("<", name(element.variable), to), lanes, std::move(inside)));
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
