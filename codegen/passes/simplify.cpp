#include "codegen/passes/simplify.hpp"

#include <cmath>
#include <optional>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/find.hpp>
#include <range/v3/view/enumerate.hpp>

#include "codegen/error.hpp"
#include "codegen/passes/op.hpp"
#include "codegen/passes/print.hpp"
#include "codegen/passes/rewrite.hpp"
#include "codegen/passes/value_numbering.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Output;
using graph::Region;

namespace {

/// The op on plain numbers, for folding.
std::optional<double> fold(Op op, double a, double b) {
  switch (op) {
#define TESSERA_FOLD(OP, OPERANDS, COMMUTES, CPU_COST, CPU, CUDA_COST, CUDA, NUMBER) \
  case Op::OP:                                                                       \
    return NUMBER;
    TESSERA_ELEMENTWISE_OPS(TESSERA_FOLD)
#undef TESSERA_FOLD
    TESSERA_OTHER_OPS(TESSERA_OP_CASE)
    break;
  }
  return std::nullopt;
}

/// One pass over the nodes. Every rule answers the node's replacement, or graph::none where it does not apply; what a
/// rule appends is itself simplified by the next pass.
class Round {
 public:
  explicit Round(const Graph& old) : old_(old), readers_(old.nodes.size(), 0), pinned_(old.nodes.size(), false) {
    for (const Node& n : old.nodes)
      for (NodeId o : n.operands) ++readers_[at(o)];
    auto pin = [&](NodeId id) {
      ++readers_[at(id)];
      pinned_[at(id)] = true;
    };
    for (const Region& r : old.regions)
      for (NodeId id : r.yields) pin(id);
    for (const Output& o : old.outputs) pin(o.node);
  }

  Graph run() {
    return rewrite(old_, [&](Builder& b, const Node& n, NodeId old) {
      if (!equal_) equal_.emplace(b.graph());
      b_ = &b;
      NodeId id = replacement(n, old);
      if (id == graph::none) id = b.append(n);
      id = equal_->representative(id);
      // A yield or an output stays in its region even where its value is known elsewhere.
      if (pinned_[at(old)] && def(id).region != n.region) id = b.unary(Op::copy, id);
      return id;
    });
  }

 private:
  const Node& def(NodeId id) const { return b_->graph()[id]; }
  const std::vector<Dim>& shape(NodeId id) const { return def(id).shape; }

  NodeId replacement(const Node& n, NodeId old) {
    if (is_elementwise(n.op)) return elementwise(n, old);
    switch (n.op) {
      case Op::extent:
        return n.dim.known() ? b_->constant(static_cast<double>(n.dim.value())) : graph::none;
      case Op::broadcast:
        return broadcast(n);
      case Op::slice:
        return slice(n);
      case Op::concat:
        return concat(n, old);
      case Op::rearrange:
        return n.rearrangement.from == n.rearrangement.to ? n.operands[0] : graph::none;
      case Op::einsum:
        return n.operands.size() == 1 && n.letters[0] == n.letters[1] ? n.operands[0] : graph::none;
      case Op::reduce_sum:
        return reduce_sum(n);
      case Op::reduce_max:
        return n.axes.empty() ? n.operands[0] : graph::none;
      case Op::input:
      case Op::parameter:
      case Op::table:
      case Op::arange:
      case Op::constant:
      case Op::keep:
      case Op::integers:
      case Op::one_hot:
      case Op::unfold:
      case Op::cache:
        TESSERA_ELEMENTWISE_OPS(TESSERA_OP_CASE)
        TESSERA_COMPOSITE_OPS(TESSERA_OP_CASE)
        TESSERA_REGION_OPS(TESSERA_OP_CASE)
        break;
    }
    return graph::none;
  }

  /// The number that stands at every element, where it is known.
  std::optional<double> number(NodeId id) const {
    const Node& n = def(id);
    if (n.op == Op::constant) return n.value;
    if (n.op == Op::broadcast) return number(n.operands[0]);
    return std::nullopt;
  }
  bool is(NodeId id, double value) const { return number(id) == value; }
  NodeId spread(double value, const std::vector<Dim>& to) {
    const NodeId scalar = b_->constant(value);
    return to.empty() ? scalar : b_->broadcast(scalar, to, {});
  }

  NodeId elementwise(const Node& n, NodeId old) {
    if (n.op == Op::copy) return graph::none;
    if (n.op == Op::select) return select(n, old);
    const std::optional<double> a = number(n.operands[0]), b = n.operands.size() > 1 ? number(n.operands[1]) : a;
    if (a && b)
      if (const std::optional<double> value = fold(n.op, *a, *b)) return spread(*value, n.shape);
    for (NodeId id : {identity(n), of_broadcasts(n), into_concat(n, old)})
      if (id != graph::none) return id;
    return graph::none;
  }

  NodeId select(const Node& n, NodeId old) {
    if (const std::optional<double> condition = number(n.operands[0]))
      return condition > 0 ? n.operands[1] : n.operands[2];
    if (n.operands[1] == n.operands[2]) return n.operands[1];
    if (const NodeId sign = before_step(n.operands[0]); sign != graph::none)
      return b_->select(sign, n.operands[1], n.operands[2]);
    return into_concat(n, old);
  }

  /// What is above 0 where the condition is: of a step its operand, which is a condition as it stands.
  NodeId before_step(NodeId condition) {
    const Node n = def(condition);
    if (n.op == Op::step) return n.operands[0];
    if (n.op != Op::broadcast || def(n.operands[0]).op != Op::step) return graph::none;
    return b_->broadcast(def(n.operands[0]).operands[0], n.shape, n.axes);
  }

  NodeId identity(const Node& n) {
    const NodeId x = n.operands[0], y = n.operands.back();
    auto negated = [&](NodeId id) { return def(id).op == Op::negate; };
    auto inner = [&](NodeId id) { return def(id).operands[0]; };
    switch (n.op) {
      case Op::add:
        if (is(x, 0)) return y;
        if (is(y, 0)) return x;
        if (negated(y)) return b_->subtract(x, inner(y));
        if (negated(x)) return b_->subtract(y, inner(x));
        break;
      case Op::subtract:
        if (is(y, 0)) return x;
        if (is(x, 0)) return b_->unary(Op::negate, y);
        if (negated(y)) return b_->add(x, inner(y));
        break;
      case Op::multiply:
        if (is(x, 1)) return y;
        if (is(y, 1)) return x;
        if (is(x, -1)) return b_->unary(Op::negate, y);
        if (is(y, -1)) return b_->unary(Op::negate, x);
        if (const std::optional<double> factor = number(y); factor && def(x).op == Op::multiply)
          if (const std::optional<double> earlier = number(def(x).operands[1]))
            return b_->multiply(inner(x), spread(*earlier * *factor, n.shape));
        if (number(x) && !number(y)) return b_->multiply(y, x);  // numbers stand on the right
        break;
      case Op::divide:
        if (is(y, 1)) return x;
        break;
      case Op::negate:
        if (negated(x)) return inner(x);
        break;
      case Op::exp:
      case Op::log:
      case Op::sqrt:
      case Op::rsqrt:
      case Op::tanh:
      case Op::sin:
      case Op::cos:
      case Op::erf:
      case Op::gelu:
      case Op::gelu_gradient:
      case Op::relu:
      case Op::step:
      case Op::copy:
      case Op::maximum:
      case Op::equal:
        TESSERA_TERNARY_OPS(TESSERA_OP_CASE)
        TESSERA_OTHER_OPS(TESSERA_OP_CASE)
        break;
    }
    return graph::none;
  }

  /// op(broadcast a, broadcast b) = broadcast op(a, b), where a and b are spread alike or one of them is a number.
  NodeId of_broadcasts(const Node& n) {
    if (!ranges::all_of(n.operands, [&](NodeId o) { return def(o).op == Op::broadcast; })) return graph::none;
    const Node first = def(n.operands[0]), last = def(n.operands.back());
    const bool alike = first.axes == last.axes;
    if (!alike && !first.axes.empty() && !last.axes.empty()) return graph::none;
    const NodeId small =
        is_unary(n.op) ? b_->unary(n.op, first.operands[0]) : b_->binary(n.op, first.operands[0], last.operands[0]);
    return b_->broadcast(small, n.shape, first.axes.empty() ? last.axes : first.axes);
  }

  /// op(concat(a, b), c) = concat(op(a, part of c), op(b, rest of c)), where nobody else reads the concat.
  NodeId into_concat(const Node& n, NodeId old) {
    for (std::size_t k = 0; k < n.operands.size(); ++k) {
      const Node whole = def(n.operands[k]);
      if (whole.op != Op::concat || whole.region != n.region || readers_[at(old_[old].operands[k])] != 1) continue;
      const int axis = whole.axes[0];
      const auto d = static_cast<std::size_t>(axis);
      if (!ranges::all_of(whole.operands, [&](NodeId part) { return shape(part)[d].known(); })) continue;
      std::vector<NodeId> parts;
      std::int64_t offset = 0;
      for (NodeId part : whole.operands) {
        Node piece = n;
        piece.shape = shape(part);
        piece.operands[k] = part;
        for (std::size_t other = 0; other < n.operands.size(); ++other)
          if (other != k) piece.operands[other] = b_->slice(n.operands[other], axis, offset, piece.shape[d]);
        offset += piece.shape[d].value();
        parts.push_back(b_->append(piece));
      }
      return b_->concat(parts, axis, n.shape[d]);
    }
    return graph::none;
  }

  NodeId broadcast(const Node& n) {
    if (n.axes.size() == n.shape.size()) return n.operands[0];
    const Node inner = def(n.operands[0]);
    if (inner.op != Op::broadcast) return graph::none;
    std::vector<int> axes;
    for (int axis : inner.axes) axes.push_back(n.axes[axis]);
    return b_->broadcast(inner.operands[0], n.shape, axes);
  }

  NodeId slice(const Node& n) {
    const Node x = def(n.operands[0]);
    const int axis = n.axes[0];
    const Dim length = n.shape[axis];
    if (x.shape == n.shape) return n.operands[0];
    if (x.op == Op::slice && x.axes[0] == axis) return b_->slice(x.operands[0], axis, x.offset + n.offset, length);
    if (x.op == Op::broadcast) {
      const auto place = ranges::find(x.axes, axis);
      if (place == x.axes.end()) return b_->broadcast(x.operands[0], n.shape, x.axes);
      const NodeId part = b_->slice(x.operands[0], static_cast<int>(place - x.axes.begin()), n.offset, length);
      return b_->broadcast(part, n.shape, x.axes);
    }
    if (x.op == Op::concat && x.axes[0] == axis) return slice_of_concat(n, x, length);
    return graph::none;
  }

  /// The part that the slice lies in, sliced; or the whole parts that it is made of.
  NodeId slice_of_concat(const Node& n, const Node& x, const Dim& length) {
    const int axis = n.axes[0];
    const auto d = static_cast<std::size_t>(axis);
    std::int64_t start = 0;  // of the part
    std::vector<NodeId> whole;
    Dim covered = Dim::constant(0);
    for (NodeId part : x.operands) {
      const Dim size = shape(part)[d];
      if (start <= n.offset && whole.empty()) {
        const Dim room = Dim::constant(start - n.offset) + size - length;  // from the slice's end to the part's
        if (size == length && start == n.offset) return part;
        if (room.known() && room.value() >= 0) return b_->slice(part, axis, n.offset - start, length);
      }
      if (start == n.offset || !whole.empty()) {
        whole.push_back(part);
        covered = covered + size;
        if (same_size(covered, length)) return b_->concat(whole, axis, length);
      }
      if (!size.known()) return graph::none;
      start += size.value();
    }
    return graph::none;
  }

  NodeId concat(const Node& n, NodeId old) {
    const int axis = n.axes[0];
    const auto d = static_cast<std::size_t>(axis);
    if (n.operands.size() == 1) {  // a dim of the same size may have another name
      const NodeId whole = n.operands[0];
      return shape(whole) == n.shape ? whole : b_->slice(whole, axis, 0, n.shape[d]);
    }
    // Slices that follow one another in one value are one slice of it.
    const Node first = def(n.operands[0]);
    if (first.op == Op::slice && first.axes[0] == axis) {
      Dim end = Dim::constant(first.offset);
      const bool joined = ranges::all_of(n.operands, [&](NodeId o) {
        const Node& part = def(o);
        if (part.op != Op::slice || part.axes[0] != axis || part.operands[0] != first.operands[0]) return false;
        const bool follows = same_size(Dim::constant(part.offset), end);
        end = end + part.shape[d];
        return follows;
      });
      if (joined) return b_->slice(first.operands[0], axis, first.offset, n.shape[d]);
    }
    // A concat that nobody else reads gives its parts to the concat around it.
    std::vector<NodeId> flat;
    for (const auto [k, o] : ranges::views::enumerate(n.operands)) {
      const Node& part = def(o);
      const bool own = part.op == Op::concat && part.axes[0] == axis && part.region == n.region;
      if (own && readers_[at(old_[old].operands[k])] == 1)
        flat.insert(flat.end(), part.operands.begin(), part.operands.end());
      else
        flat.push_back(o);
    }
    return flat.size() > n.operands.size() ? b_->concat(flat, axis, n.shape[d]) : graph::none;
  }

  NodeId reduce_sum(const Node& n) {
    if (n.axes.empty()) return n.operands[0];
    return is(n.operands[0], 0) ? spread(0, n.shape) : graph::none;
  }

  const Graph& old_;
  std::vector<int> readers_;  // of old nodes
  std::vector<bool> pinned_;  // old nodes that are yields or outputs
  std::optional<ValueNumbering> equal_;
  Builder* b_ = nullptr;
};

}  // namespace

Graph simplify(const Graph& graph) {
  Graph now = remove_dead(graph);
  std::string text = print(now);
  for (int round = 0; round < 100; ++round) {
    now = remove_dead(Round(now).run());
    std::string after = print(now);
    if (after == text) return now;
    text = std::move(after);
  }
  throw Error("simplification does not settle: two of its rules undo each other");
}

}  // namespace tessera::codegen
