#include "codegen/passes/optimizer.hpp"

#include <map>

#include "dsl/graph/builder.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::Graph;
using graph::NodeId;
using graph::Op;
using graph::Output;
using graph::Recipe;

namespace {

class Update {
 public:
  Update(const Recipe& recipe, std::int64_t reals, const std::string& name) : recipe_(recipe) {
    graph_.name = name;
    graph_.recipe = recipe;
    const std::vector<Dim> arena{Dim::axis("P", reals)};
    for (const char* flat : {"parameters", "gradients"}) in_[flat] = b_.input(flat, arena);
    for (const std::string& state : optimizer_state(recipe)) in_[state] = b_.input(state, arena);
    for (const std::string& number : optimizer_numbers(recipe)) in_[number] = b_.input(number, {});
  }

  Graph run() {
    const bool decoupled = recipe_.optimizer == Recipe::Optimizer::adamw;
    NodeId p = in_.at("parameters"), g = in_.at("gradients");
    if (recipe_.clip_norm > 0) g = b_.multiply(g, in_.at("gradient_scale"));
    if (recipe_.weight_decay > 0) {
      const NodeId decay = b_.multiply(p, in_.at("decay"));
      if (decoupled)
        p = b_.subtract(p, decay);
      else
        g = b_.add(g, decay);
    }
    const NodeId updated = recipe_.optimizer == Recipe::Optimizer::sgd ? descent(p, g) : adam(p, g);
    output("parameters", updated);
    for (const auto& [name, node] : state_) output(name, node);
    if (recipe_.average > 0) {
      const NodeId behind = b_.subtract(in_.at("average"), updated);
      output("average", b_.add(updated, b_.multiply(behind, in_.at("average_kept"))));
    }
    return std::move(graph_);
  }

 private:
  NodeId scaled(NodeId x, double factor) { return b_.multiply(x, b_.constant(factor)); }

  NodeId adam(NodeId p, NodeId g) {
    auto decayed = [&](NodeId moment, double beta, NodeId fresh) {
      const NodeId kept = scaled(moment, beta);
      return b_.add(kept, scaled(fresh, 1 - beta));
    };
    const NodeId m = decayed(in_.at("moment1"), recipe_.beta1, g);
    const NodeId v = decayed(in_.at("moment2"), recipe_.beta2, b_.multiply(g, g));
    const NodeId deviation = b_.multiply(b_.unary(Op::sqrt, v), in_.at("second_correction"));
    const NodeId step = b_.divide(m, b_.add(deviation, b_.constant(recipe_.epsilon)));
    state_ = {{"moment1", m}, {"moment2", v}};
    return b_.subtract(p, b_.multiply(step, in_.at("learning_rate_corrected")));
  }

  NodeId descent(NodeId p, NodeId g) {
    NodeId direction = g;
    if (recipe_.momentum > 0) {
      const NodeId velocity = b_.add(scaled(in_.at("velocity"), recipe_.momentum), g);
      state_ = {{"velocity", velocity}};
      direction = recipe_.nesterov ? b_.add(g, scaled(velocity, recipe_.momentum)) : velocity;
    }
    return b_.subtract(p, b_.multiply(direction, in_.at("learning_rate")));
  }

  void output(const std::string& name, NodeId node) {
    Output o;
    o.name = name;
    o.node = node;
    graph_.outputs.push_back(std::move(o));
  }

  const Recipe& recipe_;
  Graph graph_;
  Builder b_{graph_};
  std::map<std::string, NodeId> in_, state_;
};

}  // namespace

std::vector<std::string> optimizer_state(const Recipe& recipe) {
  std::vector<std::string> state;
  if (recipe.optimizer != Recipe::Optimizer::sgd)
    state = {"moment1", "moment2"};
  else if (recipe.momentum > 0)
    state = {"velocity"};
  if (recipe.average > 0) state.push_back("average");
  return state;
}

std::vector<std::string> optimizer_numbers(const Recipe& recipe) {
  std::vector<std::string> numbers{"learning_rate"};
  if (recipe.optimizer != Recipe::Optimizer::sgd) numbers = {"learning_rate_corrected", "second_correction"};
  if (recipe.weight_decay > 0) numbers.push_back("decay");
  if (recipe.clip_norm > 0) numbers.push_back("gradient_scale");
  if (recipe.average > 0) numbers.push_back("average_kept");
  return numbers;
}

Graph optimizer(const Recipe& recipe, std::int64_t reals, const std::string& name) {
  return Update(recipe, reals, name).run();
}

}  // namespace tessera::codegen
