#include "tests/models/summaries.hpp"

#include <stdexcept>
#include <string_view>
#include <tuple>

#include "codegen/driver.hpp"
#include "dsl/trace.hpp"
#include "models/scalar_graph.hpp"
#include "models/self_attention_2d.hpp"
#include "models/sentence_attention.hpp"
#include "tests/declared/models.hpp"

namespace tessera::test {
namespace {

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
ModelSummary of_example() {
  return {Name.data, &example<Model, Name>};
}

/// Of a row of tests/declared.
ModelSummary of_model(const std::string& name, std::string_view type) {
  return {name, [=] {
            for (const codegen::DeclaredModel& model : published_models())
              if (model.type == type) return codegen::summarize(model.trace(name));
            throw std::runtime_error("tests/declared has no " + std::string(type));
          }};
}

}  // namespace

const std::vector<ModelSummary>& model_summaries() {
  using namespace models;
  static const std::vector<ModelSummary> all{
      of_model("vit_mnist", "tessera::models::vit_mnist::VitMnist"),
      of_model("vit_digits", "tessera::models::VitDigits"),
      of_model("mnist", "tessera::models::Mnist"),
      of_model("cifar10", "tessera::models::Cifar10"),
      of_model("vit_cifar", "tessera::models::CifarVit<{}>"),
      of_model("vit_tiny", "tessera::models::VitTiny"),
      of_model("vit_small", "tessera::models::VitSmall"),
      of_model("vit_base", "tessera::models::VitBase"),
      of_model("vit_large", "tessera::models::VitLarge"),
      of_model("vit_huge", "tessera::models::VitHuge"),
      of_model("simple_vit_small", "tessera::models::SimpleVitSmall"),
      of_model("dinov2_small", "tessera::models::Dinov2Small"),
      of_model("dinov2_base", "tessera::models::Dinov2Base"),
      of_model("dinov2_large", "tessera::models::Dinov2Large"),
      of_model("dinov2_giant", "tessera::models::Dinov2Giant"),
      of_model("dpt_large", "tessera::models::DptLarge"),
      of_model("depth_anything_small", "tessera::models::DepthAnythingSmall"),
      of_model("depth_anything_base", "tessera::models::DepthAnythingBase"),
      of_model("depth_anything_large", "tessera::models::DepthAnythingLarge"),
      of_model("vit_notebook", "tessera::models::NotebookVit<{}>"),
      {"self_attention_2d",
       [] { return codegen::summarize(trace<SelfAttention2d<SelfAttention2dSpec{}>>("self_attention_2d")); }},
      of_example<SentenceAttention, "sentence_attention">(),
      of_example<ScalarGraph, "scalar_graph">(),
  };
  return all;
}

}  // namespace tessera::test
