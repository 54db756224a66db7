#include "codegen/passes/dead_slices.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "codegen/passes/op.hpp"
#include "codegen/passes/rewrite.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Output;
using graph::Region;

namespace {

/// How often each node is read; by yields and outputs as well.
std::vector<int> readers_of(const Graph& graph) {
  std::vector<int> readers(graph.nodes.size(), 0);
  for (const Node& n : graph.nodes)
    for (NodeId o : n.operands) ++readers[at(o)];
  for (const Region& r : graph.regions)
    for (NodeId id : r.yields) ++readers[at(id)];
  for (const Output& o : graph.outputs) ++readers[at(o.node)];
  return readers;
}

/// One pass over the nodes: every slice moves past the op whose result it alone reads; equal slices become one.
class Sinking {
 public:
  explicit Sinking(const Graph& old) : old_(old), readers_(readers_of(old)) {}

  /// The graph after the pass; nothing where no slice moved.
  std::optional<Graph> run() {
    Graph graph = rewrite(old_, [&](Builder& b, const Node& n, NodeId old) {
      b_ = &b;
      if (n.op != Op::slice || !n.shape[n.axes[0]].known()) return b.append(n);
      if (readers_[at(old_[old].operands[0])] == 1)
        if (const NodeId id = past(b.graph()[n.operands[0]], n); id != graph::none) {
          moved_ = true;
          return id;
        }
      return part(n.operands[0], n, n.axes[0]);
    });
    if (!moved_) return std::nullopt;
    return remove_dead(std::move(graph));
  }

 private:
  /// The slice's range of another value, along `axis`.
  NodeId part(NodeId x, const Node& slice, int axis) {
    const Dim length = slice.shape[slice.axes[0]];
    if (b_->shape(x)[axis] == length && slice.offset == 0) return x;
    auto [known, fresh] = parts_.try_emplace({x, axis, slice.offset, length.value(), b_->region}, graph::none);
    if (fresh) known->second = b_->slice(x, axis, slice.offset, length);
    return known->second;
  }

  /// `x` of sliced operands, in the place of the slice of `x`; graph::none where that cannot be.
  NodeId past(Node x, const Node& slice) {
    const int axis = slice.axes[0];
    const auto d = static_cast<std::size_t>(axis);
    if (x.region != slice.region) return graph::none;
    b_->stand_for(x);
    const auto sliced = [&](std::initializer_list<std::size_t> operands, int along) {
      for (std::size_t k : operands) x.operands[k] = part(x.operands[k], slice, along);
      x.shape[d] = slice.shape[d];
      return b_->append(x);
    };
    if (is_elementwise(x.op)) {
      for (NodeId& o : x.operands) o = part(o, slice, axis);
      return sliced({}, axis);
    }
    switch (x.op) {
      case Op::broadcast: {
        const auto place = ranges::find(x.axes, axis);
        if (place == x.axes.end()) return sliced({}, axis);
        return sliced({0}, static_cast<int>(place - x.axes.begin()));
      }
      case Op::integers:
      case Op::stop_gradient:
        return sliced({0}, axis);
      case Op::softmax:
      case Op::log_softmax:
      case Op::layer_norm:
        return ranges::contains(x.axes, axis) ? graph::none : sliced({0}, axis);
      case Op::dropout: {
        if (!ranges::contains(x.axes, axis)) return sliced({0}, axis);
        // The factors are drawn for the whole value: each keeps its place among them. They are the dropout of ones.
        if (b_->graph()[x.operands[0]].op == Op::broadcast) return graph::none;
        const NodeId kept = part(x.operands[0], slice, axis);
        x.operands = {b_->broadcast(b_->constant(1), x.shape, {})};
        return b_->multiply(kept, part(b_->append(x), slice, axis));
      }
      case Op::reduce_sum:
      case Op::reduce_max: {
        const std::vector<int> left = other_axes(b_->shape(x.operands[0]).size(), x.axes);
        return sliced({0}, left[d]);
      }
      case Op::concat: {
        if (x.axes[0] == axis) return graph::none;
        for (NodeId& o : x.operands) o = part(o, slice, axis);
        return sliced({}, axis);
      }
      case Op::unfold: {
        const std::int64_t step = axis == x.axes[0] ? x.dilation : axis == x.axes[0] + 1 ? x.stride : 0;
        if (step == 0) x.operands[0] = part(x.operands[0], slice, axis - (axis > x.axes[0] ? 1 : 0));
        x.offset += slice.offset * step;
        return sliced({}, axis);
      }
      case Op::rearrange:
        return past_rearrangement(x, slice);
      case Op::einsum:
        return past_einsum(x, slice);
      case Op::one_hot:
      case Op::slice:
      case Op::fold:
      case Op::cache:
      case Op::cross_entropy:
      case Op::gather:
      case Op::gradient:
        TESSERA_ELEMENTWISE_OPS(TESSERA_OP_CASE)
        TESSERA_LEAF_OPS(TESSERA_OP_CASE)
        TESSERA_REGION_OPS(TESSERA_OP_CASE)
        break;
    }
    return graph::none;
  }

  /// Where the dim is a whole one of the operand's, split by nothing and merged with nothing.
  NodeId past_rearrangement(Node& x, const Node& slice) {
    const auto d = static_cast<std::size_t>(slice.axes[0]);
    const std::vector<int>& atoms = x.rearrangement.to[d];
    if (atoms.size() != 1) return graph::none;
    const auto from = ranges::find(x.rearrangement.from, atoms);
    if (from == x.rearrangement.from.end()) return graph::none;
    x.rearrangement.atoms[atoms[0]] = slice.shape[d];
    x.operands[0] = part(x.operands[0], slice, static_cast<int>(from - x.rearrangement.from.begin()));
    x.shape[d] = slice.shape[d];
    return b_->append(x);
  }

  /// Where all that has to be sliced belongs to an image: parameters are read whole.
  NodeId past_einsum(Node& x, const Node& slice) {
    const int letter = x.letters.back()[slice.axes[0]];
    for (std::size_t k = 0; k < x.operands.size(); ++k) {
      const auto count = std::count(x.letters[k].begin(), x.letters[k].end(), letter);
      if (count > 1 || (count && !grows(b_->graph()[x.operands[k]]))) return graph::none;
    }
    for (std::size_t k = 0; k < x.operands.size(); ++k) {
      const auto place = ranges::find(x.letters[k], letter);
      if (place != x.letters[k].end())
        x.operands[k] = part(x.operands[k], slice, static_cast<int>(place - x.letters[k].begin()));
    }
    return b_->einsum(x.operands, x.letters);
  }

  const Graph& old_;
  std::vector<int> readers_;  // of old nodes
  /// By value, axis, offset, length and region.
  std::map<std::tuple<NodeId, int, std::int64_t, std::int64_t, int>, NodeId> parts_;
  bool moved_ = false;
  Builder* b_ = nullptr;
};

/// Takes the last layer of a repeated block out of its region.
class Peeling {
 public:
  Peeling(const Graph& old, int region) : old_(old), region_(region), new_(old.nodes.size(), graph::none) {
    for (const Node& n : old.nodes)
      if (n.op == Op::dropout) dropouts_ = std::max(dropouts_, n.offset + 1);
  }

  Graph run() {
    Graph graph = rewrite(old_, [&](Builder& b, const Node& n, NodeId old) {
      const bool ends = n.op == Op::carry_out && old_[old_[old].operands[0]].region == region_;
      return new_[at(old)] = ends ? yielded(b, old_[old].operands[0]) : b.append(n);
    });
    --graph.regions[region_].count;
    return remove_dead(std::move(graph));
  }

 private:
  const Region& layers() const { return old_.regions[region_]; }

  /// What the last layer yields for a carry.
  NodeId yielded(Builder& b, NodeId carry) {
    if (last_.empty()) append_layer(b);
    const auto k = ranges::find(layers().carries, carry) - layers().carries.begin();
    return last_.at(layers().yields[k]);
  }

  void append_layer(Builder& b) {
    const std::string path = b.path;
    for (std::size_t i = 0; i < old_.nodes.size(); ++i) {
      Node n = old_.nodes[i];
      if (n.region != region_) continue;
      n.region = 0;
      b.path = n.path = of_layer(n.path, layers().count - 1);
      if (n.op == Op::carry) {
        const NodeId entry = new_[at(n.operands[0])];
        n.op = Op::carry_out;
        n.operands = {new_[i]};
        last_[static_cast<NodeId>(i)] = layers().count == 1 ? entry : b.append(n);
        continue;
      }
      if (n.op == Op::parameter) n.name = of_layer(n.name, layers().count - 1);
      if (n.op == Op::dropout) n.offset = dropouts_++;
      for (NodeId& o : n.operands) o = old_[o].region == region_ ? last_.at(o) : new_[at(o)];
      last_[static_cast<NodeId>(i)] = b.append(n);
    }
    b.path = path;
  }

  const Graph& old_;
  const int region_;
  std::vector<NodeId> new_;        // by old node
  std::map<NodeId, NodeId> last_;  // by old node of the region: the last layer's
  std::int64_t dropouts_ = 0;
};

/// A region whose last layer is worth a text of its own: at most half of something it yields is read, by a slice.
std::optional<int> find_peelable(const Graph& graph, const std::set<std::string>& peeled) {
  const std::vector<int> readers = readers_of(graph);
  for (const Node& n : graph.nodes) {
    if (n.op != Op::slice || readers[at(n.operands[0])] != 1) continue;
    const Node& x = graph[n.operands[0]];
    if (x.op != Op::carry_out) continue;
    const auto d = static_cast<std::size_t>(n.axes[0]);
    const int region = graph[x.operands[0]].region;
    const bool read = ranges::any_of(graph.outputs, [&](const Output& o) { return graph[o.node].region == region; });
    if (!read && !peeled.contains(graph.regions[region].path) && n.shape[d].known() && x.shape[d].known() &&
        2 * n.shape[d].value() <= x.shape[d].value())
      return region;
  }
  return std::nullopt;
}

/// Every layer counted.
int parameters(const Graph& graph) {
  int count = 0;
  for (const Node& n : graph.nodes)
    if (n.op == Op::parameter) count += graph.regions[n.region].count;
  return count;
}

}  // namespace

Graph eliminate_dead_slices(const Graph& graph) {
  Graph now = graph;
  std::set<std::string> peeled;  // by path: one layer of each is enough text
  while (true) {
    if (std::optional<Graph> sunk = Sinking(now).run()) {
      now = std::move(*sunk);
    } else if (const std::optional<int> region = find_peelable(now, peeled)) {
      peeled.insert(now.regions[*region].path);
      now = Peeling(now, *region).run();
    } else {
      break;
    }
  }
  // A parameter that nothing depends on is for the differentiation to complain about.
  return parameters(now) == parameters(graph) ? now : graph;
}

}  // namespace tessera::codegen
