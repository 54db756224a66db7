#include "codegen/passes/canonical_order.hpp"

#include "codegen/passes/op.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Output;
using graph::Region;

namespace {

class Orderer {
 public:
  explicit Orderer(const Graph& graph)
      : graph_(graph), seen_(graph.nodes.size(), false), number_(graph.regions.size(), graph::none) {
    number_[0] = 0;
  }

  Graph run() {
    leaves(0, order_);
    for (const Output& o : graph_.outputs) {
      if (graph_[o.node].region == 0)
        visit(o.node);
      else
        place_region(graph_[o.node].region);
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].region == 0) visit(static_cast<NodeId>(i));
    for (std::size_t r = 1; r < graph_.regions.size(); ++r) place_region(static_cast<int>(r));
    return reordered();
  }

 private:
  static bool is_leaf(const Node& n) { return n.op == Op::input || n.op == Op::parameter; }

  void leaves(int region, std::vector<NodeId>& order) {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].region == region && is_leaf(graph_.nodes[i]) && !seen_[i]) {
        seen_[i] = true;
        order.push_back(static_cast<NodeId>(i));
      }
  }

  /// A node of the top level, after what it needs.
  void visit(NodeId id) {
    if (seen_[at(id)]) return;
    seen_[at(id)] = true;
    const Node& n = graph_[id];
    if (n.op == Op::carry_out)
      place_region(graph_[n.operands[0]].region);
    else
      for (NodeId o : n.operands) visit(o);
    order_.push_back(id);
  }

  /// A node of region r into `body`, after what it needs of the region; what it needs of the top level goes before.
  void visit_inside(NodeId id, int r, std::vector<NodeId>& body) {
    const int region = graph_[id].region;
    if (region == 0) visit(id);
    if (region != r || seen_[at(id)]) return;
    seen_[at(id)] = true;
    for (NodeId o : graph_[id].operands) visit_inside(o, r, body);
    body.push_back(id);
  }

  void place_region(int r) {
    if (number_[r] != graph::none) return;
    const Region& region = graph_.regions[r];
    if (region.mirror != graph::none) place_region(region.mirror);
    number_[r] = 0;  // under way
    std::vector<NodeId> body;
    leaves(r, body);
    for (NodeId carry : region.carries) visit_inside(carry, r, body);
    for (NodeId yield : region.yields) visit_inside(yield, r, body);
    for (const Output& o : graph_.outputs) visit_inside_if(o.node, r, body);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) visit_inside_if(static_cast<NodeId>(i), r, body);
    number_[r] = ++regions_;
    order_.insert(order_.end(), body.begin(), body.end());
  }
  void visit_inside_if(NodeId id, int r, std::vector<NodeId>& body) {
    if (graph_[id].region == r) visit_inside(id, r, body);
  }

  Graph reordered() const {
    std::vector<NodeId> map(graph_.nodes.size(), graph::none);
    for (std::size_t i = 0; i < order_.size(); ++i) map[at(order_[i])] = static_cast<NodeId>(i);
    auto rename = [&](NodeId& id) {
      if (id != graph::none) id = map[at(id)];
    };
    Graph result = graph_;
    std::int64_t dropouts = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      Node n = graph_[order_[i]];
      for (NodeId& o : n.operands) rename(o);
      n.region = number_[n.region];
      if (n.op == Op::dropout) n.offset = dropouts++;
      result.nodes[i] = std::move(n);
    }
    for (std::size_t r = 0; r < graph_.regions.size(); ++r) {
      Region region = graph_.regions[r];
      for (NodeId& id : region.carries) rename(id);
      for (NodeId& id : region.yields) rename(id);
      if (region.mirror != graph::none) region.mirror = number_[region.mirror];
      result.regions[number_[r]] = std::move(region);
    }
    for (Output& o : result.outputs) {
      rename(o.node);
      rename(o.parameter);
    }
    return result;
  }

  const Graph& graph_;
  std::vector<NodeId> order_;
  std::vector<bool> seen_;
  std::vector<int> number_;  // new number of each region
  int regions_ = 0;
};

}  // namespace

Graph canonical_order(const Graph& graph) { return Orderer(graph).run(); }

}  // namespace tessera::codegen
