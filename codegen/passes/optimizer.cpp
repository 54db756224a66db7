#include "codegen/passes/optimizer.hpp"

#include "dsl/graph/builder.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::Graph;
using graph::NodeId;
using graph::Op;
using graph::Output;

Graph optimizer(const graph::Recipe& recipe, std::int64_t reals, const std::string& name) {
  Graph graph;
  graph.name = name;
  graph.recipe = recipe;
  Builder b(graph);
  const std::vector<Dim> arena{Dim::axis("P", reals)};
  const NodeId parameters = b.input("parameters", arena);
  const NodeId gradients = b.input("gradients", arena);
  const NodeId moment1 = b.input("moment1", arena);
  const NodeId moment2 = b.input("moment2", arena);
  const NodeId rate = b.input("learning_rate_corrected", {});
  const NodeId second_correction = b.input("second_correction", {});

  auto decayed = [&](NodeId moment, double beta, NodeId fresh) {
    const NodeId kept = b.multiply(moment, b.constant(beta));
    return b.add(kept, b.multiply(fresh, b.constant(1 - beta)));
  };
  const NodeId m = decayed(moment1, recipe.beta1, gradients);
  const NodeId v = decayed(moment2, recipe.beta2, b.multiply(gradients, gradients));
  const NodeId deviation = b.multiply(b.unary(Op::sqrt, v), second_correction);
  const NodeId step = b.divide(m, b.add(deviation, b.constant(recipe.epsilon)));
  const NodeId updated = b.subtract(parameters, b.multiply(step, rate));

  auto output = [&](const char* output_name, NodeId node) {
    Output o;
    o.name = output_name;
    o.node = node;
    graph.outputs.push_back(std::move(o));
  };
  output("parameters", updated);
  output("moment1", m);
  output("moment2", v);
  return graph;
}

}  // namespace tessera::codegen
