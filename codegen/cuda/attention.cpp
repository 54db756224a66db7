#include "codegen/cuda/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <set>

#include "codegen/cuda/emitter.hpp"
#include "codegen/cuda/plan.hpp"
#include "codegen/kernels/query.hpp"
#include "codegen/plan/attention.hpp"

namespace tessera::codegen::cuda {

using graph::Op;
using tree::binary;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// Whether the last of four steps stores the maximum, and one over the sum.
bool keeps_rows(const Kernel& softmax) {
  const std::vector<Step::Store>& kept = softmax.steps[3].stores;
  if (kept.size() != 2 || !is_local(softmax, kept[0].value, 0) || !is_op(softmax, kept[1].value, Op::divide))
    return false;
  const Expression &inverse = expression_of(softmax, kept[1].value), &one = expression_of(softmax, inverse.a);
  return one.kind == Expression::Kind::constant && one.value == 1 && is_local(softmax, inverse.b, 1);
}

}  // namespace

std::optional<Attention> attention_of(const KernelProgram& program, const Kernel& scores, const Kernel& softmax,
                                      const Kernel& mix) {
  Attention found;
  // Scores: a product that is stored as it is.
  const Operands multiplied = operands_of(scores, program.precision);
  if (!multiplied.a.valid() || scores.steps.size() != 2 || scores.steps[1].stores.size() != 1) return {};
  const Step::Store& stored = scores.steps[1].stores[0];
  const std::vector<int> in_scores = axes_along(stored.to);
  if (!is_local(scores, stored.value, 0) || in_scores.empty()) return {};

  // A softmax: the maximum, the sum of exponentials, and their quotients.
  if (softmax.anchor != Anchor::row || softmax.steps.size() < 3 || softmax.steps.size() > 4) return {};
  // What backward computes p from again may be stored behind them.
  if (softmax.steps.size() == 4 && !keeps_rows(softmax)) return {};
  const Step &most = softmax.steps[0], &sum = softmax.steps[1], &quotient = softmax.steps[2];
  if (!most.reduces || most.reduction != Reduction::maximum || !most.stores.empty() || most.over.size() != 1 ||
      !sum.reduces || sum.reduction != Reduction::sum || sum.over != most.over || quotient.reduces ||
      quotient.over != most.over || quotient.stores.empty())
    return {};
  found.score = most.value;
  found.softmax.key = most.over[0];
  if (!is_op(softmax, sum.value, Op::exp)) return {};
  const Expression& exponent = expression_of(softmax, expression_of(softmax, sum.value).a);
  if (exponent.kind != Expression::Kind::op || exponent.op != Op::subtract || !same(softmax, exponent.a, found.score) ||
      !is_local(softmax, exponent.b, 0))
    return {};
  found.p = quotient.stores[0].value;
  if (!is_op(softmax, found.p, Op::divide) || !is_local(softmax, expression_of(softmax, found.p).b, 1)) return {};
  const ExprId divided = expression_of(softmax, found.p).a;
  const bool stored_before = sum.stores.size() == 1 && same(softmax, sum.stores[0].value, sum.value) &&
                             expression_of(softmax, divided).kind == Expression::Kind::load &&
                             expression_of(softmax, divided).access == sum.stores[0].to;
  if (!stored_before && !(sum.stores.empty() && same(softmax, divided, sum.value))) return {};
  for (const Step::Store& store : quotient.stores)
    if (store.value != found.p) return {};
  std::vector<int> in_softmax;
  for (const ExprId e : softmax.expressions.ids()) {
    const Expression& x = expression_of(softmax, e);
    if (x.kind != Expression::Kind::load || x.access.tensor != stored.to.tensor) continue;
    if (found.sum.valid() && !(expression_of(softmax, found.sum).access == x.access)) return {};
    found.sum = e;
    in_softmax = axes_along(x.access);
  }
  if (in_softmax.size() != in_scores.size()) return {};

  // The mix: a product of what the softmax gives, as bf16, and of values.
  const Operands mixed = operands_of(mix, program.precision);
  if (!mixed.a.valid() || mixed.depth.size() != 1) return {};
  std::vector<int> given, taken;
  for (const bool left : {true, false}) {
    const Expression& e = expression_of(mix, left ? mixed.a : mixed.b);
    for (const Step::Store& store : quotient.stores) {
      const Tensor& t = program.tensors[store.to.tensor];
      if (e.kind != Expression::Kind::load || e.access.tensor != store.to.tensor || t.element != DType::bf16) continue;
      given = axes_along(store.to);
      taken = axes_along(e.access);
      const std::vector<int>&row = left ? mixed.rows : mixed.columns, &width = left ? mixed.columns : mixed.rows;
      if (row.size() != 1 || width.size() != 1) return {};
      found.value = left ? mixed.b : mixed.a;
      found.mix = {row[0], mixed.depth[0], width[0], batch_first(mix, mixed.groups)};
    }
  }
  if (!found.value.valid() || given.empty() || given.size() != taken.size()) return {};

  // The same rows, keys and groups in all three.
  for (int a = 0; a < static_cast<int>(softmax.axes.size()); ++a)
    if (mapped({a}, given, taken) == std::vector{found.mix.row}) found.softmax.row = a;
  if (found.softmax.row < 0 || mapped({found.softmax.key}, given, taken) != std::vector{found.mix.key}) return {};
  const std::vector<int> row_and_key = mapped({found.softmax.row, found.softmax.key}, in_softmax, in_scores);
  const std::vector<int> row{row_and_key[0]}, key{row_and_key[1]};
  if (multiplied.rows == row && multiplied.columns == key) {
    found.query = multiplied.a;
    found.key = multiplied.b;
  } else if (multiplied.columns == row && multiplied.rows == key) {
    found.query = multiplied.b;
    found.key = multiplied.a;
  } else {
    return {};
  }
  if (multiplied.depth.size() != 1) return {};
  found.scores = {row[0], key[0], multiplied.depth[0], batch_first(scores, multiplied.groups)};
  found.softmax.groups = mapped(found.scores.groups, in_scores, in_softmax);
  if (mapped(found.softmax.groups, given, taken) != found.mix.groups ||
      found.softmax.groups.size() + 2 != in_softmax.size())
    return {};

  // Sizes: whole fragments, and all scores of a warp's rows in its registers.
  const std::int64_t width = size_of(scores, found.scores.width);
  found.rows = size_of(scores, found.scores.row);
  found.keys = size_of(scores, found.scores.key);
  found.most_keys = ceiling(found.keys, 16) * 16;
  if (found.rows < 1 || found.keys < 1 || found.most_keys > 256 || width != size_of(mix, found.mix.width) ||
      !ranges::contains(std::vector<std::int64_t>{16, 32, 64, 128}, width) || found.most_keys + width > 320)
    return {};
  if (!vectorisable_along(program, scores, found.query, found.scores.width) ||
      !vectorisable_along(program, scores, found.key, found.scores.width) ||
      !vectorisable_along(program, mix, found.value, found.mix.width))
    return {};
  return found;
}

std::vector<int> all_of(const Attention::Axes& axes) {
  std::vector<int> all{axes.row, axes.key, axes.width};
  all.insert(all.end(), axes.groups.begin(), axes.groups.end());
  return all;
}

bool same_number(const Access& a, const Attention::Axes& in_a, const Access& b, const Attention::Axes& in_b) {
  Access moved = a;
  const std::vector<int> from = all_of(in_a), to = all_of(in_b);
  for (Affine& index : moved.index) {
    for (Affine::Part& part : index.parts) part.axis = mapped({part.axis}, from, to)[0];
    std::sort(index.parts.begin(), index.parts.end());
  }
  return moved == b;
}

void fuse_attention(KernelProgram& program) {
  std::vector<Kernel>& kernels = program.kernels;
  std::set<int> gone;
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 2; i < order.size(); ++i) {
      const auto at = [&](std::size_t position) -> const Kernel& { return kernels[order[position].kernel]; };
      const std::optional<BeforeMix> before = attention_before(program, order, i, [&](const BeforeMix& b) {
        return attention_of(program, at(b.scores), at(b.softmax), at(i)).has_value();
      });
      if (!before) continue;
      const int a = order[before->scores].kernel, b = order[before->softmax].kernel, c = order[i].kernel;
      auto kernel = [&](int k) -> Kernel& { return kernels[k]; };
      auto inside = [&](TensorId tensor) {
        const Tensor& t = program.tensors[tensor];
        for (int k = 0; k < static_cast<int>(kernels.size()); ++k)
          if (k != a && k != b && k != c && !gone.contains(k) && tensors_of(kernel(k)).contains(tensor)) return false;
        return t.storage == Storage::scratch;
      };
      const TensorId scores = kernel(a).steps[1].stores[0].to.tensor;
      if (!inside(scores)) continue;
      std::set<TensorId> made = stored_by(kernel(b));
      made.insert(scores);
      for (const TensorId t : made)
        if (inside(t)) program.tensors[t].storage = Storage::registers;
      kernel(c).fused = {Fused::Kind::attention, {Fused::Role::scores, Fused::Role::softmax}, {kernel(a), kernel(b)}};
      gone.insert({a, b});
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(before->softmax));
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(before->scores));
      i -= 2;
    }
  remove_kernels(program, gone);
}

// ---- what is stored in pairs and eights -----------------------------------------------------------------------

bool Emitter::lies_together(std::int64_t count, const Step::Store& store, int axis, ExprId sum) const {
  if (!rounds(store.to)) return false;
  std::int64_t constant = 0;
  const std::map<int, std::int64_t> strides = strides_of(store.to, &constant);
  const auto whole = [&](std::int64_t numbers) { return numbers % count == 0; };
  std::int64_t room = 0;  // of a row: up to where the next one begins
  for (const auto& [a, stride] : strides) {
    if (extent_of(a) == 1 || stride == 0) continue;
    if (a == axis ? stride != 1 : !whole(stride)) return false;
    if (a != axis && (room == 0 || stride < room)) room = stride;
  }
  if (!strides.contains(axis) || !whole(constant)) return false;
  if (!whole(extent_of(axis)) && room < ceiling(extent_of(axis), count) * count) return false;
  // All are made alike: nothing but the sum differs between them.
  const auto alike = [&](auto&& self, ExprId e) -> bool {
    if (!e.valid() || e == sum) return true;
    const Expression& x = expression(e);
    switch (x.kind) {
      case Expression::Kind::constant:
      case Expression::Kind::extent:
      case Expression::Kind::local:
        return true;
      case Expression::Kind::load: {
        const std::map<int, std::int64_t> loaded = strides_of(x.access);
        const auto at = loaded.find(axis);
        return at == loaded.end() || at->second == 0;
      }
      case Expression::Kind::index:
        return !ranges::contains(x.element.parts, axis, &Affine::Part::axis);
      case Expression::Kind::index_equals:
      case Expression::Kind::keep:
        return false;
      case Expression::Kind::op:
        break;
    }
    return self(self, x.a) && self(self, x.b) && self(self, x.c);
  };
  return alike(alike, store.value);
}

Emitter::Storing Emitter::store_function(const std::string& function, const std::vector<FlatIndex>& at,
                                         const std::vector<Step::Store>& stores, ExprId sum,
                                         const std::function<void(const std::string& name)>& given) {
  const std::vector<int>& along = at.back().axes;
  const auto lie = [&](std::int64_t count) {
    return along.size() == 1 &&
           ranges::all_of(stores, [&](const Step::Store& store) { return lies_together(count, store, along[0], sum); });
  };
  const bool pairs = lie(2), eights = stores.size() == 1 && lie(8);
  std::vector<tree::Parameter> sums{{"real", "sum"}};
  if (pairs) sums.push_back({"real", "next"});
  Storing storing{{}, name(function)};
  storing.functions.push_back(function_of(function, at, sums, [&](Block& body) {
    std::vector<std::vector<Expr>> values(stores.size());
    for (const tree::Parameter& one : sums) {
      given(one.name);
      for (std::size_t i = 0; i < stores.size(); ++i)
        if (pairs)
          values[i].push_back(evaluate(body, stores[i].value));
        else
          put(body, stores[i]);
    }
    if (eights) body.push_back(tree::give(call("rounded_pair", values[0])));
    for (std::size_t i = 0; pairs && !eights && i < stores.size(); ++i)
      body.push_back(tree::evaluate(call("store_pair", {address(stores[i].to, true), values[i][0], values[i][1]})));
  }));
  if (!eights) return storing;
  for (tree::Parameter& index : storing.functions[0].parameters)
    if (index.type == "int") index.type = "[[maybe_unused]] int";
  const std::string place = function + "_place";
  storing.functions.push_back(
      function_of(place, at, {}, [&](Block& body) { body.push_back(tree::give(address(stores[0].to, true))); }));
  storing.operand = call("in_eights", {name(function), name(place)});
  return storing;
}

// ---- its text ----------------------------------------------------------------------------------------------------

Emitted Emitter::attention(const Launch& l) {
  const Kernel &score_kernel = kernel.fused.part(Fused::Role::scores),
               &softmax_kernel = kernel.fused.part(Fused::Role::softmax);
  Emitter scores(plan, score_kernel, table_), softmax(plan, softmax_kernel, table_);
  const Attention a = *attention_of(plan.program, score_kernel, softmax_kernel, kernel);
  Emitted e = of_launch(l);
  const std::int64_t width = size_of(kernel, a.mix.width);
  const int warps = l.threads / 32;
  e.shared_bytes = call("attention_bytes", {integer(warps), integer(a.most_keys), integer(width)});
  e.grid[0] = call("attention_shares", {times_batch(points(a.mix.groups)), integer(a.rows), integer(warps),
                                        integer(l.ctas), call("sm_count", {})});

  Block b, functions;
  std::set<std::string> declared;
  std::vector<Argument> passed;
  Expr save = call("SaveNothing", {}), keep = call("KeepNothing", {}), store;
  const auto add = [&](const Storing& storing, Expr& operand) {
    functions.insert(functions.end(), storing.functions.begin(), storing.functions.end());
    operand = storing.operand;
  };
  // The functions of one of the kernels, for the block's group of it.
  auto of_kernel = [&](Emitter& kernel, const Attention::Axes& axes, const std::function<void(Emitter&)>& add) {
    kernel.arguments = std::move(passed);
    const FlatIndex group = kernel.fuse(axes.groups, "group");
    kernel.stand(group);
    add(kernel);
    kernel.leave();
    Block needed = kernel.declare_needed(group);
    if (!group.axes.empty())
      needed.insert(needed.begin(), tree::declare("const int", group.variable, call("block_z", {})));
    for (const tree::Statement& s : needed)
      if (declared.insert(s.name).second) b.push_back(s);
    passed = std::move(kernel.arguments);
  };
  auto factor = [&](Emitter& kernel, const std::string& which, ExprId value, int across, int along) {
    functions.push_back(kernel.function_of(
        which, {kernel.fuse({across}, "line"), kernel.fuse({along}, "place")}, {},
        [&](Block& body) { body.push_back(tree::give(kernel.address(kernel.expression(value).access))); }));
  };
  of_kernel(scores, a.scores, [&](Emitter& k) {
    factor(k, "query", a.query, a.scores.row, a.scores.width);
    factor(k, "key", a.key, a.scores.key, a.scores.width);
  });
  of_kernel(softmax, a.softmax, [&](Emitter& k) {
    const std::vector<FlatIndex> at{k.fuse({a.softmax.row}, "row"), k.fuse({a.softmax.key}, "column")};
    functions.push_back(k.function_of("score", at, {{"real", "sum"}}, [&](Block& body) {
      k.begin({a.score});
      k.take(a.sum, name("sum"));
      body.push_back(tree::give(k.evaluate(body, a.score)));
    }));
    for (tree::Parameter& at_place : functions.back().parameters)  // which a mask would read
      if (at_place.type == "int") at_place.type = "[[maybe_unused]] int";
    if (softmax_kernel.steps.size() == 4) {
      keep = name("keep_row");
      functions.push_back(
          k.function_of("keep_row", {k.fuse({a.softmax.row}, "row")}, {{"OfRow", "row_of_it"}}, [&](Block& body) {
            const std::vector<Step::Store>& kept = softmax_kernel.steps[3].stores;
            k.begin({kept[0].value, kept[1].value});
            k.take(kept[0].value, name("row_of_it.most"));
            k.take(kept[1].value, name("row_of_it.inverse"));
            for (const Step::Store& store : kept) k.put(body, store);
          }));
    }
    std::vector<Step::Store> saved = softmax_kernel.steps[2].stores;
    std::erase_if(
        saved, [&](const Step::Store& s) { return plan.program.tensors[s.to.tensor].storage == Storage::registers; });
    if (saved.empty()) return;
    add(k.store_function("save", at, saved, a.p,
                         [&](const std::string& sum) {
                           k.begin({a.p});
                           k.take(a.p, name(sum));
                         }),
        save);
  });
  of_kernel(*this, a.mix, [&](Emitter& k) {
    factor(k, "value", a.value, a.mix.key, a.mix.width);
    add(k.store_function("store", {k.fuse({a.mix.row}, "row"), k.fuse({a.mix.width}, "column")}, k.stores_of_sum(), {},
                         [&](const std::string& sum) { k.begin_sum(sum); }),
        store);
  });
  arguments = std::move(passed);
  b.insert(b.end(), functions.begin(), functions.end());
  const std::string function = fmt::format("attention<{}, {}, {}>", warps, a.most_keys, width);
  b.push_back(tree::evaluate(call(function, {integer(a.rows), integer(a.keys), name("query"), name("key"),
                                             name("score"), save, keep, name("value"), store})));
  finish(e, std::move(b), "attention, 16 queries a warp", false, false);
  return e;
}

}  // namespace tessera::codegen::cuda
