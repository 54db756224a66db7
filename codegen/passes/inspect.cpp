#include "codegen/passes/inspect.hpp"

#include <fmt/format.h>

#include <map>
#include <range/v3/algorithm/contains.hpp>
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

/// Whether some einsum sums over the softmax's axis.
bool weighs_values(const Graph& graph, NodeId softmax) {
  const auto axis = static_cast<std::size_t>(graph[softmax].axes[0]);
  for (const Node& n : graph.nodes) {
    if (n.op != Op::einsum) continue;
    for (std::size_t k = 0; k < n.operands.size(); ++k)
      if (n.operands[k] == softmax && !ranges::contains(n.letters.back(), n.letters[k][axis])) return true;
  }
  return false;
}

namespace {

/// Whether a node computes numbers for each image, and does not just move them or stand for what was computed before.
bool computes(const Node& n) {
  const OpClass of = row_of(n.op).of;
  if (of == OpClass::leaf || of == OpClass::structure || of == OpClass::region || n.op == Op::copy) return false;
  return n.type == graph::Type::real && grows(n);
}

std::vector<Output> attention_maps(const Graph& graph) {
  std::vector<Output> maps;
  std::map<int, int> in_region;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    const auto id = static_cast<NodeId>(i);
    const bool shaped = n.shape.size() == 3 || n.shape.size() == 4;
    if (n.op != Op::softmax || !shaped || n.axes[0] + 1 != static_cast<int>(n.shape.size()) ||
        !weighs_values(graph, id))
      continue;
    if (!maps.empty() && n.region == 0 && graph[maps.front().node].region != 0) continue;  // that of a pooling
    if (!maps.empty()) {
      const Node& first = graph[maps.front().node];
      if ((first.region == 0) != (n.region == 0) || first.shape != n.shape) return {};
    }
    ++in_region[n.region];
    maps.push_back({Output::Kind::value, fmt::format("attention.{}", maps.size()), id, graph::none});
  }
  for (const auto& [region, count] : in_region)
    if (count != in_region.begin()->second) return {};
  return maps;
}

/// The mean of |x| of each image.
NodeId magnitude(Builder& b, NodeId x) {
  std::vector<int> axes;
  std::int64_t count = 1;
  for (std::size_t d = 1; d < b.shape(x).size(); ++d) {
    axes.push_back(static_cast<int>(d));
    count *= b.shape(x)[d].value();
  }
  const NodeId size = b.binary(Op::maximum, x, b.unary(Op::negate, x));
  if (axes.empty()) return size;
  // A statement each: compilers differ in which argument they evaluate first, and so in how nodes would be numbered.
  const NodeId share = b.constant(1.0 / static_cast<double>(count));
  const NodeId sum = b.reduce(Op::reduce_sum, size, axes);
  return b.multiply(sum, share);
}

}  // namespace

bool is_attention(const std::string& output) { return output.starts_with("attention."); }

Graph inspected(const Graph& graph) {
  // The last node that computes in each run of nodes of one module.
  std::vector<bool> last(graph.nodes.size(), false);
  const Node* before = nullptr;
  std::size_t where = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    if (!computes(n)) continue;
    if (before && before->path == n.path && before->region == n.region) last[where] = false;
    last[i] = true;
    before = &n;
    where = i;
  }
  Graph read = graph;
  read.outputs = attention_maps(graph);
  std::vector<Output> magnitudes;
  Graph result = rewrite(read, [&](Builder& b, const Node& n, NodeId old) {
    const NodeId id = b.append(n);
    if (last[at(old)])
      magnitudes.push_back(
          {Output::Kind::value, fmt::format("magnitude.{}", magnitudes.size()), magnitude(b, id), graph::none});
    return id;
  });
  result.outputs.insert(result.outputs.end(), magnitudes.begin(), magnitudes.end());
  return remove_dead(std::move(result));
}

}  // namespace tessera::codegen
