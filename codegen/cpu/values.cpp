#include "codegen/cpu/values.hpp"

#include <fmt/format.h>

#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <tuple>
#include <utility>

#include "codegen/error.hpp"
#include "codegen/kernels/query.hpp"
#include "codegen/passes/op.hpp"
#include "codegen/plan/gemm.hpp"
#include "codegen/plan/layout.hpp"

namespace tessera::codegen::cpu {

using graph::Op;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// The kernel of that number, or the part of it; and their schedules.
const Kernel& part_of(const std::vector<Kernel>& all, int number, int part) {
  const Kernel& whole = all[number];
  return part < 0 ? whole : whole.fused.parts[part];
}
const Schedule& part_of(const std::vector<Schedule>& all, int number, int part) {
  const Schedule& whole = all[number];
  return part < 0 ? whole : whole.fused[part];
}

}  // namespace

Values::Values(const Plan& of, int number, const Target& on, int part)
    : ExprRenderer(of, part_of(of.program.kernels, number, part), {"vec", "v_set", "v_keep"}),
      target(on),
      schedule(part_of(of.schedules.at(std::string(on.name)), number, part)),
      vector(schedule.vector),
      place(kernel.axes.size()),
      operations_(kernel.expressions.size()),
      reads_(kernel.expressions.size()) {
  for (const Axis& axis : kernel.axes) extent.push_back(axis.dim.known() ? axis.dim.value() : -1);
  for (const Expression& e : kernel.expressions)
    for (ExprId operand : {e.a, e.b, e.c})
      if (e.kind == Expression::Kind::op && operand.valid()) ++operations_[operand];
  reads_ = operations_;
  for (const Step& step : kernel.steps) {
    if (step.reduces) ++reads_[step.value];
    for (const Step::Store& store : step.stores) ++reads_[store.value];
  }
}

/// What is short and read once stands where it is read.
bool Values::gets_name(ExprId e, const Expr& value, bool apart) {
  constexpr std::size_t longest = 48;
  if (value->kind != tree::Node::Kind::call || expression(e).kind == Expression::Kind::constant) return false;
  return apart || reads_[e] > 1 || tree::print(value).size() > longest;
}

namespace {

/// What the functions end in that load and store a tensor's values.
std::string suffix_of(const Tensor& t) { return t.element == DType::real ? "" : std::string("_") + name_of(t.element); }

}  // namespace

void Values::restart(int along_lanes) {
  arguments.clear();
  vector = along_lanes;
  place.assign(place.size(), {});
}

Expr Values::along(int axis, std::int64_t stride) const {
  const Place& p = place[axis];
  return (p.variable ? p.variable * stride : integer(0)) + (p.within ? p.within * stride : integer(0)) +
         integer(p.offset * stride);
}
Expr Values::of_lanes(const std::string& load, const std::string& of, Expr at) const {
  if (!tail) return call(load + of, {std::move(at)});
  return call(load + (some ? "_some" : "_n") + of, {std::move(at), tail});
}
Expr Values::lanes_in_use() const { return tail ? tail : name("lanes"); }
Expr Values::dense_load(Expr at) const {
  if (vector < 0) return call("v_load_n", {std::move(at), integer(1)});
  return of_lanes("v_load", "", std::move(at));
}
void Values::dense_store(Block& b, Expr at, Expr value, bool uniform, const std::string& of) const {
  if (uniform || vector < 0)
    b.push_back(tree::evaluate(call("v_store_n" + of, {std::move(at), std::move(value), integer(1)})));
  else if (!tail)
    b.push_back(tree::evaluate(call("v_store" + of, {std::move(at), std::move(value)})));
  else
    b.push_back(
        tree::evaluate(call((some ? "v_store_some" : "v_store_n") + of, {std::move(at), std::move(value), tail})));
}

std::vector<std::int64_t> Values::offsets_of_outer() const {
  std::vector<std::int64_t> offsets;
  for (std::size_t a = 0; a < kernel.axes.size(); ++a)
    if (!kernel.axes[a].inner) offsets.push_back(place[a].offset);
  return offsets;
}

/// Axes that an expression depends on: also those of the points for which a local was reduced.
const std::set<int>& Values::axes_of(ExprId e) {
  auto [at, fresh] = axes_of_.try_emplace(e);
  if (!fresh) return at->second;
  std::set<int> axes = axes_below(kernel, e);
  std::set<ExprId> below;
  codegen::reach(kernel, e, below);
  if (ranges::any_of(below, [&](ExprId o) { return expression(o).kind == Expression::Kind::local; }))
    for (const int a : outer_axes()) axes.insert(a);
  return axes_of_[e] = std::move(axes);
}

std::vector<std::int64_t> Values::key_of(ExprId e) {
  std::vector<std::int64_t> key{e.number()};
  for (int a : axes_of(e)) key.push_back(place[a].offset);
  return key;
}

Expr Values::number(const Affine& index) const {
  Expr at = integer(index.offset);
  std::int64_t step = 0;
  for (const Affine::Part& p : index.parts) {
    at = at + along(p.axis, p.coefficient);
    if (p.axis == vector) step = p.coefficient;
  }
  Expr here = broadcast(at->kind == tree::Node::Kind::integer ? tree::real(static_cast<double>(at->integer))
                                                              : call("static_cast<real>", {at}));
  if (step == 0) return here;
  const Expr lanes = call("v_iota", {});
  return step == 1 ? call("v_add", {here, lanes})
                   : call("v_fma", {lanes, broadcast(tree::real(static_cast<double>(step))), here});
}

Expr Values::index(const Expression& x) { return number(x.element); }

Expr Values::index_equals(const Expression& x) {
  const Access& labels = expression(x.a).access;
  const Expr label =
      broadcast(call("static_cast<real>", {tree::index(name(argument(labels, false)), offset_of(labels))}));
  return call("v_equal", {number(x.element), label});
}

Expr Values::op(Block& b, const Expression& x) {
  if (x.op == Op::add || x.op == Op::subtract)
    for (const ExprId multiplied : {x.a, x.b}) {
      if (!is_multiplication(multiplied)) continue;
      const ExprId other = multiplied == x.a ? x.b : x.a;
      const Expr left = evaluate(b, expression(multiplied).a), right = evaluate(b, expression(multiplied).b);
      const char* const f = x.op == Op::add ? "v_fma" : multiplied == x.a ? "v_fms" : "v_fnma";
      return call(f, {left, right, evaluate(b, other)});
    }
  const std::string function(row_of(x.op).cpu);
  if (function.empty()) throw Error(fmt::format("no instruction for {}", op_name(x.op)));
  Expr a = evaluate(b, x.a);
  if (x.op == Op::select) {
    Expr first = evaluate(b, x.b);
    Expr second = evaluate(b, x.c);
    return call(function, {call("v_zero", {}), a, first, second});
  }
  if (x.b.valid()) {
    Expr c = evaluate(b, x.b);
    const bool of_row = divides_by_row_statistic(x);
    if (x.op == Op::divide && (of_row || (varies_along_row(x.a) && !varies_along_row(x.b)))) {
      // One division a row, which compilers hoist out of the loop, and a multiplication for each element.
      const std::string v = fresh("t");
      const char* const divide = of_row || uniform(x.b) ? "v_div_one" : "v_div";
      b.push_back(tree::declare("const vec", v, call(divide, {broadcast(tree::real(1)), c})));
      return call("v_mul", {a, name(v)});
    }
    const bool one = x.op == Op::divide && uniform(x.a) && uniform(x.b);
    return call(one ? "v_div_one" : function, {a, c});
  }
  if (x.op == Op::relu) return call(function, {a, call("v_zero", {})});
  return call(x.op == Op::rsqrt && uniform(x.a) ? "v_rsqrt_one" : function, {a});
}

bool Values::is_multiplication(ExprId e) const {
  const Expression& x = expression(e);
  return x.kind == Expression::Kind::op && x.op == Op::multiply && operations_[e] == 1;
}

/// The layer and the image are arguments where they are not loops of the kernel.
std::vector<Expr> Values::element_of_dropout(const Expression& x) {
  Expr element = integer(x.element.offset);
  std::int64_t step = 0;
  for (const Affine::Part& p : x.element.parts) {
    const bool shared_out = p.axis == schedule.parallel && schedule.block == 1;
    element = element + (shared_out ? name("image") * p.coefficient : along(p.axis, p.coefficient));
    if (kernel.accumulates && extent[p.axis] < 0) element = element + name("group.first") * p.coefficient;
    if (p.axis == vector) step = p.coefficient;
  }
  return {element, integer(step)};
}

/// Whether an expression of a row kernel varies along the row.
bool Values::varies_along_row(ExprId e) {
  return kernel.anchor == Anchor::row && ranges::any_of(axes_of(e), [&](int a) { return inner(a); });
}

/// Whether a GEMM's epilogue divides by a row statistic that is loaded, as a softmax does.
bool Values::divides_by_row_statistic(const Expression& x) {
  return x.op == Op::divide && kernel.gemm.columns >= 0 && vector >= 0 && axes_of(x.a).contains(vector) &&
         expression(x.b).kind == Expression::Kind::load && !axes_of(x.b).contains(vector);
}

bool Values::uniform(ExprId e) {
  if (vector < 0 || !inner(vector) || axes_of(e).contains(vector)) return false;
  const Expression& x = expression(e);
  if (x.kind == Expression::Kind::local) return ranges::contains(kernel.steps[x.step].over, vector);
  if (x.kind != Expression::Kind::op) return true;
  return uniform(x.a) && (!x.b.valid() || uniform(x.b)) && (!x.c.valid() || uniform(x.c));
}

std::vector<Values::TileLoop> Values::loops_of(const Tile& tile) const {
  std::vector<TileLoop> loops;
  for (const auto& [axis, piece] : tile)
    if (!piece.one()) loops.push_back({axis, piece, axis == vector || !loops.empty() ? "column" : "row"});
  return loops;
}

void Values::unrolled(Block& b, const Tile& tile, const std::function<void(Block&)>& inside) {
  const std::vector<Place> kept = place;
  const auto kept_lanes = std::pair{tail, some};
  for (const auto& [axis, piece] : tile)
    if (axis == vector) std::tie(tail, some) = std::pair{piece.tail ? integer(piece.tail) : nullptr, false};
  Unrolled u;
  u.loops = loops_of(tile);
  for (const TileLoop& l : u.loops) {
    const Expr at = name(l.variable);
    place[l.axis].within = at * (l.axis == vector ? target.lanes : 1);
    if (l.axis != vector || !tail) continue;
    tail = tree::choose(tree::binary("<", at, integer(l.piece.points - 1)), name("lanes"), tail);
    some = true;
  }
  Block body;
  Unrolled* const around = std::exchange(unrolled_, &u);
  inside(body);
  unrolled_ = around;
  b.insert(b.end(), u.before.begin(), u.before.end());
  b.insert(b.end(), u.arrays.begin(), u.arrays.end());
  const auto loop_of = [](const TileLoop& l, Block turns) {
    return tree::unroll(l.variable, l.piece.count(), std::move(turns));
  };
  if (!u.inner_alone.empty()) b.push_back(loop_of(u.loops.back(), std::move(u.inner_alone)));
  if (u.loops.size() == 2) {
    u.outer.push_back(loop_of(u.loops.back(), std::move(body)));
    body = std::move(u.outer);
  }
  if (!u.loops.empty()) body = {loop_of(u.loops.front(), std::move(body))};
  b.insert(b.end(), body.begin(), body.end());
  place = kept;
  std::tie(tail, some) = kept_lanes;
}

void Values::along_row(Block& b, int ways, const Expr& end,
                       const std::function<void(Block&, const Expr& way)>& inside) {
  const std::string i = axis_name(vector);
  const std::int64_t points = extent[vector];
  Unrolled u;
  if (inner(vector)) u.loops = {{vector, {points, 0}, ""}};
  set(vector, name(i));
  if (points % target.lanes) std::tie(tail, some) = std::pair{name("some"), true};
  Block body;
  Unrolled* const around = std::exchange(unrolled_, &u);
  inside(body, ways > 1 ? name("way") : integer(0));
  unrolled_ = around;
  b.insert(b.end(), u.before.begin(), u.before.end());
  // The position has no name where what is summed is the same everywhere in the row.
  const std::vector<tree::Parameter> parameters{
      {"auto", tree::uses(body, i) ? i : ""}, {"auto", ways > 1 ? "way" : ""}, {"auto", tail ? "some" : ""}};
  b.push_back(tree::each("along_row", fmt::format("{}, {}", points, ways), end, parameters, std::move(body)));
  b.back().always_inline = true;
  std::tie(tail, some) = std::pair{nullptr, false};
}

Block& Values::block_of(Block& b, ExprId e) {
  if (!unrolled_ || unrolled_->loops.empty()) return b;
  const std::set<int>& axes = axes_of(e);
  const bool outer = axes.contains(unrolled_->loops.front().axis), inner = axes.contains(unrolled_->loops.back().axis);
  if (inner) return outer ? b : unrolled_->inner_alone;
  return outer ? unrolled_->outer : unrolled_->before;
}

/// A value of the inner loop alone is an array of them.
Expr Values::declare(Block& b, ExprId e, const std::string& its_name, Expr value) {
  if (!unrolled_ || &b != &unrolled_->inner_alone) return ExprRenderer::declare(b, e, its_name, std::move(value));
  unrolled_->arrays.push_back(tree::declare(
      "vec", fmt::format("{}[{}]", its_name, tree::print(unrolled_->loops.back().piece.count())), nullptr));
  b.push_back(tree::assign(fmt::format("{}[{}]", its_name, unrolled_->loops.back().variable), std::move(value)));
  return tree::index(name(its_name), name(unrolled_->loops.back().variable));
}

Expr Values::offset_of(const Access& access) const {
  const Layout& layout = plan.layouts[access.tensor];
  if (in_panels(access)) return offset_in_panels(access, layout);
  std::int64_t constant = 0;
  Expr at = integer(0);
  for (auto [axis, s] : strides_of(access, &constant)) {
    const Place& p = place[axis];
    if (on_stack(access) && ranges::contains(block.heads, axis)) continue;
    const char* const first = !on_stack(access)       ? nullptr
                              : axis == block.queries ? "begin"
                              : axis == block.keys    ? "key_begin"
                                                      : nullptr;
    const Expr from = p.variable || !first ? p.variable : integer(p.offset);
    if (p.variable || !first) constant += p.offset * s;
    const bool begins = first && p.variable && tree::print(p.variable) == first;  // it is where the block begins
    if (from && s && !begins) at = at + (first ? tree::binary("-", from, name(first)) : from) * s;
    if (p.within) at = at + p.within * s;
  }
  return at + integer(constant);
}

bool Values::in_panels(const Access& access) const {
  const Tensor& t = tensor(access);
  return t.storage == Storage::packed && t.packing == Packing::panels;
}

/// Where a packed parameter's element is: tiles begin where panels begin.
Expr Values::offset_in_panels(const Access& access, const Layout& layout) const {
  const int columns = kernel.gemm.columns;
  const std::int64_t width = columns_of_tile();
  const Place& column = place[columns];
  // Panels for a matrix unit are filled up to whole tiles along k.
  const std::int64_t depth =
      uses_tile_unit(kernel, target) ? panel_k(kernel.gemm.dtype, layout.stride[0]) : layout.stride[0];
  Expr at = column.variable ? column.variable * depth : integer(0);
  std::int64_t constant = column.offset / width * width * depth + column.offset % width;
  for (std::size_t d = 1; d < access.index.size(); ++d) {
    constant += access.index[d].offset * layout.stride[d] * width;
    for (const Affine::Part& p : access.index[d].parts)
      at = at + along(p.axis, p.coefficient * layout.stride[d] * width);
  }
  if (column.within) at = at + column.within;
  return at + integer(constant);
}

std::int64_t Values::lane_step(const Access& access) const {
  if (in_panels(access)) return 1;
  return vector < 0 ? 0 : step_of(access, vector);
}
std::int64_t Values::step_of(const Access& access, int axis) const {
  return step_along(access, plan.layouts[access.tensor], axis);
}

Expr Values::load(const Access& access) {
  std::string base = argument(access, false);
  Expr at = offset_of(access);
  std::int64_t s = lane_step(access);
  const std::string of = suffix_of(tensor(access));
  if (s == 0) return call("v_set" + of, {tree::index(name(base), at)});
  Expr p = name(base) + at;
  if (s == 1) return of_lanes("v_load", of, p);
  return call("v_load_strided" + of, {p, integer(s), lanes_in_use()});
}

void Values::put(Block& b, const Step::Store& store) {
  Expr value = evaluate(b, store.value);
  Expr p = address(store.to, true);
  std::int64_t s = lane_step(store.to);
  const std::string of = suffix_of(tensor(store.to));
  if (s == 0 || s == 1)
    dense_store(b, p, value, s == 0, of);
  else
    b.push_back(tree::evaluate(call("v_store_strided" + of, {p, integer(s), value, lanes_in_use()})));
}

void Values::add(Block& b, const Step::Store& store, Expr value) {
  Expr p = address(store.to, true);
  dense_store(b, p, call("v_add", {dense_load(p), std::move(value)}), false);
}

void each_load(const Values& v, ExprId e, const std::function<void(const Access&)>& visit) {
  const Expression& x = v.expression(e);
  if (x.kind == Expression::Kind::load) visit(x.access);
  if (x.kind == Expression::Kind::op)
    for (ExprId operand : {x.a, x.b, x.c})
      if (operand.valid()) each_load(v, operand, visit);
}

}  // namespace tessera::codegen::cpu
