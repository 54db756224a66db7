// The kernels of a list's elements stand in the file once; what is updated is what is trained.
#include <gtest/gtest.h>

#include <cstdint>
#include <regex>
#include <string>

#include "codegen/driver.hpp"
#include "dsl/trace.hpp"
#include "tests/cuda/toy_models.hpp"

namespace tessera::codegen::cuda {
namespace {

/// How often `what` stands in a text.
int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}
std::string program(const std::string& text, const std::string& which) {
  const std::size_t begin = text.find("\nvoid " + which + "(");
  return text.substr(begin, text.find("\n}\n", begin) - begin);
}

TEST(CudaAlike, HeadsHaveOneKernelLaunchedForEachOfThem) {
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.cuda = true;
  const graph::Graph traced = trace<models::ToyNotebookVit>("toy_notebook");
  const std::string text = generate(traced, options).at("toy_notebook_cuda.cu");
  const std::size_t at = text.find(") transformer_1_1_q_weights_0_forward(");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(text.substr(0, at).find("// for 4 kernels of the plan, of which this is the first\n", at - 120),
            std::string::npos);
  EXPECT_EQ(count(text, ") transformer_1_1_q_weights_1_forward("), 0);
  const std::string forward = program(text, "run_forward");
  EXPECT_EQ(count(forward, "launch(transformer_1_1_q_weights_0_forward,"), 4);
  for (int head = 0; head < 4; ++head) {
    const std::string result = "transformer_1_1_q_weights_" + std::to_string(head) + "_add";
    EXPECT_EQ(count(forward, ", " + result + ");"), 1) << "nothing makes " << result;
  }

  // One of them has another tile: a kernel of its own, and the others still share one.
  options.tiles = {{"transformer_1_1_q_weights_2_forward", "32x32"}};
  const std::string asked = generate(traced, options).at("toy_notebook_cuda.cu");
  ASSERT_EQ(count(asked, ") transformer_1_1_q_weights_2_forward("), 1);
  EXPECT_EQ(count(program(asked, "run_forward"), "launch(transformer_1_1_q_weights_0_forward,"), 3);
  EXPECT_EQ(count(program(asked, "run_forward"), "launch(transformer_1_1_q_weights_2_forward,"), 1);

  // What each of them should take stands under its own name.
  const std::string predicted = predict(traced, options, "sm_90a", 32);
  for (int head = 0; head < 4; ++head)
    EXPECT_GE(count(predicted, "\ntransformer_1_1_q_weights_" + std::to_string(head) + "_forward "), 1);
}

TEST(CudaUpdate, WhatIsNotTrainedHasZerosForGradientsAndIsNeitherUpdatedNorDecayed) {
  graph::Graph traced = trace<models::ToyVit>("frozen");
  traced.recipe.optimizer = graph::Recipe::Optimizer::adamw;
  traced.recipe.weight_decay = 0.1;
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.cuda = true;
  EXPECT_EQ(count(generate(traced, options).at("frozen_cuda.cu"), "zero_gradients"), 0);
  for (graph::Node& n : traced.nodes)
    if (n.op == graph::Op::parameter && n.name.starts_with("patch_embed.")) n.trained = false;
  const std::string text = generate(traced, options).at("frozen_cuda.cu");
  EXPECT_EQ(count(text, "launch(zero_gradients, "), 1);
  std::smatch all;
  ASSERT_TRUE(std::regex_search(text, all, std::regex("if \\(i < (\\d+)\\) gradients\\[i\\] = 0;")));
  std::int64_t updated = 0;
  const std::regex update("run_update\\(parameters,[^;]*,\\s+(\\d+),\\s+(\\d+),\\s+&step->stopped");
  for (std::sregex_iterator at(text.begin(), text.end(), update), end; at != end; ++at)
    updated += std::stoll((*at)[2]) - std::stoll((*at)[1]);
  // [24, 3, 8, 8], and [24] on multiples of 16 numbers.
  EXPECT_EQ(updated, std::stoll(all[1]) - 24 * 3 * 8 * 8 - 32);
}

}  // namespace
}  // namespace tessera::codegen::cuda
