// Attention: scores, softmax and what it weighs, by blocks of a head's queries.
#include <fmt/format.h>

#include <range/v3/algorithm/contains.hpp>

#include "codegen/cpu/emitter.hpp"

namespace tessera::codegen::cpu {

using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

Emitted Emitter::attention(const Put& put) {
  const std::array<AttentionAxes, 3> axes = attention_axes(kernel);
  const auto extent_of = [&](int axis) { return extent_[axis]; };
  const std::int64_t queries = extent_of(axes[2].queries), high = schedule_.queries;
  std::vector<std::vector<int>> heads(axes.size());  // but the batch
  for (std::size_t i = 0; i < axes[2].heads.size(); ++i)
    for (std::size_t part = 0; part < axes.size() && axes[2].heads[i] != schedule_.parallel; ++part)
      heads[part].push_back(axes[part].heads[i]);

  // Parts are numbered head after head.
  std::int64_t blocks = (queries + high - 1) / high;
  const bool whole = blocks == 1;  // a head at a time
  Block body{tree::declare("const std::int64_t", "begin",
                           whole ? integer(0) : binary("%", name("part"), integer(blocks)) * high),
             tree::declare("const std::int64_t", "end",
                           whole ? integer(queries) : tree::least(integer(queries), name("begin") + integer(high)))};
  for (std::size_t i = heads[2].size(); i-- > 0;) {
    Expr which = blocks == 1 ? name("part") : binary("/", name("part"), integer(blocks));
    if (i > 0) which = binary("%", which, integer(extent_of(heads[2][i])));
    body.push_back(tree::declare("const std::int64_t", axis_name(heads[2][i]), which));
    blocks *= extent_of(heads[2][i]);
  }

  Emitted e;
  e.function.name = kernel.name;
  e.tasks = Emitted::Tasks::images;
  e.parallel = schedule_.parallel;
  e.shared = in_team_;
  if (in_team_) e.function.parameters.push_back({"const Team&", "team"});
  const auto has = [](const Emitted& of, const std::string& parameter) {
    return ranges::contains(of.function.parameters, parameter, &tree::Parameter::name);
  };
  Block stack;
  std::set<TensorId> lying;
  std::set<std::string> called;
  for (const int part : {0, 1, 2}) {
    Emitter one(plan, number_, target_, false, part < 2 ? part : -1);
    one.block_ = {axes[part].queries, heads[part]};
    const Emitted emitted = one.of_block();
    for_each_access(part < 2 ? kernel.fused.parts[part] : kernel, [&](const Access& a, bool) {
      if (on_stack(a) && lying.insert(a.tensor).second)
        stack.push_back(tree::declare(
            "alignas(64) real", fmt::format("{}[{}]", argument(a, true), high * one.step_of(a, one.block_.queries)),
            nullptr));
    });
    std::vector<Expr> arguments;
    for (std::size_t i = 0; i < heads[2].size(); ++i)
      if (has(emitted, one.axis_name(one.block_.heads[i]))) arguments.push_back(name(axis_name(heads[2][i])));
    arguments.insert(arguments.end(), {name("begin"), name("end")});
    for (const char* const number : {"batch", "image", "layer"}) {
      if (!has(emitted, number)) continue;
      arguments.push_back(name(number));
      if (!has(e, number)) e.function.parameters.push_back({"const std::int64_t", number});
    }
    for (const Argument& a : emitted.arguments) arguments.push_back(name(argument({a.tensor, a.shift, {}}, a.written)));
    const std::string function = put(emitted.function);
    called.insert(function);
    body.push_back(tree::evaluate(call(function, std::move(arguments))));
  }
  std::erase_if(arguments, [&](const Argument& a) { return lying.contains(a.tensor); });

  const Expr begin = in_team_ ? call("team.begin", {integer(blocks), integer(1)}) : integer(0);
  Expr end = integer(blocks);
  if (in_team_) {
    stack.push_back(tree::declare("const std::int64_t", "last", call("team.end", {integer(blocks), integer(1)})));
    end = name("last");
  }
  e.function.body = std::move(stack);
  e.function.body.push_back(tree::loop("part", begin, binary("<", name("part"), end), 1, std::move(body)));
  finish(e, called);
  e.function.comment = {fmt::format("{} parts: {} of {} < {}, of one head", blocks,
                                    whole ? "all" : fmt::to_string(high), axis_name(axes[2].queries), queries)};
  return e;
}

Emitted Emitter::of_block() {
  Emitted e;
  e.function.name = kernel.name + "_block";
  e.function.stays = kernel.product.columns >= 0 && target_.lanes > 1;
  e.tasks = Emitted::Tasks::images;
  set(schedule_.parallel, nullptr);
  split_ = block_.queries;
  for (int a : block_.heads) set(a, name(axis_name(a)));
  e.function.body = kernel.anchor == Anchor::contraction ? contraction() : sweeps();
  for (int a : block_.heads)
    if (tree::uses(e.function.body, axis_name(a)))
      e.function.parameters.push_back({"const std::int64_t", axis_name(a)});
  e.function.parameters.push_back({"const std::int64_t", "begin"});
  e.function.parameters.push_back({"const std::int64_t", "end"});
  add_numbers(e);
  finish(e);
  return e;
}

}  // namespace tessera::codegen::cpu
