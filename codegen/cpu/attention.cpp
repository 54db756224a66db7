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
  std::vector<std::string> bounds_of_block{"begin", "end"};
  if (v.block.keys >= 0) bounds_of_block.insert(bounds_of_block.end(), {"key_begin", "key_end"});
  for (const std::string& bound : bounds_of_block) e.function.parameters.push_back({"const std::int64_t", bound});
  add_numbers(v, e);
  finish(v, e);
  return e;
}

/// Writes the function of one kernel of attention, which calls those of its parts for one block after the other.
class Attention {
 public:
  Attention(const Plan& plan, int kernel, const Target& target, bool in_team, const Put& put)
      : plan_(plan),
        number_(kernel),
        target_(target),
        put_(put),
        v_(plan, kernel, target),
        axes_(attention_axes(v_.kernel)),
        own_(axes_.size() - 1),
        heads_(axes_.size()),
        in_team_(in_team) {
    const std::vector<int>& heads = axes_[own_].heads;
    for (std::size_t i = 0; i < heads.size(); ++i)
      for (std::size_t part = 0; part < axes_.size() && heads[i] != v_.schedule.parallel; ++part)
        heads_[part].push_back(axes_[part].heads[i]);
  }

  Emitted emit() {
    // Parts are numbered head after head. One of a backward pass is a whole head, whose sums over the queries go on
    // from block to block.
    const std::int64_t queries = v_.extent[axes_[own_].queries];
    const bool sums = v_.inner(axes_[own_].queries);
    const std::int64_t blocks_of_head = (queries + high_ - 1) / high_;
    const bool whole = blocks_of_head == 1;  // a head at a time
    std::int64_t blocks = sums ? 1 : blocks_of_head;
    Block head, body;
    if (!sums)
      body.push_back(tree::declare("const std::int64_t", "begin",
                                   whole ? integer(0) : binary("%", name("part"), integer(blocks)) * high_));
    body.push_back(
        tree::declare("const std::int64_t", "end",
                      whole ? integer(queries) : tree::least(integer(queries), name("begin") + integer(high_))));
    const std::vector<int>& heads = heads_[own_];
    for (std::size_t i = heads.size(); i-- > 0;) {
      Expr which = blocks == 1 ? name("part") : binary("/", name("part"), integer(blocks));
      if (i > 0) which = binary("%", which, integer(v_.extent[heads[i]]));
      (sums ? head : body).push_back(tree::declare("const std::int64_t", v_.axis_name(heads[i]), which));
      blocks *= v_.extent[heads[i]];
    }

    e_.function.name = v_.kernel.name;
    e_.tasks = Emitted::Tasks::images;
    e_.parallel = v_.schedule.parallel;
    e_.shared = in_team_;
    if (in_team_) e_.function.parameters.push_back({"const Team&", "team"});
    const Block calls = calls_of_block();
    std::erase_if(v_.arguments, [&](const Argument& a) { return lying_.contains(a.tensor); });

    const Expr first = in_team_ ? call("team.begin", {integer(blocks), integer(1)}) : integer(0);
    Expr end = integer(blocks);
    if (in_team_) {
      stack_.push_back(tree::declare("const std::int64_t", "last", call("team.end", {integer(blocks), integer(1)})));
      end = name("last");
    }
    body.insert(body.end(), calls.begin(), calls.end());
    if (sums) {
      head.push_back(
          tree::loop("begin", integer(0), binary("<", name("begin"), integer(queries)), high_, std::move(body)));
      body = std::move(head);
    }
    e_.function.body = std::move(stack_);
    e_.function.body.push_back(tree::loop("part", first, binary("<", name("part"), end), 1, std::move(body)));
    if (uses_tile_unit(v_.kernel, target_)) e_.function.body.push_back(tree::evaluate(call("t_release", {})));
    if (in_team_) e_.function.body.push_back(tree::evaluate(call("team.wait", {})));
    finish(v_, e_, called_);
    const std::string of_block = whole ? "all" : fmt::to_string(high_), query = v_.axis_name(axes_[own_].queries);
    const std::string of_keys = wide_ ? fmt::format(" and by {} of {}", wide_, v_.axis_name(axes_[own_].keys)) : "";
    e_.function.comment = {
        sums ? fmt::format("{} {}, by {} of {} < {}{}", blocks, blocks == 1 ? "head" : "heads", of_block, query,
                           queries, of_keys)
             : fmt::format("{} parts: {} of {} < {}, of one head{}", blocks, of_block, query, queries, of_keys)};
    return std::move(e_);
  }

 private:
  /// What is called for a block of queries: all parts for all keys, or for one block of keys after the other.
  Block calls_of_block() {
    using Role = Fused::Role;
    std::vector<std::size_t> once, each, last;
    for (std::size_t part = 0; part < own_; ++part) {
      const Role role = v_.kernel.fused.roles[part];
      (role == Role::begin ? once : role == Role::rescale ? last : each).push_back(part);
    }
    each.push_back(own_);
    each.insert(each.end(), last.begin(), last.end());
    if (!wide_) return calls_of(each, 0);
    const std::int64_t keys = v_.extent[axes_[own_].keys];
    // A forward pass is told of each block as of the first one, from its own addresses on; the last block, which may
    // have fewer keys, has functions of its own.
    const std::int64_t left = online_ ? keys % wide_ : 0;
    Block calls = calls_of(once, wide_), of_keys = calls_of(each, wide_);
    if (!online_)
      of_keys.insert(of_keys.begin(), tree::declare("const std::int64_t", "key_end",
                                                    tree::least(integer(keys), name("key_begin") + integer(wide_))));
    calls.push_back(tree::loop("key_begin", integer(0), binary("<", name("key_begin"), integer(keys - left)), wide_,
                               std::move(of_keys)));
    if (!left) return calls;
    of_keys = calls_of(each, left);
    of_keys.insert(of_keys.begin(), tree::declare("const std::int64_t", "key_begin", integer(keys - left)));
    calls.push_back(tree::scope(std::move(of_keys)));
    return calls;
  }

  Block calls_of(const std::vector<std::size_t>& parts, std::int64_t keys) {
    Block calls;
    for (const std::size_t part : parts) calls.push_back(call_of(part, keys));
    return calls;
  }

  /// The call of a part, whose function is written, for a block of so many keys.
  tree::Statement call_of(std::size_t part, std::int64_t keys) {
    Values one(plan_, number_, target_, part == own_ ? -1 : static_cast<int>(part));
    const bool shifts = online_ && axes_[part].keys >= 0;
    one.block = {axes_[part].queries, heads_[part], wide_ && !online_ ? axes_[part].keys : -1};
    if (v_.inner(axes_[own_].queries) && uses_tile_unit(one.kernel, target_)) {
      one.most_of_block = {{axes_[part].queries, high_}};
      if (wide_) one.most_of_block[axes_[part].keys] = wide_;
    }
    const std::int64_t across = axes_[part].across;  // of keys in rows, which are the axis
    if (shifts) one.extent[axes_[part].keys] = keys / across;
    Emitted emitted = of_block(one);
    if (shifts && keys < wide_) emitted.function.name += "_of_last_keys";
    std::map<TensorId, std::int64_t> step_of_keys;
    for_each_access(part == own_ ? v_.kernel : v_.kernel.fused.parts[part], [&](const Access& a, bool) {
      if (shifts && !v_.on_stack(a)) step_of_keys[a.tensor] = one.step_of(a, axes_[part].keys);
      if (v_.on_stack(a) && lying_.insert(a.tensor).second)
        stack_.push_back(tree::declare(
            fmt::format("alignas(64) {}", name_of(v_.tensor(a).element)),
            fmt::format("{}[{}]", v_.argument(a, true), high_ * one.step_of(a, one.block.queries)), nullptr));
    });
    const auto has = [](const Emitted& of, const std::string& parameter) {
      return ranges::contains(of.function.parameters, parameter, &tree::Parameter::name);
    };
    std::vector<Expr> passed;
    for (std::size_t i = 0; i < heads_[own_].size(); ++i)
      if (has(emitted, one.axis_name(one.block.heads[i]))) passed.push_back(name(v_.axis_name(heads_[own_][i])));
    for (const char* const bound : {"begin", "end", "key_begin", "key_end"})
      if (has(emitted, bound)) passed.push_back(name(bound));
    for (const char* const number : {"batch", "image", "layer"}) {
      if (!has(emitted, number)) continue;
      passed.push_back(name(number));
      if (!has(e_, number)) e_.function.parameters.push_back({"const std::int64_t", number});
    }
    for (const Argument& a : emitted.arguments)
      passed.push_back(name(v_.argument({a.tensor, a.shift, {}}, a.written)) +
                       binary("/", name("key_begin"), integer(across)) * step_of_keys[a.tensor]);
    const std::string function = put_(emitted.function);
    called_.insert(function);
    return tree::evaluate(call(function, std::move(passed)));
  }

  const Plan& plan_;
  int number_;
  const Target& target_;
  const Put& put_;
  Values v_;
  std::vector<AttentionAxes> axes_;  ///< by part, the kernel's own last
  std::size_t own_;
  std::vector<std::vector<int>> heads_;  ///< of each of these, but the batch
  bool in_team_;
  std::int64_t high_ = v_.schedule.queries, wide_ = v_.schedule.keys;
  bool online_ = v_.kernel.fused.has(Fused::Role::begin);  ///< a forward pass by blocks of keys
  Emitted e_;
  Block stack_;                   ///< declarations of what lies there
  std::set<TensorId> lying_;      ///< the tensors that do
  std::set<std::string> called_;  ///< functions
};

}  // namespace

Emitted attention(const Plan& plan, int kernel, const Target& target, bool in_team, const Put& put) {
  return Attention(plan, kernel, target, in_team, put).emit();
}

}  // namespace tessera::codegen::cpu
