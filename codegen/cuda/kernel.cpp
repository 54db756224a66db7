#include "codegen/cuda/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/count_if.hpp>

#include "codegen/cuda/emitter.hpp"
#include "codegen/error.hpp"
#include "codegen/kernels/query.hpp"
#include "codegen/passes/ops.hpp"

namespace tessera::codegen::cuda {

using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

std::vector<Emitted> Emitter::run(const std::vector<Launch>& launches) {
  if (kernel.fused.empty()) check_rereads();
  std::vector<Emitted> result;
  for (const Launch& l : launches) {
    arguments.clear();
    locals_.clear();
    switch (l.form) {
      case Launch::Form::point:
        result.push_back(each_point(l));
        break;
      case Launch::Form::columns:
        result.push_back(columns(l));
        break;
      case Launch::Form::row:
        result.push_back(rows(l));
        break;
      case Launch::Form::row_reductions:
        result.push_back(rows_and_sums(l));
        break;
      case Launch::Form::gemm:
        result.push_back(gemm(l));
        break;
      case Launch::Form::attention:
        result.push_back(attention(l));
        break;
      case Launch::Form::attention_backward:
        result.push_back(attention_gradient(l));
        break;
      case Launch::Form::reduce:
        result.push_back(reduce_partials(l));
        break;
    }
  }
  return result;
}

void Emitter::refuse(const std::string& what) const {
  throw Error(fmt::format("kernel {} {}, which the CUDA back end cannot do", kernel.name, what));
}

bool Emitter::apart(const Access& a, const Access& b) const {
  auto last = [&](const Affine& index) {
    std::int64_t at = index.offset;
    for (const Affine::Part& p : index.parts) {
      if (is_batch(p.axis)) return std::numeric_limits<std::int64_t>::max();
      at += p.coefficient * (extent_of(p.axis) - 1);
    }
    return at;
  };
  for (std::size_t d = 0; d < a.index.size(); ++d)
    if (last(a.index[d]) < b.index[d].offset || last(b.index[d]) < a.index[d].offset) return true;
  return false;
}

void Emitter::check_rereads() const {
  for (const Step& s : kernel.steps)
    for (const Step::Store& store : s.stores)
      for (const Expression& e : kernel.expressions)
        if (e.kind == Expression::Kind::load && e.access.tensor == store.to.tensor &&
            e.access.shift == store.to.shift && e.access.index != store.to.index && !apart(e.access, store.to))
          refuse("reads another element than it writes of " + plan.program.tensors[store.to.tensor].name);
}

// ---- functions ---------------------------------------------------------------------------------------------------

bool Emitter::uses_batch() const {
  return ranges::any_of(kernel.expressions,
                        [](const Expression& e) { return e.kind == Expression::Kind::extent && !e.dim.known(); });
}

void Emitter::finish(Emitted& e, Block body, const std::string& how, bool partial_written, bool has_partial) {
  e.takes_batch = e.takes_batch || uses_batch();
  e.takes_layer = kernel.region && ranges::any_of(kernel.expressions,
                                                  [](const Expression& x) { return x.kind == Expression::Kind::keep; });
  e.function.linkage = "__global__";
  const Launch& l = *e.launch;
  const std::string threads =
      l.maps.empty() ? std::to_string(l.threads) : fmt::format("TESSERA_THREADS_OF_WARPGROUPS({})", l.threads);
  const int blocks = l.registers_for ? l.registers_for : l.ctas;
  e.function.returns = blocks ? fmt::format("void __launch_bounds__({}, {})", threads, blocks)
                              : fmt::format("void __launch_bounds__({})", threads);
  if (e.takes_batch) e.function.parameters.push_back({"const int", "batch"});
  if (e.takes_layer) e.function.parameters.push_back({"const int", "layer"});
  if (e.takes_stretch) {
    e.function.parameters.push_back({"const int", "first"});
    e.function.parameters.push_back({"const int", "last"});
    e.function.parameters.push_back({"const std::int32_t*", "stopped"});
  }
  if (!l.maps.empty())
    for (const char* map : {"left_map", "right_map"}) e.function.parameters.push_back({"TESSERA_MAP", map});
  for (const Argument& a : arguments) {
    const Tensor& t = plan.program.tensors[a.tensor];
    std::string type = t.type == graph::Type::integer ? "std::int32_t*" : type_of(t) + "*";
    // The update works in place; elsewhere two tensors that a kernel is passed never overlap.
    if (!traits_of(plan.program.kind).updates &&
        ranges::count_if(arguments, [&](const Argument& b) { return b.tensor == a.tensor; }) == 1)
      type += " __restrict";
    e.function.parameters.push_back({(a.written ? "" : "const ") + type, a.name});
  }
  e.arguments = arguments;
  if (has_partial) {
    e.function.parameters.push_back({partial_written ? "real*" : "const real*", "partial"});
    e.arguments.push_back({own_partial, 0, partial_written, "partial"});
  }
  std::string axes;
  for (std::size_t a = 0; a < kernel.axes.size(); ++a)
    axes += fmt::format("{}{} < {}{}", a ? ", " : "", kernel.axes[a].name, to_string(kernel.axes[a].dim),
                        kernel.axes[a].inner ? (kernel.anchor == Anchor::row ? " (row)" : " (summed)") : "");
  e.function.declared = declared_at(plan.program, kernel);
  e.function.comment = {axes + (axes.empty() ? "" : "; ") + how};
  e.function.body = std::move(body);
  if (!e.shared_bytes) e.shared_bytes = integer(0);
}

Expr Emitter::times_batch(const Extent& e) {
  return e.known() ? integer(e.fixed) : name("batch") * e.per_batch + integer(e.fixed);
}

Expr Emitter::blocks_along(const Launch::Along& along) {
  const auto& [count, size] = along;
  if (count.known()) return integer(ceiling(count.fixed, size));
  if (size == 1) return times_batch(count);
  return call("blocks_for", {times_batch(count), integer(size)});
}

Emitted Emitter::of_launch(const Launch& launch) {
  Emitted e;
  e.launch = launch_ = &launch;
  e.function.name = launch.name;
  for (int i = 0; i < 3; ++i) e.grid[i] = blocks_along(launch.grid[i]);
  return e;
}

std::vector<ExprId> Emitter::values_of(std::size_t first, std::size_t end) const {
  std::vector<ExprId> roots;
  for (std::size_t s = first; s < end; ++s) {
    if (step(s).reduces) roots.push_back(step(s).value);
    for (const Step::Store& store : step(s).stores) roots.push_back(store.value);
  }
  return roots;
}

std::string Emitter::result_of(std::size_t s, const Step& step) {
  return fmt::format("{}{}", step.reduction == Reduction::sum ? "sum" : "most", s);
}

tree::Statement Emitter::accumulate(const Step& s, const std::string& result, Expr value) {
  if (s.reduction == Reduction::sum) return tree::evaluate(binary("+=", name(result), std::move(value)));
  return tree::assign(result, call("larger", {name(result), std::move(value)}));
}

bool Emitter::joins_pass(std::size_t first, std::size_t s) const {
  if (step(s).over != step(first).over) return false;
  for (ExprId root : values_of(s, s + 1)) {
    std::map<ExprId, int> below;
    reach(root, below);
    for (auto [e, uses] : below)
      if (expression(e).kind == Expression::Kind::local && expression(e).step >= static_cast<int>(first)) return false;
  }
  return true;
}

tree::Statement Emitter::function_of(const std::string& function, const std::vector<FlatIndex>& indices,
                                     const std::vector<tree::Parameter>& more,
                                     const std::function<void(Block&)>& body) {
  std::vector<tree::Parameter> parameters;
  for (const FlatIndex& index : indices) {
    stand(index);
    parameters.push_back({"int", index.variable});
  }
  parameters.insert(parameters.end(), more.begin(), more.end());
  Block b;
  body(b);
  for (const FlatIndex& index : indices) {
    leave();
    Block declared = declare_needed(index);
    b.insert(b.begin(), declared.begin(), declared.end());
  }
  return tree::lambda(function, std::move(parameters), std::move(b));
}

void Emitter::begin_sum(const std::string& sum) {
  locals_[0] = name(sum);
  begin(values_of(1, kernel.steps.size()));
}

std::vector<Step::Store> Emitter::stores_of_sum() const {
  std::vector<Step::Store> all;
  for (std::size_t s = 1; s < kernel.steps.size(); ++s)
    all.insert(all.end(), step(s).stores.begin(), step(s).stores.end());
  return all;
}

void Emitter::store_sums(Block& values, Block& stores) {
  begin_sum("sum");
  for (const Step::Store& store : stores_of_sum()) put(values, stores, store);
}

// ---- one thread a point ------------------------------------------------------------------------------------------

Block Emitter::steps_of_point() {
  Block b;
  for (std::size_t first = 0, end = 0; first < kernel.steps.size(); first = end) {
    end = first + 1;
    while (end < kernel.steps.size() && joins_pass(first, end)) ++end;
    for (std::size_t s = first; s < end; ++s)
      if (step(s).reduces) b.push_back(tree::declare("real", result_of(s, step(s)), start_of(step(s))));
    std::vector<FlatIndex> loops;
    for (int a : step(first).over) loops.push_back(fuse({a}, ""));
    std::stable_sort(loops.begin(), loops.end(), [&](const FlatIndex& x, const FlatIndex& y) {
      return !x.axes.empty() && is_batch(x.axes[0]) && !(!y.axes.empty() && is_batch(y.axes[0]));
    });
    for (const FlatIndex& f : loops) stand(f);
    Block inside;
    begin(values_of(first, end));
    for (std::size_t s = first; s < end; ++s) {
      if (step(s).reduces)
        inside.push_back(accumulate(step(s), result_of(s, step(s)), evaluate(inside, step(s).value)));
      for (const Step::Store& store : step(s).stores) put(inside, store);
    }
    for (std::size_t i = loops.size(); i-- > 0;) {
      leave();
      if (loops[i].axes.empty()) continue;
      const int a = loops[i].axes[0];
      const Expr to = is_batch(a) ? name("batch") : integer(extent_of(a));
      inside = {tree::loop("int", loops[i].variable, integer(0), binary("<", name(loops[i].variable), to), 1,
                           std::move(inside))};
    }
    b.insert(b.end(), inside.begin(), inside.end());
    for (std::size_t s = first; s < end; ++s)
      if (step(s).reduces) locals_[static_cast<int>(s)] = name(result_of(s, step(s)));
  }
  return b;
}

void Emitter::blocks_for_images(Block& b, const FlatIndex& image) {
  b.push_back(tree::declare("const int", image.variable, call("block_y", {})));
  stand(image);
}

Emitted Emitter::points_kernel(const Launch& l, const std::function<Block()>& body, const std::string& how,
                               bool combines) {
  Emitted e = of_launch(l);
  const FlatIndex point = fuse(point_axes(*this), "point"), image = fuse(batch_axes(*this, false), "");
  const std::int64_t count = points(point.axes).fixed, of_block = l.grid[0].size;
  e.takes_stretch = traits_of(plan.program.kind).updates;
  // A stretch begins and ends on multiples of 16, as all parameters do.
  if (e.takes_stretch) e.grid[0] = call("blocks_for", {binary("-", name("last"), name("first")), integer(of_block)});
  Block b;
  if (!image.axes.empty()) blocks_for_images(b, image);
  stand(point);
  if (l.vector > 1) stand_in_vector(point.axes.back(), l.vector);
  Block inside = body();
  if (l.vector > 1) inside = in_vector(std::move(inside));
  leave();
  if (!image.axes.empty()) leave();
  Block declared = declare_needed(point);
  inside.insert(inside.begin(), declared.begin(), declared.end());
  const std::string variable = point.axes.empty() ? "point" : point.variable;
  Expr at = count > of_block ? binary("*", call("block_x", {}), integer(l.threads)) + call("thread_x", {})
                             : call("thread_x", {});
  if (l.vector > 1) at = binary("*", at, integer(l.vector));
  if (e.takes_stretch) at = name("first") + at;
  b.push_back(tree::declare("const int", variable, at));
  Expr there = binary("<", name(variable), e.takes_stretch ? name("last") : integer(count));
  if (e.takes_stretch) there = binary("&&", there, binary("==", tree::index(name("stopped"), integer(0)), integer(0)));
  b.push_back(tree::when(there, std::move(inside)));
  finish(e, std::move(b), how, false, combines);
  return e;
}

Block Emitter::in_vector(Block lane) {
  Block b = std::move(vector_loads);
  b.push_back(tree::unroll("lane", integer(launch_->vector), std::move(lane)));
  b.insert(b.end(), vector_stores.begin(), vector_stores.end());
  stand_in_vector(-1, 0);
  return b;
}

Emitted Emitter::each_point(const Launch& l) {
  return points_kernel(
      l, [&] { return steps_of_point(); },
      l.vector > 1 ? fmt::format("a thread for {} results", l.vector) : "a thread for each result", false);
}

std::string type_of(const Tensor& tensor) { return tensor.element == DType::bf16 ? "bf16" : "real"; }

const std::set<std::string>& known_names() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all{"thread_x",       "block_x",
                              "block_y",        "block_z",
                              "warp_sum",       "warp_maximum",
                              "block_sum",      "block_maximum",
                              "sum_over_warps", "maximum_over_warps",
                              "sums_of_warp",   "store_sums_of_warps",
                              "rounded",        "store_pair",
                              "rounded_pair",   "in_eights",
                              "load_pair",      "load_two",
                              "store_two",      "Pair",
                              "widened",        "keep",
                              "SaveNothing",    "KeepNothing",
                              "KeptNothing",    "of_row",
                              "load_vector",    "store_vector",
                              "in_bf16",        "share_of",
                              "row_of_it.most", "row_of_it.inverse",
                              "std::int64_t",   "static_cast<real>"};
    for (const graph::Op op : elementwise_ops) all.insert(std::string(row_of(op).cuda));
    return all;
  }();
  return names;
}

std::vector<Emitted> emit(const Plan& plan, int kernel, const TableName& table) {
  return Emitter(plan, plan.program.kernels[kernel], table).run(plan.launches[kernel]);
}

}  // namespace tessera::codegen::cuda
