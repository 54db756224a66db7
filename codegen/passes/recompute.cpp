#include "codegen/passes/recompute.hpp"

#include <algorithm>
#include <map>

#include "codegen/passes/op.hpp"
#include "codegen/passes/rewrite.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;

namespace {

class Recomputer {
 public:
  Recomputer(const Graph& graph, std::int64_t large)
      : graph_(graph), large_(large), kept_(graph.nodes.size(), false), again_(graph.nodes.size(), false) {
    for (const graph::Output& o : graph.outputs)
      if (o.kind == graph::Output::Kind::loss) loss_ = o.node;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      for (NodeId o : graph.nodes[i].operands) kept_[at(o)] = kept_[at(o)] || crosses(static_cast<NodeId>(i), o);
    // Ascending: what a value is made of has been decided before the value.
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& n = graph.nodes[i];
      if (!kept_[i] || !grows(n) || !is_elementwise(n.op)) continue;
      std::vector<NodeId> of_rows;
      std::int64_t more = 0;  // to keep
      again_[i] = sources_stay(n, of_rows);
      for (NodeId o : of_rows) more += kept_[at(o)] ? 0 : size_of_image(graph[o]);
      again_[i] = again_[i] && (more == 0 || 2 * more < size_of_image(n));
      if (again_[i])
        for (NodeId o : of_rows) kept_[at(o)] = true;
    }
  }

  Graph run() {
    return rewrite(graph_, [&](Builder& b, Node n, NodeId old) {
      for (std::size_t k = 0; k < n.operands.size(); ++k) {
        const NodeId o = graph_[old].operands[k];
        if (!again_[at(o)] || !crosses(old, o)) continue;
        auto [clone, fresh] = clones_.try_emplace({n.region, o}, graph::none);
        if (fresh) clone->second = b.unary(Op::copy, clone_of(b, o));
        n.operands[k] = clone->second;
      }
      return new_[old] = b.append(std::move(n));
    });
  }

 private:
  /// Whether a node of the backward pass reads a value of the forward pass: of the region that its own mirrors or,
  /// outside of all regions, of what comes before the loss.
  bool crosses(NodeId reader, NodeId o) const {
    const int region = graph_[reader].region, mirror = graph_.regions[region].mirror;
    if (mirror != graph::none) return graph_[o].region == mirror;
    return region == 0 && graph_[o].region == 0 && loss_ != graph::none && reader > loss_ && o <= loss_;
  }
  bool stays(NodeId id) const { return graph_[id].op == Op::parameter || (kept_[at(id)] && !again_[at(id)]); }

  /// Whether all that a node is made of, perhaps through others, can be read in the backward pass. What has been found
  /// of rows, as a softmax' largest score and its sum, can where it is kept from now on.
  bool sources_stay(const Node& n, std::vector<NodeId>& of_rows) const {
    for (NodeId o : n.operands) {
      const Node& source = graph_[o];
      if (source.region != n.region) return false;
      if (stays(o) || source.op == Op::constant) continue;
      if (is_reduction(source.op) && grows(source)) {
        of_rows.push_back(o);
        continue;
      }
      const bool view =
          source.op == Op::broadcast || source.op == Op::rearrange || source.op == Op::slice || source.op == Op::unfold;
      if (!view && !is_elementwise(source.op) && !is_outer(source)) return false;
      if (!sources_stay(source, of_rows)) return false;
    }
    return true;
  }

  /// Whether a node is a large product of two of an image's values: larger than both together, as scores are.
  bool is_outer(const Node& n) const {
    if (n.op != Op::einsum) return false;
    std::int64_t factors = 0;
    for (NodeId o : n.operands) {
      if (!grows(graph_[o])) return false;
      factors += size_of_image(graph_[o]);
    }
    return size_of_image(n) > std::max(factors, large_);
  }

  /// The node in the region where the builder stands.
  NodeId clone_of(Builder& b, NodeId id) {
    Node n = graph_[id];
    n.region = b.region;
    for (NodeId& o : n.operands) o = stays(o) ? new_.at(o) : clone_of(b, o);
    return b.append(std::move(n));
  }

  const Graph& graph_;
  std::int64_t large_;
  NodeId loss_ = graph::none;
  std::vector<bool> kept_;   ///< by node: the backward pass reads it
  std::vector<bool> again_;  ///< by node: and computes it again
  std::map<NodeId, NodeId> new_;
  std::map<std::pair<int, NodeId>, NodeId> clones_;
};

}  // namespace

Graph recompute(const Graph& graph, std::int64_t large) { return Recomputer(graph, large).run(); }

}  // namespace tessera::codegen
