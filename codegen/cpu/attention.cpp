#include "codegen/cpu/attention.hpp"

#include <fmt/format.h>

#include <range/v3/algorithm/contains.hpp>

#include "codegen/cpu/function.hpp"
#include "codegen/cpu/gemm.hpp"
#include "codegen/cpu/rowwise.hpp"
#include "codegen/plan/attention.hpp"
#include "codegen/plan/gemm.hpp"

namespace tessera::codegen::cpu {

using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// From where to where a block of queries goes, and one of keys where there are some.
std::vector<std::string> bounds_of_block(bool keys) {
  return keys ? std::vector<std::string>{"begin", "end", "key_begin", "key_end"}
              : std::vector<std::string>{"begin", "end"};
}

/// The function of one of its kernels, for the queries from `begin` to before `end` of a head, and for all keys or
/// those from `key_begin` to before `key_end`.
Emitted of_block(Values& v) {
  Emitted e;
  e.function.name = v.kernel.name + "_block";
  e.function.noinline = v.kernel.gemm.columns >= 0 && v.target.lanes > 1;
  e.tasks = Emitted::Tasks::images;
  v.set(v.schedule.parallel, nullptr);
  LoopBounds bounds{{v.block.queries, {name("begin"), name("end"), true}}};
  if (v.block.keys >= 0) bounds[v.block.keys] = {name("key_begin"), name("key_end"), true};
  for (int a : v.block.heads) v.set(a, name(v.axis_name(a)));
  e.function.body = v.kernel.anchor == Anchor::contraction ? contraction(v, bounds) : passes_over_rows(v, bounds);
  for (int a : v.block.heads)
    if (tree::uses(e.function.body, v.axis_name(a)))
      e.function.parameters.push_back({"const std::int64_t", v.axis_name(a)});
  for (const std::string& bound : bounds_of_block(v.block.keys >= 0))
    e.function.parameters.push_back({"const std::int64_t", bound});
  add_numbers(v, e);
  finish(v, e);
  return e;
}

}  // namespace

Emitted attention(const Plan& plan, int kernel, const Target& target, bool in_team, const Put& put) {
  Values v(plan, kernel, target);
  const std::vector<AttentionAxes> axes = attention_axes(v.kernel);
  const std::size_t own = axes.size() - 1;
  const std::int64_t queries = v.extent[axes[own].queries], high = v.schedule.queries, wide = v.schedule.keys;
  std::vector<std::vector<int>> heads(axes.size());  // but the batch
  for (std::size_t i = 0; i < axes[own].heads.size(); ++i)
    for (std::size_t part = 0; part < axes.size() && axes[own].heads[i] != v.schedule.parallel; ++part)
      heads[part].push_back(axes[part].heads[i]);

  // Parts are numbered head after head. One of a backward pass is a whole head, whose sums over the queries go on from
  // block to block.
  const bool sums = v.inner(axes[own].queries);
  const std::int64_t blocks_of_head = (queries + high - 1) / high;
  const bool whole = blocks_of_head == 1;  // a head at a time
  std::int64_t blocks = sums ? 1 : blocks_of_head;
  Block head, body;
  if (!sums)
    body.push_back(tree::declare("const std::int64_t", "begin",
                                 whole ? integer(0) : binary("%", name("part"), integer(blocks)) * high));
  body.push_back(
      tree::declare("const std::int64_t", "end",
                    whole ? integer(queries) : tree::least(integer(queries), name("begin") + integer(high))));
  for (std::size_t i = heads[own].size(); i-- > 0;) {
    Expr which = blocks == 1 ? name("part") : binary("/", name("part"), integer(blocks));
    if (i > 0) which = binary("%", which, integer(v.extent[heads[own][i]]));
    (sums ? head : body).push_back(tree::declare("const std::int64_t", v.axis_name(heads[own][i]), which));
    blocks *= v.extent[heads[own][i]];
  }

  Emitted e;
  e.function.name = v.kernel.name;
  e.tasks = Emitted::Tasks::images;
  e.parallel = v.schedule.parallel;
  e.shared = in_team;
  if (in_team) e.function.parameters.push_back({"const Team&", "team"});
  const auto has = [](const Emitted& of, const std::string& parameter) {
    return ranges::contains(of.function.parameters, parameter, &tree::Parameter::name);
  };
  Block stack, calls;
  std::set<TensorId> lying;
  std::set<std::string> called;
  for (std::size_t part = 0; part < axes.size(); ++part) {
    Values one(plan, kernel, target, part == own ? -1 : static_cast<int>(part));
    one.block = {axes[part].queries, heads[part], wide ? axes[part].keys : -1};
    const Emitted emitted = of_block(one);
    for_each_access(part == own ? v.kernel : v.kernel.fused.parts[part], [&](const Access& a, bool) {
      if (v.on_stack(a) && lying.insert(a.tensor).second)
        stack.push_back(tree::declare(
            fmt::format("alignas(64) {}", name_of(v.tensor(a).element)),
            fmt::format("{}[{}]", v.argument(a, true), high * one.step_of(a, one.block.queries)), nullptr));
    });
    std::vector<Expr> passed;
    for (std::size_t i = 0; i < heads[own].size(); ++i)
      if (has(emitted, one.axis_name(one.block.heads[i]))) passed.push_back(name(v.axis_name(heads[own][i])));
    for (const std::string& bound : bounds_of_block(wide > 0)) passed.push_back(name(bound));
    for (const char* const number : {"batch", "image", "layer"}) {
      if (!has(emitted, number)) continue;
      passed.push_back(name(number));
      if (!has(e, number)) e.function.parameters.push_back({"const std::int64_t", number});
    }
    for (const Argument& a : emitted.arguments) passed.push_back(name(v.argument({a.tensor, a.shift, {}}, a.written)));
    const std::string function = put(emitted.function);
    called.insert(function);
    calls.push_back(tree::evaluate(call(function, std::move(passed))));
  }
  std::erase_if(v.arguments, [&](const Argument& a) { return lying.contains(a.tensor); });

  const Expr begin = in_team ? call("team.begin", {integer(blocks), integer(1)}) : integer(0);
  Expr end = integer(blocks);
  if (in_team) {
    stack.push_back(tree::declare("const std::int64_t", "last", call("team.end", {integer(blocks), integer(1)})));
    end = name("last");
  }
  if (wide) {
    const std::int64_t keys = v.extent[axes[own].keys];
    calls.insert(calls.begin(), tree::declare("const std::int64_t", "key_end",
                                              tree::least(integer(keys), name("key_begin") + integer(wide))));
    calls = {
        tree::loop("key_begin", integer(0), binary("<", name("key_begin"), integer(keys)), wide, std::move(calls))};
  }
  body.insert(body.end(), calls.begin(), calls.end());
  if (sums) {
    head.push_back(
        tree::loop("begin", integer(0), binary("<", name("begin"), integer(queries)), high, std::move(body)));
    body = std::move(head);
  }
  e.function.body = std::move(stack);
  e.function.body.push_back(tree::loop("part", begin, binary("<", name("part"), end), 1, std::move(body)));
  if (uses_tile_unit(v.kernel, target)) e.function.body.push_back(tree::evaluate(call("t_release", {})));
  if (in_team) e.function.body.push_back(tree::evaluate(call("team.wait", {})));
  finish(v, e, called);
  const std::string of_block = whole ? "all" : fmt::to_string(high), query = v.axis_name(axes[own].queries);
  const std::string of_keys = wide ? fmt::format(" and by {} of {}", wide, v.axis_name(axes[own].keys)) : "";
  e.function.comment = {sums ? fmt::format("{} {}, by {} of {} < {}{}", blocks, blocks == 1 ? "head" : "heads",
                                           of_block, query, queries, of_keys)
                             : fmt::format("{} parts: {} of {} < {}, of one head", blocks, of_block, query, queries)};
  return e;
}

}  // namespace tessera::codegen::cpu
