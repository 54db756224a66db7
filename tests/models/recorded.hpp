// A declared model as a graph with a loss that gives timm's gradients, to interpret and to generate programs of.
#pragma once

#include <tuple>
#include <type_traits>
#include <vector>

#include "models/vit.hpp"

namespace tessera::test {

/// The names of inputs are those of the emitted API: images [B, C, IH, IW], labels [B]. The loss is the sum of outputs
/// times the row of the parameter "grad_output" that an image's label chooses: of a batch of 2 with the labels 0 and 1
/// its gradients are those of timm's backward pass, and that of grad_output is the outputs.
template <class Model>
graph::Graph recorded() {
  using Images = std::tuple_element_t<0, typename detail::Signature<decltype(&Model::forward)>::arguments>;
  graph::Graph g;
  graph::Builder builder(g);
  const RecorderScope scope(builder);
  Model model;
  const Images images(builder.input("images", Images::shape.dims()));
  bind(model, "");
  const auto outputs = model(images);
  std::vector<Dim> rows = builder.shape(node_of(outputs));
  std::vector<int> axes;
  for (int i = 0; i < static_cast<int>(rows.size()); ++i) axes.push_back(i);
  const graph::NodeId labels = builder.input("labels", {rows[0]}, graph::Type::integer);
  rows[0] = Dim::axis("G", 2);
  const graph::NodeId weights = builder.gather(builder.parameter("grad_output", rows, {}, false), labels);
  g.outputs.push_back({graph::Output::Kind::value, "outputs", node_of(outputs), graph::none});
  const graph::NodeId loss = builder.reduce(graph::Op::reduce_sum, builder.multiply(node_of(outputs), weights), axes);
  g.outputs.push_back({graph::Output::Kind::loss, "loss", loss, graph::none});
  return g;
}

}  // namespace tessera::test
