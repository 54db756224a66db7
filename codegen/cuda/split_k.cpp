// Sums over the batch: partial ones over chunks of it, then their sums in the chunks' order.
#include "codegen/cuda/emitter.hpp"

namespace tessera::codegen::cuda {

using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

Expr Emitter::chunk_of_cta() const {
  const std::int64_t groups = points(launch_->groups).fixed;
  return groups == 1 ? call("block_z", {}) : binary("/", call("block_z", {}), integer(groups));
}

void Emitter::declare_group(Block& b, const FlatIndex& group) const {
  if (group.axes.empty()) return;
  const Expr z = call("block_z", {});
  b.push_back(tree::declare("const int", group.variable,
                            launch_->partials ? binary("%", z, integer(points(group.axes).fixed)) : z));
}

void Emitter::declare_chunk(Block& b) const {
  auto bound = [&](Expr chunk) {
    return binary("/", binary("*", std::move(chunk), name("batch")), integer(launch_->split_k));
  };
  b.push_back(tree::declare("const int", "chunk", chunk_of_cta()));
  b.push_back(tree::declare("const int", "begin", bound(name("chunk"))));
  b.push_back(tree::declare("const int", "end", bound(name("chunk") + integer(1))));
}

Expr Emitter::partial(std::size_t step) {
  std::map<int, std::int64_t> strides;
  std::int64_t stride = 1;
  const std::vector<int> axes = point_axes(*this);
  for (std::size_t i = axes.size(); i-- > 0;) {
    strides[axes[i]] = stride;
    stride *= extent_of(axes[i]);
  }
  return tree::index(name("partial"), name("chunk") * stride +
                                          linear(strides, static_cast<std::int64_t>(step) * launch_->split_k * stride));
}

Emitted Emitter::columns(const Launch& l) {
  Emitted e = of_launch(l);
  const bool chunk = l.partials;
  const FlatIndex point = fuse(point_axes(*this), "point"),
                  element = fuse(batch_first(kernel, step(0).over), "element");
  const std::int64_t count = points(point.axes).fixed;
  const Extent summed = points(element.axes);
  const int lanes = l.lanes, warps = l.threads / lanes;
  e.shared_bytes = integer(l.threads * 4);
  Block b;
  if (chunk) {
    e.takes_batch = true;
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
  finish(e, std::move(b), "a lane for each result", chunk, chunk);
  return e;
}

void Emitter::store_results(Block& b) {
  begin(values_of(sums(), kernel.steps.size()));
  for (std::size_t s = sums(); s < kernel.steps.size(); ++s)
    for (const Step::Store& store : step(s).stores) put(b, store);
}

Emitted Emitter::reduce_partials(const Launch& l) {
  return points_kernel(
      l,
      [&] {
        Block b, body;
        for (std::size_t s = 0; s < sums(); ++s) {
          b.push_back(tree::declare("real", result_of(s, step(s)), start_of(step(s))));
          body.push_back(accumulate(step(s), result_of(s, step(s)), partial(s)));
          locals_[static_cast<int>(s)] = name(result_of(s, step(s)));
        }
        b.push_back(tree::loop("int", "chunk", integer(0), binary("<", name("chunk"), integer(launch_->split_k)), 1,
                               std::move(body)));
        store_results(b);
        return b;
      },
      "the chunks' sums in their order", true);
}

}  // namespace tessera::codegen::cuda
