#include "codegen/cuda/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/count_if.hpp>

#include "codegen/error.hpp"

namespace tessera::codegen::cuda {

using graph::Op;
using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

constexpr std::int64_t most_blocks = 65535;  // along y and z
constexpr int threads_of_points = 256;       // of a block of points
constexpr std::int64_t long_row = 1024;      // from here on a row has a block of its own

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Left and right factor of a sum of products over what one of them does not know.
struct Factors {
  int left = -1, right = -1;  ///< expressions
  std::vector<int> rows, columns, groups, depth;
};

class Emitter : Values {
 public:
  Emitter(const Plan& plan, int kernel, const TableName& table, const Tiles& tiles)
      : Values(plan, kernel, table), tiles_(tiles) {}

  std::vector<Emitted> run() {
    check_rereads();
    std::vector<Emitted> result;
    const bool chunks = tasks_of(kernel_) == Tasks::chunks;
    if (kernel_.anchor == Anchor::row && chunks) refuse("sweeps over a batch");
    if (const Factors f = factors(); f.left >= 0)
      result.push_back(matrix_product(f, chunks));
    else if (kernel_.anchor == Anchor::row || sums_along_memory())
      result.push_back(rows(chunks));
    else
      result.push_back(chunks ? columns() : each_point());
    if (chunks) {
      arguments_.clear();
      locals_.clear();
      result.push_back(sum_of_chunks());
    }
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(fmt::format("kernel {} {}, which the CUDA back end cannot do", kernel_.name, what));
  }
  const Step& step(std::size_t i) const { return kernel_.steps[i]; }

  std::vector<int> outer_axes() const {
    std::vector<int> outer;
    for (std::size_t a = 0; a < kernel_.axes.size(); ++a)
      if (!kernel_.axes[a].inner) outer.push_back(static_cast<int>(a));
    return outer;
  }
  /// The outer axes but for the batch, so that the one along which results lie side by side is the last.
  std::vector<int> point_axes() const {
    std::vector<int> axes = outer_axes();
    std::erase_if(axes, [&](int a) { return is_batch(a); });
    for (const Step& s : kernel_.steps) {
      if (s.stores.empty()) continue;
      const std::map<int, std::int64_t> strides = strides_of(s.stores.front().to);
      auto stride_of = [&](int a) {
        auto at = strides.find(a);
        return at == strides.end() ? std::int64_t{0} : at->second;
      };
      std::stable_sort(axes.begin(), axes.end(), [&](int x, int y) { return stride_of(x) > stride_of(y); });
      break;
    }
    return axes;
  }
  /// In their order, but for the batch, which comes first.
  std::vector<int> batch_first(std::vector<int> axes) const {
    std::sort(axes.begin(), axes.end());
    std::stable_sort(axes.begin(), axes.end(), [&](int x, int y) { return is_batch(x) && !is_batch(y); });
    return axes;
  }
  std::vector<int> batch_axes(bool inner) const {
    std::vector<int> axes;
    for (std::size_t a = 0; a < kernel_.axes.size(); ++a)
      if (kernel_.axes[a].inner == inner && is_batch(static_cast<int>(a))) axes.push_back(static_cast<int>(a));
    return axes;
  }

  /// Whether two accesses to a tensor have no element in common: along some dim.
  bool apart(const Access& a, const Access& b) const {
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
  /// What a kernel writes and reads again, the same thread must do both: at the same index.
  void check_rereads() const {
    for (const Step& s : kernel_.steps)
      for (const Step::Store& store : s.stores)
        for (const Expression& e : kernel_.expressions)
          if (e.kind == Expression::Kind::load && e.access.tensor == store.to.tensor &&
              e.access.shift == store.to.shift && e.access.index != store.to.index && !apart(e.access, store.to))
            refuse("reads another element than it writes of " +
                   plan_.program.tensors[static_cast<std::size_t>(store.to.tensor)].name);
  }

  // ---- functions -------------------------------------------------------------------------------------------------

  bool uses_batch() const {
    return ranges::any_of(kernel_.expressions,
                          [](const Expression& e) { return e.kind == Expression::Kind::extent && !e.dim.known(); });
  }

  void finish(Emitted& e, Block body, const std::string& how, bool partial_written, bool has_partial) {
    e.takes_batch = e.takes_batch || uses_batch();
    e.takes_layer = kernel_.region && ranges::any_of(kernel_.expressions, [](const Expression& x) {
                      return x.kind == Expression::Kind::keep;
                    });
    e.function.linkage = "__global__";
    e.function.returns = e.blocks ? fmt::format("void __launch_bounds__({}, {})", e.threads, e.blocks)
                                  : fmt::format("void __launch_bounds__({})", e.threads);
    if (e.function.name.empty()) e.function.name = kernel_.name;
    if (e.takes_batch) e.function.parameters.push_back({"const int", "batch"});
    if (e.takes_layer) e.function.parameters.push_back({"const int", "layer"});
    if (e.takes_stretch) {
      e.function.parameters.push_back({"const int", "first"});
      e.function.parameters.push_back({"const int", "last"});
      e.function.parameters.push_back({"const std::int32_t*", "stopped"});
    }
    for (const Argument& a : arguments_) {
      const Tensor& t = plan_.program.tensors[static_cast<std::size_t>(a.tensor)];
      std::string type = t.type == graph::Type::integer ? "std::int32_t*" : "real*";
      // The update works in place; elsewhere two tensors that a kernel is passed never overlap.
      if (plan_.program.name != "update" &&
          ranges::count_if(arguments_, [&](const Argument& b) { return b.tensor == a.tensor; }) == 1)
        type += " __restrict";
      e.function.parameters.push_back({(a.written ? "" : "const ") + type, a.name});
    }
    e.arguments = arguments_;
    if (has_partial) {
      e.function.parameters.push_back({partial_written ? "real*" : "const real*", "partial"});
      e.arguments.push_back({-1, 0, partial_written, "partial"});
    }
    std::string axes;
    for (std::size_t a = 0; a < kernel_.axes.size(); ++a)
      axes += fmt::format("{}{} < {}{}", a ? ", " : "", kernel_.axes[a].name, to_string(kernel_.axes[a].dim),
                          kernel_.axes[a].inner ? (kernel_.anchor == Anchor::row ? " (row)" : " (summed)") : "");
    e.function.comment = {axes + (axes.empty() ? "" : "; ") + how};
    e.function.body = std::move(body);
    for (Expr& blocks : e.grid)
      if (!blocks) blocks = integer(1);
    if (!e.shared_bytes) e.shared_bytes = integer(0);
  }

  static Expr times_batch(const Extent& e) {
    return e.known() ? integer(e.fixed) : name("batch") * e.per_batch + integer(e.fixed);
  }
  /// Blocks of `size` for so many.
  static Expr blocks_for(const Extent& count, std::int64_t size) {
    if (count.known()) return integer(ceiling(count.fixed, size));
    if (size == 1) return times_batch(count);
    return call("blocks_for", {times_batch(count), integer(size)});
  }
  void limit(Emitted& e, std::int64_t blocks_an_image) const {
    e.largest_batch = std::min(e.largest_batch, most_blocks / std::max<std::int64_t>(1, blocks_an_image));
  }
  static Emitted fresh() {
    Emitted e;
    e.largest_batch = std::numeric_limits<std::int32_t>::max();
    return e;
  }

  /// begin and end of the chunk's images, chunk being the block's z.
  static void declare_chunk(Block& b) {
    auto bound = [](Expr chunk) {
      return binary("/", binary("*", std::move(chunk), name("batch")), integer(batch_chunks));
    };
    b.push_back(tree::declare("const int", "chunk", call("block_z", {})));
    b.push_back(tree::declare("const int", "begin", bound(name("chunk"))));
    b.push_back(tree::declare("const int", "end", bound(name("chunk") + integer(1))));
  }
  /// An element of the partial sums, which lie as the points of sum_of_chunks.
  Expr partial() {
    std::map<int, std::int64_t> strides;
    std::int64_t stride = 1;
    const std::vector<int> axes = point_axes();
    for (std::size_t i = axes.size(); i-- > 0;) {
      strides[axes[i]] = stride;
      stride *= extent_of(axes[i]);
    }
    return tree::index(name("partial"), name("chunk") * stride + linear(strides, 0));
  }

  std::vector<int> values_of(std::size_t first, std::size_t end) const {
    std::vector<int> roots;
    for (std::size_t s = first; s < end; ++s) {
      if (step(s).reduces) roots.push_back(step(s).value);
      for (const Step::Store& store : step(s).stores) roots.push_back(store.value);
    }
    return roots;
  }
  static Expr start_of(const Step& s) { return tree::real(s.reduction == Reduction::sum ? 0 : -INFINITY); }
  static std::string result_of(std::size_t s, const Step& step) {
    return fmt::format("{}{}", step.reduction == Reduction::sum ? "sum" : "most", s);
  }
  static tree::Statement accumulate(const Step& s, const std::string& result, Expr value) {
    if (s.reduction == Reduction::sum) return tree::evaluate(binary("+=", name(result), std::move(value)));
    return tree::assign(result, call("larger", {name(result), std::move(value)}));
  }

  /// Whether step `s` can run in the sweep of the steps from `first` on: over the same axes, and without their results.
  bool joins_sweep(std::size_t first, std::size_t s) const {
    if (step(s).over != step(first).over) return false;
    for (int root : values_of(s, s + 1)) {
      std::map<int, int> below;
      reach(root, below);
      for (auto [e, uses] : below)
        if (expression(e).kind == Expression::Kind::local && expression(e).a >= static_cast<int>(first)) return false;
    }
    return true;
  }

  // ---- one thread a point ----------------------------------------------------------------------------------------

  /// The steps of a point by one thread; reductions as loops.
  Block steps_of_point() {
    Block b;
    for (std::size_t first = 0, end = 0; first < kernel_.steps.size(); first = end) {
      end = first + 1;
      while (end < kernel_.steps.size() && joins_sweep(first, end)) ++end;
      for (std::size_t s = first; s < end; ++s)
        if (step(s).reduces) b.push_back(tree::declare("real", result_of(s, step(s)), start_of(step(s))));
      std::vector<Fused> loops;
      for (int a : step(first).over) loops.push_back(fuse({a}, ""));
      std::stable_sort(loops.begin(), loops.end(), [&](const Fused& x, const Fused& y) {
        return !x.axes.empty() && is_batch(x.axes[0]) && !(!y.axes.empty() && is_batch(y.axes[0]));
      });
      for (const Fused& f : loops) stand(f);
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

  /// A block of threads for the points of an image; `body` makes one of them.
  template <class F>
  Emitted points_kernel(F body, const std::string& how, bool combines) {
    Emitted e = fresh();
    const Fused point = fuse(point_axes(), "point"), image = fuse(batch_axes(false), "");
    const std::int64_t count = points(point.axes).fixed;
    e.takes_stretch = plan_.program.name == "update";
    e.threads = e.takes_stretch ? threads_of_points
                                : static_cast<int>(std::min<std::int64_t>(threads_of_points, ceiling(count, 32) * 32));
    e.grid[0] = e.takes_stretch
                    ? call("blocks_for", {binary("-", name("last"), name("first")), integer(threads_of_points)})
                    : integer(ceiling(count, e.threads));
    Block b;
    if (!image.axes.empty()) {
      b.push_back(tree::declare("const int", image.variable, call("block_y", {})));
      stand(image);
      e.grid[1] = name("batch");
      limit(e, 1);
    }
    stand(point);
    Block inside = body();
    leave();
    if (!image.axes.empty()) leave();
    Block declared = declare_needed(point);
    inside.insert(inside.begin(), declared.begin(), declared.end());
    const std::string variable = point.axes.empty() ? "point" : point.variable;
    Expr at = count > e.threads ? binary("*", call("block_x", {}), integer(e.threads)) + call("thread_x", {})
                                : call("thread_x", {});
    if (e.takes_stretch) at = name("first") + at;
    b.push_back(tree::declare("const int", variable, at));
    Expr there = binary("<", name(variable), e.takes_stretch ? name("last") : integer(count));
    if (e.takes_stretch)
      there = binary("&&", there, binary("==", tree::index(name("stopped"), integer(0)), integer(0)));
    b.push_back(tree::when(there, std::move(inside)));
    finish(e, std::move(b), how, false, combines);
    return e;
  }

  Emitted each_point() {
    if (tasks_of(kernel_) == Tasks::serial) refuse("sums over the batch in one thread");
    return points_kernel([&] { return steps_of_point(); }, "a thread for each result", false);
  }

  /// A chunk's sums for points that lie side by side: a lane for each, and the block's warps share what is summed.
  Emitted columns() {
    Emitted e = fresh();
    const Fused point = fuse(point_axes(), "point"), element = fuse(batch_first(step(0).over), "element");
    const std::int64_t count = points(point.axes).fixed;
    constexpr int lanes = 32, warps = threads_of_points / lanes;
    e.threads = threads_of_points;
    e.shared_bytes = integer(threads_of_points * 4);
    e.takes_batch = true;
    e.grid[0] = integer(ceiling(count, lanes));
    e.grid[2] = integer(batch_chunks);
    Block b;
    declare_chunk(b);
    const std::string variable = point.axes.empty() ? "point" : point.variable, result = result_of(0, step(0));
    const Expr lane = binary("%", call("thread_x", {}), integer(lanes)),
               warp = binary("/", call("thread_x", {}), integer(lanes));
    const Expr inside = binary("<", name(variable), integer(count));
    b.push_back(tree::declare("const int", variable,
                              count > lanes ? binary("*", call("block_x", {}), integer(lanes)) + lane : lane));
    b.push_back(tree::declare("real", result, start_of(step(0))));
    stand(point);
    stand(element);
    Block each;
    begin({step(0).value});
    each.push_back(accumulate(step(0), result, evaluate(each, step(0).value)));
    leave();
    Block declared = declare_needed(element);
    each.insert(each.begin(), declared.begin(), declared.end());
    const std::int64_t of_image = points(element.axes).per_batch;
    Block sum{tree::loop("int", element.variable, name("begin") * of_image + warp,
                         binary("<", name(element.variable), name("end") * of_image), warps, std::move(each))};
    declared = declare_needed(point);
    sum.insert(sum.begin(), declared.begin(), declared.end());
    b.push_back(tree::when(inside, std::move(sum)));
    const std::string function = step(0).reduction == Reduction::sum ? "sum_over_warps" : "maximum_over_warps";
    b.push_back(tree::assign(result, call(function, {name(result)})));
    Block store{tree::evaluate(binary("=", partial(), name(result)))};
    leave();
    declared = declare_needed(point);
    store.insert(store.begin(), declared.begin(), declared.end());
    b.push_back(tree::when(binary("&&", binary("<", call("thread_x", {}), integer(lanes)), inside), std::move(store)));
    e.function.name = kernel_.name + "_partial";
    finish(e, std::move(b), "a lane for each result", true, true);
    return e;
  }

  /// Adds up the partial sums in the order of the chunks, then stores.
  Emitted sum_of_chunks() {
    Emitted e = points_kernel(
        [&] {
          Block b{tree::declare("real", result_of(0, step(0)), start_of(step(0)))};
          Block body{accumulate(step(0), result_of(0, step(0)), partial())};
          b.push_back(tree::loop("int", "chunk", integer(0), binary("<", name("chunk"), integer(batch_chunks)), 1,
                                 std::move(body)));
          locals_[0] = name(result_of(0, step(0)));
          begin(values_of(1, kernel_.steps.size()));
          for (std::size_t s = 1; s < kernel_.steps.size(); ++s)
            for (const Step::Store& store : step(s).stores) put(b, store);
          return b;
        },
        "the chunks' sums in their order", true);
    e.function.name = kernel_.name + "_sum";
    return e;
  }

  // ---- a warp or a block a row -----------------------------------------------------------------------------------

  /// Whether a contraction's summands lie side by side along what it sums over, or its results are too few.
  bool sums_along_memory() const {
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

  Emitted rows(bool chunk) {
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
    if (!image.axes.empty()) {
      b.push_back(tree::declare("const int", image.variable, call("block_y", {})));
      stand(image);
      e.grid[1] = name("batch");
      limit(e, 1);
    }
    if (chunk) {
      e.takes_batch = true;
      e.grid[2] = integer(batch_chunks);
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

  /// The steps from `first` to before `end` in one sweep of the row's lanes.
  void sweep(Block& b, std::size_t first, std::size_t end, int lanes, const std::string& reducer, bool chunk) {
    for (std::size_t s = first; s < end; ++s)
      if (step(s).reduces) b.push_back(tree::declare("real", result_of(s, step(s)), start_of(step(s))));
    const Fused element = fuse(batch_first(step(first).over), "element");
    stand(element);
    Block inside;
    begin(values_of(first, end));
    for (std::size_t s = first; s < end; ++s) {
      if (step(s).reduces)
        inside.push_back(accumulate(step(s), result_of(s, step(s)), evaluate(inside, step(s).value)));
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

  // ---- matrix products -------------------------------------------------------------------------------------------

  std::set<int> axes_of(int e) const {
    std::set<int> axes;
    std::map<int, int> below;
    reach(e, below);
    for (auto [i, uses] : below) {
      const Expression& x = expression(i);
      if (x.kind == Expression::Kind::load)
        for (const Affine& index : x.access.index)
          for (const Affine::Part& p : index.parts) axes.insert(p.axis);
      for (const Affine::Part& p : x.element.parts) axes.insert(p.axis);
      if (x.kind == Expression::Kind::index_equals) {
        axes.insert(x.axis);
        for (const Affine& index : expression(x.a).access.index)
          for (const Affine::Part& p : index.parts) axes.insert(p.axis);
      }
    }
    return axes;
  }

  /// Nothing where the kernel is no matrix product worth a tile.
  Factors factors() const {
    Factors f;
    if (kernel_.anchor != Anchor::contraction || !step(0).reduces || step(0).reduction != Reduction::sum ||
        !step(0).stores.empty())
      return {};
    for (std::size_t s = 1; s < kernel_.steps.size(); ++s)
      if (step(s).reduces || !step(s).over.empty()) return {};
    const Expression& product = expression(step(0).value);
    if (product.kind != Expression::Kind::op || product.op != Op::multiply) return {};
    for (int factor : {product.a, product.b})
      if (expression(factor).kind == Expression::Kind::index_equals) return {};  // it picks, and multiplies nothing
    f.left = product.a;
    f.right = product.b;
    std::set<int> left = axes_of(f.left), right = axes_of(f.right);
    for (int a : outer_axes()) {
      if (left.contains(a) == right.contains(a))
        f.groups.push_back(a);
      else
        (left.contains(a) ? f.rows : f.columns).push_back(a);
    }
    for (int a : step(0).over) f.depth.push_back(a);
    // Neighbouring threads make neighbouring columns: what lies side by side in the result.
    const std::vector<int> order = point_axes();
    if (!order.empty() && ranges::contains(f.rows, order.back())) {
      std::swap(f.left, f.right);
      std::swap(f.rows, f.columns);
    }
    for (std::vector<int>* axes : {&f.rows, &f.columns, &f.groups, &f.depth}) *axes = batch_first(*axes);
    // What bf16 means does not hang on sizes: there, each product with rows and columns is one.
    const std::int64_t worth_it = plan_.program.precision == Precision::bf16 ? 2 : 4;
    for (const std::vector<int>* axes : {&f.rows, &f.columns, &f.depth}) {
      const Extent count = points(*axes);
      if (count.known() && count.fixed < worth_it) return {};
    }
    return f;
  }

  /// Whether a factor's neighbours in memory are neighbours along the depth.
  bool lies_deep(int factor, const std::vector<int>& across, const std::vector<int>& depth) const {
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

  Emitted matrix_product(const Factors& f, bool chunk) {
    Emitted e = fresh();
    const Extent row_count = points(f.rows), column_count = points(f.columns), group_count = points(f.groups);
    auto nominal = [](const Extent& x) { return x.at(nominal_batch); };
    const Extent depths = points(f.depth);
    const Tile& tile = e.tile = choose_tile(
        plan_.program.precision,
        {nominal(row_count), nominal(column_count), chunk ? ceiling(nominal(depths), batch_chunks) : nominal(depths),
         chunk ? batch_chunks : nominal(group_count)},
        wanted_tile());
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
      stand(across);
      stand(depth);
      Block body;
      begin({value});
      Expr result = evaluate(body, value);
      body.push_back(tree::give(std::move(result)));
      leave();
      leave();
      for (const Fused* group_of : {&across, &depth}) {
        Block declared = declare_needed(*group_of);
        body.insert(body.begin(), declared.begin(), declared.end());
      }
      functions.push_back(tree::lambda(which, {{"int", across.variable}, {"int", depth.variable}}, std::move(body)));
    };
    factor("left", f.left, row);
    factor("right", f.right, column);
    {
      stand(row);
      stand(column);
      Block body;
      locals_[0] = name("sum");
      if (chunk) {
        body.push_back(tree::evaluate(binary("=", partial(), name("sum"))));
      } else {
        begin(values_of(1, kernel_.steps.size()));
        for (std::size_t s = 1; s < kernel_.steps.size(); ++s)
          for (const Step::Store& store : step(s).stores) put(body, store);
      }
      leave();
      leave();
      for (const Fused* group_of : {&row, &column}) {
        Block declared = declare_needed(*group_of);
        body.insert(body.begin(), declared.begin(), declared.end());
      }
      functions.push_back(
          tree::lambda("store", {{"int", row.variable}, {"int", column.variable}, {"real", "sum"}}, std::move(body)));
    }
    leave();
    Block declared = declare_needed(group);
    b.insert(b.end(), declared.begin(), declared.end());
    b.insert(b.end(), functions.begin(), functions.end());
    const Expr from = chunk ? name("begin") * depths.per_batch : integer(0);
    const Expr to = chunk ? name("end") * depths.per_batch : times_batch(depths);
    const std::string function =
        fmt::format("{}<{}, {}, {}, {}, {}>", tile.function, tile.rows, tile.columns, tile.division,
                    lies_deep(f.left, f.rows, f.depth), lies_deep(f.right, f.columns, f.depth));
    b.push_back(tree::evaluate(call(function, {times_batch(row_count), times_batch(column_count), from, to,
                                               name("left"), name("right"), name("store")})));
    if (chunk) e.function.name = kernel_.name + "_partial";
    finish(e, std::move(b), fmt::format("a matrix product in tiles of {} x {}", tile.rows, tile.columns), chunk, chunk);
    return e;
  }
  /// Of this kernel, or of all of them; empty where nobody asks for one.
  std::string wanted_tile() const {
    for (const std::string& of : {kernel_.name, std::string()})
      if (auto at = tiles_.find(of); at != tiles_.end()) return at->second;
    return "";
  }

  const Tiles& tiles_;
};

}  // namespace

const std::set<std::string>& known_names() {
  static const std::set<std::string> names{"thread_x",
                                           "block_x",
                                           "block_y",
                                           "block_z",
                                           "warp_sum",
                                           "warp_maximum",
                                           "block_sum",
                                           "block_maximum",
                                           "sum_over_warps",
                                           "maximum_over_warps",
                                           "one_if",
                                           "one_if_positive",
                                           "select_positive",
                                           "larger",
                                           "keep",
                                           "gelu",
                                           "gelu_gradient",
                                           "inverse_root",
                                           "expf",
                                           "logf",
                                           "sqrtf",
                                           "tanhf",
                                           "erff",
                                           "-",
                                           "std::int64_t",
                                           "static_cast<real>"};
  return names;
}

std::vector<Emitted> emit(const Plan& plan, int kernel, const TableName& table, const Tiles& tiles) {
  return Emitter(plan, kernel, table, tiles).run();
}

}  // namespace tessera::codegen::cuda
