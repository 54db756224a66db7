#include "codegen/passes/row_sums.hpp"

#include <map>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find.hpp>
#include <vector>

#include "codegen/passes/op.hpp"
#include "codegen/passes/rewrite.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;

namespace {

/// A sum over rows of P dP: dO and O, the dims of both that are summed in their place, and which of the dims that are
/// left each dim of the sum is.
struct Factors {
  NodeId gradient, outputs;
  std::vector<int> axes, order;
};

class RowSums {
 public:
  RowSums(const Graph& graph, std::int64_t large) : graph_(graph), large_(large) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      if (is_product(graph.nodes[i]))
        for (const NodeId o : graph.nodes[i].operands) products_[o].push_back(static_cast<NodeId>(i));
  }

  Graph run() {
    return rewrite(graph_, [&](Builder& b, const Node& n, NodeId old) {
      const Factors found = factors_of(old);
      if (found.outputs == graph::none) return new_[old] = b.append(n);
      const NodeId product = b.multiply(new_.at(found.gradient), new_.at(found.outputs));
      return new_[old] = permuted(b, b.reduce(Op::reduce_sum, product, found.axes), found.order);
    });
  }

 private:
  static bool is_product(const Node& n) { return n.op == Op::einsum && n.operands.size() == 2; }

  Factors factors_of(NodeId sum) const {
    const Node& n = graph_[sum];
    const Factors none{graph::none, graph::none, {}, {}};
    if (n.op != Op::reduce_sum || graph_[n.operands[0]].op != Op::multiply) return none;
    const std::vector<NodeId>& of = graph_[n.operands[0]].operands;
    for (const std::size_t p : {0, 1})
      if (is_product(graph_[of[1 - p]]))
        for (const std::size_t v : {0, 1})
          if (const Factors found = factors_of(sum, of[p], of[1 - p], v); found.outputs != graph::none) return found;
    return none;
  }

  /// That of P and of dP, whose operand `v` is V.
  Factors factors_of(NodeId sum, NodeId weights, NodeId changes, std::size_t v) const {
    const Factors none{graph::none, graph::none, {}, {}};
    const Node& product = graph_[changes];
    const int region = graph_[sum].region;
    if (size_of_image(graph_[weights]) < large_ || product.region != region) return none;
    const NodeId values = product.operands[v], gradient = product.operands[1 - v];
    const auto readers = products_.find(weights);
    for (const NodeId outputs : readers == products_.end() ? std::vector<NodeId>{} : readers->second) {
      const Node& mix = graph_[outputs];
      const std::size_t p = mix.operands[0] == weights ? 0 : 1;
      const bool readable = mix.region == region || mix.region == graph_.regions[region].mirror;
      if (outputs > sum || !readable || mix.operands[1 - p] != values || mix.shape != graph_[gradient].shape ||
          size_of_image(mix) >= size_of_image(graph_[weights]))
        continue;
      // The letters of O = P V, by those of dP = dO V^T: all three tensors have to agree in them.
      std::map<int, int> letters, back;
      const auto agree = [&](const std::vector<int>& from, const std::vector<int>& to) {
        bool same = from.size() == to.size();
        for (std::size_t i = 0; same && i < from.size(); ++i)
          same = letters.try_emplace(from[i], to[i]).first->second == to[i] &&
                 back.try_emplace(to[i], from[i]).first->second == from[i];
        return same;
      };
      const std::vector<int>&of_weights = mix.letters[p], &of_values = mix.letters[1 - p], &of_outputs = mix.letters[2];
      if (!agree(product.letters[2], of_weights) || !agree(product.letters[v], of_values) ||
          !agree(product.letters[1 - v], of_outputs))
        continue;
      // What is summed over is what O's product sums over, so that all else of P stands in O.
      std::vector<int> left;
      bool right = true;
      for (std::size_t d = 0; d < of_weights.size(); ++d) {
        const bool summed = ranges::contains(graph_[sum].axes, static_cast<int>(d));
        right = right && summed != ranges::contains(of_outputs, of_weights[d]);
        if (!summed) left.push_back(of_weights[d]);
      }
      for (const int letter : of_values)
        right = right && (ranges::contains(of_outputs, letter) || ranges::contains(of_weights, letter));
      Factors found{gradient, outputs, {}, {}};
      std::vector<int> kept;
      for (std::size_t d = 0; d < of_outputs.size(); ++d)
        if (ranges::contains(left, of_outputs[d]))
          kept.push_back(of_outputs[d]);
        else
          found.axes.push_back(static_cast<int>(d));
      for (const int letter : left) found.order.push_back(static_cast<int>(ranges::find(kept, letter) - kept.begin()));
      if (right && !found.axes.empty()) return found;
    }
    return none;
  }

  const Graph& graph_;
  const std::int64_t large_;
  std::map<NodeId, std::vector<NodeId>> products_;  ///< einsums of two operands, by each of them
  std::map<NodeId, NodeId> new_;
};

}  // namespace

Graph take_row_sums_of_outputs(const Graph& graph, std::int64_t large) {
  return remove_dead(RowSums(graph, large).run());
}

}  // namespace tessera::codegen
