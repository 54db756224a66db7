#include "codegen/passes/stepped.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <utility>
#include <vector>

#include "codegen/passes/decompose.hpp"
#include "codegen/passes/op.hpp"
#include "codegen/passes/rewrite.hpp"
#include "codegen/passes/subgraph.hpp"
#include "dsl/graph/builder.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;

namespace {

/// What a declaration has that no step can do.
struct Unsteppable {};

class Stepping {
 public:
  explicit Stepping(const Graph& declared) : old_(declared), axis_(declared.nodes.size(), same_at_all_) {}

  Graph run() {
    Graph g = rewrite(old_, [&](Builder& b, const Node& n, NodeId id) {
      b_ = &b;
      return step(n, id);
    });
    for (const graph::Output& o : old_.outputs)
      if (axis_[at(o.node)] != 1) throw Unsteppable{};
    for (const graph::Region& r : old_.regions)
      for (std::size_t k = 0; k < r.carries.size(); ++k)
        if (axis_[at(r.carries[k])] != axis_[at(r.yields[k])]) throw Unsteppable{};
    return remove_dead(std::move(g));
  }

 private:
  static constexpr int same_at_all_ = -1;  ///< of a node that no token changes

  static void demand(bool fits) {
    if (!fits) throw Unsteppable{};
  }
  static int axis_of(const std::vector<int>& letters, int letter) {
    const auto place = ranges::find(letters, letter);
    return place == letters.end() ? same_at_all_ : static_cast<int>(place - letters.begin());
  }
  int axis(NodeId old) const { return axis_[at(old)]; }
  bool varies(NodeId old) const { return axis(old) != same_at_all_; }

  /// `n`: with the operands of the new graph. What depends on no token stays whole, for whoever wants a row of it.
  NodeId step(Node n, NodeId id) {
    const Node& before = old_[id];
    int& along = axis_[at(id)];
    if (n.op == Op::input) {
      demand(n.name == "tokens" && n.type == graph::Type::integer && n.shape.size() == 2 && n.shape[1].known() &&
             n.shape[1].value() > 1);
      positions_ = n.shape[1];
      n.shape[1] = Dim::constant(1);
      const NodeId tokens = b_->append(n);
      position_ = b_->input("position", {Dim::constant(1)}, graph::Type::integer);
      along = 1;
      return tokens;
    }
    if (std::none_of(before.operands.begin(), before.operands.end(), [&](NodeId o) { return varies(o); }))
      return b_->append(n);
    const auto keeps = [&](int d) {
      along = d;
      n.shape[d] = Dim::constant(1);
      return b_->append(n);
    };
    const int of_first = axis(before.operands[0]);
    switch (n.op) {
      case Op::integers:
      case Op::one_hot:
      case Op::stop_gradient:
      case Op::carry:
      case Op::carry_out:
        return keeps(of_first);
      case Op::gather:
        demand(!varies(before.operands[0]));
        return keeps(axis(before.operands[1]));
      case Op::softmax:
      case Op::log_softmax:
      case Op::layer_norm:
        demand(varies(before.operands[0]) && !ranges::contains(n.axes, of_first));
        for (std::size_t k = 1; k < n.operands.size(); ++k) demand(!varies(before.operands[k]));
        return keeps(of_first);
      case Op::reduce_sum:
      case Op::reduce_max:
        demand(!ranges::contains(n.axes, of_first));
        return keeps(axis_of(other_axes(old_[before.operands[0]].shape.size(), n.axes), of_first));
      case Op::broadcast:
        return keeps(n.axes[of_first]);
      case Op::rearrange:
        return keeps(through(n.rearrangement, of_first));
      case Op::slice:
        if (n.axes[0] != of_first) return keeps(of_first);
        demand(n.offset == 0 && same_size(n.shape[of_first], positions_));  // another name for the positions
        along = of_first;
        return n.operands[0];
      case Op::concat:
        return keeps(alike(n, before, n.axes[0]));
      case Op::einsum:
        return einsum(n, id);
        TESSERA_ELEMENTWISE_OPS(TESSERA_OP_CASE)
        return keeps(alike(n, before, same_at_all_));
      case Op::parameter:
      case Op::table:
      case Op::arange:
      case Op::constant:
      case Op::extent:
      case Op::input:
      case Op::keep:
      case Op::cache:
      case Op::unfold:
      case Op::fold:
      case Op::gradient:
      case Op::cross_entropy:
      case Op::dropout:
        break;
    }
    throw Unsteppable{};
  }

  /// Operands of one shape: those that no token changes are cut to their row. The axis of the positions, which is not
  /// `but`.
  int alike(Node& n, const Node& before, int but) {
    int along = same_at_all_;
    for (const NodeId o : before.operands)
      if (varies(o)) {
        demand(along == same_at_all_ || along == axis(o));
        along = axis(o);
      }
    demand(along != but);
    for (std::size_t k = 0; k < n.operands.size(); ++k)
      if (!varies(before.operands[k]) && !b_->shape(n.operands[k]).empty()) n.operands[k] = row(n.operands[k], along);
    return along;
  }

  /// Row `position` of what has one for each along `axis`, in the new graph.
  NodeId row(NodeId id, int axis) {
    const Node x = b_->graph()[id];
    demand(same_size(x.shape[axis], positions_));
    if (x.op == Op::broadcast) {
      const auto place = ranges::find(x.axes, axis);
      const NodeId inner = x.operands[0];
      std::vector<Dim> shape = x.shape;
      shape[axis] = Dim::constant(1);
      return b_->broadcast(place == x.axes.end() ? inner : row(inner, static_cast<int>(place - x.axes.begin())), shape,
                           x.axes);
    }
    if (is_elementwise(x.op)) {
      Node one = x;
      one.shape[axis] = Dim::constant(1);
      for (NodeId& o : one.operands)
        if (!b_->shape(o).empty()) o = row(o, axis);
      return b_->append(one);
    }
    const auto dims = static_cast<int>(x.shape.size());
    std::vector<int> whole, one;
    for (int d = 0; d < dims; ++d) {
      whole.push_back(d);
      one.push_back(d == axis ? dims : d);
    }
    return b_->einsum({b_->one_hot(position_, x.shape[axis]), id}, {{dims, axis}, whole, one});
  }

  /// Where a whole dim of the left side stands on the right; it becomes one position there.
  static int through(graph::Rearrangement& r, int along) {
    const std::vector<int>& atoms = r.from[along];
    demand(atoms.size() == 1);
    r.atoms[atoms[0]] = Dim::constant(1);
    const auto to = ranges::find(r.to, atoms);
    demand(to != r.to.end());
    return static_cast<int>(to - r.to.begin());
  }

  NodeId einsum(Node& n, NodeId id) {
    const Node& before = old_[id];
    const std::vector<int>& result = before.letters.back();
    std::vector<int> letter;  // of the positions in each operand
    for (std::size_t k = 0; k < n.operands.size(); ++k)
      letter.push_back(varies(before.operands[k]) ? n.letters[k][axis(before.operands[k])] : same_at_all_);
    std::size_t from = 0;  // the operand whose positions the result goes by
    if (n.operands.size() == 2) {
      if (!varies(before.operands[0])) from = 1;
      const std::size_t other = 1 - from;
      if (varies(before.operands[other]) && letter[other] != letter[from]) {
        // The rows of one operand are read for each position of the other.
        const auto sums = [&](std::size_t k) { return !ranges::contains(result, letter[k]); };
        if (sums(from) || (!sums(other) && softmax_behind(id) == axis_of(result, letter[from]))) from = other;
        demand(!sums(from) && !ranges::contains(n.letters[1 - from], letter[from]));
        demand(sums(1 - from) ? hides_later(before.operands[from],
                                            {axis(before.operands[from]), axis_of(n.letters[from], letter[1 - from])})
                              : is_masked(id, {axis_of(result, letter[from]), axis_of(result, letter[1 - from])}));
        keep(n, before, 1 - from, letter[1 - from]);
      } else if (ranges::contains(n.letters[other], letter[from]) && !varies(before.operands[other])) {
        n.operands[other] = row(n.operands[other], axis_of(n.letters[other], letter[from]));
      }
    }
    demand(ranges::contains(result, letter[from]));
    const int along = axis_of(result, letter[from]);
    axis_[at(id)] = along;
    return b_->einsum(n.operands, n.letters);
  }

  /// Operand k becomes the cache of its rows; where these are the columns of the result, they are innermost there.
  void keep(Node& n, const Node& before, std::size_t k, int letter) {
    const int along = axis(before.operands[k]);
    const Dim rows = old_[before.operands[k]].shape[along];
    if (n.letters.back().back() != letter) {
      n.operands[k] = b_->cache(n.operands[k], position_, along, rows);
      return;
    }
    graph::Rearrangement r;
    std::vector<Dim> shape;
    std::vector<int> order, letters;
    for (int d = 0; d < static_cast<int>(n.letters[k].size()); ++d) {
      r.atoms.push_back(b_->shape(n.operands[k])[d]);
      r.from.push_back({d});
      if (d != along) order.push_back(d);
    }
    order.push_back(along);
    for (const int d : order) {
      r.to.push_back({d});
      shape.push_back(b_->shape(n.operands[k])[d]);
      letters.push_back(n.letters[k][d]);
    }
    const auto last = static_cast<int>(order.size()) - 1;
    n.operands[k] = b_->cache(b_->rearrange(n.operands[k], std::move(r), std::move(shape)), position_, last, rows);
    n.letters[k] = std::move(letters);
  }

  /// The axis of the softmax that, perhaps behind elementwise operations, normalises the value; -1: there is none.
  int softmax_behind(NodeId id) const {
    for (std::size_t i = at(id) + 1; i < old_.nodes.size(); ++i) {
      const Node& n = old_.nodes[i];
      if (!ranges::contains(n.operands, id)) continue;
      if (n.op == Op::softmax) return n.axes[0];
      if (is_elementwise(n.op) && n.shape == old_[id].shape)
        if (const int found = softmax_behind(static_cast<NodeId>(i)); found >= 0) return found;
    }
    return same_at_all_;
  }

  /// Whether softmaxes over the keys alone read the masked scores, and sums over the keys what these give: so that
  /// nothing depends on scores at later positions.
  bool only_weighs(NodeId masked, int keys) const {
    return all_readers(masked, [&](const Node& n, NodeId reader) {
      return n.op == Op::softmax && n.axes[0] == keys && only_summed(reader, keys);
    });
  }
  bool only_summed(NodeId weights, int keys) const {
    return all_readers(weights, [&](const Node& n, NodeId reader) {
      if (n.op == Op::multiply) return n.shape == old_[weights].shape && only_summed(reader, keys);
      if (n.op != Op::einsum) return false;
      for (std::size_t k = 0; k < n.operands.size(); ++k)
        if (n.operands[k] == weights && ranges::contains(n.letters.back(), n.letters[k][keys])) return false;
      return true;
    });
  }
  template <class F>
  bool all_readers(NodeId id, const F& fits) const {
    for (std::size_t i = at(id) + 1; i < old_.nodes.size(); ++i)
      if (ranges::contains(old_.nodes[i].operands, id) && !fits(old_.nodes[i], static_cast<NodeId>(i))) return false;
    return !ranges::contains(old_.outputs, id, &graph::Output::node);
  }

  /// Whether whatever reads the scores reads them behind a mask. `axes`: of queries and keys.
  bool is_masked(NodeId id, const std::vector<int>& axes) const {
    bool read = false;
    for (std::size_t i = at(id) + 1; i < old_.nodes.size(); ++i) {
      const Node& n = old_.nodes[i];
      if (!ranges::contains(n.operands, id)) continue;
      read = true;
      if (!is_elementwise(n.op)) return false;
      const auto reader = static_cast<NodeId>(i);
      const bool masks = is_causal_select(n, axes) && n.operands[1] == id;
      if (masks ? !only_weighs(reader, axes[1]) : !is_masked(reader, axes)) return false;
    }
    return read;
  }

  /// Whether this is 0 at all later positions: a softmax over the keys behind a mask, perhaps times something.
  bool hides_later(NodeId id, const std::vector<int>& axes) const {
    const Node& n = old_[id];
    if (n.op == Op::multiply) return hides_later(n.operands[0], axes) || hides_later(n.operands[1], axes);
    return n.op == Op::softmax && n.axes[0] == axes[1] && is_causal_select(old_[n.operands[0]], axes);
  }

  /// A select by a mask that is 0 where the key stands behind the query's position, and the lowest number there.
  bool is_causal_select(const Node& n, const std::vector<int>& axes) const {
    if (n.op != Op::select) return false;
    NodeId hidden = n.operands[2];
    if (old_[hidden].op == Op::broadcast) hidden = old_[hidden].operands[0];
    if (old_[hidden].op != Op::constant || old_[hidden].value > -1e30) return false;
    NodeId mask = n.operands[0];
    std::vector<int> of_mask{0, 1};
    if (old_[mask].op == Op::broadcast) {
      of_mask = old_[mask].axes;
      mask = old_[mask].operands[0];
    }
    const std::vector<Dim>& shape = old_[mask].shape;
    return of_mask == axes && same_size(shape[0], positions_) && same_size(shape[1], positions_) && is_causal(mask);
  }

  /// Whether a mask [positions, positions] is 0, or less, where the key comes after the query.
  bool is_causal(NodeId mask) const {
    const std::int64_t last = positions_.value() - 1;
    if (old_[mask].op == Op::table) {
      for (std::int64_t i = 0; i < last; ++i)
        for (std::int64_t j = i + 1; j <= last; ++j)
          if (old_[mask].data[static_cast<std::size_t>(i * (last + 1) + j)] > 0) return false;
      return true;
    }
    const std::optional<Linear> f = linear(old_[mask].op == Op::step ? old_[mask].operands[0] : mask, {0, 1});
    // A linear function is largest at a corner of the triangle of later keys.
    for (const auto& [i, j] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {0, last}, {last - 1, last}})
      if (!f || f->number + f->of[0] * static_cast<double>(i) + f->of[1] * static_cast<double>(j) > 0) return false;
    return true;
  }

  /// number + of[0] * query + of[1] * key
  struct Linear {
    double number = 0;
    std::array<double, 2> of{};
  };
  /// A value whose dims are those axes, 0 the queries and 1 the keys; none where it is no linear function of the two.
  std::optional<Linear> linear(NodeId id, const std::vector<int>& axes) const {
    const Node& n = old_[id];
    if (n.op == Op::constant) return Linear{n.value};
    if (n.op == Op::arange) {
      Linear place;
      place.of[at(axes[0])] = 1;
      return place;
    }
    if (n.op == Op::broadcast) {
      std::vector<int> inner;
      for (const int axis : n.axes) inner.push_back(axes[at(axis)]);
      return linear(n.operands[0], inner);
    }
    if (n.op != Op::add && n.op != Op::subtract) return std::nullopt;
    std::optional<Linear> sum = linear(n.operands[0], axes);
    const std::optional<Linear> other = linear(n.operands[1], axes);
    if (!sum || !other) return std::nullopt;
    const double sign = n.op == Op::add ? 1 : -1;
    sum->number += sign * other->number;
    for (std::size_t k = 0; k < 2; ++k) sum->of[k] += sign * other->of[k];
    return sum;
  }

  const Graph& old_;
  std::vector<int> axis_;  ///< by old node: along which the tokens' positions lie
  Dim positions_ = Dim::constant(1);
  NodeId position_ = graph::none;
  Builder* b_ = nullptr;
};

}  // namespace

std::optional<Graph> stepped(const Graph& declared) {
  const bool gives = ranges::contains(declared.outputs, "outputs", &graph::Output::name);
  if (!gives) return std::nullopt;
  const Graph forward = subgraph(without_dropout(declared), {"outputs"});
  const bool reads = std::any_of(forward.nodes.begin(), forward.nodes.end(),
                                 [](const Node& n) { return n.op == Op::input && n.name == "tokens"; });
  if (!reads) return std::nullopt;
  try {
    return Stepping(forward).run();
  } catch (const Unsteppable&) {
    return std::nullopt;
  }
}

}  // namespace tessera::codegen
