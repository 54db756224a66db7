// A reduced instance of an architecture of timm: declared, traced, differentiated and interpreted, against golden/timm.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/headless.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/subgraph.hpp"
#include "codegen/passes/verify.hpp"
#include "models/vit.hpp"
#include "runtime/safetensors.hpp"
#include "tests/codegen/support/interpreter.hpp"
#include "tests/paths.hpp"

namespace tessera::test {

/// The sizes of the instances: two blocks, pictures of 24 x 16.
constexpr models::VitSpec reduced(models::VitSpec spec) {
  spec.image = {24, 16};
  spec.patch = 8;
  spec.width = 24;
  spec.heads = 2;
  spec.depth = 2;
  return spec;
}

/// The same with 10 classes, where there are any: those of tests/golden/timm.
constexpr models::VitSpec small(models::VitSpec spec) {
  spec = reduced(spec);
  if (spec.classes) spec.classes = 10;
  return spec;
}

/// Below tests/golden, or below TESSERA_SHARED/golden; empty where it is in neither.
inline std::filesystem::path timm_folder(const std::string& name) {
  const char* shared = std::getenv("TESSERA_SHARED");
  for (const std::filesystem::path& golden :
       {std::filesystem::path(paths::golden), std::filesystem::path(shared ? shared : "") / "golden"})
    if (std::filesystem::exists(golden / "timm" / name)) return golden / "timm" / name;
  return {};
}

inline Arrays timm_arrays(const std::string& name, const char* file) {
  Arrays arrays;
  for (const auto& [key, tensor] :
       runtime::read_safetensors(timm_folder(name) / (std::string(file) + ".safetensors")).tensors)
    arrays[key] = {tensor.shape, tensor.doubles()};
  return arrays;
}

/// The largest difference, as a share of the largest of theirs, or of `least` where that is more.
inline double distance(const Array& mine, const Array& theirs, double least) {
  double most = 0, largest = least;
  for (std::size_t i = 0; i < theirs.numbers.size(); ++i) {
    most = std::max(most, std::fabs(mine.numbers[i] - theirs.numbers[i]));
    largest = std::max(largest, std::fabs(theirs.numbers[i]));
  }
  return most / largest;
}

/// With the output "outputs" and the loss sum(outputs * grad_output).
template <class Model>
graph::Graph recorded() {
  using Images = std::tuple_element_t<0, typename detail::Signature<decltype(&Model::forward)>::arguments>;
  graph::Graph g;
  graph::Builder builder(g);
  const RecorderScope scope(builder);
  Model model;
  const Images images(builder.input("x", Images::shape.dims()));
  bind(model, "");
  const auto outputs = model(images);
  using Outputs = std::remove_const_t<decltype(outputs)>;
  const Outputs weights(builder.input("grad_output", Outputs::shape.dims()));
  std::vector<int> axes;
  for (int i = 0; i < Outputs::shape.rank; ++i) axes.push_back(i);
  g.outputs.push_back({graph::Output::Kind::value, "outputs", node_of(outputs), graph::none});
  const graph::NodeId loss = builder.reduce(graph::Op::reduce_sum, node_of(outputs * weights), axes);
  g.outputs.push_back({graph::Output::Kind::loss, "loss", loss, graph::none});
  return g;
}

/// Outputs within 1e-5, every gradient within 1e-4: as differentiated, and as the generator decomposes and simplifies.
inline void expect_timms_numbers(const std::string& name, const graph::Graph& forward) {
  Arrays given = timm_arrays(name, "params");
  const Arrays outputs = timm_arrays(name, "forward"), gradients = timm_arrays(name, "backward");
  given.merge(timm_arrays(name, "batch"));
  // Of a bias that a softmax takes no notice of, theirs is rounding: a share of the largest of all gradients.
  double largest = 0;
  for (const auto& [key, theirs] : gradients)
    for (const double number : theirs.numbers) largest = std::max(largest, std::fabs(number));
  const graph::Graph differentiated = codegen::differentiate(forward, true);
  const graph::Graph simple = codegen::simplify(codegen::decompose(differentiated));
  for (const auto& [stage, joint] : {std::pair("differentiated", &differentiated), std::pair("simplified", &simple)}) {
    codegen::verify(*joint);
    const Arrays results = interpret(*joint, 2, given);
    const Array& mine = results.at("outputs");
    ASSERT_EQ(mine.shape, outputs.at("outputs").shape);
    const double of_outputs = distance(mine, outputs.at("outputs"), 1e-3);
    EXPECT_LE(of_outputs, 1e-5) << name << ", " << stage;
    double of_gradients = 0;
    for (const auto& [key, theirs] : gradients) {
      const std::string own = key == "grad_input" ? "x" : key;
      ASSERT_TRUE(results.contains(own)) << name << " has no " << own;
      ASSERT_EQ(results.at(own).shape, theirs.shape) << own;
      const double apart = distance(results.at(own), theirs, 1e-3 * largest);
      EXPECT_LE(apart, 1e-4) << "gradient of " << own << ", " << stage;
      of_gradients = std::max(of_gradients, apart);
    }
    EXPECT_EQ(results.size(), gradients.size() + 3)
        << "more than outputs, loss, and gradients of timm's and grad_output";
    std::printf("  %s, %s: outputs %.1e, gradients %.1e\n", name.c_str(), stage, of_outputs, of_gradients);
  }
}

/// What `embed` gives, within 1e-5: features of which timm's head makes timm's outputs or, without a head, which are
/// timm's outputs; tokens that are timm's forward_features where the golden numbers have them; a pooling whose rows sum
/// to one.
inline void expect_timms_features(const std::string& name, const graph::Graph& recorded) {
  const graph::Graph forward = codegen::subgraph(recorded, {"outputs"});
  Arrays given = timm_arrays(name, "params");
  const Arrays theirs = timm_arrays(name, "forward");
  given.merge(timm_arrays(name, "batch"));
  ASSERT_EQ(codegen::has_head(forward), given.contains("head.weight")) << name;
  ASSERT_TRUE(codegen::embeds(forward)) << name;
  const graph::Graph embedding = codegen::embedding(forward);
  codegen::verify(embedding);
  const Arrays results = interpret(embedding, 2, given);
  const Array &features = results.at("features"), &outputs = theirs.at("outputs");
  Array made = features;
  const auto width = static_cast<std::size_t>(features.shape.back());
  if (given.contains("head_dist.weight")) {  // two heads, one of them of the second token
    const Array& tokens = results.at("tokens");
    made = Array{{2, features.shape[1]}, {}};
    const std::size_t image = tokens.numbers.size() / 2;
    for (std::size_t i = 0; i < 2 * width; ++i) {
      const std::size_t at = i / width * image + i % width;
      made.numbers.push_back((tokens.numbers[at] + tokens.numbers[at + width]) / 2);
    }
    EXPECT_LE(distance(features, made, 1e-3), 1e-12) << name << ": features";
  } else {
    if (given.contains("head.weight")) {
      const Array &weight = given.at("head.weight"), &bias = given.at("head.bias");
      made = Array{{2, weight.shape[0]}, {}};
      for (std::size_t image = 0; image < 2; ++image)
        for (std::size_t c = 0; c < bias.numbers.size(); ++c) {
          double sum = bias.numbers[c];
          for (std::size_t i = 0; i < width; ++i)
            sum += weight.numbers[c * width + i] * features.numbers[image * width + i];
          made.numbers.push_back(sum);
        }
    }
    ASSERT_EQ(made.shape, outputs.shape) << name;
    EXPECT_LE(distance(made, outputs, 1e-3), 1e-5) << name << ": features";
  }
  std::string compared = "features";
  if (theirs.contains("tokens")) {
    ASSERT_TRUE(results.contains("tokens")) << name;
    ASSERT_EQ(results.at("tokens").shape, theirs.at("tokens").shape) << name;
    EXPECT_LE(distance(results.at("tokens"), theirs.at("tokens"), 1e-3), 1e-5) << name << ": tokens";
    compared += ", tokens";
  }
  EXPECT_EQ(results.contains("pooling"), given.contains("attn_pool.latent")) << name;
  if (results.contains("pooling")) {
    const Array& pooling = results.at("pooling");
    const auto keys = static_cast<std::size_t>(pooling.shape.back());
    for (std::size_t first = 0; first < pooling.numbers.size(); first += keys) {
      double sum = 0;
      for (std::size_t i = 0; i < keys; ++i) sum += pooling.numbers[first + i];
      EXPECT_NEAR(sum, 1, 1e-12) << name;
    }
    compared += ", pooling";
  }
  std::printf("  %s: %s\n", name.c_str(), compared.c_str());
}

}  // namespace tessera::test

/// TIMM(name, model): the declaration gives what timm's architecture of that name does.
#define TIMM(name, ...)                                                                  \
  TEST(Timm, name) {                                                                     \
    if (tessera::test::timm_folder(#name).empty())                                       \
      GTEST_SKIP() << "TESSERA_SHARED names no folder with golden/timm/" #name;          \
    tessera::test::expect_timms_numbers(#name, tessera::test::recorded<__VA_ARGS__>());  \
    tessera::test::expect_timms_features(#name, tessera::test::recorded<__VA_ARGS__>()); \
  }
