// The declared models that are no classifiers, as they are declared: their numbers are PyTorch's in the interpreter
// (tests/models/worked_examples_test.cpp), and here the generated kernels' are the interpreter's.
#include "models/scalar_graph.hpp"
#include "models/self_attention_2d.hpp"
#include "models/sentence_attention.hpp"
#include "tests/kernels/generated_cases.hpp"

namespace tessera::test {

namespace {

/// Records the model's parameters, with numbers.
template <class Model>
void declare(Sketch& s, Model& model) {
  std::size_t node = s.graph.nodes.size();
  bind(model, "");
  for (; node < s.graph.nodes.size(); ++node) {
    Array& numbers = s.given[s.graph.nodes[node].name];
    std::size_t count = 1;
    for (const Dim& dim : s.graph.nodes[node].shape) {
      numbers.shape.push_back(dim.value());
      count *= static_cast<std::size_t>(dim.value());
    }
    while (numbers.numbers.size() < count) numbers.numbers.push_back(s.random(-0.5, 0.5));
  }
}

/// For models without a batch: each image times what the model gives.
void weighted_by_images(Sketch& s, graph::NodeId node) {
  std::vector<Dim> shape = s.b.shape(node);
  std::vector<int> axes;
  for (int d = 1; d <= static_cast<int>(shape.size()); ++d) axes.push_back(d);
  shape.insert(shape.begin(), s.B);
  weighted_outputs(s, s.b.multiply(s.input("images", shape), s.b.broadcast(node, shape, axes)));
}

void self_attention_2d(Sketch& s) {
  using Model = models::SelfAttention2d<{.channels = 7, .height = 3, .width = 2, .heads = 2, .head = 4, .value = 3}>;
  using Maps = Tensor<Model::B, Model::D, Model::FH, Model::FW>;
  const RecorderScope scope(s.b);
  Model model;
  declare(s, model);
  const Maps maps(s.input("images", Maps::shape.dims()));
  weighted_outputs(s, node_of(model(maps)));
}

void sentence_attention(Sketch& s) {
  using Model = models::SentenceAttention;
  using Words = Tensor<Model::T, Model::E>;
  const RecorderScope scope(s.b);
  Model model;
  declare(s, model);
  const Words words(s.parameter("x", Words::shape.dims()));
  weighted_by_images(s, node_of(model(words)));
}

void scalar_graph(Sketch& s) {
  const RecorderScope scope(s.b);
  models::ScalarGraph model;
  declare(s, model);
  // An output has an axis beside the batch.
  const graph::NodeId e = s.b.broadcast(node_of(model()), {Dim::constant(1)}, {});
  weighted_by_images(s, e);
}

}  // namespace

std::vector<GeneratedCase> model_cases() {
  return {{"self_attention_2d", self_attention_2d},
          {"sentence_attention", sentence_attention},
          {"scalar_graph", scalar_graph}};
}

}  // namespace tessera::test
