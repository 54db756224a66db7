#include "tests/kernels/generated_cases.hpp"

#include <cmath>
#include <iterator>

namespace tessera::test {

using graph::NodeId;
using graph::Op;

NodeId shifted_images(Sketch& s, double low, double high) {
  const NodeId images = s.input("images", {s.B, s.I, s.J}, low / 2, high / 2);
  const NodeId shift = s.parameter("shift", {s.I, s.J}, low / 2, high / 2);
  return s.b.add(images, s.b.broadcast(shift, {s.B, s.I, s.J}, {1, 2}));
}

NodeId fixed_table(Sketch& s, const std::string& name, const std::vector<Dim>& shape, double low, double high) {
  std::int64_t count = 1;
  for (const Dim& dim : shape) count *= dim.value();
  std::vector<double> data;
  for (std::int64_t i = 1; i <= count; ++i) {  // the fractional parts of multiples of the golden ratio
    const double place = static_cast<double>(i) * 0.6180339887498949;
    data.push_back(low + (high - low) * (place - std::floor(place)));
  }
  return s.b.table(name, shape, std::move(data));
}

void outputs(Sketch& s, NodeId node) { s.value("outputs", node); }

void weighted_outputs(Sketch& s, NodeId node) {
  outputs(s, node);
  const std::vector<Dim> shape = s.b.shape(node);
  std::vector<int> all, image;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) all.push_back(d);
  image.assign(all.begin() + 1, all.end());
  const NodeId weights = fixed_table(s, "weights_of_the_loss", {shape.begin() + 1, shape.end()}, 0.5, 1.5);
  s.loss(s.b.reduce(Op::reduce_sum, s.b.multiply(node, s.b.broadcast(weights, shape, image)), all));
}

std::vector<GeneratedCase> generated_cases() {
  std::vector<GeneratedCase> all;
  for (auto part : {elementwise_cases, structure_cases, contraction_cases, block_cases, model_cases}) {
    std::vector<GeneratedCase> more = part();
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace tessera::test
