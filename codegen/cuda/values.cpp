#include "codegen/cuda/values.hpp"

#include <fmt/format.h>

#include <cmath>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <range/v3/algorithm/none_of.hpp>

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
bool reserved(const std::string& word) {
  static const std::set<std::string> words{
      "point",  "row",   "column",   "depth",     "group", "element", "lane",    "sum",     "most",   "store",
      "left",   "right", "product",  "keep",      "gelu",  "expf",    "barrier", "threads", "launch", "logf",
      "larger", "steps", "left_map", "right_map", "kept",  "sums",    "step",    "elements"};
  return words.contains(word);
}

}  // namespace

Values::Values(const Plan& plan, const Kernel& kernel, TableName table)
    : plan_(plan), kernel_(kernel), table_(std::move(table)) {}

std::string Values::axis_name(int a) const {
  std::string n = tree::variable(axis(a).name);
  return reserved(n) ? n + "_" : n;
}

Extent Values::points(const std::vector<int>& axes) const {
  Extent all{1, 0};
  for (int a : axes) {
    const Extent e = extent(axis(a).dim);
    all = e.known() ? Extent{all.fixed * e.fixed, all.per_batch * e.fixed} : Extent{0, all.fixed};
  }
  return all;
}

FlatIndex Values::fuse(std::vector<int> axes, const std::string& variable) const {
  std::erase_if(axes, [&](int a) { return extent_of(a) == 1; });
  std::string n = axes.size() == 1 ? axis_name(axes[0]) : variable;
  return {std::move(axes), std::move(n)};
}

std::map<int, std::int64_t> Values::strides_of(const Access& access, std::int64_t* constant) const {
  const Layout& layout = plan_.layouts[access.tensor];
  std::map<int, std::int64_t> strides;
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    if (constant) *constant += access.index[d].offset * layout.stride[d];
    for (const Affine::Part& p : access.index[d].parts) strides[p.axis] += p.coefficient * layout.stride[d];
  }
  return strides;
}

Expr Values::linear(const std::map<int, std::int64_t>& strides, std::int64_t constant) {
  auto stride_of = [&](int a) {
    auto at = strides.find(a);
    return at == strides.end() ? std::int64_t{0} : at->second;
  };
  for (auto [a, stride] : strides)
    if (stride && extent_of(a) != 1 &&
        ranges::none_of(fused_, [&](const FlatIndex& f) { return ranges::contains(f.axes, a); }))
      throw Error(fmt::format("kernel {} uses axis {} outside of its loop", kernel_.name, axis(a).name));
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
  return sum + integer(constant);
}

Expr Values::element(const Access& access, bool written) {
  std::int64_t constant = 0;
  const std::map<int, std::int64_t> strides = strides_of(access, &constant);
  return tree::index(name(argument(access, written)), linear(strides, constant));
}

Expr Values::address(const Access& access) {
  std::int64_t constant = 0;
  const std::map<int, std::int64_t> strides = strides_of(access, &constant);
  return name(argument(access, false)) + linear(strides, constant);
}

bool Values::rounds(const Access& access) const {
  return plan_.program.tensors[access.tensor].element == Element::bf16;
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

void Values::reach(int e, std::map<int, int>& uses) const {
  if (e < 0 || ++uses[e] > 1) return;
  const Expression& x = expression(e);
  if (x.kind != Expression::Kind::op) return;
  reach(x.a, uses);
  reach(x.b, uses);
  reach(x.c, uses);
}

void Values::begin(const std::vector<int>& roots) {
  uses_.clear();
  values_.clear();
  for (int root : roots) reach(root, uses_);
}

Expr Values::evaluate(Block& b, int e) {
  if (auto at = values_.find(e); at != values_.end()) return at->second;
  Expr value = make(b, e);
  const bool plain = value->kind == tree::Node::Kind::name || value->kind == tree::Node::Kind::real;
  if (!plain && (uses_[e] > 1 || tree::print(value).size() > long_expression)) {
    const bool loaded = expression(e).kind == Expression::Kind::load;
    const std::string v = fmt::format("{}{}", loaded ? "x" : "t", counter_++);
    b.push_back(tree::declare("const real", v, value));
    value = name(v);
  }
  return values_[e] = value;
}

Expr Values::make(Block& b, int e) {
  const Expression& x = expression(e);
  switch (x.kind) {
    case Expression::Kind::constant:
      return tree::real(x.value);
    case Expression::Kind::extent: {
      const Extent size = extent(x.dim);
      if (size.known()) return tree::real(static_cast<double>(size.fixed));
      return call("static_cast<real>", {name("batch") * size.per_batch + integer(size.fixed)});
    }
    case Expression::Kind::local:
      return locals_.at(x.a);
    case Expression::Kind::load:
      return rounds(x.access) ? call("widened", {element(x.access, false)}) : element(x.access, false);
    case Expression::Kind::index_equals:
      return call("one_if", {binary("==", position(x.axis), element(expression(x.a).access, false))});
    case Expression::Kind::keep: {
      Expr at = integer(x.element.offset);
      for (const Affine::Part& p : x.element.parts)
        if (extent_of(p.axis) != 1) at = at + call("std::int64_t", {position(p.axis)}) * p.coefficient;
      Expr stream = integer(x.dropout);
      if (kernel_.region) stream = name("layer") * 65536 + stream;
      return call("keep", {name(argument(expression(x.a).access, false)), stream, at,
                           integer(std::llround(std::ldexp(x.value, 32))), tree::real(1 / (1 - x.value))});
    }
    case Expression::Kind::op:
      break;
  }
  const std::string function(row_of(x.op).cuda);
  if (function.empty()) throw Error(fmt::format("no device function for {}", op_name(x.op)));
  const Expr a = evaluate(b, x.a);
  if (x.op == Op::select) {
    const Expr first = evaluate(b, x.b), second = evaluate(b, x.c);
    return call(function, {a, first, second});
  }
  if (x.b >= 0) {
    const Expr c = evaluate(b, x.b);
    if (x.op == Op::equal) return call(function, {binary("==", a, c)});
    const bool infix = function.size() == 1;
    return infix ? binary(function, a, c) : call(function, {a, c});
  }
  if (x.op == Op::relu) return call(function, {a, tree::real(0)});
  return call(function, {a});
}

std::string Values::argument(const Access& access, bool written) {
  const Tensor& t = plan_.program.tensors[access.tensor];
  if (t.storage == Storage::table) return table_(access.tensor);
  auto at = ranges::find_if(arguments_,
                            [&](const Argument& a) { return a.tensor == access.tensor && a.shift == access.shift; });
  if (at != arguments_.end()) {
    at->written |= written;
    return at->name;
  }
  std::string n;
  for (char c : t.name) n += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  if (t.storage == Storage::gradient) n = "gradient_" + n;
  while (n.find("__") != std::string::npos) n.erase(n.find("__"), 1);
  if (n.find("_") == 0) n.erase(0, 1);
  if (access.shift && t.carry) n += "_next";
  // What the caller passes keeps its name; what the declaration named gets out of the way.
  const bool own = t.storage == Storage::input || t.storage == Storage::labels || t.storage == Storage::output ||
                   t.storage == Storage::loss;
  if (!own) n = tree::variable(n);
  auto used = [&](const std::string& word) {
    for (std::size_t a = 0; a < kernel_.axes.size(); ++a)
      if (axis_name(static_cast<int>(a)) == word) return true;
    return reserved(word) || ranges::any_of(arguments_, [&](const Argument& a) { return a.name == word; });
  };
  std::string unique = n;
  for (int i = 2; used(unique); ++i) unique = fmt::format("{}_{}", n, i);
  arguments_.push_back({access.tensor, access.shift, written, unique});
  return unique;
}

void Values::put(Block& b, const Step::Store& store) {
  Expr value = evaluate(b, store.value);
  if (rounds(store.to)) value = call("rounded", {std::move(value)});
  b.push_back(tree::evaluate(binary("=", element(store.to, true), std::move(value))));
}

}  // namespace tessera::codegen::cuda
