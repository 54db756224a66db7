#include "codegen/cuda/values.hpp"

#include <fmt/format.h>

#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/none_of.hpp>

#include "codegen/cuda/schedule.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/op.hpp"

namespace tessera::codegen::cuda {

using graph::Op;
using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

constexpr std::size_t long_expression = 90;  // characters: what is longer gets a name

/// What kernels call or declare themselves, besides what tree::variable keeps free.
const std::set<std::string> reserved{
    "point",  "row",   "column",  "depth",    "group",     "element", "lane",    "sum",     "most",    "store",
    "left",   "right", "product", "keep",     "gelu",      "expf",    "barrier", "threads", "launch",  "logf",
    "larger", "steps", "next",    "left_map", "right_map", "kept",    "sums",    "step",    "elements"};

}  // namespace

Values::Values(const Plan& of, const Kernel& rendered, TableName table, int pairs)
    : ExprRenderer(of, rendered, {pairs < 0 ? "real" : "Pair", "", "keep", reserved, std::move(table)}),
      pairs_(pairs) {}

FlatIndex Values::fuse(std::vector<int> axes, const std::string& variable) const {
  std::erase_if(axes, [&](int a) { return extent_of(a) == 1; });
  std::string n = axes.size() == 1 ? axis_name(axes[0]) : variable;
  return {std::move(axes), std::move(n)};
}

Expr Values::linear(const std::map<int, std::int64_t>& strides, std::int64_t constant) {
  auto stride_of = [&](int a) {
    auto at = strides.find(a);
    return at == strides.end() ? std::int64_t{0} : at->second;
  };
  for (auto [a, stride] : strides)
    if (stride && extent_of(a) != 1 &&
        ranges::none_of(fused_, [&](const FlatIndex& f) { return ranges::contains(f.axes, a); }))
      throw Error(fmt::format("kernel {} uses axis {} outside of its loop", kernel.name, axis(a).name));
  Expr sum = integer(0);
  for (const FlatIndex& f : fused_) {
    if (f.axes.empty()) continue;
    bool runs_on = true;  // each axis goes on where the next one ends
    for (std::size_t i = f.axes.size(); i-- > 1;)
      runs_on = runs_on && stride_of(f.axes[i - 1]) == stride_of(f.axes[i]) * extent_of(f.axes[i]);
    if (runs_on) {
      if (const std::int64_t s = stride_of(f.axes.back())) sum = sum + name(f.variable) * s;
      continue;
    }
    for (int a : f.axes)
      if (const std::int64_t s = stride_of(a)) {
        needed_.insert(a);
        sum = sum + name(axis_name(a)) * s;
      }
  }
  if (vector_axis_ >= 0 && !at_first_)
    if (const std::int64_t s = stride_of(vector_axis_)) sum = sum + name("lane") * s;
  return sum + integer(constant);
}

void Values::stand_in_vector(int axis, int count) {
  vector_axis_ = count ? axis : -1;
  vector_ = count ? count : 1;
  vector_loads.clear();
  vector_stores.clear();
  loaded_.clear();
}

Expr Values::vector_address(const Access& access, bool written) {
  at_first_ = true;
  Expr at = address(access, written);
  at_first_ = false;
  return at;
}

Expr Values::element(const Access& access, bool written) {
  std::int64_t constant = 0;
  const std::map<int, std::int64_t> strides = strides_of(access, &constant);
  return tree::index(name(argument(access, written)), linear(strides, constant));
}

Expr Values::address(const Access& access, bool written) {
  std::int64_t constant = 0;
  const std::map<int, std::int64_t> strides = strides_of(access, &constant);
  return name(argument(access, written)) + linear(strides, constant);
}

Block Values::declare_needed(const FlatIndex& fused) {
  Block b;
  if (fused.axes.size() < 2) return b;
  std::int64_t inside = 1;
  for (std::size_t i = fused.axes.size(); i-- > 0;) {
    const int a = fused.axes[i];
    if (needed_.erase(a)) {
      Expr at = name(fused.variable);
      if (inside > 1) at = binary("/", at, integer(inside));
      if (i > 0) at = binary("%", at, integer(extent_of(a)));
      b.insert(b.begin(), tree::declare("const int", axis_name(a), at));
    }
    if (i > 0) inside *= extent_of(a);
  }
  return b;
}

void Values::begin(const std::vector<ExprId>& roots) {
  uses_.clear();
  values_.clear();
  given_.clear();
  for (ExprId root : roots) reach(root, uses_);
}

bool Values::gets_name(ExprId e, const Expr& value, bool) {
  const bool plain = value->kind == tree::Node::Kind::name || value->kind == tree::Node::Kind::real;
  return !plain && (uses_[e] > 1 || tree::print(value).size() > long_expression);
}

std::int64_t Values::apart(const Access& access) const {
  const std::map<int, std::int64_t> strides = strides_of(access);
  const auto at = strides.find(pairs_);
  return at == strides.end() ? 0 : at->second;
}

bool Values::reached_at_once(const Access& access) const {
  std::int64_t constant = 0;
  bool even = tensor(access).storage == Storage::scratch && apart(access) == 1;
  for (const auto& [a, stride] : strides_of(access, &constant)) even = even && (a == pairs_ || stride % 2 == 0);
  return even && constant % 2 == 0;
}

bool Values::has_pairs(const std::vector<ExprId>& roots) const {
  // Of device/pair.h; functions of the C library have no twin there, which would hide them.
  static constexpr Op known[] = {Op::negate, Op::gelu,     Op::gelu_gradient, Op::relu,   Op::step,   Op::copy,
                                 Op::add,    Op::subtract, Op::multiply,      Op::divide, Op::maximum};
  std::map<ExprId, int> below;
  for (ExprId root : roots) reach(root, below);
  return ranges::all_of(below, [&](const auto& part) {
    const Expression& x = expression(part.first);
    if (x.kind == Expression::Kind::op) return ranges::contains(known, x.op);
    return x.kind != Expression::Kind::keep && x.kind != Expression::Kind::index &&
           x.kind != Expression::Kind::index_equals;
  });
}

Expr Values::load(const Access& access) {
  if (pairs_ >= 0 && apart(access) != 0)
    return reached_at_once(access) ? call("load_pair", {address(access)})
                                   : call("load_two", {address(access), integer(apart(access))});
  if (vector_axis_ >= 0 && lies_in_vectors(*this, access, vector_axis_, vector_)) {
    const Expr from = vector_address(access, false);
    const auto [at, fresh_one] = loaded_.try_emplace({argument(access, false), tree::print(from)});
    if (fresh_one) {
      at->second = fresh("x");
      vector_loads.push_back(tree::declare("real", fmt::format("{}[{}]", at->second, vector_), nullptr));
      vector_loads.push_back(tree::evaluate(call("load_vector", {name(at->second), from})));
    }
    return tree::index(name(at->second), name("lane"));
  }
  return rounds(access) ? call("widened", {element(access, false)}) : element(access, false);
}

Expr Values::sum_of(const Affine& index, const std::function<Expr(int axis)>& at) const {
  Expr sum = integer(index.offset);
  for (const Affine::Part& p : index.parts)
    if (extent_of(p.axis) != 1) sum = sum + at(p.axis) * p.coefficient;
  return sum;
}

Expr Values::index(const Expression& x) {
  return call("static_cast<real>", {sum_of(x.element, [&](int a) { return position(a); })});
}

Expr Values::index_equals(const Expression& x) {
  const Expr at = sum_of(x.element, [&](int a) { return position(a); });
  return call("one_if", {binary("==", at, element(expression(x.a).access, false))});
}

std::vector<Expr> Values::element_of_dropout(const Expression& x) {
  return {sum_of(x.element, [&](int a) { return call("std::int64_t", {position(a)}); })};
}

Expr Values::op(Block& b, const Expression& x) {
  const std::string function(row_of(x.op).cuda);
  if (function.empty()) throw Error(fmt::format("no device function for {}", op_name(x.op)));
  const Expr a = evaluate(b, x.a);
  if (x.op == Op::select) {
    const Expr first = evaluate(b, x.b), second = evaluate(b, x.c);
    return call(function, {a, first, second});
  }
  if (x.b.valid()) {
    const Expr c = evaluate(b, x.b);
    if (x.op == Op::equal) return call(function, {binary("==", a, c)});
    const bool infix = function.size() == 1;
    return infix ? binary(function, a, c) : call(function, {a, c});
  }
  if (x.op == Op::relu) return call(function, {a, tree::real(0)});
  return call(function, {a});
}

void Values::put(Block& values, Block& stores, const Step::Store& store) {
  Expr value = evaluate(values, store.value);
  if (value->kind != tree::Node::Kind::name && value->kind != tree::Node::Kind::real) {
    const std::string named = fresh("x");
    values.push_back(tree::declare(pairs_ < 0 ? "const real" : "const Pair", named, std::move(value)));
    value = name(named);
  }
  stores.push_back(stored(store.to, std::move(value)));
}

tree::Statement Values::stored(const Access& to, Expr value) {
  if (pairs_ >= 0)
    return tree::evaluate(reached_at_once(to)
                              ? call("store_pair", {address(to, true), std::move(value)})
                              : call("store_two", {address(to, true), integer(apart(to)), std::move(value)}));
  if (rounds(to)) value = call("rounded", {std::move(value)});
  return tree::evaluate(binary("=", element(to, true), std::move(value)));
}

void Values::put(Block& b, const Step::Store& store) {
  Expr value = evaluate(b, store.value);
  if (vector_axis_ < 0) {
    b.push_back(stored(store.to, std::move(value)));
    return;
  }
  const std::string vector = fresh("x");
  vector_loads.push_back(tree::declare("real", fmt::format("{}[{}]", vector, vector_), nullptr));
  b.push_back(tree::evaluate(binary("=", tree::index(name(vector), name("lane")), std::move(value))));
  vector_stores.push_back(tree::evaluate(call("store_vector", {vector_address(store.to, true), name(vector)})));
}

}  // namespace tessera::codegen::cuda
