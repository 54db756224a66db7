#include "codegen/emit/expr_renderer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/find_if.hpp>

namespace tessera::codegen {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

std::string ExprRenderer::axis_name(int a) const {
  std::string n = tree::variable(kernel.axes[a].name);
  return dialect_.reserved.contains(n) ? n + "_" : n;
}

Expr ExprRenderer::broadcast(Expr number) const {
  return dialect_.broadcast.empty() ? number : call(dialect_.broadcast, {std::move(number)});
}

std::string ExprRenderer::fresh(const char* prefix) { return fmt::format("{}{}", prefix, counter_++); }

Expr ExprRenderer::evaluate(Block& b, ExprId e) {
  if (const auto at = given_.find(e); at != given_.end()) return at->second;
  const std::vector<std::int64_t> key = key_of(e);
  if (const auto at = values_.find(key); at != values_.end()) return at->second;
  Block& at = block_of(b, e);
  Expr value = make(at, e);
  if (gets_name(e, value, &at != &b))
    value = declare(at, e, fresh(expression(e).kind == Expression::Kind::load ? "x" : "t"), std::move(value));
  return values_[key] = value;
}

Expr ExprRenderer::declare(Block& b, ExprId, const std::string& name, Expr value) {
  b.push_back(tree::declare("const " + dialect_.value, name, std::move(value)));
  return tree::name(name);
}

Expr ExprRenderer::make(Block& b, ExprId e) {
  const Expression& x = expression(e);
  switch (x.kind) {
    case Expression::Kind::constant:
      return broadcast(tree::real(x.value));
    case Expression::Kind::extent: {
      const Extent size = extent(x.dim);
      if (size.known()) return broadcast(tree::real(static_cast<double>(size.fixed)));
      return broadcast(call("static_cast<real>", {in_batch(size)}));
    }
    case Expression::Kind::local:
      return local(x.step);
    case Expression::Kind::load:
      return load(x.access);
    case Expression::Kind::index:
      return index(x);
    case Expression::Kind::index_equals:
      return index_equals(x);
    case Expression::Kind::keep: {
      std::vector<Expr> element = element_of_dropout(x);
      Expr stream = integer(x.dropout);
      if (kernel.region) stream = name("layer") * 65536 + stream;
      std::vector<Expr> passed{name(argument(expression(x.a).access, false)), std::move(stream)};
      passed.insert(passed.end(), element.begin(), element.end());
      passed.push_back(integer(std::llround(std::ldexp(x.value, 32))));
      passed.push_back(tree::real(1 / (1 - x.value)));
      return call(dialect_.keep, std::move(passed));
    }
    case Expression::Kind::op:
      break;
  }
  return op(b, x);
}

std::string ExprRenderer::argument(const Access& access, bool written) {
  const Tensor& t = tensor(access);
  if (t.storage == Storage::table && dialect_.table) return dialect_.table(access.tensor);
  const auto at = ranges::find_if(
      arguments, [&](const Argument& a) { return a.tensor == access.tensor && a.shift == access.shift; });
  if (at != arguments.end()) {
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
  const auto taken = [&](const std::string& word) {
    for (std::size_t a = 0; a < kernel.axes.size(); ++a)
      if (axis_name(static_cast<int>(a)) == word) return true;
    return dialect_.reserved.contains(word) ||
           ranges::any_of(arguments, [&](const Argument& a) { return a.name == word; });
  };
  std::string unique = n;
  for (int i = 2; taken(unique); ++i) unique = fmt::format("{}_{}", n, i);
  arguments.push_back({access.tensor, access.shift, written, unique});
  return unique;
}

}  // namespace tessera::codegen
