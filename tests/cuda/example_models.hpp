// The declared models that are no classifiers, as the generator takes models: with images, and with a loss. Both are
// not the declarations': what is emitted between them is.
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dsl/trace.hpp"
#include "models/scalar_graph.hpp"
#include "models/self_attention_2d.hpp"
#include "models/sentence_attention.hpp"

namespace tessera::test {

/// tests/golden/self_attention_2d
using ToySelfAttention =
    models::SelfAttention2d<{.channels = 32, .height = 6, .width = 5, .heads = 4, .head = 8, .value = 4}>;
/// Heads as wide as those of attention by one kernel.
using WideSelfAttention =
    models::SelfAttention2d<{.channels = 32, .height = 6, .width = 5, .heads = 2, .head = 16, .value = 16}>;

/// A declaration whose forward takes images, of a batch or of none, or nothing. Where there is no batch, what forward
/// takes is a parameter, and each image, of the shape of what forward gives, is multiplied by that. The loss is the sum
/// of the squares of the outputs, each weighted by a number of its own.
template <class Model>
graph::Graph trace_example(std::string name) {
  using graph::Op;
  graph::Graph g;
  g.name = std::move(name);
  graph::Builder b(g);
  const RecorderScope scope(b);
  Model model;
  graph::NodeId outputs = graph::none;
  using Arguments = typename detail::Signature<decltype(&Model::forward)>::arguments;
  if constexpr (std::tuple_size_v<Arguments> == 0) {
    bind(model, "");
    outputs = node_of(model());
  } else {
    using X = std::tuple_element_t<0, Arguments>;
    const std::vector<Dim> shape = X::shape.dims();
    const X x(shape[0].known() ? b.parameter("x", shape, {}, false) : b.input("images", shape));
    bind(model, "");
    outputs = node_of(model(x));
  }
  std::vector<Dim> shape = b.shape(outputs);
  if (shape.empty()) {  // an output has an axis beside the batch
    shape.push_back(Dim::constant(1));
    outputs = b.broadcast(outputs, shape, {});
  }
  std::vector<int> within;  // an image's axes
  for (int d = shape[0].known() ? 0 : 1; d < static_cast<int>(shape.size()); ++d) within.push_back(d);
  if (shape[0].known()) {
    shape.insert(shape.begin(), Dim::axis("B"));
    for (int& axis : within) ++axis;
    outputs = b.multiply(b.input("images", shape), b.broadcast(outputs, shape, within));
  }
  g.outputs.push_back({graph::Output::Kind::value, "outputs", outputs, graph::none});

  const std::vector<Dim> of_image(shape.begin() + 1, shape.end());
  std::size_t count = 1;
  for (const Dim& d : of_image) count *= static_cast<std::size_t>(d.value());
  std::vector<double> weights(count);
  for (std::size_t i = 0; i < count; ++i) weights[i] = 0.25 + static_cast<double>(i * 29 % 64) / 128;
  const graph::NodeId weight = b.broadcast(b.table("weights_of_the_loss", of_image, weights), shape, within);
  std::vector<int> all(within);
  all.insert(all.begin(), 0);
  const graph::NodeId loss = b.reduce(Op::reduce_sum, b.multiply(weight, b.multiply(outputs, outputs)), all);
  g.outputs.push_back({graph::Output::Kind::loss, "loss", loss, graph::none});
  // Zeros, which the examples' own parameters start as, would hide what is made of them.
  for (graph::Node& n : g.nodes)
    if (n.op == Op::parameter && n.init.kind == graph::Init::Kind::constant)
      n.init = {graph::Init::Kind::uniform, -1, 1};
  return g;
}

}  // namespace tessera::test
