// Row and elementwise kernels as loops: sweeps over rows, several rows at a time, and copies that transpose.
#include <fmt/format.h>

#include <algorithm>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <tuple>

#include "codegen/cpu/emitter.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

int Emitter::transposed_axis() const {
  if (kernel.anchor != Anchor::elementwise || target_.lanes == 1 || vector_ < 0 || kernel.steps.size() != 1 ||
      (schedule_.parallel >= 0 && schedule_.block != 1))
    return -1;
  const std::vector<Step::Store>& stores = step(0).stores;
  if (stores.size() != 1 || expression(stores[0].value).kind != Expression::Kind::load) return -1;
  const Access &to = stores[0].to, &from = expression(stores[0].value).access;
  const auto element_of = [&](const Access& a) { return tensor(a).element; };
  if (element_of(from) != Element::real || element_of(to) != Element::real || lane_step(to) != 1 || in_panels(from) ||
      lane_step(from) <= 1 || extent_[vector_] < target_.lanes)
    return -1;
  for (int a : outer_axes()) {
    const std::int64_t extent = extent_[a];
    if (a != schedule_.parallel && extent > 0 && extent % target_.lanes == 0 && step_of(from, a) == 1) return a;
  }
  return -1;
}

Block Emitter::transposed_copy(int axis) {
  std::vector<int> loops;
  for (int a : outer_axes())
    if (a != vector_ && a != axis && a != schedule_.parallel) loops.push_back(a);
  return nest(loops, [&](Block& b) {
    const Step::Store& store = step(0).stores[0];
    const Access& from = expression(store.value).access;
    Expr depth = integer(extent_[axis]);
    set(axis, nullptr);
    if (axis == split_) {
      const auto [first, limit] = shared_part(axis);
      set(axis, first);
      depth = tree::binary("-", limit, first);
    }
    set(vector_, nullptr);
    b.push_back(tree::evaluate(
        call("v_copy_transposed", {address(from, false), integer(lane_step(from)), address(store.to, true),
                                   integer(step_of(store.to, axis)), depth, integer(extent_[vector_])})));
  });
}

Block Emitter::sweeps() {
  if (const int axis = transposed_axis(); axis >= 0) return transposed_copy(axis);
  std::vector<int> loops;
  for (int a : outer_axes())
    if (a != vector_ && !(a == schedule_.parallel && schedule_.block == 1) && !ranges::contains(block_.heads, a))
      loops.push_back(a);
  if (vector_ >= 0 && !inner(vector_)) loops.push_back(vector_);
  std::vector<std::pair<std::size_t, std::size_t>> sweeps;
  for (std::size_t first = 0, end = 0; first < kernel.steps.size(); first = end) {
    end = first + 1;
    while (end < kernel.steps.size() && joins_sweep(first, end)) ++end;
    sweeps.emplace_back(first, end);
  }
  if (sweeps.size() > 1 && !loops.empty()) rows_at_once_ = rows_at_once(loops.back());
  if (rows_at_once_ == 1)
    return nest(loops, [&](Block& b) {
      locals_.clear();
      reset();
      for (const auto& [first, end] : sweeps) sweep(b, first, end);
    });
  row_axis_ = loops.back();
  loops.pop_back();
  return nest(loops, [&](Block& b) { b.push_back(sweeps_over_rows(sweeps)); });
}

std::int64_t Emitter::rows_at_once(int axis) const {
  constexpr std::int64_t most = 8, near_reals = 1 << 11;  // a quarter of a first cache, which has other things to hold
  if (target_.lanes == 1 || vector_ < 0 || !inner(vector_) || axis == schedule_.parallel) return 1;
  const bool along_lanes = ranges::all_of(
      kernel.steps, [&](const Step& s) { return !s.reduces || (s.over.size() == 1 && s.over.front() == vector_); });
  const std::int64_t rows = extent_[axis];
  const std::int64_t fit = near_reals / extent_[vector_];
  return along_lanes && rows > 1 ? std::clamp<std::int64_t>(fit, 1, std::min(rows, most)) : 1;
}

tree::Statement Emitter::sweeps_over_rows(const std::vector<std::pair<std::size_t, std::size_t>>& sweeps) {
  Expr first = integer(0), limit = integer(extent_[row_axis_]);
  if (row_axis_ == split_) std::tie(first, limit) = shared_part(row_axis_);
  const Expr top = name("top"), bottom = name("bottom"), row = name(axis_name(row_axis_));
  Block body{tree::declare("const std::int64_t", "bottom", tree::least(limit, top + integer(rows_at_once_)))};
  set(row_axis_, row);
  const Expr which = tree::binary("-", row, top);
  // What each sweep needs of a row, by expression, and in which sweep that is made.
  const auto made_in = [&](int e) {
    std::size_t last = 0;
    for (int local : locals_of(e)) last = std::max(last, static_cast<std::size_t>(expression(local).a));
    return static_cast<std::size_t>(ranges::find_if(sweeps, [&](const auto& w) { return last < w.second; }) -
                                    sweeps.begin());
  };
  std::vector<std::set<int>> needs;
  for (const auto& [begin, end] : sweeps) needs.push_back(of_rows(begin, end));
  for (std::size_t w = 0; w < sweeps.size(); ++w)
    for (int e : std::set<int>(needs[w]))
      for (int local : locals_of(e))
        if (made_in(local) < made_in(e)) needs[made_in(e)].insert(local);
  // The statements of a sweep over so many rows at a time.
  const auto sweep_over = [&](std::size_t w, int rows) {
    locals_.clear();
    reset();
    Block statements;
    of_row_.assign(static_cast<std::size_t>(rows), {});
    for (int r = 0; r < rows; ++r)
      for (int e : needs[w]) {
        const std::string v = name_of_row_value(e), own = r ? fmt::format("{}_{}", v, r) : v;
        statements.push_back(
            tree::declare("const vec", own, call("v_set", {tree::index(name(v + "s"), which + integer(r))})));
        of_row_[r][e] = name(own);
      }
    given_ = of_row_.front();
    sweep(statements, sweeps[w].first, sweeps[w].second);
    of_row_.clear();
    return statements;
  };
  for (std::size_t w = 0; w < sweeps.size(); ++w) {
    std::set<int> made;
    for (std::size_t later = w + 1; later < sweeps.size(); ++later)
      for (int e : needs[later])
        if (made_in(e) == w) made.insert(e);
    for (int e : made)
      body.push_back(tree::declare("real", fmt::format("{}s[{}]", name_of_row_value(e), rows_at_once_), nullptr));
    Expr begin = top;
    const int together = shares_loads(sweeps[w].first, sweeps[w].second) ? rows_together(needs[w].size()) : 1;
    if (together > 1) {  // what rows share is read once for all of these
      const Expr last = tree::binary("-", bottom, integer(together - 1));
      body.push_back(
          tree::loop(axis_name(row_axis_), top, tree::binary("<", row, last), together, sweep_over(w, together)));
      begin = tree::binary("-", bottom, tree::binary("%", tree::binary("-", bottom, top), integer(together)));
      set(row_axis_, row);
    }
    // While the second sweep goes by a row, what the first one is going to read of a later row comes near.
    rows_ahead_ = w == 1 ? rows_read(sweeps[0].second) : std::vector<Access>{};
    Block one = sweep_over(w, 1);
    rows_ahead_.clear();
    for (int e : made) {
      const Expr value = evaluate(one, e);
      one.push_back(tree::assign(fmt::format("{}s[{} - top]", name_of_row_value(e), axis_name(row_axis_)),
                                 call("v_one", {value})));
    }
    body.push_back(tree::loop(axis_name(row_axis_), begin, tree::binary("<", row, bottom), 1, std::move(one)));
  }
  given_.clear();
  return tree::loop("top", first, tree::binary("<", top, limit), static_cast<int>(rows_at_once_), std::move(body));
}

int Emitter::rows_together(std::size_t row_values) const {
  const std::size_t registers = target_.accumulators > 16 ? 32 : 16;
  for (int rows : {4, 2})
    if (static_cast<std::int64_t>(rows) <= rows_at_once_ &&
        static_cast<std::size_t>(rows) * row_values <= registers / 2)
      return rows;
  return 1;
}

bool Emitter::shares_loads(std::size_t first, std::size_t end) const {
  bool shares = false;
  for (std::size_t s = first; s < end; ++s) {
    if (step(s).reduces) return false;
    for (const Step::Store& store : step(s).stores)
      each_load(store.value, [&](const Access& a) { shares |= lane_step(a) == 1 && step_of(a, row_axis_) == 0; });
  }
  return shares;
}

void Emitter::each_load(int e, const std::function<void(const Access&)>& visit) const {
  const Expression& x = expression(e);
  if (x.kind == Expression::Kind::load) visit(x.access);
  if (x.kind == Expression::Kind::op)
    for (int operand : {x.a, x.b, x.c})
      if (operand >= 0) each_load(operand, visit);
}

std::set<int> Emitter::locals_of(int e) const {
  const Expression& x = expression(e);
  if (x.kind == Expression::Kind::local) return {e};
  std::set<int> found;
  if (x.kind == Expression::Kind::op)
    for (int operand : {x.a, x.b, x.c})
      if (operand >= 0) found.merge(locals_of(operand));
  return found;
}

std::set<int> Emitter::of_rows(std::size_t first, std::size_t end) {
  std::vector<int> todo;
  for (std::size_t s = first; s < end; ++s) {
    if (step(s).reduces) todo.push_back(step(s).value);
    for (const Step::Store& store : step(s).stores) todo.push_back(store.value);
  }
  std::set<int> found;
  while (!todo.empty()) {
    const int e = todo.back();
    todo.pop_back();
    const Expression& x = expression(e);
    const std::set<int> locals = locals_of(e);
    const bool before =
        ranges::all_of(locals, [&](int local) { return static_cast<std::size_t>(expression(local).a) < first; });
    if (locals.empty() || (x.kind == Expression::Kind::local && !before)) continue;
    if (before && uniform(e) && !is_product(e)) {
      found.insert(e);
      continue;
    }
    for (int operand : {x.a, x.b, x.c})
      if (operand >= 0) todo.push_back(operand);
  }
  return found;
}

std::string Emitter::name_of_row_value(int e) const {
  const Expression& x = expression(e);
  return x.kind == Expression::Kind::local ? fmt::format("row{}", x.a) : fmt::format("of_row{}", e);
}

std::vector<Access> Emitter::rows_read(std::size_t end) const {
  std::vector<Access> read;
  for (std::size_t s = 0; s < end; ++s)
    if (step(s).reduces)
      each_load(step(s).value, [&](const Access& a) {
        if (lane_step(a) == 1 && step_of(a, row_axis_) > 0 && !on_stack(a) && !ranges::contains(read, a))
          read.push_back(a);
      });
  return read;
}

bool Emitter::joins_sweep(std::size_t first, std::size_t s) const {
  if (step(s).over != step(first).over) return false;
  for (std::size_t local = first; local < s; ++local)
    if (uses_local(s, s + 1, static_cast<int>(local))) return false;
  return true;
}

bool Emitter::uses_local(std::size_t first, std::size_t end, int local) const {
  std::vector<int> todo;
  for (std::size_t s = first; s < end; ++s) {
    if (step(s).reduces) todo.push_back(step(s).value);
    for (const Step::Store& store : step(s).stores) todo.push_back(store.value);
  }
  while (!todo.empty()) {
    const Expression& e = expression(todo.back());
    todo.pop_back();
    if (e.kind == Expression::Kind::local && e.a == local) return true;
    if (e.kind != Expression::Kind::op) continue;
    for (int operand : {e.a, e.b, e.c})
      if (operand >= 0) todo.push_back(operand);
  }
  return false;
}

void Emitter::sweep(Block& b, std::size_t first, std::size_t end) {
  std::vector<int> loops;
  for (int a : step(first).over)
    if (a != vector_) loops.push_back(a);
  const bool across = vector_ >= 0 && ranges::contains(step(first).over, vector_);
  if (across) loops.push_back(vector_);
  bool reduces = false;
  for (std::size_t s = first; s < end; ++s) reduces |= step(s).reduces;
  const std::int64_t vectors = across ? extent_[vector_] / target_.lanes : 0;
  ways_ = reduces && target_.lanes > 1 ? static_cast<int>(std::clamp<std::int64_t>(vectors, 1, 4)) : 1;
  auto sum_of = [&](std::size_t s, int way) {
    const char* const kind = step(s).reduction == Reduction::sum ? "sum" : "most";
    return way ? fmt::format("{}{}_{}", kind, s, way) : fmt::format("{}{}", kind, s);
  };
  for (std::size_t s = first; s < end; ++s)
    for (int way = 0; step(s).reduces && way < ways_; ++way)
      b.push_back(tree::declare("vec", sum_of(s, way), identity(step(s))));
  Block body = nest(loops, [&](Block& inside) {
    if (way_ == 0) reset();
    for (const Access& read : rows_ahead_) {
      const Expr at = offset_of(read) + integer(rows_at_once_ * step_of(read, row_axis_));
      if (across && !tail_) inside.push_back(tree::evaluate(call("v_fetch_near", {name(argument(read, false)), at})));
    }
    for (std::size_t r = 0; r < std::max<std::size_t>(1, of_row_.size()); ++r) {
      if (of_row_.size() > 1) {
        set(row_axis_, name(axis_name(row_axis_)), static_cast<std::int64_t>(r));
        given_ = of_row_[r];
      }
      for (std::size_t s = first; s < end; ++s) {
        if (step(s).reduces) {
          const std::string sum = sum_of(s, way_);
          inside.push_back(tree::assign(sum, accumulate(step(s), inside, name(sum), across)));
        }
        for (const Step::Store& store : step(s).stores) put(inside, store);
      }
    }
  });
  b.insert(b.end(), body.begin(), body.end());
  for (std::size_t s = first; s < end; ++s) {
    if (!step(s).reduces) continue;
    std::vector<Expr> sums;
    for (int way = 0; way < ways_; ++way) sums.push_back(name(sum_of(s, way)));
    for (std::size_t apart = 1; apart < sums.size(); apart *= 2)
      for (std::size_t way = 0; way + apart < sums.size(); way += 2 * apart)
        sums[way] = accumulate(step(s), sums[way], sums[way + apart]);
    Expr result = sums.front();
    const std::string all = fmt::format("row{}", s);
    const std::string reduce = step(s).reduction == Reduction::sum ? "v_sum" : "v_max_lane";
    if (across) {
      b.push_back(tree::declare("const vec", all, call("v_set", {call(reduce, {result})})));
      result = name(all);
    }
    locals_[{static_cast<int>(s), offsets_of_outer()}] = result;
  }
  ways_ = 1, way_ = 0;
  reset();
}

}  // namespace tessera::codegen::cpu
