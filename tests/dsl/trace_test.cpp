// trace: inputs, outputs, regions, and what it refuses.
#include "dsl/trace.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "dsl/keys.hpp"
#include "dsl/tessera.hpp"

namespace {

using namespace tessera;

constexpr auto B = axis<"B">;
constexpr auto D = axis<"D", 8>;

struct Block : Module {
  LayerNorm<D> norm;
  TESSERA_MEMBERS(Block, norm)
  Tensor<B, D> forward(Tensor<B, D> x) const { return x + norm(x); }
};

struct Plain : Module {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.25, .beta1 = 0.5},
                                 .batch = 3,
                                 .epochs = 2,
                                 .seed = 9,
                                 .input = {.mean = {0.5, 0.25, 0.125},
                                           .deviation = 2,
                                           .crop = 0.875,
                                           .interpolation = Interpolation::bilinear,
                                           .fit = Fit::squash}};
  Stack<Block, 3> blocks;
  Linear<D, 2_c> head;
  TESSERA_MEMBERS(Plain, blocks, head)
  Tensor<B, 2_c> forward(Tensor<B, D> x) const { return head(blocks(x)); }
};

/// No recipe: for inference.
struct ForwardAlone : Module {
  static constexpr Preprocessing input{.mean = 0.5, .deviation = {1, 2, 3}};
  Stack<Block, 3> blocks;
  Linear<D, 2_c> head;
  TESSERA_MEMBERS(ForwardAlone, blocks, head)
  Tensor<B, 2_c> forward(Tensor<B, D> x) const { return head(blocks(x)); }
};

/// A member may be called what the declared preprocessing is called.
struct ForwardAloneWithAnIdleMember : Module {
  Linear<D, D> input, idle, dropped;
  TESSERA_MEMBERS(ForwardAloneWithAnIdleMember, input, idle, dropped)
  Tensor<B, D> forward(Tensor<B, D> x) const {
    static_cast<void>(dropped(x));
    return input(x);
  }
};

struct DropsAttention : Module {
  static constexpr Recipe recipe{};
  Linear<D, D> attention, proj;
  TESSERA_MEMBERS(DropsAttention, attention, proj)
  Tensor<B, D> forward(Tensor<B, D> x) const {
    const auto forgotten = attention(x);
    static_cast<void>(forgotten);
    return proj(x);
  }
};

/// The published mistake: attention is computed within a block and left out of the residual sum.
struct BlockWithoutResidual : Module {
  LayerNorm<D> norm;
  Linear<D, D> attn, mlp;
  TESSERA_MEMBERS(BlockWithoutResidual, norm, attn, mlp)
  Tensor<B, D> forward(Tensor<B, D> x) const {
    const auto attended = softmax<-1>(attn(norm(x)));
    static_cast<void>(attended);
    return x + mlp(x);
  }
};

struct LeavesAttentionOut : Module {
  static constexpr Recipe recipe{};
  Stack<BlockWithoutResidual, 3> blocks;
  TESSERA_MEMBERS(LeavesAttentionOut, blocks)
  Tensor<B, D> forward(Tensor<B, D> x) const { return blocks(x); }
};

struct DropsAResultWithoutParameters : Module {
  static constexpr Recipe recipe{};
  Linear<D, D> proj;
  TESSERA_MEMBERS(DropsAResultWithoutParameters, proj)
  Tensor<B, D> forward(Tensor<B, D> x) const {
    static_cast<void>(gelu(relu(x)));
    return proj(x);
  }
};

struct DropsAStack : Module {
  static constexpr Recipe recipe{};
  Stack<Block, 3> blocks;
  Linear<D, D> head;
  TESSERA_MEMBERS(DropsAStack, blocks, head)
  Tensor<B, D> forward(Tensor<B, D> x) const {
    static_cast<void>(blocks(x));
    return head(x);
  }
};

struct NeverCallsAMember : Module {
  static constexpr Recipe recipe{};
  Linear<D, D> used, idle;
  TESSERA_MEMBERS(NeverCallsAMember, used, idle)
  Tensor<B, D> forward(Tensor<B, D> x) const { return used(x); }
};

struct LearnsThroughAStep : Module {
  static constexpr Recipe recipe{};
  Linear<D, D> proj;
  Parameter<D> threshold;
  TESSERA_MEMBERS(LearnsThroughAStep, proj, threshold)
  Tensor<B, D> forward(Tensor<B, D> x) const {
    const Tensor<B, D> y = proj(x) + threshold;
    return proj(x) * Tensor<B, D>(recorder().unary(graph::Op::step, node_of(y)));
  }
};

struct IgnoresTheImages : Module {
  static constexpr Recipe recipe{};
  Parameter<1_c, D> answer;
  TESSERA_MEMBERS(IgnoresTheImages, answer)
  Tensor<B, D> forward(Tensor<B, D>) const { return repeat<"1 d -> b d">(answer, "b"_is(B)); }
};

struct ForgetsAMember : Module {
  static constexpr Recipe recipe{};
  Linear<D, D> listed, forgotten;
  TESSERA_MEMBERS(ForgetsAMember, listed)
  Tensor<B, D> forward(Tensor<B, D> x) const { return forgotten(listed(x)); }
};

struct NestThatForgets : Module {
  Stack<Block, 2> inner;
  Linear<D, D> listed;
  TESSERA_MEMBERS(NestThatForgets, listed)
  Tensor<B, D> forward(Tensor<B, D> x) const { return listed(inner(x)); }
};

struct ForgetsAStack : Module {
  static constexpr Recipe recipe{};
  NestThatForgets nest;
  TESSERA_MEMBERS(ForgetsAStack, nest)
  Tensor<B, D> forward(Tensor<B, D> x) const { return nest(x); }
};

struct AddsADefaultTensor : Module {
  static constexpr Recipe recipe{};
  TESSERA_MEMBERS(AddsADefaultTensor)
  Tensor<B, D> forward(Tensor<B, D> x) const { return x + Tensor<B, D>{}; }
};

struct StacksASequential : Module {
  Stack<Sequential<Block, Linear<D, D>>, 3> layers;
  TESSERA_MEMBERS(StacksASequential, layers)
  Tensor<B, D> forward(Tensor<B, D> x) const { return layers(x); }
};

struct StacksInTurns : Module {
  Stack<InTurns<Block, Linear<D, D>, Gelu>, 2> layers;
  TESSERA_MEMBERS(StacksInTurns, layers)
  Tensor<B, D> forward(Tensor<B, D> x) const { return layers(x); }
};
struct TakesTurnsOutsideAStack : Module {
  static constexpr Recipe recipe{};
  InTurns<Block, Linear<D, D>> layers;
  TESSERA_MEMBERS(TakesTurnsOutsideAStack, layers)
  Tensor<B, D> forward(Tensor<B, D> x) const { return layers(x); }
};

struct Shifted : Module {
  Linear<D, D> map;
  TESSERA_MEMBERS(Shifted, map)
  Tensor<B, D> shift;
  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x) + shift; }
};
struct OtherShifted : Shifted {
  LayerNorm<D> norm;
  TESSERA_MEMBERS(OtherShifted, map, norm)
  Tensor<B, D> forward(Tensor<B, D> x) const { return map(norm(x)) + shift; }
};

struct StacksOfSeveral : Module {
  static constexpr Recipe recipe{};
  Stacks<Stack<Shifted, 2>, Stack<OtherShifted, 3>, Stack<Shifted, 1>> blocks;
  TESSERA_MEMBERS(StacksOfSeveral, blocks)
  Tensor<B, D> forward(Tensor<B, D> x) const {
    return blocks(x, [&](auto& block) { block.shift = x; });
  }
};

struct AppliesStacksTwice : Module {
  static constexpr Recipe recipe{};
  Stacks<Stack<Block, 3>, Stack<Block, 1>> blocks;
  TESSERA_MEMBERS(AppliesStacksTwice, blocks)
  Tensor<B, D> forward(Tensor<B, D> x) const { return blocks(blocks(x)); }
};

struct AppliesAStackTwice : Module {
  static constexpr Recipe recipe{};
  Stack<Block, 3> blocks;
  TESSERA_MEMBERS(AppliesAStackTwice, blocks)
  Tensor<B, D> forward(Tensor<B, D> x) const { return blocks(blocks(x)); }
};

struct Nest : Module {
  Stack<Block, 2> inner;
  TESSERA_MEMBERS(Nest, inner)
  Tensor<B, D> forward(Tensor<B, D> x) const { return inner(x); }
};

struct NestsStacks : Module {
  static constexpr Recipe recipe{};
  Stack<Nest, 3> outer;
  TESSERA_MEMBERS(NestsStacks, outer)
  Tensor<B, D> forward(Tensor<B, D> x) const { return outer(x); }
};

struct Shares : Module {
  static constexpr Recipe recipe{};
  Repeat<3> times;
  Linear<D, D> map;
  TESSERA_MEMBERS(Shares, times, map)
  Tensor<B, D> forward(Tensor<B, D> x) const { return times(x, map); }
};

struct AppliesARepeatTwice : Module {
  static constexpr Recipe recipe{};
  Repeat<3> times;
  Linear<D, D> map;
  TESSERA_MEMBERS(AppliesARepeatTwice, times, map)
  Tensor<B, D> forward(Tensor<B, D> x) const { return times(times(x, map), map); }
};

struct NestsRepeats : Module {
  static constexpr Recipe recipe{};
  Repeat<3> outer, inner;
  Linear<D, D> map;
  TESSERA_MEMBERS(NestsRepeats, outer, inner, map)
  Tensor<B, D> forward(Tensor<B, D> x) const {
    return outer(x, [this](const auto& y) { return inner(y, map); });
  }
};

struct HasASecondUnknownAxis : Module {
  static constexpr Recipe recipe{};
  static constexpr auto T = axis<"T">;
  Linear<D, D> proj;
  TESSERA_MEMBERS(HasASecondUnknownAxis, proj)
  Tensor<B, D> forward(Tensor<B, D> x) const {
    return einsum<"b t d -> b d">(proj(repeat<"b d -> b t d">(x, "t"_is(T))));
  }
};

template <class Model>
std::string refusal() {
  try {
    trace<Model>("model");
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST(Trace, MakesImagesAndLabelsTheInputs) {
  const graph::Graph g = trace<Plain>("plain");
  EXPECT_EQ(g.name, "plain");
  EXPECT_EQ(g[0].name, "images");
  EXPECT_EQ(g[0].shape, (Tensor<B, D>::shape.dims()));
  EXPECT_EQ(g[1].name, "labels");
  EXPECT_EQ(g[1].type, graph::Type::integer);
  EXPECT_EQ(g[1].shape, (Tensor<B>::shape.dims()));
}

TEST(Trace, MakesOutputsAndLossTheOutputs) {
  const graph::Graph g = trace<Plain>("plain");
  ASSERT_EQ(g.outputs.size(), 2U);
  EXPECT_EQ(g.outputs[0].name, "outputs");
  EXPECT_EQ(g.outputs[0].kind, graph::Output::Kind::value);
  EXPECT_EQ(g.outputs[1].name, "loss");
  EXPECT_EQ(g.outputs[1].kind, graph::Output::Kind::loss);
  EXPECT_EQ(g[g.outputs[1].node].op, graph::Op::cross_entropy);
  EXPECT_EQ(g[g.outputs[1].node].operands, (std::vector<graph::NodeId>{g.outputs[0].node, 1}));
}

/// Tokens to the logits of the next ones.
struct OfTokens : Module {
  Embedding<6_c, D> table;
  LinearWithoutBias<D, 6_c> head;
  TESSERA_MEMBERS(OfTokens, table, head)
  static constexpr Recipe recipe{};
  Tensor<B, 2_c, 6_c> forward(Integers<B, 2_c> tokens) const { return head(table(tokens)); }
};
struct OfTokensWithALossOfItsOwn : OfTokens {
  Tensor<> loss(Tensor<B, 2_c, 6_c> outputs, Integers<B, 2_c> labels) const {
    return cross_entropy<0.1>(outputs, labels) + cross_entropy_of_probabilities(softmax<-1>(outputs), labels);
  }
};
TEST(Trace, MakesIntegersTheInputTokensAndTheLabelsOfEachOfThem) {
  for (const graph::Graph& g : {trace<OfTokens>("tokens"), trace<OfTokensWithALossOfItsOwn>("tokens")}) {
    EXPECT_EQ(g[0].name, "tokens");
    EXPECT_EQ(g[0].type, graph::Type::integer);
    EXPECT_EQ(g[0].shape, (Tensor<B, 2_c>::shape.dims()));
    EXPECT_EQ(g[1].name, "labels");
    EXPECT_EQ(g[1].type, graph::Type::integer);
    EXPECT_EQ(g[1].shape, (Tensor<B, 2_c>::shape.dims()));
  }
  static_assert(is_integers<Integers<B>> && !is_integers<Tensor<B>>);
}

struct OfTargets : Plain {
  Tensor<> loss(Tensor<B, 2_c> outputs, Tensor<B, 2_c, D> targets) const {
    return mean(abs(repeat<"b j -> b j d">(outputs, "d"_is(D)) - targets));
  }
};
struct OfTargetsThatAreNotRead : Plain {
  Tensor<> loss(Tensor<B, 2_c> outputs, Tensor<B, D>) const { return mean(outputs); }
};
/// A member may be called loss.
struct WithAMemberCalledLoss : Module {
  Linear<D, D> loss;
  TESSERA_MEMBERS(WithAMemberCalledLoss, loss)
  Tensor<B, D> forward(Tensor<B, D> x) const { return loss(x); }
};
struct OfTheCaller : Plain {
  static constexpr Recipe recipe{.loss = Loss::of_caller};
};

TEST(Trace, TakesTheLossThatAModelDeclares) {
  const graph::Graph g = trace<OfTargets>("plain");
  EXPECT_EQ(g[1].name, "targets");
  EXPECT_EQ(g[1].type, graph::Type::real);
  EXPECT_EQ(g[1].shape, (Tensor<B, 2_c, D>::shape.dims()));
  ASSERT_EQ(g.outputs.size(), 2U);
  EXPECT_EQ(g.outputs[1].name, "loss");
  EXPECT_EQ(g.outputs[1].kind, graph::Output::Kind::loss);
  EXPECT_EQ(g[g.outputs[1].node].op, graph::Op::divide);
  EXPECT_EQ(refusal<OfTargetsThatAreNotRead>(), "model does not use targets");
  EXPECT_EQ(trace<WithAMemberCalledLoss>("model").outputs.size(), 1U);
}

TEST(Trace, TakesTheGradientOfTheOutputsWhereTheLossIsTheCallers) {
  const graph::Graph g = trace<OfTheCaller>("plain");
  EXPECT_EQ(g[1].name, "output_gradients");
  EXPECT_EQ(g[1].shape, g[g.outputs[0].node].shape);
  const graph::Node& sum = g[g.outputs[1].node];
  EXPECT_EQ(sum.op, graph::Op::reduce_sum);
  EXPECT_EQ(g[sum.operands[0]].op, graph::Op::multiply);
  EXPECT_EQ(g[sum.operands[0]].operands, (std::vector<graph::NodeId>{g.outputs[0].node, 1}));
}

TEST(Trace, FillsTheRecipeIn) {
  const graph::Recipe r = trace<Plain>("plain").recipe;
  EXPECT_EQ(r.batch, 3);
  EXPECT_EQ(r.epochs, 2);
  EXPECT_EQ(r.seed, 9U);
  EXPECT_EQ(r.learning_rate, 0.25);
  EXPECT_EQ(r.beta1, 0.5);
  EXPECT_EQ(r.beta2, 0.999);
  EXPECT_EQ(r.epsilon, 1e-8);
  EXPECT_EQ(r.input_mean, (std::array<double, 3>{0.5, 0.25, 0.125}));
  EXPECT_EQ(r.input_deviation, (std::array<double, 3>{2, 2, 2}));
  EXPECT_EQ(r.input_crop, 0.875);
  EXPECT_TRUE(r.input_bilinear && r.input_fit == graph::Recipe::Fit::squash);
}

TEST(Trace, HowPicturesAreScaledNeedsACrop) {
  constexpr Preprocessing fitted_linearly{.interpolation = Interpolation::bilinear}, squashed{.fit = Fit::squash};
  static_assert(detail::recipe_fault({.input = fitted_linearly}).name == "input.interpolation");
  static_assert(detail::recipe_fault({.input = squashed}).name == "input.fit");
  constexpr Preprocessing padded{.crop = 1, .fit = Fit::pad}, cut_and_padded{.crop = 0.9, .fit = Fit::pad};
  static_assert(detail::recipe_fault({.input = padded}).name.empty());
  static_assert(detail::recipe_fault({.input = cut_and_padded}).name == "input.fit");
  static_assert(detail::recipe_fault(Plain::recipe).name.empty());
}

TEST(Trace, WithoutARecipeIsAForwardPassAlone) {
  const graph::Graph g = trace<ForwardAlone>("alone");
  ASSERT_EQ(g.outputs.size(), 1U);
  EXPECT_EQ(g.outputs[0].name, "outputs");
  EXPECT_EQ(g.outputs[0].kind, graph::Output::Kind::value);
  for (const graph::Node& n : g.nodes) {
    EXPECT_NE(n.name, "labels");
    EXPECT_NE(n.op, graph::Op::cross_entropy);
  }
  EXPECT_EQ(g.recipe.input_mean, (std::array<double, 3>{0.5, 0.5, 0.5}));
  EXPECT_EQ(g.recipe.input_deviation, (std::array<double, 3>{1, 2, 3}));
  EXPECT_TRUE(HasRecipe<Plain> && !HasRecipe<ForwardAlone>);
}

TEST(Trace, WithoutARecipeRefusesWhatIsNotUsed) {
  EXPECT_EQ(refusal<ForwardAloneWithAnIdleMember>(),
            "model does not use idle.weight, idle.bias, add [B, D=8] of dropped");
}

TEST(Trace, RecordsAStackOnceAsARegion) {
  const graph::Graph g = trace<Plain>("plain");
  ASSERT_EQ(g.regions.size(), 2U);
  EXPECT_EQ(g.regions[1].path, "blocks");
  EXPECT_EQ(g.regions[1].count, 3);
  ASSERT_EQ(g.regions[1].carries.size(), 1U);
  const graph::Node& carry = g[g.regions[1].carries[0]];
  EXPECT_EQ(carry.op, graph::Op::carry);
  EXPECT_EQ(carry.operands, std::vector<graph::NodeId>{0});
  const graph::Node& yield = g[g.regions[1].yields[0]];
  EXPECT_EQ(yield.op, graph::Op::add);
  EXPECT_EQ(yield.path, "blocks.{}");
  int layers = 0;
  for (const graph::Node& node : g.nodes)
    if (node.op == graph::Op::parameter && node.region == 1) {
      ++layers;
      EXPECT_TRUE(node.name.starts_with("blocks.{}.norm.")) << node.name;
    }
  EXPECT_EQ(layers, 2);
}

TEST(Trace, RecordsARepeatOnceAsARegionWithoutParametersOfItsOwn) {
  const graph::Graph g = trace<Shares>("shares");
  ASSERT_EQ(g.regions.size(), 2U);
  EXPECT_EQ(g.regions[1].path, "times");
  EXPECT_EQ(g.regions[1].count, 3);
  int maps = 0;
  for (const graph::Node& node : g.nodes) {
    maps += node.op == graph::Op::einsum;
    if (node.op != graph::Op::parameter) continue;
    EXPECT_EQ(node.region, 0) << node.name;
    EXPECT_TRUE(node.name.starts_with("map.")) << node.name;
  }
  EXPECT_EQ(maps, 1);
  EXPECT_EQ(g[g.regions[1].yields[0]].path, "map");
  EXPECT_EQ(g[g.outputs[0].node].op, graph::Op::carry_out);
}

TEST(Trace, RefusesARepeatThatIsAppliedTwice) {
  EXPECT_EQ(refusal<AppliesARepeatTwice>(), "times is applied twice; declare a Repeat for each");
}

TEST(Trace, RefusesARepeatWithinARepeat) {
  EXPECT_EQ(refusal<NestsRepeats>(), "inner stands within another repeated block; they do not nest");
}

TEST(Trace, LeavesNoRecorderBehind) {
  trace<Plain>("plain");
  EXPECT_THROW(recorder(), std::logic_error);
}

TEST(Trace, OfTheSameDeclarationIsTheSameGraph) {
  const graph::Graph a = trace<Plain>("plain"), b = trace<Plain>("plain");
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    EXPECT_EQ(a.nodes[i].op, b.nodes[i].op);
    EXPECT_EQ(a.nodes[i].operands, b.nodes[i].operands);
    EXPECT_EQ(a.nodes[i].name, b.nodes[i].name);
  }
}

TEST(Trace, RefusesAResultThatIsLeftOutAndNamesItsParameters) {
  EXPECT_EQ(refusal<DropsAttention>(),
            "model does not use add [B, D=8] of attention; no gradient would reach attention.weight, attention.bias");
}

TEST(Trace, RefusesAnAttentionThatIsLeftOutOfTheResidualSum) {
  EXPECT_EQ(refusal<LeavesAttentionOut>(),
            "model does not use softmax [B, D=8] of blocks.{}; no gradient would reach blocks.{}.norm.weight, "
            "blocks.{}.norm.bias, blocks.{}.attn.weight, blocks.{}.attn.bias");
}

TEST(Trace, RefusesAnUnusedResultWithoutParametersAndNamesTheLastOfItsKind) {
  EXPECT_EQ(refusal<DropsAResultWithoutParameters>(), "model does not use gelu [B, D=8]");
}

TEST(Trace, RefusesAStackWhoseResultIsLeftOut) {
  EXPECT_EQ(refusal<DropsAStack>(),
            "model does not use the result [B, D=8] of blocks; no gradient would reach blocks.{}.norm.weight, "
            "blocks.{}.norm.bias");
}

TEST(Trace, RefusesAMemberThatIsNeverCalled) {
  EXPECT_EQ(refusal<NeverCallsAMember>(), "model: no gradient would reach idle.weight, idle.bias");
}

TEST(Trace, RefusesAParameterThatIsUsedWhereNoGradientFlows) {
  EXPECT_EQ(refusal<LearnsThroughAStep>(), "model: no gradient would reach threshold");
}

TEST(Trace, RefusesAModelThatDoesNotLookAtItsImages) {
  EXPECT_EQ(refusal<IgnoresTheImages>(), "model does not use images");
}

TEST(Trace, RefusesASecondAxisWithoutASize) {
  EXPECT_EQ(
      refusal<HasASecondUnknownAxis>(),
      "model uses T in broadcast [B, T, D=8]: its size is not known, and only the batch, B, may be left to when the "
      "program runs");
}

TEST(Trace, RefusesAParameterThatIsNoMember) {
  EXPECT_EQ(
      refusal<ForgetsAMember>(),
      std::filesystem::exists(__FILE__)
          ? "ForgetsAMember uses forgotten, which its TESSERA_MEMBERS does not list"
          : "ForgetsAMember uses a member that its TESSERA_MEMBERS does not list: the one declared behind listed");
}

TEST(Trace, RefusesAStackThatIsNoMember) {
  EXPECT_EQ(
      refusal<ForgetsAStack>(),
      std::filesystem::exists(__FILE__)
          ? "NestThatForgets, nest, uses inner, which its TESSERA_MEMBERS does not list"
          : "NestThatForgets, nest, uses a member that its TESSERA_MEMBERS does not list: the one declared first");
}

TEST(Trace, RefusesATensorWithoutAValue) {
  EXPECT_EQ(refusal<AddsADefaultTensor>(), "a default Tensor is used, which has no value");
}

TEST(Trace, RecordsAStackOfASequential) {
  std::vector<std::string> keys;
  const graph::Graph g = trace<StacksASequential>("model");
  for (const graph::Node& n : g.nodes)
    if (n.op == graph::Op::parameter) keys.push_back(n.name);
  EXPECT_EQ(keys, (std::vector<std::string>{"layers.{}.0.norm.weight", "layers.{}.0.norm.bias", "layers.{}.1.weight",
                                            "layers.{}.1.bias"}));
  EXPECT_EQ(g.regions.at(1).count, 3);
  EXPECT_EQ(parameter_count<StacksASequential>(), 3 * (8 + 8 + 8 * 8 + 8));
}

TEST(Trace, RecordsModulesInTurnsOnceAndNumbersThemThrough) {
  const graph::Graph g = trace<StacksInTurns>("model");
  std::vector<std::string> keys, all;
  for (const graph::Node& n : g.nodes)
    if (n.op == graph::Op::parameter) keys.push_back(n.name);
  EXPECT_EQ(keys, (std::vector<std::string>{"layers.{0:3}.norm.weight", "layers.{0:3}.norm.bias", "layers.{1:3}.weight",
                                            "layers.{1:3}.bias"}));
  auto look = [&](std::string_view key) { all.emplace_back(key); };
  detail::TrainableKeys<StacksInTurns>::visit(Text{}, look);
  EXPECT_EQ(all, keys);
  EXPECT_EQ(g.regions.at(1).count, 2);
  EXPECT_EQ(parameter_count<StacksInTurns>(), 2 * (8 + 8 + 8 * 8 + 8));
  EXPECT_EQ(refusal<TakesTurnsOutsideAStack>(), "layers is InTurns, and the block of no Stack");
}

TEST(Trace, RefusesAStackThatIsAppliedTwice) {
  EXPECT_EQ(refusal<AppliesAStackTwice>(), "blocks is applied twice; apply a plain block to share weights");
}

TEST(Trace, NumbersStacksOfDifferentBlocksThrough) {
  const graph::Graph g = trace<StacksOfSeveral>("model");
  std::vector<std::pair<std::string, int>> regions;
  for (const graph::Region& region : g.regions) regions.emplace_back(region.path, region.count);
  EXPECT_EQ(regions, (std::vector<std::pair<std::string, int>>{
                         {"", 1}, {"blocks.0-1", 2}, {"blocks.2-4", 3}, {"blocks.5-5", 1}}));
  std::vector<std::string> keys;
  for (const graph::Node& node : g.nodes)
    if (node.op == graph::Op::parameter) keys.push_back(node.name);
  EXPECT_EQ(keys, (std::vector<std::string>{"blocks.{}.map.weight", "blocks.{}.map.bias", "blocks.{2}.map.weight",
                                            "blocks.{2}.map.bias", "blocks.{2}.norm.weight", "blocks.{2}.norm.bias",
                                            "blocks.{5}.map.weight", "blocks.{5}.map.bias"}));
  std::vector<std::string> trainable;
  auto look = [&](std::string_view key) { trainable.emplace_back(key); };
  detail::TrainableKeys<StacksOfSeveral>::visit(Text{}, look);
  EXPECT_EQ(trainable, keys);
  // What leaves one enters the next.
  for (std::size_t i = 2; i < g.regions.size(); ++i) {
    const graph::Node& entering = g[g[g.regions[i].carries[0]].operands[0]];
    EXPECT_EQ(entering.op, graph::Op::carry_out);
    EXPECT_EQ(g[entering.operands[0]].region, static_cast<int>(i) - 1);
  }
}

TEST(Trace, RefusesStacksThatAreAppliedTwice) {
  EXPECT_EQ(refusal<AppliesStacksTwice>(), "blocks.0-2 is applied twice; apply a plain block to share weights");
}

TEST(Trace, RefusesAStackWithinAStack) {
  EXPECT_EQ(refusal<NestsStacks>(), "outer.{}.inner stands within another Stack; stacks do not nest");
}

}  // namespace
