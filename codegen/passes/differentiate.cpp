#include "codegen/passes/differentiate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <range/v3/algorithm/stable_sort.hpp>
#include <set>

#include "codegen/error.hpp"
#include "codegen/passes/op.hpp"
#include "codegen/passes/rewrite.hpp"
#include "codegen/passes/vjp.hpp"
#include "dsl/graph/builder.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Output;
using graph::Region;

namespace {

class Differentiator {
 public:
  explicit Differentiator(Builder& b)
      : graph_(b.graph()),
        b_(b),
        count_(graph_.nodes.size()),
        received_(count_),
        layer_gradient_(count_, graph::none) {}

  /// With respect to one value of the top level, on the way to which no block is repeated.
  NodeId run(NodeId y, NodeId x) {
    find_active([x](NodeId id) { return id == x; });
    if (!active(y)) return graph::none;
    stand(0, y);
    received_[at(y)].push_back({b_.constant(1)});
    for (NodeId id = y; id > x; --id) {
      if (active(id) && graph_[id].region != 0)
        throw Error(
            fmt::format("{} takes a gradient within its declaration through {}, which is repeated: that can be "
                        "had of the loss alone",
                        graph_.name, graph_[id].path));
      step(id);
    }
    return collect(x);
  }

  /// With respect to all parameters, or to all that are trained and to the inputs.
  void run(bool input_gradient) {
    find_active([&](NodeId id) {
      const Node& n = graph_[id];
      return (n.op == Op::parameter && n.trained) || (n.op == Op::input && input_gradient);
    });
    const auto loss = ranges::find_if(graph_.outputs, [](const Output& o) { return o.kind == Output::Kind::loss; });
    if (loss == graph_.outputs.end())
      throw Error(fmt::format("the model {} has no loss to differentiate", graph_.name));
    const NodeId root = loss->node;
    stand(0, root);
    received_[at(root)].push_back({b_.constant(1)});
    for (std::size_t i = count_; i-- > 0;) {
      const int region = graph_.nodes[i].region;
      if (region == 0) {
        step(static_cast<NodeId>(i));
        continue;
      }
      const std::size_t last = i;
      while (i > 0 && graph_.nodes[i - 1].region == region) --i;
      differentiate_region(region, i, last);
    }
    demand_all_parameters();
    // Parameters may be recorded in any order; their gradients are listed in the order in which they are finished.
    const auto gradients =
        ranges::find_if(graph_.outputs, [](const Output& o) { return o.kind == Output::Kind::gradient; });
    std::stable_sort(gradients, graph_.outputs.end(), [](const Output& a, const Output& b) { return a.node < b.node; });
  }

 private:
  const Region& region(int r) const { return graph_.regions[r]; }
  bool active(NodeId id) const { return active_[at(id)]; }

  /// What depends on what a gradient is asked of: only there do gradients flow.
  void find_active(const auto& asked) {
    active_.assign(count_, false);
    bool again = true;
    while (again) {  // a second time round when a layer's yield makes its carry active
      again = false;
      for (std::size_t i = 0; i < count_; ++i) {
        const Node& n = graph_.nodes[i];
        if (active_[i] || n.type != graph::Type::real) continue;
        bool now = asked(static_cast<NodeId>(i));
        for (NodeId o : n.operands) now = now || active(o);
        active_[i] = now;
      }
      for (const Region& r : graph_.regions)
        for (std::size_t k = 0; k < r.carries.size(); ++k)
          if (active(r.yields[k]) && !active(r.carries[k])) again = active_[at(r.carries[k])] = true;
    }
  }

  /// Recording goes on in `in`, on behalf of a forward node.
  void stand(int in, NodeId id) {
    b_.region = in;
    b_.stand_for(graph_[id]);
  }

  NodeId zeros(const std::vector<Dim>& shape) {
    const NodeId zero = b_.constant(0);
    return shape.empty() ? zero : b_.broadcast(zero, shape, {});
  }

  /// The gradient of a forward node whose readers have all been differentiated; graph::none when none sent any.
  NodeId collect(NodeId id) {
    std::vector<Contribution> all = std::move(received_[at(id)]);
    received_[at(id)].clear();
    stand(b_.region, id);
    const std::vector<Dim> shape = graph_[id].shape;
    NodeId total = graph::none;
    auto add = [&](NodeId more) { total = total == graph::none ? more : b_.add(total, more); };
    std::vector<Contribution> parts;
    for (const Contribution& c : all) {
      if (c.axis == graph::none)
        add(c.node);
      else
        parts.push_back(c);
    }
    ranges::stable_sort(parts, [](const Contribution& a, const Contribution& b) {
      return std::pair(a.axis, a.offset) < std::pair(b.axis, b.offset);
    });
    while (!parts.empty()) add(joined(parts, shape));
    return total;
  }

  /// One concat of parts that follow one another along an axis, with zeros between them; takes them out of `parts`,
  /// which is sorted. Parts that overlap are left for the next concat.
  NodeId joined(std::vector<Contribution>& parts, const std::vector<Dim>& shape) {
    const int axis = parts.front().axis;
    const Dim whole = shape[axis];
    std::vector<NodeId> row;
    std::vector<Contribution> rest;
    Dim end = Dim::constant(0);
    auto pad = [&](const Dim& to) {
      if (same_size(to, end)) return;
      const Dim gap = to.known() && end.known() ? Dim::constant(to.value() - end.value()) : to - end;
      std::vector<Dim> hole = shape;
      hole[axis] = gap;
      row.push_back(zeros(hole));
    };
    for (const Contribution& c : parts) {
      const Dim start = Dim::constant(c.offset);
      if (c.axis != axis || !end.known() || end.value() > c.offset) {
        rest.push_back(c);
        continue;
      }
      pad(start);
      row.push_back(c.node);
      end = start + b_.shape(c.node)[axis];
    }
    pad(whole);
    parts = std::move(rest);
    // A whole axis under another name, as rename records it, is still to get its own name back.
    return row.size() == 1 && b_.shape(row.front()) == shape ? row.front() : b_.concat(row, axis, whole);
  }

  /// Sends a node's gradient on to its operands.
  void step(NodeId id) {
    if (!active(id)) return;
    const NodeId g = collect(id);
    if (g == graph::none) return;
    const Node n = graph_[id];
    if (n.op == Op::parameter || n.op == Op::input) {
      Output o;
      o.kind = Output::Kind::gradient;
      o.name = n.name;
      o.node = g;
      o.parameter = id;
      graph_.outputs.push_back(std::move(o));
      return;
    }
    if (n.op == Op::carry_out) {
      layer_gradient_[at(n.operands[0])] = g;
      return;
    }
    std::vector<bool> wanted;
    for (NodeId o : n.operands) wanted.push_back(active(o));
    const std::vector<Contribution> sent = vjp(b_, id, g, wanted);
    for (std::size_t k = 0; k < sent.size(); ++k)
      if (sent[k].node != graph::none) received_[at(n.operands[k])].push_back(sent[k]);
  }

  /// The mirror of forward region r, whose nodes are first..last.
  void differentiate_region(int r, std::size_t first, std::size_t last) {
    const Region forward = region(r);
    std::vector<std::size_t> flowing;  // positions of the carries that gradients flow through
    bool reached = false;
    for (std::size_t k = 0; k < forward.carries.size(); ++k) {
      if (!active(forward.carries[k])) continue;
      flowing.push_back(k);
      reached = reached || layer_gradient_[at(forward.carries[k])] != graph::none;
    }
    if (!reached) return;
    std::set<NodeId> captured;  // values of the top level that the body reads
    for (std::size_t i = first; i <= last; ++i)
      for (NodeId o : graph_.nodes[i].operands)
        if (graph_.nodes[i].op != Op::carry && graph_[o].region == 0 && active(o)) captured.insert(o);

    std::vector<NodeId> initial;
    for (std::size_t k : flowing) {
      const NodeId carry = forward.carries[k];
      stand(0, carry);
      const NodeId g = layer_gradient_[at(carry)];
      initial.push_back(g != graph::none ? g : zeros(graph_[carry].shape));
    }
    std::map<NodeId, std::vector<Contribution>> outside;  // what captured values have received from beyond the region
    for (NodeId c : captured) {
      stand(0, c);
      initial.push_back(zeros(graph_[c].shape));
      outside[c] = std::move(received_[at(c)]);
      received_[at(c)].clear();
    }

    b_.path = forward.path;
    b_.line = graph::none;
    const int mirror = b_.begin_region(forward.path, forward.count, !forward.reversed, r);
    std::vector<NodeId> carries;
    for (NodeId g : initial) carries.push_back(b_.carry(g));
    for (std::size_t i = 0; i < flowing.size(); ++i) received_[at(forward.yields[flowing[i]])].push_back({carries[i]});
    for (std::size_t i = last + 1; i-- > first;)
      if (graph_.nodes[i].op != Op::carry) step(static_cast<NodeId>(i));
    std::vector<NodeId> yields;
    for (std::size_t k : flowing) {
      const NodeId g = collect(forward.carries[k]);
      yields.push_back(g != graph::none ? g : zeros(graph_[forward.carries[k]].shape));
    }
    std::size_t next = flowing.size();
    for (NodeId c : captured) {
      received_[at(c)].insert(received_[at(c)].begin(), {carries[next++]});
      yields.push_back(collect(c));
    }
    b_.region = mirror;
    b_.path = forward.path;
    b_.line = graph::none;
    const std::vector<NodeId> results = b_.end_region(yields);

    for (std::size_t i = 0; i < flowing.size(); ++i) {
      const NodeId entry = graph_[forward.carries[flowing[i]]].operands[0];
      if (active(entry)) received_[at(entry)].push_back({results[i]});
    }
    next = flowing.size();
    for (NodeId c : captured) {
      outside[c].push_back({results[next++]});
      auto& all = received_[at(c)];
      all.insert(all.begin(), outside[c].begin(), outside[c].end());
    }
  }

  void demand_all_parameters() const {
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < count_; ++i) {
      if (graph_.nodes[i].op != Op::parameter || !graph_.nodes[i].trained) continue;
      auto mine = [&](const Output& o) {
        return o.kind == Output::Kind::gradient && o.parameter == static_cast<NodeId>(i);
      };
      if (ranges::find_if(graph_.outputs, mine) == graph_.outputs.end()) missing.push_back(graph_.nodes[i].name);
    }
    if (!missing.empty())
      throw Error(fmt::format("no gradient reaches {}: what it computes is not used on the way to the loss",
                              fmt::join(missing, ", ")));
  }

  Graph& graph_;
  Builder& b_;
  const std::size_t count_;  // of forward nodes
  std::vector<bool> active_;
  std::vector<std::vector<Contribution>> received_;  // by forward node
  std::vector<NodeId> layer_gradient_;               // by carry: the gradient of what its region yields at the end
};

}  // namespace

Graph differentiate(const Graph& forward, bool input_gradient) {
  Graph joint = forward;
  Builder builder(joint);
  Differentiator(builder).run(input_gradient);
  return joint;
}

Graph expand_gradients(const Graph& graph) {
  return rewrite(graph, [](Builder& b, const Node& n, NodeId) {
    if (n.op != Op::gradient) return b.append(n);
    const NodeId gradient = Differentiator(b).run(n.operands[0], n.operands[1]);
    if (gradient != graph::none) return gradient;
    throw Error(fmt::format("{} takes the gradient of what does not depend on {}", b.graph().name,
                            b.graph()[n.operands[1]].name.empty() ? "a value" : b.graph()[n.operands[1]].name));
  });
}

}  // namespace tessera::codegen
