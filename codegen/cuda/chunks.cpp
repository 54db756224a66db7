// Sums over the batch: partial ones over chunks of it, then their sums in the chunks' order.
#include <algorithm>
#include <range/v3/algorithm/count_if.hpp>

#include "codegen/cuda/emitter.hpp"
#include "codegen/cuda/sum_of_rows.hpp"

namespace tessera::codegen::cuda {

using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

void Emitter::declare_chunk(Block& b) const {
  auto bound = [&](Expr chunk) { return binary("/", binary("*", std::move(chunk), name("batch")), integer(chunks_)); };
  b.push_back(tree::declare("const int", "chunk", call("block_z", {})));
  b.push_back(tree::declare("const int", "begin", bound(name("chunk"))));
  b.push_back(tree::declare("const int", "end", bound(name("chunk") + integer(1))));
}

std::size_t Emitter::sums() const {
  return static_cast<std::size_t>(ranges::count_if(kernel.steps, [](const Step& s) { return s.reduces; }));
}

int Emitter::made_by_product() const {
  if (sums() != 1) return 0;
  const int before = neighbour_of(plan.program, number(), -1);
  if (before < 0) return 0;
  const Kernel& product = plan.program.kernels[before];
  if (!factors_of(product, plan.program.precision).left.valid() || tasks_of(product) != Tasks::chunks) return 0;
  const std::vector<Emitted> made = Emitter(plan, product, table_, tiles_).run();
  const auto& by_warpgroups = made.front().by_warpgroups;
  return by_warpgroups.empty() ? 0 : by_warpgroups.front().sums_of_rows;
}

Expr Emitter::partial(std::size_t step) {
  std::map<int, std::int64_t> strides;
  std::int64_t stride = 1;
  const std::vector<int> axes = point_axes();
  for (std::size_t i = axes.size(); i-- > 0;) {
    strides[axes[i]] = stride;
    stride *= extent_of(axes[i]);
  }
  return tree::index(name("partial"),
                     name("chunk") * stride + linear(strides, static_cast<std::int64_t>(step) * chunks_ * stride));
}

bool Emitter::many_summands() const {
  constexpr std::int64_t many = 16, few_results = 32 * multiprocessors;
  if (kernel.anchor != Anchor::contraction || uses_batch() || !batch_axes(false).empty()) return false;
  for (std::size_t s = 0; s < kernel.steps.size(); ++s)
    if (s < sums() ? !step(s).reduces || step(s).reduction != Reduction::sum || step(s).over != step(0).over ||
                         !step(s).stores.empty()
                   : !step(s).over.empty())
      return false;
  const Extent summed = points(step(0).over);
  return sums() > 0 && summed.known() && summed.fixed >= many && points(point_axes()).fixed <= few_results;
}

Emitted Emitter::columns(bool chunk) {
  Emitted e = fresh();
  const FlatIndex point = fuse(point_axes(), "point"), element = fuse(batch_first(kernel, step(0).over), "element");
  const std::int64_t count = points(point.axes).fixed;
  const Extent summed = points(element.axes);
  // Few results without chunks would be few blocks: they have 32 bytes of a row each, and no thread sums many.
  const int lanes = chunk ? 32 : 8;
  constexpr std::int64_t of_thread = 4, most_threads = 512, of_warp = 32;
  e.threads = chunk ? threads_of_points
                    : static_cast<int>(
                          std::min(most_threads, ceiling(ceiling(summed.fixed, of_thread) * lanes, of_warp) * of_warp));
  const int warps = e.threads / lanes;
  e.shared_bytes = integer(e.threads * 4);
  e.grid[0] = integer(ceiling(count, lanes));
  Block b;
  if (chunk) {
    e.takes_batch = true;
    e.grid[2] = integer(chunks_);
    declare_chunk(b);
  }
  const std::string variable = point.axes.empty() ? "point" : point.variable;
  const Expr lane = binary("%", call("thread_x", {}), integer(lanes)),
             warp = binary("/", call("thread_x", {}), integer(lanes));
  const Expr inside = binary("<", name(variable), integer(count));
  b.push_back(tree::declare("const int", variable,
                            count > lanes ? binary("*", call("block_x", {}), integer(lanes)) + lane : lane));
  for (std::size_t s = 0; s < sums(); ++s) b.push_back(tree::declare("real", result_of(s, step(s)), start_of(step(s))));
  stand(point);
  stand(element);
  Block each;
  std::vector<ExprId> values;
  for (std::size_t s = 0; s < sums(); ++s) values.push_back(step(s).value);
  begin(values);
  for (std::size_t s = 0; s < sums(); ++s)
    each.push_back(accumulate(step(s), result_of(s, step(s)), evaluate(each, step(s).value)));
  leave();
  Block declared = declare_needed(element);
  each.insert(each.begin(), declared.begin(), declared.end());
  const Expr from = chunk ? name("begin") * summed.per_batch + warp : warp,
             to = chunk ? name("end") * summed.per_batch : integer(summed.fixed);
  Block sum{tree::loop("int", element.variable, from, binary("<", name(element.variable), to), warps, std::move(each))};
  declared = declare_needed(point);
  sum.insert(sum.begin(), declared.begin(), declared.end());
  b.push_back(tree::when(inside, std::move(sum)));
  Block store;
  for (std::size_t s = 0; s < sums(); ++s) {
    const std::string function = !chunk                                ? "sum_over_warps<8>"
                                 : step(s).reduction == Reduction::sum ? "sum_over_warps"
                                                                       : "maximum_over_warps",
                      result = result_of(s, step(s));
    b.push_back(tree::assign(result, call(function, {name(result)})));
    locals_[static_cast<int>(s)] = name(result);
    if (chunk) store.push_back(tree::evaluate(binary("=", partial(s), name(result))));
  }
  if (!chunk) store_results(store);
  leave();
  declared = declare_needed(point);
  store.insert(store.begin(), declared.begin(), declared.end());
  b.push_back(tree::when(binary("&&", binary("<", call("thread_x", {}), integer(lanes)), inside), std::move(store)));
  if (chunk) e.function.name = kernel.name + "_partial";
  finish(e, std::move(b), "a lane for each result", chunk, chunk);
  return e;
}

void Emitter::store_results(Block& b) {
  begin(values_of(sums(), kernel.steps.size()));
  for (std::size_t s = sums(); s < kernel.steps.size(); ++s)
    for (const Step::Store& store : step(s).stores) put(b, store);
}

Emitted Emitter::sum_of_chunks() {
  Emitted e = points_kernel(
      [&] {
        Block b, body;
        for (std::size_t s = 0; s < sums(); ++s) {
          b.push_back(tree::declare("real", result_of(s, step(s)), start_of(step(s))));
          body.push_back(accumulate(step(s), result_of(s, step(s)), partial(s)));
          locals_[static_cast<int>(s)] = name(result_of(s, step(s)));
        }
        b.push_back(
            tree::loop("int", "chunk", integer(0), binary("<", name("chunk"), integer(chunks_)), 1, std::move(body)));
        store_results(b);
        return b;
      },
      "the chunks' sums in their order", true);
  e.function.name = kernel.name + "_sum";
  return e;
}

}  // namespace tessera::codegen::cuda
