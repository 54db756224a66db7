#include "tests/models/summaries.hpp"

#include <tuple>

#include "codegen/driver.hpp"
#include "dsl/trace.hpp"
#include "models/scalar_graph.hpp"
#include "models/self_attention_2d.hpp"
#include "models/sentence_attention.hpp"
#include "models/vit.hpp"
#include "models/vit_cifar.hpp"
#include "models/vit_mnist.hpp"
#include "models/vit_notebook.hpp"

namespace tessera::test {
namespace {

template <class Model, fixed_string Name>
std::string model() {
  return codegen::summarize(trace<Model>(Name.data));
}

/// A worked example knows of no batch, so that trace() is not made for it.
template <class Model, fixed_string Name>
std::string example() {
  graph::Graph g;
  g.name = Name.data;
  graph::Builder builder(g);
  const RecorderScope scope(builder);
  Model model;
  using Arguments = typename detail::Signature<decltype(&Model::forward)>::arguments;
  graph::NodeId result = graph::none;
  if constexpr (std::tuple_size_v<Arguments> == 0) {
    bind(model, "");
    result = node_of(model());
  } else {
    using X = std::tuple_element_t<0, Arguments>;
    const X x(builder.input("x", X::shape.dims()));
    bind(model, "");
    result = node_of(model(x));
  }
  g.outputs.push_back({graph::Output::Kind::value, "outputs", result, graph::none});
  return codegen::summarize(g);
}

template <class Model, fixed_string Name>
ModelSummary of_model() {
  return {Name.data, &model<Model, Name>};
}
template <class Model, fixed_string Name>
ModelSummary of_example() {
  return {Name.data, &example<Model, Name>};
}

}  // namespace

const std::vector<ModelSummary>& model_summaries() {
  using namespace models;
  static const std::vector<ModelSummary> all{
      of_model<vit_mnist::VitMnist, "vit_mnist">(),
      of_model<CifarVit<CifarVitSpec{}>, "vit_cifar">(),
      of_model<VitTiny, "vit_tiny">(),
      of_model<VitSmall, "vit_small">(),
      of_model<VitBase, "vit_base">(),
      of_model<VitLarge, "vit_large">(),
      of_model<VitHuge, "vit_huge">(),
      of_model<SimpleVitSmall, "simple_vit_small">(),
      of_model<Dinov2Small, "dinov2_small">(),
      of_model<Dinov2Base, "dinov2_base">(),
      of_model<Dinov2Large, "dinov2_large">(),
      of_model<Dinov2Giant, "dinov2_giant">(),
      of_model<NotebookVit<NotebookVitSpec{}>, "vit_notebook">(),
      of_model<SelfAttention2d<SelfAttention2dSpec{}>, "self_attention_2d">(),
      of_example<SentenceAttention, "sentence_attention">(),
      of_example<ScalarGraph, "scalar_graph">(),
  };
  return all;
}

}  // namespace tessera::test
