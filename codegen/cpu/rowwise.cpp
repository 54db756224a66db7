#include "codegen/cpu/rowwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find_if.hpp>

#include "codegen/cpu/fill.hpp"
#include "codegen/cpu/reduction.hpp"
#include "codegen/cpu/transpose.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// The steps of a kernel that run in one pass over a row.
struct Pass {
  std::size_t first = 0, end = 0;
};

/// Rows that go through one pass before any of them goes through the next, so that a row need not wait for its own
/// sums.
struct RowGroup {
  int axis = -1;
  std::int64_t rows = 1;
};

/// What a pass is given of its rows.
struct OfRows {
  Piece together{1, 0};              ///< rows that go by together
  std::vector<Access> prefetched{};  ///< of the rows that come next
};

/// The locals that an expression is made of, but for those within `known` ones.
std::set<ExprId> locals_of(const Values& v, ExprId e, const std::set<ExprId>& known = {}) {
  const Expression& x = v.expression(e);
  if (known.contains(e)) return {};
  if (x.kind == Expression::Kind::local) return {e};
  std::set<ExprId> found;
  if (x.kind == Expression::Kind::op)
    for (ExprId operand : {x.a, x.b, x.c})
      if (operand.valid()) found.merge(locals_of(v, operand, known));
  return found;
}

/// The values that the steps of a pass reduce or store.
std::vector<ExprId> values_of(const Values& v, const Pass& pass) {
  std::vector<ExprId> values;
  for (std::size_t s = pass.first; s < pass.end; ++s) {
    if (v.step(s).reduces) values.push_back(v.step(s).value);
    for (const Step::Store& store : v.step(s).stores) values.push_back(store.value);
  }
  return values;
}

/// The row statistics of a pass: the expressions, as large as they can be, that its steps need of each row and that
/// follow from what earlier passes have reduced it to.
std::set<ExprId> statistics_of(Values& v, const Pass& pass) {
  std::vector<ExprId> todo = values_of(v, pass);
  std::set<ExprId> found;
  while (!todo.empty()) {
    const ExprId e = todo.back();
    todo.pop_back();
    const Expression& x = v.expression(e);
    const std::set<ExprId> locals = locals_of(v, e);
    const bool before = ranges::all_of(
        locals, [&](ExprId local) { return static_cast<std::size_t>(v.expression(local).step) < pass.first; });
    if (locals.empty() || (x.kind == Expression::Kind::local && !before)) continue;
    if (before && v.uniform(e) && !v.is_multiplication(e)) {
      found.insert(e);
      continue;
    }
    for (ExprId operand : {x.a, x.b, x.c})
      if (operand.valid()) todo.push_back(operand);
  }
  return found;
}

std::string name_of_statistic(const Values& v, ExprId e) {
  const Expression& x = v.expression(e);
  return x.kind == Expression::Kind::local ? fmt::format("row{}", x.step) : fmt::format("of_row{}", e.number());
}

/// What the passes up to this one read of each row, side by side along the lanes.
std::vector<Access> rows_read(const Values& v, std::size_t end, int row_axis) {
  std::vector<Access> read;
  for (std::size_t s = 0; s < end; ++s)
    if (v.step(s).reduces)
      each_load(v, v.step(s).value, [&](const Access& a) {
        if (v.lane_step(a) == 1 && v.step_of(a, row_axis) > 0 && !v.on_stack(a) && !ranges::contains(read, a))
          read.push_back(a);
      });
  return read;
}

/// Whether the steps of a pass use what step `local` has reduced.
bool uses_local(const Values& v, const Pass& pass, int local) {
  std::vector<ExprId> todo = values_of(v, pass);
  while (!todo.empty()) {
    const Expression& e = v.expression(todo.back());
    todo.pop_back();
    if (e.kind == Expression::Kind::local && e.step == local) return true;
    if (e.kind != Expression::Kind::op) continue;
    for (ExprId operand : {e.a, e.b, e.c})
      if (operand.valid()) todo.push_back(operand);
  }
  return false;
}

/// Whether step `s` can run in the pass that begins with step `first`: over the same axes, and without its results.
bool joins_pass(const Values& v, std::size_t first, std::size_t s) {
  if (v.step(s).over != v.step(first).over) return false;
  for (std::size_t local = first; local < s; ++local)
    if (uses_local(v, {s, s + 1}, static_cast<int>(local))) return false;
  return true;
}

/// Whether a pass reduces nothing and reads what all rows share.
bool shares_loads(const Values& v, const Pass& pass, int row_axis) {
  bool shares = false;
  for (std::size_t s = pass.first; s < pass.end; ++s) {
    if (v.step(s).reduces) return false;
    for (const Step::Store& store : v.step(s).stores)
      each_load(v, store.value, [&](const Access& a) { shares |= v.lane_step(a) == 1 && v.step_of(a, row_axis) == 0; });
  }
  return shares;
}

/// As many rows as stay in L1.
std::int64_t rows_at_once(const Values& v, int axis) {
  constexpr std::int64_t most = 8, reals_of_l1 = 1 << 11;  // a quarter of L1, which has other things to hold
  if (v.target.lanes == 1 || v.vector < 0 || !v.inner(v.vector) || axis == v.schedule.parallel) return 1;
  const bool along_lanes = ranges::all_of(
      v.kernel.steps, [&](const Step& s) { return !s.reduces || (s.over.size() == 1 && s.over.front() == v.vector); });
  const std::int64_t rows = v.extent[axis];
  const std::int64_t fit = reals_of_l1 / v.extent[v.vector];
  return along_lanes && rows > 1 ? std::clamp<std::int64_t>(fit, 1, std::min(rows, most)) : 1;
}

/// Register blocking: how many rows go together through a pass, so that what they share is read once for all of them:
/// 4 or 2 if the statistics of these rows, so many of each, fit half of the registers; else 1.
int rows_together(const Values& v, const RowGroup& group, std::size_t statistics) {
  const std::size_t registers = v.target.accumulators > 16 ? 32 : 16;
  for (int rows : {4, 2})
    if (static_cast<std::int64_t>(rows) <= group.rows && static_cast<std::size_t>(rows) * statistics <= registers / 2)
      return rows;
  return 1;
}

/// The steps of a pass. What it reduces along the lanes goes into a few interleaved accumulators, so that one addition
/// need not wait for another.
void pass_over_row(Values& v, Block& b, const Pass& pass, const LoopBounds& bounds, const RowGroup& group,
                   const OfRows& rows) {
  std::vector<int> loops;
  for (int a : v.step(pass.first).over)
    if (a != v.vector) loops.push_back(a);
  const bool across = v.vector >= 0 && ranges::contains(v.step(pass.first).over, v.vector);
  if (across) loops.push_back(v.vector);
  bool reduces = false;
  for (std::size_t s = pass.first; s < pass.end; ++s) reduces |= v.step(s).reduces;
  const std::int64_t vectors = across ? v.extent[v.vector] / v.target.lanes : 0;
  const int ways = reduces && v.target.lanes > 1 ? static_cast<int>(std::clamp<std::int64_t>(vectors, 1, 4)) : 1;
  const auto name_of = [&](std::size_t s) {
    return fmt::format("{}{}", v.step(s).reduction == Reduction::sum ? "sum" : "most", s);
  };
  const auto sum_of = [&](std::size_t s, const Expr& way) {
    return ways > 1 ? tree::index(name(name_of(s)), way) : name(name_of(s));
  };
  for (std::size_t s = pass.first; s < pass.end; ++s) {
    if (!v.step(s).reduces) continue;
    if (ways == 1) {
      b.push_back(tree::declare("vec", name_of(s), identity(v.step(s))));
      continue;
    }
    b.push_back(tree::declare(fmt::format("Accumulators<{}>", ways), name_of(s), identity(v.step(s))));
  }
  const Tile together{{group.axis, rows.together}};
  const bool one_row = rows.together.one();
  Block body = nest(v, loops, bounds, ways, [&](Block& inside, const Expr& way) {
    v.reset();
    for (const Access& read : rows.prefetched) {
      const Expr at = v.offset_of(read) + integer(group.rows * v.step_of(read, group.axis));
      if (!across || (v.tail && !v.some)) continue;
      const tree::Statement prefetch = tree::evaluate(call("v_fetch_near", {name(v.argument(read, false)), at}));
      inside.push_back(one_row ? prefetch
                               : tree::when(tree::binary("==", rows.together.count(), integer(1)), {prefetch}));
    }
    const auto steps = [&](Block& each) {
      for (std::size_t s = pass.first; s < pass.end; ++s) {
        if (v.step(s).reduces) {
          const Expr sum = sum_of(s, way);
          each.push_back(tree::assign(tree::print(sum), accumulate(v, v.step(s), each, sum, across)));
        }
        for (const Step::Store& store : v.step(s).stores) v.put(each, store);
      }
    };
    if (one_row)
      steps(inside);
    else
      v.unrolled(inside, together, steps);
  });
  b.insert(b.end(), body.begin(), body.end());
  for (std::size_t s = pass.first; s < pass.end; ++s) {
    if (!v.step(s).reduces) continue;
    std::vector<Expr> sums;
    for (int way = 0; way < ways; ++way) sums.push_back(sum_of(s, integer(way)));
    for (std::size_t apart = 1; apart < sums.size(); apart *= 2)
      for (std::size_t way = 0; way + apart < sums.size(); way += 2 * apart)
        sums[way] = accumulate(v.step(s), sums[way], sums[way + apart]);
    Expr result = sums.front();
    const std::string all = fmt::format("row{}", s);
    const std::string reduce = v.step(s).reduction == Reduction::sum ? "v_sum" : "v_max_lane";
    if (across) {
      b.push_back(tree::declare("const vec", all, call("v_set", {call(reduce, {result})})));
      result = name(all);
    }
    v.locals[{static_cast<int>(s), v.offsets_of_outer()}] = result;
  }
  v.reset();
}

/// All passes of a group of rows, one after the other.
tree::Statement passes_over_group(Values& v, const std::vector<Pass>& passes, const LoopBounds& bounds,
                                  const RowGroup& group) {
  Expr first = integer(0), limit = integer(v.extent[group.axis]);
  if (const auto part = bounds.find(group.axis); part != bounds.end())
    first = part->second.first, limit = part->second.limit;
  const Expr top = name("top"), bottom = name("bottom"), row = name(v.axis_name(group.axis));
  Block body{tree::declare("const std::int64_t", "bottom", tree::least(limit, top + integer(group.rows)))};
  v.set(group.axis, row);
  const Expr which = tree::binary("-", row, top);
  // What each pass needs of a row, by expression, and in which pass that is made.
  const auto made_in = [&](ExprId e) {
    std::size_t last = 0;
    for (ExprId local : locals_of(v, e)) last = std::max(last, static_cast<std::size_t>(v.expression(local).step));
    return static_cast<std::size_t>(ranges::find_if(passes, [&](const auto& w) { return last < w.end; }) -
                                    passes.begin());
  };
  std::vector<std::set<ExprId>> needs;
  for (const Pass& pass : passes) needs.push_back(statistics_of(v, pass));
  for (std::size_t w = 0; w < passes.size(); ++w)
    for (ExprId e : std::set<ExprId>(needs[w]))
      for (ExprId local : locals_of(v, e, needs[made_in(e)]))
        if (made_in(local) < made_in(e)) needs[made_in(e)].insert(local);
  // The statements of a pass over so many rows at a time.
  const auto pass_over = [&](std::size_t w, const Piece& rows) {
    v.locals.clear();
    v.reset();
    Block statements;
    std::map<ExprId, Expr> statistics;
    for (ExprId e : needs[w]) {
      const std::string statistic = name_of_statistic(v, e);
      const std::string of_rows = statistic + "s";
      if (rows.one()) {
        statements.push_back(tree::declare("const vec", statistic, call("v_set", {tree::index(name(of_rows), which)})));
        statistics[e] = name(statistic);
      } else {
        statements.push_back(tree::declare(fmt::format("const RowStatistic<{}>", tree::print(rows.count())), statistic,
                                           name(of_rows) + which));
        statistics[e] = tree::index(name(statistic), name("row"));
      }
    }
    v.know(std::move(statistics));
    // The second pass prefetches what the first one is going to read of a later row.
    pass_over_row(v, statements, passes[w], bounds, group,
                  {rows, w == 1 ? rows_read(v, passes[0].end, group.axis) : std::vector<Access>{}});
    return statements;
  };
  for (std::size_t w = 0; w < passes.size(); ++w) {
    std::set<ExprId> made;
    for (std::size_t later = w + 1; later < passes.size(); ++later)
      for (ExprId e : needs[later])
        if (made_in(e) == w) made.insert(e);
    for (ExprId e : made)
      body.push_back(tree::declare("real", fmt::format("{}s[{}]", name_of_statistic(v, e), group.rows), nullptr));
    const std::string n = v.axis_name(group.axis);
    const int together = shares_loads(v, passes[w], group.axis) ? rows_together(v, group, needs[w].size()) : 1;
    if (together > 1) {  // what rows share is read once for all of these; one text for them and for what is left
      const std::string pass = fmt::format("pass{}", w);
      const auto of_rows = [&](int rows, Expr from, Expr end) {
        const Block call_of{tree::evaluate(call(pass, {name(fmt::format("constant<{}>", rows)), row}))};
        return tree::loop(n, std::move(from), tree::binary("<", row, std::move(end)), rows, call_of);
      };
      const Expr left = tree::binary("%", tree::binary("-", bottom, top), integer(together));
      body.push_back(
          tree::lambda_of_constant(pass, "rows", {{"const std::int64_t", n}}, pass_over(w, {together, 0, "rows"})));
      body.push_back(of_rows(together, top, tree::binary("-", bottom, integer(together - 1))));
      body.push_back(of_rows(1, tree::binary("-", bottom, left), bottom));
      v.set(group.axis, row);
      continue;
    }
    Block one = pass_over(w, {1, 0});
    for (ExprId e : made) {
      const Expr value = v.evaluate(one, e);
      one.push_back(tree::assign(fmt::format("{}s[{} - top]", name_of_statistic(v, e), n), call("v_one", {value})));
    }
    body.push_back(tree::loop(n, top, tree::binary("<", row, bottom), 1, std::move(one)));
  }
  v.know({});
  return tree::loop("top", first, tree::binary("<", top, limit), static_cast<int>(group.rows), std::move(body));
}

}  // namespace

Block passes_over_rows(Values& v, const LoopBounds& bounds) {
  if (is_fill(v)) return fill(v, bounds);
  if (const int axis = transposed_axis(v); axis >= 0) return transposed_copy(v, axis, bounds);
  std::vector<int> loops;
  for (int a : v.outer_axes())
    if (a != v.vector && !(a == v.schedule.parallel && v.schedule.block == 1) && !ranges::contains(v.block.heads, a))
      loops.push_back(a);
  if (v.vector >= 0 && !v.inner(v.vector)) loops.push_back(v.vector);
  std::vector<Pass> passes;
  for (std::size_t first = 0, end = 0; first < v.kernel.steps.size(); first = end) {
    end = first + 1;
    while (end < v.kernel.steps.size() && joins_pass(v, first, end)) ++end;
    passes.push_back({first, end});
  }
  RowGroup group;
  if (passes.size() > 1 && !loops.empty()) group = {loops.back(), rows_at_once(v, loops.back())};
  if (group.rows == 1)
    return nest(v, loops, bounds, [&](Block& b) {
      v.locals.clear();
      v.reset();
      for (const Pass& pass : passes) pass_over_row(v, b, pass, bounds, {}, {});
    });
  loops.pop_back();
  return nest(v, loops, bounds, [&](Block& b) { b.push_back(passes_over_group(v, passes, bounds, group)); });
}

}  // namespace tessera::codegen::cpu
