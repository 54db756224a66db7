#include "tests/codegen/support/sketch.hpp"

#include <utility>

namespace tessera::test {

using graph::NodeId;
using graph::Op;
using graph::Output;

double Sketch::random(double low, double high) {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
  return low + (high - low) * static_cast<double>(state_ >> 11) / 9007199254740992.0;
}

Array Sketch::numbers(const std::vector<Dim>& shape, double low, double high) {
  Array array{extents(shape, batch), {}};
  std::int64_t count = 1;
  for (std::int64_t extent : array.shape) count *= extent;
  for (std::int64_t i = 0; i < count; ++i) array.numbers.push_back(random(low, high));
  return array;
}

NodeId Sketch::parameter(const std::string& name, const std::vector<Dim>& shape, double low, double high) {
  for (int layer = 0; layer < graph.regions[static_cast<std::size_t>(b.region)].count; ++layer)
    given[layer_name(name, layer)] = numbers(shape, low, high);
  return b.parameter(name, shape, {}, true);
}

NodeId Sketch::input(const std::string& name, const std::vector<Dim>& shape, double low, double high) {
  given[name] = numbers(shape, low, high);
  return b.input(name, shape);
}

NodeId Sketch::labels(const std::string& name, const std::vector<Dim>& shape, std::int64_t classes) {
  Array array = numbers(shape, 0, static_cast<double>(classes));
  for (double& label : array.numbers) label = static_cast<double>(static_cast<std::int64_t>(label));
  given[name] = std::move(array);
  return b.input(name, shape, graph::Type::integer);
}

void Sketch::value(const std::string& name, NodeId node) { graph.outputs.push_back({Output::Kind::value, name, node}); }

void Sketch::loss(NodeId node) { graph.outputs.push_back({Output::Kind::loss, "loss", node}); }

void Sketch::weighted_loss(NodeId node) {
  const std::vector<Dim> shape = b.shape(node);
  const NodeId weights = input("weights_of_the_loss", shape, 0.5, 1.5);
  std::vector<int> all;
  for (std::size_t i = 0; i < shape.size(); ++i) all.push_back(static_cast<int>(i));
  const NodeId product = b.multiply(node, weights);
  loss(all.empty() ? product : b.reduce(Op::reduce_sum, product, all));
}

}  // namespace tessera::test
