// Appends nodes to a graph: result shapes are worked out here, and nowhere else.
//
// Used by the DSL's ops (which have checked the shapes at compile time) and by the generator's passes (whose result the
// verifier checks). A builder is cheap; region and path are where the next node goes.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "dsl/graph/graph.hpp"

namespace tessera::graph {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  const std::vector<Dim>& shape(NodeId id) const { return graph_[id].shape; }

  int region = 0;                                   ///< where the next node goes
  std::string path;                                 ///< which module the next node belongs to
  int line = none;                                  ///< from which line it comes
  bool freezes = false;                             ///< the next parameters get no gradient
  std::vector<std::pair<NodeId, NodeId>> assigned;  ///< parameters and their new values

  /// The next nodes are made on behalf of another one.
  void stand_for(const Node& n) {
    path = n.path;
    line = n.line;
  }

  // Leaves
  NodeId input(std::string name, std::vector<Dim> shape, Type type = Type::real) {
    Node n = node(Op::input, {}, std::move(shape));
    n.name = std::move(name);
    n.type = type;
    return append(std::move(n));
  }
  NodeId parameter(std::string name, std::vector<Dim> shape, Init init, bool decay) {
    Node n = node(Op::parameter, {}, std::move(shape));
    n.name = std::move(name);
    n.init = init;
    n.decay = decay;
    n.trained = !freezes;
    return append(std::move(n));
  }
  NodeId table(std::string name, std::vector<Dim> shape, std::vector<double> data) {
    Node n = node(Op::table, {}, std::move(shape));
    n.name = std::move(name);
    n.data = std::move(data);
    return append(std::move(n));
  }
  NodeId constant(double value) {
    Node n = node(Op::constant, {}, {});
    n.value = value;
    return append(std::move(n));
  }
  NodeId arange(Dim dim) { return append(node(Op::arange, {}, {dim})); }
  NodeId extent(Dim dim) {
    Node n = node(Op::extent, {}, {});
    n.dim = dim;
    return append(std::move(n));
  }

  /// The parameter's value from here on, and after the step.
  void assign(NodeId parameter, NodeId value) {
    for (auto& [of, now] : assigned)
      if (of == parameter) {
        now = value;
        return;
      }
    assigned.emplace_back(parameter, value);
  }
  /// What was assigned last; before that the parameter.
  NodeId current(NodeId parameter) const {
    for (const auto& [of, now] : assigned)
      if (of == parameter) return now;
    return parameter;
  }

  // Elementwise: operands of one shape; an operand without dims is broadcast
  NodeId unary(Op op, NodeId x) { return append(node(op, {x}, shape(x))); }
  NodeId binary(Op op, NodeId a, NodeId b) {
    if (shape(a).empty() && !shape(b).empty()) a = broadcast(a, shape(b), {});
    if (shape(b).empty() && !shape(a).empty()) b = broadcast(b, shape(a), {});
    return append(node(op, {a, b}, shape(a)));
  }
  NodeId add(NodeId a, NodeId b) { return binary(Op::add, a, b); }
  NodeId subtract(NodeId a, NodeId b) { return binary(Op::subtract, a, b); }
  NodeId multiply(NodeId a, NodeId b) { return binary(Op::multiply, a, b); }
  NodeId divide(NodeId a, NodeId b) { return binary(Op::divide, a, b); }

  /// a where condition > 0, else b.
  NodeId select(NodeId condition, NodeId a, NodeId b) {
    const std::vector<Dim> s = shape(condition);
    if (shape(a).empty() && !s.empty()) a = broadcast(a, s, {});
    if (shape(b).empty() && !s.empty()) b = broadcast(b, s, {});
    return append(node(Op::select, {condition, a, b}, s));
  }

  // Structure
  NodeId broadcast(NodeId x, std::vector<Dim> to, std::vector<int> axes) {
    Node n = node(Op::broadcast, {x}, std::move(to));
    n.axes = std::move(axes);
    return append(std::move(n));
  }
  NodeId integers(NodeId x) {
    Node n = node(Op::integers, {x}, shape(x));
    n.type = Type::integer;
    return append(std::move(n));
  }
  NodeId one_hot(NodeId labels, Dim classes) {
    std::vector<Dim> s = shape(labels);
    s.push_back(classes);
    return append(node(Op::one_hot, {labels}, std::move(s)));
  }
  /// `shape` names the result's dims (each equal to the product of its atoms).
  NodeId rearrange(NodeId x, Rearrangement r, std::vector<Dim> to) {
    Node n = node(Op::rearrange, {x}, std::move(to));
    n.rearrangement = std::move(r);
    return append(std::move(n));
  }
  NodeId slice(NodeId x, int axis, std::int64_t offset, Dim length) {
    std::vector<Dim> s = shape(x);
    s[static_cast<std::size_t>(axis)] = length;
    Node n = node(Op::slice, {x}, std::move(s));
    n.axes = {axis};
    n.offset = offset;
    return append(std::move(n));
  }
  NodeId concat(std::vector<NodeId> parts, int axis, Dim total) {
    std::vector<Dim> s = shape(parts.front());
    s[static_cast<std::size_t>(axis)] = total;
    Node n = node(Op::concat, std::move(parts), std::move(s));
    n.axes = {axis};
    return append(std::move(n));
  }
  /// Windows of x along `axis`: [..., L, ...] -> [..., kernel, windows, ...]; 0 outside x.
  NodeId unfold(NodeId x, int axis, Dim kernel, Dim windows, std::int64_t offset, std::int64_t stride,
                std::int64_t dilation) {
    std::vector<Dim> s = shape(x);
    s[static_cast<std::size_t>(axis)] = windows;
    s.insert(s.begin() + axis, kernel);
    return append(with_steps(node(Op::unfold, {x}, std::move(s)), axis, offset, stride, dilation));
  }
  /// Of `rows` rows, kept by the caller, with x in the place of the row of that number.
  NodeId cache(NodeId x, NodeId number, int axis, Dim rows) {
    std::vector<Dim> s = shape(x);
    s[static_cast<std::size_t>(axis)] = rows;
    Node n = node(Op::cache, {x, number}, std::move(s));
    n.axes = {axis};
    return append(std::move(n));
  }

  // Contraction and reduction
  NodeId einsum(std::vector<NodeId> operands, std::vector<std::vector<int>> letters) {
    std::vector<Dim> s;
    for (int letter : letters.back())
      for (std::size_t k = 0; k < operands.size(); ++k) {
        auto at = std::find(letters[k].begin(), letters[k].end(), letter);
        if (at == letters[k].end()) continue;
        s.push_back(shape(operands[k])[static_cast<std::size_t>(at - letters[k].begin())]);
        break;
      }
    Node n = node(Op::einsum, std::move(operands), std::move(s));
    n.letters = std::move(letters);
    return append(std::move(n));
  }
  NodeId reduce(Op op, NodeId x, std::vector<int> axes) {
    std::vector<Dim> s;
    for (int i = 0; i < static_cast<int>(shape(x).size()); ++i)
      if (std::find(axes.begin(), axes.end(), i) == axes.end()) s.push_back(shape(x)[static_cast<std::size_t>(i)]);
    Node n = node(op, {x}, std::move(s));
    n.axes = std::move(axes);
    return append(std::move(n));
  }

  // Composites
  /// The transpose of an unfold of what has `length` along `axis`.
  NodeId fold(NodeId x, int axis, Dim length, std::int64_t offset, std::int64_t stride, std::int64_t dilation) {
    std::vector<Dim> s = shape(x);
    s.erase(s.begin() + axis);
    s[static_cast<std::size_t>(axis)] = length;
    return append(with_steps(node(Op::fold, {x}, std::move(s)), axis, offset, stride, dilation));
  }
  NodeId gradient(NodeId y, NodeId x) { return append(node(Op::gradient, {y, x}, shape(x))); }
  NodeId softmax(NodeId x, int axis) {
    Node n = node(Op::softmax, {x}, shape(x));
    n.axes = {axis};
    return append(std::move(n));
  }
  NodeId layer_norm(NodeId x, NodeId weight, NodeId bias, std::vector<int> axes, double epsilon) {
    Node n = node(Op::layer_norm, {x, weight, bias}, shape(x));
    n.axes = std::move(axes);
    n.value = epsilon;
    return append(std::move(n));
  }
  NodeId log_softmax(NodeId x, int axis) {
    Node n = node(Op::log_softmax, {x}, shape(x));
    n.axes = {axis};
    return append(std::move(n));
  }
  NodeId gather(NodeId table, NodeId rows) {
    std::vector<Dim> s = shape(rows);
    s.insert(s.end(), shape(table).begin() + 1, shape(table).end());
    return append(node(Op::gather, {table, rows}, std::move(s)));
  }
  /// `axes`: those that the factors vary over, ascending; along the others one factor is for all.
  NodeId dropout(NodeId x, double rate, std::vector<int> axes) {
    Node n = node(Op::dropout, {x}, shape(x));
    n.axes = std::move(axes);
    n.value = rate;
    n.offset =
        std::count_if(graph_.nodes.begin(), graph_.nodes.end(), [](const Node& o) { return o.op == Op::dropout; });
    return append(std::move(n));
  }
  /// The factors of a dropout, over the axes that they vary over.
  NodeId keep(NodeId random, const Node& dropout) {
    std::vector<Dim> s;
    for (int axis : dropout.axes) s.push_back(dropout.shape[static_cast<std::size_t>(axis)]);
    Node n = node(Op::keep, {random}, std::move(s));
    n.value = dropout.value;
    n.offset = dropout.offset;
    return append(std::move(n));
  }
  NodeId cross_entropy(NodeId logits, NodeId labels) { return append(node(Op::cross_entropy, {logits, labels}, {})); }

  // Regions: begin, carry each value in, record the body, end with what each carry becomes
  int begin_region(std::string region_path, int count, bool reversed = false, int mirror = none) {
    Region r;
    r.path = std::move(region_path);
    r.parent = region;
    r.count = count;
    r.reversed = reversed;
    r.mirror = mirror;
    graph_.regions.push_back(std::move(r));
    return region = static_cast<int>(graph_.regions.size()) - 1;
  }
  NodeId carry(NodeId initial) {
    NodeId id = append(node(Op::carry, {initial}, shape(initial)));
    current().carries.push_back(id);
    return id;
  }
  /// One carry_out a carry, in order.
  std::vector<NodeId> end_region(std::vector<NodeId> yields) {
    Region& r = current();
    r.yields = std::move(yields);
    std::vector<NodeId> carries = r.carries, results;
    region = r.parent;
    for (NodeId c : carries) results.push_back(append(node(Op::carry_out, {c}, shape(c))));
    return results;
  }

  NodeId append(Node n) {
    graph_.nodes.push_back(std::move(n));
    return static_cast<NodeId>(graph_.nodes.size()) - 1;
  }

 private:
  Node node(Op op, std::vector<NodeId> operands, std::vector<Dim> shape) const {
    Node n;
    n.op = op;
    n.operands = std::move(operands);
    n.shape = std::move(shape);
    n.region = region;
    n.path = path;
    n.line = line;
    return n;
  }
  static Node with_steps(Node n, int axis, std::int64_t offset, std::int64_t stride, std::int64_t dilation) {
    n.axes = {axis};
    n.offset = offset;
    n.stride = stride;
    n.dilation = dilation;
    return n;
  }
  Region& current() { return graph_.regions[static_cast<std::size_t>(region)]; }

  Graph& graph_;
};

}  // namespace tessera::graph
