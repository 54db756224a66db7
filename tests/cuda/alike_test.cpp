// Which kernels stand in the file once: those that differ in names alone, and whose own differ in numbers alone.
#include "codegen/cuda/alike.hpp"

#include <gtest/gtest.h>

#include <set>

#include "codegen/driver.hpp"
#include "dsl/trace.hpp"
#include "tests/cuda/toy_models.hpp"

namespace tessera::codegen::cuda {
namespace {

using tree::binary;
using tree::call;
using tree::index;
using tree::integer;
using tree::name;

/// to[at] = from[at] + bias[at] for the `steps` elements of an array, by way of a lambda.
tree::Function function(const std::string& own, const std::string& from, const std::string& to,
                        const std::string& at = "at", int steps = 4) {
  tree::Function f;
  f.comment = {own + " of " + from};
  f.name = own;
  f.parameters = {{"const real*", from}, {"const real*", "bias"}, {"real*", to}};
  f.body = {tree::comment("of " + from), tree::declare("real", "kept[3]", nullptr),
            tree::lambda("store", {{"int", at}},
                         {tree::evaluate(binary("=", index(name(to), name(at)),
                                                index(name(from), name(at)) + index(name("bias"), name(at))))}),
            tree::loop("int", "step", integer(0), binary("<", name("step"), integer(steps)), 1,
                       {tree::assign("kept[0]", index(name(from), name("step"))),
                        tree::evaluate(call("store", {name("step")}))})};
  return f;
}

TEST(CudaAlike, NamesDoNotMatter) {
  const std::string text = alike_text(function("heads_0_forward", "q", "out"));
  EXPECT_EQ(text, alike_text(function("heads_0_forward", "a_much_longer_name_of_a_tensor", "b", "element")));
  EXPECT_EQ(text, alike_text(function("heads_11_forward", "q", "out")));
  EXPECT_NE(text, alike_text(function("heads_forward", "q", "out")));
  EXPECT_NE(text, alike_text(function("heads_0_backward", "q", "out")));
  EXPECT_NE(text, alike_text(function("heads1_0_forward", "q", "out")));
}

TEST(CudaAlike, AllElseDoes) {
  const tree::Function f = function("f", "q", "out");
  const std::string text = alike_text(f);
  EXPECT_NE(text, alike_text(function("f", "q", "out", "at", 5)));
  std::set<std::string> others{text};
  const auto other = [&](auto edit) {
    tree::Function g = f;
    edit(g);
    EXPECT_TRUE(others.insert(alike_text(g)).second) << tree::print(g);
  };
  other([](tree::Function& g) { g.parameters[0].type = "const bf16*"; });
  other([](tree::Function& g) { g.returns = "void __launch_bounds__(128, 2)"; });
  other([](tree::Function& g) { std::swap(g.parameters[0], g.parameters[1]); });
  other([](tree::Function& g) { g.body[1].name = "kept[4]"; });
  other([](tree::Function& g) { g.body[3].body[0].name = "kept[1]"; });
  other([](tree::Function& g) { g.body[3].body[0].value = index(name("bias"), name("step")); });
  other([](tree::Function& g) { g.body[3].body[1].value = call("keep", {name("step")}); });
  other([](tree::Function& g) { g.body[3].type = "std::int64_t"; });
  other([](tree::Function& g) { g.body[3].step = 2; });
}

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

}  // namespace
}  // namespace tessera::codegen::cuda
