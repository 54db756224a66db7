#include "codegen/passes/recompute.hpp"

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
  explicit Recomputer(const Graph& graph)
      : graph_(graph), kept_(graph.nodes.size(), false), again_(graph.nodes.size(), false) {
    for (const Node& n : graph.nodes)
      for (NodeId o : n.operands) kept_[at(o)] = kept_[at(o)] || crosses(n, o);
    // Ascending: what a value is made of has been decided before the value.
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      again_[i] = kept_[i] && grows(graph.nodes[i]) && is_pointwise(graph.nodes[i].op) && sources_stay(graph.nodes[i]);
  }

  Graph run() {
    return rewrite(graph_, [&](Builder& b, Node n, NodeId old) {
      for (std::size_t k = 0; k < n.operands.size(); ++k) {
        const NodeId o = graph_[old].operands[k];
        if (!again_[at(o)] || !crosses(graph_[old], o)) continue;
        auto [clone, fresh] = clones_.try_emplace({n.region, o}, graph::none);
        if (fresh) clone->second = b.unary(Op::copy, clone_of(b, o));
        n.operands[k] = clone->second;
      }
      return new_[old] = b.append(std::move(n));
    });
  }

 private:
  /// Whether a node of a backward region reads a value of the forward pass.
  bool crosses(const Node& reader, NodeId o) const {
    const int mirror = graph_.regions[static_cast<std::size_t>(reader.region)].mirror;
    return mirror != graph::none && graph_[o].region == mirror;
  }
  bool stays(NodeId id) const { return graph_[id].op == Op::parameter || (kept_[at(id)] && !again_[at(id)]); }

  /// Whether all that a pointwise node is made of, perhaps through others, can be read in the backward pass.
  bool sources_stay(const Node& n) const {
    for (NodeId o : n.operands) {
      const Node& source = graph_[o];
      if (source.region != n.region) return false;
      if (stays(o) || source.op == Op::constant) continue;
      if (!is_pointwise(source.op) && source.op != Op::broadcast) return false;
      if (!sources_stay(source)) return false;
    }
    return true;
  }

  /// The node in the region where the builder stands.
  NodeId clone_of(Builder& b, NodeId id) {
    Node n = graph_[id];
    n.region = b.region;
    for (NodeId& o : n.operands) o = stays(o) ? new_.at(o) : clone_of(b, o);
    return b.append(std::move(n));
  }

  const Graph& graph_;
  std::vector<bool> kept_;   ///< by node: the backward pass reads it
  std::vector<bool> again_;  ///< by node: and computes it again
  std::map<NodeId, NodeId> new_;
  std::map<std::pair<int, NodeId>, NodeId> clones_;
};

}  // namespace

Graph recompute(const Graph& graph) { return Recomputer(graph).run(); }

}  // namespace tessera::codegen
