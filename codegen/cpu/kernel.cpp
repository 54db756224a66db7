// Kernels as functions: what they are given, how their work is shared out, loops over axes.
#include "codegen/cpu/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <tuple>

#include "codegen/cpu/emitter.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// Below this many points, waiting for each other takes threads longer than what they share.
constexpr std::int64_t least_shared = 1 << 15;

/// Reals of a tensor that are asked for at once: a few pages, or more.
constexpr std::int64_t least_fetched = 1 << 12;

}  // namespace

std::vector<Emitted> Emitter::run() {
  std::vector<Emitted> result;
  if (tasks_of(kernel_) == codegen::Tasks::chunks) {
    result.push_back(partials());
    arguments_.clear();
    result.push_back(combine());
    return result;
  }
  result.push_back(tasks_of(kernel_) == codegen::Tasks::rows ? sum_over_images() : whole());
  return result;
}

// ---- functions

Emitted Emitter::whole() {
  Emitted e;
  e.function.name = kernel_.name;
  // Compilers would keep a caller's values in registers that the sums of a tile need.
  e.function.stays = kernel_.product.columns >= 0 && target_.lanes > 1;
  if (schedule_.parallel >= 0) {
    e.parallel = schedule_.parallel;
    e.block = schedule_.block;
    if (schedule_.block == 1) {
      e.tasks = Emitted::Tasks::images;
      set(schedule_.parallel, nullptr);
      if (in_team_) split_ = axis_to_split();
      splits_columns_ = in_team_ && columns_to_split();
      if (split_ >= 0 || splits_columns_) {
        e.shared = true;
        e.function.parameters.push_back({"const Team&", "team"});
      }
    } else {
      e.tasks = Emitted::Tasks::blocks;
      e.function.parameters.push_back({"const std::int64_t", "begin"});
      e.function.parameters.push_back({"const std::int64_t", "end"});
      begin_ = name("begin");
      end_ = name("end");
    }
  } else if (kernel_.across_batch) {
    e.tasks = Emitted::Tasks::batch;
    begin_ = integer(0);
    end_ = images();
    add_images(e);
  }
  add_numbers(e);
  e.function.body = kernel_.anchor == Anchor::contraction ? contraction() : sweeps();
  if (by_tiles()) e.function.body.push_back(tree::evaluate(call("t_release", {})));
  if (e.tasks == Emitted::Tasks::images && kernel_.product.columns >= 0) {
    Block asked = fetches([&](const Access& a) { return saved(a) && !fetched_by_tile(a); }, nullptr);
    e.function.body.insert(e.function.body.begin(), asked.begin(), asked.end());
  }
  if (splits_columns_) {
    const auto [rows, columns] = std::pair{kernel_.product.rows, kernel_.product.columns};
    const std::int64_t weights = extent_[columns] * depth();
    const Expr bytes = integer(weights * 4 / values_in_real(kernel_.product.factors));
    e.function.body.insert(
        e.function.body.begin(),
        tree::declare(
            "const Tiles", "mine",
            call("team.tiles", {integer(split_ < 0 ? 1 : extent_[rows]), integer(split_ < 0 ? 1 : rows_of_tile(rows)),
                                integer(extent_[columns]), integer(columns_of_tile()),
                                tree::binary(">", bytes, call("tessera_second_cache", {}))})));
  } else if (split_ >= 0) {
    const Expr rows = integer(extent_[split_]), tile = integer(rows_of_tile(split_));
    e.function.body.insert(e.function.body.begin(),
                           {tree::declare("const std::int64_t", "begin", call("team.begin", {rows, tile})),
                            tree::declare("const std::int64_t", "end", call("team.end", {rows, tile}))});
  }
  finish(e);
  return e;
}

Block Emitter::fetches(const std::function<bool(const Access&)>& which, const Expr& image) {
  Block b;
  std::set<TensorId> seen;
  for (const Expression& e : kernel_.expressions) {
    if (e.kind != Expression::Kind::load) continue;
    const Tensor& t = plan_.program.tensors[e.access.tensor];
    const Layout& layout = plan_.layouts[e.access.tensor];
    const std::int64_t reals = layout.size.per_batch;
    if (t.storage != Storage::scratch || !which(e.access) || reals < least_fetched ||
        !seen.insert(e.access.tensor).second)
      continue;
    Expr first = name(argument(e.access, false));
    for (std::size_t d = 0; image && d < t.shape.size(); ++d)
      if (!t.shape[d].known()) first = first + image * layout.stride[d];
    b.push_back(tree::evaluate(call("v_fetch", {first, integer(reals)})));
  }
  return b;
}

bool Emitter::saved(const Access& access) const {
  const Tensor& t = tensor(access);
  return t.storage == Storage::scratch && t.slots > 1 && t.region != kernel_.region;
}

std::int64_t Emitter::rows_of_tile(int a) const {
  if (kernel_.anchor == Anchor::contraction) return schedule_.tile[a];
  return a == transposed_axis() ? target_.lanes : 1;
}

int Emitter::axis_to_split() const {
  if (points_of_image(kernel_) < least_shared) return -1;
  std::vector<int> axes = outer_axes();
  if (kernel_.product.columns >= 0) axes = {kernel_.product.rows};
  int widest = -1;
  for (int a : axes) {
    if (a < 0 || a == schedule_.parallel || a == vector_) continue;
    const std::int64_t extent = extent_[a];
    if (2 * extent > 3 * rows_of_tile(a) && stores_everywhere_along(a) && (widest < 0 || extent > extent_[widest]))
      widest = a;
  }
  return widest;
}

bool Emitter::columns_to_split() const {
  const int columns = kernel_.product.columns;
  if (columns < 0 || points_of_image(kernel_) < least_shared || !in_panels(factor(true).access)) return false;
  return extent_[columns] >= 2 * columns_of_tile() && stores_everywhere_along(columns);
}

bool Emitter::stores_everywhere_along(int axis) const {
  return ranges::all_of(kernel_.steps, [&](const Step& s) {
    return ranges::all_of(s.stores, [&](const Step::Store& store) {
      return ranges::any_of(store.to.index, [&](const Affine& index) {
        return ranges::any_of(index.parts, [&](const Affine::Part& part) { return part.axis == axis; });
      });
    });
  });
}

std::pair<Expr, Expr> Emitter::shared_part(int axis) const {
  if (splits_columns_ && axis == kernel_.product.columns) return {name("mine.left"), name("mine.right")};
  if (axis != split_) return {nullptr, nullptr};
  if (splits_columns_) return {name("mine.begin"), name("mine.end")};
  return {name("begin"), name("end")};
}

Emitted Emitter::sum_over_images() {
  Emitted e;
  const int rows = kernel_.product.rows;
  e.function.name = kernel_.name;
  e.tasks = Emitted::Tasks::rows;
  e.parallel = rows;
  e.block = schedule_.tile[rows];
  e.function.parameters = {{"const std::int64_t", "begin"}, {"const std::int64_t", "end"}};
  add_images(e);
  add_layer(e);
  begin_ = integer(0);
  end_ = images();
  e.function.body = !gradient_name().empty() ? gradient() : contraction();
  finish(e);
  return e;
}

Emitted Emitter::partials() {
  Emitted e;
  e.tasks = Emitted::Tasks::chunks;
  e.function.name = kernel_.name + "_partial";
  e.function.parameters = {{"const std::int64_t", "chunk"}};
  add_images(e);
  if (uses_batch() && kernel_.goes_on) e.function.parameters.push_back({"const std::int64_t", "batch"});
  add_layer(e);
  begin_ = name("begin");
  end_ = name("end");
  to_partials_ = true;
  Block body{tree::declare("const std::int64_t", "begin", chunk_bound(name("chunk"))),
             tree::declare("const std::int64_t", "end", chunk_bound(name("chunk") + integer(1)))};
  Block rest = contraction();
  body.insert(body.end(), rest.begin(), rest.end());
  e.function.body = std::move(body);
  finish(e);
  e.function.parameters.push_back({"real*", "partial"});
  e.arguments.push_back({TensorId(), 0, true, "partial"});
  to_partials_ = false;
  return e;
}

void Emitter::add_images(Emitted& e) const {
  if (kernel_.goes_on)
    e.function.parameters.push_back({"const Group&", "group"});
  else
    e.function.parameters.push_back({"const std::int64_t", "batch"});
}

void Emitter::go_on(Block& b, Block sums) {
  b.push_back(tree::when(tree::binary(">", name("group.first"), integer(0)), std::move(sums)));
}

Expr Emitter::chunk_bound(Expr chunk) const {
  if (kernel_.goes_on) return call("group.at", {std::move(chunk)});
  return tree::binary("/", tree::binary("*", std::move(chunk), name("batch")), integer(batch_chunks));
}

Emitted Emitter::combine() {
  Emitted e;
  e.function.name = kernel_.name + "_sum";
  std::vector<int> outer = outer_axes();
  vector_ = partial_vector();
  for (Place& p : place_) p = {};
  // Few sums are added up by one thread: waking another would cost more.
  std::int64_t sums = batch_chunks;
  for (int a : outer) sums *= extent_[a];
  int parallel = -1;
  if (outer.size() > 1 && sums > 100000) parallel = outer[0] == vector_ ? outer[1] : outer[0];
  if (parallel >= 0) {
    e.tasks = Emitted::Tasks::points;
    e.parallel = parallel;
    e.function.parameters.push_back({"const std::int64_t", axis_name(parallel)});
    set(parallel, name(axis_name(parallel)));
  }
  if (kernel_.goes_on) add_images(e);
  if (uses_batch()) e.function.parameters.push_back({"const std::int64_t", "batch"});
  add_layer(e);
  const Expr first = kernel_.goes_on ? name("group.chunk") : integer(0);
  const Expr end = kernel_.goes_on ? name("group.end") : integer(batch_chunks);
  std::vector<int> loops;
  for (int a : outer)
    if (a != parallel && a != vector_) loops.push_back(a);
  if (vector_ >= 0) loops.push_back(vector_);
  e.function.body = nest(loops, [&](Block& b) {
    reset();
    int reduction = 0;
    for (std::size_t s = 0; s < kernel_.steps.size(); ++s) {
      if (!step(s).reduces) continue;
      std::string sum = fmt::format("sum{}", reduction);
      b.push_back(tree::declare("vec", sum, identity(step(s))));
      if (kernel_.goes_on) go_on(b, {tree::assign(sum, load(step(1).stores.front().to))});
      Expr at = name("partial") + partial_index(reduction, name("chunk"));
      Block body{tree::assign(sum, accumulate(step(s), name(sum), dense_load(at)))};
      b.push_back(tree::loop("chunk", first, tree::binary("<", name("chunk"), end), 1, body));
      locals_[{static_cast<int>(s), offsets_of_outer()}] = name(sum);
      ++reduction;
    }
    stores(b);
  });
  finish(e);
  e.function.parameters.push_back({"const real*", "partial"});
  e.arguments.push_back({TensorId(), 0, false, "partial"});
  return e;
}

void Emitter::finish(Emitted& e, const std::set<std::string>& called) {
  for (const Argument& a : arguments_) {
    const Tensor& t = plan_.program.tensors[a.tensor];
    std::string type = t.type == graph::Type::integer ? "std::int32_t*" : std::string(name_of(t.element)) + "*";
    e.function.parameters.push_back({(a.written ? "" : "const ") + type, a.name});
  }
  e.arguments = arguments_;
  e.function.comment = describe();
  std::set<std::string> names = known_names();
  names.insert({"partial", gradient_name()});
  names.insert(called.begin(), called.end());
  tree::check(e.function, names);
}

std::vector<std::string> Emitter::describe() const {
  const std::string summed = schedule_.depth ? fmt::format(" (summed, {} at a time)", schedule_.depth) : " (summed)";
  std::string axes;
  for (std::size_t a = 0; a < kernel_.axes.size(); ++a)
    axes += fmt::format("{}{} < {}{}", a ? ", " : "", kernel_.axes[a].name, to_string(kernel_.axes[a].dim),
                        kernel_.axes[a].inner ? (kernel_.anchor == Anchor::row ? " (row)" : summed) : "");
  std::string lanes = schedule_.vector >= 0 && target_.lanes > 1 ? "; lanes along " + axis_name(schedule_.vector) : "";
  if (axes.empty()) return {};
  return {axes + lanes};
}

bool Emitter::drops_along(int axis) const {
  return ranges::any_of(kernel_.expressions, [&](const Expression& e) {
    return keeps(e) && ranges::any_of(e.element.parts, [&](const Affine::Part& p) { return p.axis == axis; });
  });
}

void Emitter::add_numbers(Emitted& e) const {
  if (uses_batch() && (e.tasks != Emitted::Tasks::batch || kernel_.goes_on))
    e.function.parameters.push_back({"const std::int64_t", "batch"});
  if (e.tasks == Emitted::Tasks::images && drops_along(schedule_.parallel))
    e.function.parameters.push_back({"const std::int64_t", "image"});
  add_layer(e);
}

void Emitter::add_layer(Emitted& e) const {
  if (kernel_.region && ranges::any_of(kernel_.expressions, keeps))
    e.function.parameters.push_back({"const std::int64_t", "layer"});
}

bool Emitter::uses_batch() const {
  return std::any_of(kernel_.expressions.begin(), kernel_.expressions.end(),
                     [](const Expression& e) { return e.kind == Expression::Kind::extent && !e.dim.known(); });
}

// ---- places, loops

Block Emitter::nest(const std::vector<int>& axes, const std::function<void(Block&)>& leaf, std::size_t depth) {
  Block b;
  if (depth == axes.size()) {
    leaf(b);
    return b;
  }
  int a = axes[depth];
  auto body = [&] { return nest(axes, leaf, depth + 1); };
  Expr i = name(axis_name(a));
  std::int64_t extent = extent_[a];
  if (a != vector_) {
    set(a, i);
    Expr first = extent >= 0 ? integer(0) : begin_, limit = extent >= 0 ? integer(extent) : end_;
    if (a == split_) std::tie(first, limit) = shared_part(a);
    if (depth_first_ && inner(a)) first = depth_first_, limit = depth_first_ + integer(schedule_.depth);
    Block inside = body();
    b.push_back(tree::loop(axis_name(a), first, tree::binary("<", i, limit), 1, std::move(inside)));
    return b;
  }
  int lanes = target_.lanes;
  bool in_range = extent < 0 || (a == schedule_.parallel && schedule_.block > 1);
  std::vector<Block> pieces;
  if (in_range) {  // the number of points is known only when the program runs
    set(a, i);
    Block full = body();
    Expr fits = lanes == 1 ? tree::binary("<", i, end_) : tree::binary("<=", i + integer(lanes), end_);
    b.push_back(tree::loop(axis_name(a), begin_, fits, lanes, std::move(full)));
    if (lanes == 1) return b;
    std::string rest = axis_name(a) + "_rest";
    Expr count = tree::binary("-", end_, begin_);
    b.push_back(tree::declare("const std::int64_t", rest, begin_ + tree::binary("/", count, integer(lanes)) * lanes));
    tail_ = call("static_cast<int>", {tree::binary("-", end_, name(rest))});
    set(a, name(rest));
    Block last = body();
    tail_ = nullptr;
    b.push_back(tree::when(tree::binary("<", name(rest), end_), std::move(last)));
    return b;
  }
  if (ways_ > 1) return join(by_turns(a, body));
  std::int64_t full = extent / lanes * lanes;
  const auto [own_first, own_limit] = shared_part(a);
  if (full > lanes) {
    set(a, i);
    Block inside = body();
    Expr first = integer(0), limit = integer(full);
    if (own_first) first = own_first, limit = extent > full ? tree::least(own_limit, limit) : own_limit;
    pieces.push_back({tree::loop(axis_name(a), first, tree::binary("<", i, limit), lanes, std::move(inside))});
  } else if (full == lanes) {
    set(a, nullptr);
    pieces.push_back(body());
  }
  if (extent > full) {
    tail_ = integer(extent - full);
    set(a, nullptr, full);
    Block last = body();
    if (own_limit) last = {tree::when(tree::binary(">", own_limit, integer(full)), std::move(last))};
    pieces.push_back(std::move(last));
    tail_ = nullptr;
  }
  return join(std::move(pieces));
}

std::vector<Block> Emitter::by_turns(int axis, const std::function<Block()>& body) {
  const std::int64_t extent = extent_[axis], lanes = target_.lanes;
  const std::int64_t turn = ways_ * lanes, turns = extent / turn, full = extent / lanes * lanes;
  const Expr i = name(axis_name(axis));
  const auto vectors = [&](const Expr& variable, std::int64_t first, std::int64_t end) {
    Block all;
    for (std::int64_t at = first; at < end; at += lanes) {
      set(axis, variable, at);
      way_ = static_cast<int>((at - first) / lanes % ways_);
      Block one = body();
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  };
  std::vector<Block> pieces;
  if (turns > 1)
    pieces.push_back({tree::loop(axis_name(axis), integer(0), tree::binary("<", i, integer(turns * turn)),
                                 static_cast<int>(turn), vectors(i, 0, turn))});
  if (const std::int64_t first = turns > 1 ? turns * turn : 0; first < full)
    pieces.push_back(vectors(nullptr, first, full));
  if (extent > full) {
    tail_ = integer(extent - full);
    set(axis, nullptr, full);
    way_ = 0;
    pieces.push_back(body());
    tail_ = nullptr;
  }
  return pieces;
}

Block Emitter::join(std::vector<Block> pieces) {
  if (pieces.size() == 1) return std::move(pieces[0]);
  Block all;
  for (Block& piece : pieces) {
    bool declares =
        ranges::any_of(piece, [](const tree::Statement& s) { return s.kind == tree::Statement::Kind::declare; });
    if (declares)
      all.push_back(tree::scope(std::move(piece)));
    else
      all.insert(all.end(), piece.begin(), piece.end());
  }
  return all;
}

std::int64_t points_of_image(const Kernel& kernel) {
  std::int64_t points = 1;
  for (const Axis& a : kernel.axes)
    if (a.dim.known()) points *= a.dim.value();
  if (attends(kernel))
    for (const Kernel& part : kernel.fused.parts) points += points_of_image(part);
  return points;
}

const std::set<std::string>& known_names() {
  static const std::set<std::string> names{"lanes",
                                           "group.first",
                                           "group.images",
                                           "group.chunk",
                                           "group.end",
                                           "group.at",
                                           "group_of",
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
                                           "v_add",
                                           "v_sub",
                                           "v_mul",
                                           "v_div",
                                           "v_max",
                                           "v_neg",
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
                                           "v_sqrt",
                                           "v_rsqrt",
                                           "v_div_one",
                                           "v_rsqrt_one",
                                           "v_equal",
                                           "v_step",
                                           "v_select_less",
                                           "v_keep",
                                           "v_keep_n",
                                           "v_copy_transposed",
                                           "v_fetch",
                                           "v_fetch_near",
                                           "v_fetch_line",
                                           "tessera_second_cache",
                                           "v_one",
                                           "v_sum",
                                           "v_max_lane",
                                           "v_exp",
                                           "v_log",
                                           "v_tanh",
                                           "v_erf",
                                           "v_sin",
                                           "v_cos",
                                           "v_gelu",
                                           "v_gelu_gradient",
                                           "static_cast<int>",
                                           "static_cast<real>"};
  return names;
}

std::vector<Emitted> emit(const Plan& plan, int kernel, const Target& target, bool in_team, const Put& put) {
  if (attends(plan.program.kernels[kernel])) return {Emitter(plan, kernel, target, in_team).attention(put)};
  return Emitter(plan, kernel, target, in_team).run();
}

}  // namespace tessera::codegen::cpu
