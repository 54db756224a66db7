#include "codegen/cpu/loop_nest.hpp"

#include <range/v3/algorithm/any_of.hpp>

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

const Range* range_of(const LoopBounds& bounds, int axis) {
  const auto at = bounds.find(axis);
  return at == bounds.end() ? nullptr : &at->second;
}

Block nest(Values& v, const std::vector<int>& axes, const LoopBounds& bounds, int ways, const InterleavedLeaf& leaf,
           std::size_t depth) {
  Block b;
  if (depth == axes.size()) {
    leaf(b, integer(0));
    return b;
  }
  int a = axes[depth];
  auto body = [&] { return nest(v, axes, bounds, ways, leaf, depth + 1); };
  Expr i = name(v.axis_name(a));
  std::int64_t extent = v.extent[a];
  const Range* const range = range_of(bounds, a);
  if (a != v.vector && extent == 1 && !range) {
    v.set(a, nullptr);
    return body();
  }
  if (a != v.vector) {
    v.set(a, i);
    const Expr first = range ? range->first : integer(0), limit = range ? range->limit : integer(extent);
    Block inside = body();
    b.push_back(tree::loop(v.axis_name(a), first, tree::binary("<", i, limit), 1, std::move(inside)));
    return b;
  }
  int lanes = v.target.lanes;
  std::vector<Block> pieces;
  if (range && !range->whole_vectors) {  // the number of points is known only when the program runs
    v.set(a, i);
    Block full = body();
    Expr fits = lanes == 1 ? tree::binary("<", i, range->limit) : tree::binary("<=", i + integer(lanes), range->limit);
    b.push_back(tree::loop(v.axis_name(a), range->first, fits, lanes, std::move(full)));
    if (lanes == 1) return b;
    std::string rest = v.axis_name(a) + "_rest";
    Expr count = tree::binary("-", range->limit, range->first);
    b.push_back(
        tree::declare("const std::int64_t", rest, range->first + tree::binary("/", count, integer(lanes)) * lanes));
    v.tail = call("static_cast<int>", {tree::binary("-", range->limit, name(rest))});
    v.set(a, name(rest));
    Block last = body();
    v.tail = nullptr;
    b.push_back(tree::when(tree::binary("<", name(rest), range->limit), std::move(last)));
    return b;
  }
  std::int64_t full = extent / lanes * lanes;
  if (range ? ways > 1 : full && (ways > 1 || extent > full)) {
    v.along_row(b, ways, range ? range->limit : nullptr, [&](Block& inside, const Expr& way) {
      if (ways > 1)
        leaf(inside, way);
      else
        inside = body();
    });
    return b;
  }
  if (full > lanes) {
    v.set(a, i);
    Block inside = body();
    Expr first = integer(0), limit = integer(full);
    if (range) first = range->first, limit = extent > full ? tree::least(range->limit, limit) : range->limit;
    pieces.push_back({tree::loop(v.axis_name(a), first, tree::binary("<", i, limit), lanes, std::move(inside))});
  } else if (full == lanes) {
    v.set(a, nullptr);
    pieces.push_back(body());
  }
  if (extent > full) {
    v.tail = integer(extent - full);
    v.set(a, nullptr, full);
    Block last = body();
    if (range) last = {tree::when(tree::binary(">", range->limit, integer(full)), std::move(last))};
    pieces.push_back(std::move(last));
    v.tail = nullptr;
  }
  return join(std::move(pieces));
}

}  // namespace

Block nest(Values& v, const std::vector<int>& axes, const LoopBounds& bounds, int ways, const InterleavedLeaf& leaf) {
  return nest(v, axes, bounds, ways, leaf, 0);
}

Block nest(Values& v, const std::vector<int>& axes, const LoopBounds& bounds, const Leaf& leaf) {
  return nest(v, axes, bounds, 1, [&](Block& b, const Expr&) { leaf(b); });
}

Block join(std::vector<Block> pieces) {
  if (pieces.size() == 1) return std::move(pieces[0]);
  Block all;
  for (Block& piece : pieces) {
    bool declares = ranges::any_of(piece, [](const tree::Statement& s) {
      return s.kind == tree::Statement::Kind::declare || s.kind == tree::Statement::Kind::lambda;
    });
    if (declares)
      all.push_back(tree::scope(std::move(piece)));
    else
      all.insert(all.end(), piece.begin(), piece.end());
  }
  return all;
}

}  // namespace tessera::codegen::cpu
