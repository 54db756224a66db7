// Memory: what is planned, how near it is to what is needed, what the verifier of plans finds; and where parameters
// lie.
#include "codegen/plan/plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "codegen/error.hpp"
#include "codegen/kernels/lower.hpp"
#include "codegen/kernels/print.hpp"
#include "codegen/kernels/verify.hpp"
#include "codegen/passes/canonical_order.hpp"
#include "codegen/passes/dead_slices.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/gemm_operands.hpp"
#include "codegen/passes/pipeline.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/subgraph.hpp"
#include "codegen/plan/arena.hpp"
#include "codegen/plan/attention.hpp"
#include "codegen/plan/tuned.hpp"
#include "dsl/trace.hpp"
#include "models/taming.hpp"
#include "models/vit.hpp"
#include "models/vit_cifar.hpp"
#include "models/vit_mnist.hpp"
#include "models/vit_relpos.hpp"
#include "tests/codegen/support/sketch.hpp"
#include "tests/models/deep_model.hpp"

namespace tessera::test {
namespace {

using codegen::Arena;
using codegen::ArenaEntry;
using codegen::Buffer;
using codegen::Plan;
using graph::Graph;
using graph::NodeId;
using graph::Op;

constexpr int b = 'b', i = 'i', j = 'j', k = 'k';

Plan planned(const Graph& graph, codegen::ProgramKind kind) {
  return codegen::make_plan(codegen::lower(codegen::simplify(codegen::decompose(graph)), kind),
                            codegen::targets_of(codegen::Precision::fp32));
}

/// As the generator plans the forward pass of a declared model.
Plan forward_pass(const Graph& declared) {
  const Graph outputs = codegen::subgraph(codegen::canonical_order(declared), {"outputs"});
  const Graph primitive = codegen::copy_operands_n_innermost(codegen::simplify(codegen::decompose(outputs)));
  return codegen::make_plan(codegen::lower(primitive, codegen::ProgramKind::forward),
                            codegen::targets_of(codegen::Precision::fp32));
}

/// As the generator plans the gradients of a declared model, in which probabilities are computed again.
Plan gradients_of(const Graph& declared, codegen::Precision precision = codegen::Precision::fp32) {
  constexpr auto kind = codegen::ProgramKind::loss_and_gradients;
  const Graph primitive = codegen::passed(
      codegen::passed(
          codegen::passed(codegen::passed(declared, codegen::declaration_passes()), codegen::program_passes(kind)),
          codegen::primitive_passes()),
      codegen::cpu_graph_passes());
  codegen::KernelProgram program = codegen::lower(primitive, kind);
  program.precision = precision;
  return codegen::make_plan(std::move(program), codegen::targets_of(precision));
}

/// Forward, evaluation and training step of a declared model.
std::vector<Plan> plans(const Graph& declared) {
  const Graph graph = codegen::canonical_order(declared);
  std::vector<Plan> all;
  all.push_back(planned(codegen::subgraph(graph, {"outputs"}), codegen::ProgramKind::forward));
  all.push_back(planned(graph, codegen::ProgramKind::evaluate));
  all.push_back(planned(codegen::differentiate(graph, false), codegen::ProgramKind::loss_and_gradients));
  return all;
}

const std::vector<Plan>& vit_mnist() {
  static const std::vector<Plan> all = plans(trace<models::vit_mnist::VitMnist>("vit_mnist"));
  return all;
}

/// Three linear layers with tanh in a repeated block, then a head with cross entropy.
Graph stack() {
  Sketch s;
  s.graph.name = "stack";
  auto linear = [&](NodeId x, const std::string& path, const Dim& to) {
    const NodeId weight = s.parameter(path + ".weight", {to, s.b.shape(x).back()}),
                 bias = s.parameter(path + ".bias", {to});
    const NodeId y = s.b.einsum({x, weight}, {{b, i, j}, {k, j}, {b, i, k}});
    return s.b.add(y, s.b.broadcast(bias, s.b.shape(y), {2}));
  };
  const NodeId embedded = linear(s.input("images", {s.B, s.I, s.J}), "embed", s.J);
  s.b.begin_region("blocks", 3);
  const NodeId carry = s.b.carry(embedded);
  const NodeId y = s.b.add(carry, linear(s.b.unary(Op::tanh, linear(carry, "blocks.{}.0", s.I)), "blocks.{}.1", s.J));
  const NodeId out = linear(s.b.end_region({y})[0], "head", s.K);
  const NodeId logits = s.b.reduce(Op::reduce_sum, out, {1});
  s.value("outputs", logits);
  s.loss(s.b.cross_entropy(logits, s.labels("labels", {s.B}, 2)));
  return s.graph;
}

TEST(PlanMemory, IsNeverLessThanWhatIsLiveAtOnce) {
  for (const std::vector<Plan>& all : {plans(stack()), vit_mnist()})
    for (const Plan& plan : all) {
      EXPECT_LE(plan.lower_bound.fixed, plan.scratch.fixed) << plan.program.name;
      EXPECT_LE(plan.lower_bound.per_batch, plan.scratch.per_batch) << plan.program.name;
    }
}

TEST(PlanMemory, OfTheModelsIsWithinThreePercentOfWhatIsLiveAtOnce) {
  for (const std::vector<Plan>& all :
       {vit_mnist(), plans(trace<models::CifarVit<models::CifarVitSpec{}>>("vit_cifar")),
        plans(trace<models::VitTiny>("vit_tiny")), plans(trace<models::VitBase>("vit_base"))})
    for (const Plan& plan : all)
      for (const std::int64_t images : {1, 128})
        EXPECT_LE(static_cast<double>(plan.scratch.at(images)), 1.03 * static_cast<double>(plan.lower_bound.at(images)))
            << plan.program.graph.name << ", " << plan.program.name << ": " << print(plan).substr(0, 200);
}

TEST(PlanMemory, HasBuffersThatBeginAtCacheLinesInsideTheScratchMemory) {
  for (const std::vector<Plan>& all : {plans(stack()), vit_mnist()})
    for (const Plan& plan : all)
      for (const Buffer& buffer : plan.buffers) {
        EXPECT_EQ(buffer.offset % 16, 0);
        EXPECT_EQ(buffer.slot % 16, 0);
        EXPECT_GE(buffer.offset, buffer.per_image ? plan.scratch.fixed : 0);
        EXPECT_LE(buffer.offset + buffer.size, plan.scratch.fixed + (buffer.per_image ? plan.scratch.per_batch : 0));
      }
}

TEST(PlanMemory, IsUsedAgain) {
  for (const Plan& plan : vit_mnist()) {
    std::int64_t all = 0;
    for (const Buffer& buffer : plan.buffers) all += buffer.size;
    EXPECT_LT(plan.scratch.at(1), all) << plan.program.name;
  }
}

TEST(PlanSchedules, LetTheDepthOfAProductGoByInBlocksWhereItsRowsAreLongerThanNearMemory) {
  const Plan plan = planned(codegen::differentiate(trace<Deep>("deep"), true), codegen::ProgramKind::input_gradient);
  for (const auto& [target, schedules] : plan.schedules) {
    std::map<std::string, std::int64_t> depths;
    for (std::size_t at = 0; at < schedules.size(); ++at)
      if (schedules[at].depth) depths[plan.program.kernels[at].name] = schedules[at].depth;
    // 101 rows of 6144 values: the third part would still be more than 768 KiB.
    EXPECT_EQ(depths, (std::map<std::string, std::int64_t>{{"down_backward", 1536}, {"images_gradient", 1536}}));
  }
  for (const Plan& small : vit_mnist())
    for (const auto& [target, schedules] : small.schedules)
      EXPECT_TRUE(std::all_of(schedules.begin(), schedules.end(), [](const auto& s) { return s.depth == 0; }));
}

/// A convolution of a map whose lines have so many numbers, beside a linear map of its positions: where there is no
/// GEMM, lanes run along what the layouts say.
template <std::int64_t line>
struct Lines : Module {
  static constexpr auto B = axis<"B">;
  static constexpr auto C = axis<"C", 32>;
  static constexpr auto Y = axis<"Y", 7>;
  static constexpr auto X = axis<"X", line>;

  Conv2d<C, C, 3_c, 3_c, Convolution{.padding = 1}> first;
  Linear<C, C> second;
  TESSERA_MEMBERS(Lines, first, second)
  static constexpr Recipe recipe{};

  Tensor<B, C> forward(Tensor<B, C, Y, X> x) const {
    return mean<X>(mean<Y>(silu(first(x)))) + mean<Y * X>(second(rearrange<"b c y x -> b (y x) c">(x)));
  }
};

/// What the lanes of the first convolution run along, and whether a tile is transposed for it.
template <std::int64_t line>
std::string lanes_of_convolution() {
  const Plan plan = planned(codegen::subgraph(trace<Lines<line>>("lines"), {"outputs"}), codegen::ProgramKind::forward);
  const std::vector<codegen::Schedule>& schedules = plan.schedules.at("avx512");
  for (std::size_t at = 0; at < schedules.size(); ++at) {
    const codegen::Kernel& kernel = plan.program.kernels[at];
    if (kernel.anchor != codegen::Anchor::contraction || !kernel.name.starts_with("first")) continue;
    const std::int64_t extent = kernel.axes[schedules[at].vector].dim.value();
    return fmt::format("{}{}", extent, kernel.gemm.transposes ? " transposed" : "");
  }
  return "there is no such kernel";
}

TEST(PlanSchedules, HaveLanesAlongChannelsWhereAMapsLinesFillVectorsBadly) {
  EXPECT_EQ(lanes_of_convolution<7>(), "32 transposed");
  EXPECT_EQ(lanes_of_convolution<48>(), "48");
}

TEST(PlanSchedules, HaveAsManySumsForOneRowAsHideAnAddition) {
  // Of the last layer the class token's query alone: its sum over the values has 64 columns a head. Those of packed
  // weights are as wide as the panels, and 17 keys are no whole tiles.
  using Wide = models::Vit<{.image = 32, .patch = 8, .width = 128, .heads = 2, .depth = 2, .classes = 10}>;
  const Plan forward = forward_pass(codegen::eliminate_dead_slices(trace<Wide>("wide")));
  std::map<std::string, std::int64_t> columns;
  for (std::size_t at = 0; at < forward.program.kernels.size(); ++at) {
    const codegen::Kernel& kernel = forward.program.kernels[at];
    const codegen::Gemm& gemm = kernel.gemm;
    if (gemm.columns >= 0 && gemm.rows >= 0 && kernel.axes[gemm.rows].dim.known() &&
        kernel.axes[gemm.rows].dim.value() == 1)
      columns[kernel.name] = 8 * forward.schedules.at("avx2")[at].tile[static_cast<std::size_t>(gemm.columns)];
  }
  EXPECT_EQ(columns, (std::map<std::string, std::int64_t>{{"blocks_1_attn_scores_forward", 16},
                                                          {"blocks_1_attn_weighted_values_forward", 64},
                                                          {"blocks_1_attn_proj_forward", 16},
                                                          {"blocks_1_mlp_fc1_forward", 16},
                                                          {"blocks_1_mlp_fc2_forward", 16}}))
      << print(forward);
}

TEST(PlanSchedules, AreOfTheTilesThatATableNames) {
  std::vector<codegen::Target> targets = codegen::targets_of(codegen::Precision::fp32);
  codegen::use_tiles(
      "# measured\navx512 columns 45 vectors 3\n\navx512 rows 101 vectors 3 tile 7  # of 9\nneon columns 45 "
      "vectors 1\n",
      targets);
  const Graph forward = codegen::subgraph(trace<Deep>("deep"), {"outputs"});
  const auto text = [&](const std::vector<codegen::Target>& of) {
    return print(codegen::make_plan(
        codegen::lower(codegen::simplify(codegen::decompose(forward)), codegen::ProgramKind::forward), of));
  };
  const std::string usual = text(codegen::targets_of(codegen::Precision::fp32)), tuned = text(targets);
  const std::string product = "down_forward threads b product of 101 x 6144 x 45 lanes k ";
  EXPECT_NE(usual.find(product + "tile n 13 tile k 2 depth by 1536"), std::string::npos) << usual;
  EXPECT_NE(tuned.find(product + "tile n 7 tile k 3 depth by 1536"), std::string::npos) << tuned;
}

TEST(PlanSchedules, RefuseATableThatCannotBeReadInOneSentence) {
  const auto complaint = [](const std::string& table) -> std::string {
    std::vector<codegen::Target> targets = codegen::targets_of(codegen::Precision::fp32);
    try {
      codegen::use_tiles(table, targets);
    } catch (const codegen::Error& e) {
      return e.what();
    }
    return "";
  };
  const std::string neither =
      " of the table of tiles is neither \"ISA columns N vectors V\" nor \"ISA rows M vectors V tile R\": ";
  for (const std::string line :
       {"avx2", "avx2 columns", "avx2 columns 45 vectors", "avx2 columns 45 vectors x", "avx2 columns 45 vectors 0",
        "avx2 columns -1 vectors 2", "avx2 columns 45 vectors 2 3", "avx2 lines 45 vectors 2", "avx2 rows 45 vectors 2",
        "avx2 rows 45 vectors 2 tile 0"})
    EXPECT_EQ(complaint("# tiles\n" + line + "\n"), "line 2" + neither + line);
  EXPECT_EQ(complaint("avx2 rows 45 vectors 4 tile 4"),
            "line 1 of the table of tiles wants 16 sums at once, and avx2 has registers for 12: avx2 rows 45 vectors 4 "
            "tile 4");
}

TEST(PlanStages, JoinKernelsThatGoImageByImageAndSumsOverTheBatch) {
  const Plan& train = vit_mnist().back();
  std::size_t stages = 0, kernels = train.program.kernels.size();
  for (const auto& region : train.stages) stages += region.size();
  EXPECT_LT(stages, kernels / 2) << print(train);
}

TEST(PlanStages, KeepASumOverTheBatchApartFromAnotherThatReadsIt) {
  Sketch s;
  s.graph.name = "sums";
  const NodeId x = s.input("images", {s.B, s.I, s.J});
  auto sum = [&](NodeId node) { return s.b.broadcast(s.b.reduce(Op::reduce_sum, node, {0}), s.b.shape(x), {1, 2}); };
  s.value("outputs", s.b.multiply(x, sum(s.b.multiply(x, sum(x)))));
  const Plan plan = planned(s.graph, codegen::ProgramKind::forward);
  std::size_t sums = 0;
  for (const codegen::Stage& stage : plan.stages[0])
    if (stage.tasks == codegen::Tasks::chunks) {
      EXPECT_EQ(stage.items.size(), 1u) << print(plan);
      ++sums;
    }
  EXPECT_EQ(sums, 2u) << print(plan);
}

TEST(PlanGradients, OfBiasesComeWithThoseOfTheWeightsBesideThemWhoseFactorTheyAdd) {
  const Graph train = codegen::differentiate(trace<Deep>("deep"), false);
  codegen::KernelProgram program =
      codegen::lower(codegen::simplify(codegen::decompose(train)), codegen::ProgramKind::loss_and_gradients);
  const Plan plan = codegen::make_plan(program, codegen::targets_of(codegen::Precision::fp32));
  std::map<std::string, std::string> with;
  for (const codegen::Kernel& k : plan.program.kernels)
    for (const codegen::Kernel& fused : k.fused.parts) with[k.name] = fused.name;
  // That of the head's bias is a sum over images alone: the mean has one gradient for all tokens.
  EXPECT_EQ(with, (std::map<std::string, std::string>{{"down_weight_gradient", "down_bias_gradient"},
                                                      {"up_weight_gradient", "up_bias_gradient"}}));
  for (const codegen::Kernel& k : plan.program.kernels)
    for (const auto& [weight, bias] : with) EXPECT_NE(k.name, bias);
  EXPECT_NE(print(plan).find("with down_bias_gradient"), std::string::npos);

  program.precision = codegen::Precision::bf16;  // its weight gradients read rounded values
  for (const codegen::Kernel& k :
       codegen::make_plan(program, codegen::targets_of(codegen::Precision::fp32)).program.kernels)
    EXPECT_TRUE(k.fused.empty()) << k.name;
}

TEST(PlanAttention, GoesByBlocksOfAHeadsQueriesWhoseScoresHaveNoPlaceInMemory) {
  using Many = models::Vit<{.image = 112, .patch = 8, .width = 96, .heads = 3, .depth = 2}>;  // of 197 tokens
  const Plan forward = forward_pass(trace<Many>("many"));
  std::size_t found = 0;
  for (std::size_t at = 0; at < forward.program.kernels.size(); ++at) {
    const codegen::Kernel& kernel = forward.program.kernels[at];
    if (!codegen::attends(kernel)) continue;
    ++found;
    for (const codegen::AttentionAxes& axes : codegen::attention_axes(kernel)) EXPECT_EQ(axes.heads.size(), 2u);
    for (const auto& [target, schedules] : forward.schedules) {
      const codegen::Schedule& s = schedules[at];
      const auto rows = [](const codegen::Kernel& k, const codegen::Schedule& of) {
        return of.tile[static_cast<std::size_t>(k.gemm.rows)];
      };
      ASSERT_EQ(s.fused.size(), 2u);
      EXPECT_EQ(s.queries % rows(kernel, s), 0) << target;
      EXPECT_EQ(s.queries % rows(kernel.fused.parts[0], s.fused[0]), 0) << target;
      EXPECT_LE(s.queries * 208, 3 << 12) << target;  // about a first cache
    }
  }
  EXPECT_EQ(found, 1u) << print(forward);  // in the region of both layers
  for (const codegen::TensorId t : forward.program.tensors.ids()) {
    const std::vector<Dim>& shape = forward.program.tensors[t].shape;
    const bool scores = shape.size() == 4 && shape[2].known() && shape[2].value() == 197 && shape[3].value() == 197;
    if (scores) {
      EXPECT_EQ(forward.buffer_of[t], -1) << forward.program.tensors[t].name;
    }
  }
  EXPECT_NE(
      print(forward).find(" with blocks_attn_scores_forward with blocks_attn_softmax_forward by 45 queries of a head"),
      std::string::npos)
      << print(forward);
  for (const Plan& small : vit_mnist())
    for (const codegen::Kernel& kernel : small.program.kernels) EXPECT_FALSE(codegen::attends(kernel)) << kernel.name;
}

/// The kernels that are attention's backward pass.
std::vector<const codegen::Kernel*> attention_gradients(const Plan& plan) {
  std::vector<const codegen::Kernel*> found;
  for (const codegen::Kernel& kernel : plan.program.kernels)
    if (kernel.fused.kind == codegen::Fused::Kind::attention_gradient) found.push_back(&kernel);
  return found;
}

/// The reals of scratch memory that hold a score for each pair of so many tokens, of an image.
std::int64_t reals_of_pairs(const Plan& plan, std::int64_t tokens) {
  std::int64_t reals = 0;
  for (const codegen::TensorId t : plan.program.tensors.ids()) {
    const std::vector<Dim>& shape = plan.program.tensors[t].shape;
    const auto of_tokens = [&](const Dim& d) { return d.known() && d.value() == tokens; };
    if (plan.buffer_of[t] >= 0 && std::count_if(shape.begin(), shape.end(), of_tokens) == 2)
      reals += plan.buffers[plan.buffer_of[t]].size;
  }
  return reals;
}

TEST(PlanAttention, BackwardGoesByBlocksOfAHeadsQueriesAndKeepsNothingForEachPairOfTokens) {
  using Many = models::Vit<{.image = 112, .patch = 8, .width = 96, .heads = 6, .depth = 2}>;  // of 197 tokens
  const Plan plan = gradients_of(trace<Many>("many"));
  const std::vector<const codegen::Kernel*> found = attention_gradients(plan);
  ASSERT_EQ(found.size(), 1u) << print(plan);  // in the region of both layers
  const codegen::Kernel& kernel = *found[0];
  EXPECT_EQ(reals_of_pairs(plan, 197), 0) << print(plan);
  for (const codegen::AttentionAxes& axes : codegen::attention_axes(kernel)) EXPECT_EQ(axes.heads.size(), 2u);
  std::vector<std::string> names;
  for (const codegen::Kernel& part : kernel.fused.parts) names.push_back(part.name);
  names.push_back(kernel.name);
  EXPECT_EQ(names, (std::vector<std::string>{"blocks_attn_recomputed_scores_backward", "blocks_attn_value_backward",
                                             "blocks_attn_probabilities_backward", "blocks_attn_multiply_backward",
                                             "blocks_attn_query_backward", "blocks_attn_key_backward"}));
  EXPECT_NE(print(plan).find(" with blocks_attn_query_backward by 102 queries of a head"), std::string::npos)
      << print(plan);
  for (const auto& [target, schedules] : plan.schedules) {
    const codegen::Schedule& s = schedules[static_cast<std::size_t>(&kernel - plan.program.kernels.data())];
    ASSERT_EQ(s.fused.size(), 5u);
    for (const std::size_t rows_are_queries : {0u, 2u, 4u}) {
      const codegen::Kernel& part = kernel.fused.parts[rows_are_queries];
      EXPECT_EQ(s.queries % s.fused[rows_are_queries].tile[static_cast<std::size_t>(part.gemm.rows)], 0) << target;
    }
    EXPECT_LE(s.queries * 208, 5 << 13) << target;  // probabilities, and as many gradients, stay in a second cache
  }
}

TEST(PlanAttention, BackwardKeepsItsKernelsApartWhereItsScoresAreFewOrReadByOthers) {
  using Few = models::Vit<{.image = 112, .patch = 8, .width = 96, .heads = 3, .depth = 2}>;
  EXPECT_TRUE(attention_gradients(gradients_of(trace<Few>("few"))).empty());
  using Many = models::Vit<{.image = 112, .patch = 8, .width = 96, .heads = 6, .depth = 2}>;
  EXPECT_TRUE(attention_gradients(gradients_of(trace<Many>("many"), codegen::Precision::bf16)).empty());
  using Dropping =
      models::Vit<{.image = 112, .patch = 8, .width = 96, .heads = 6, .depth = 2, .attention_dropout = 0.1}>;
  EXPECT_TRUE(attention_gradients(gradients_of(trace<Dropping>("dropping"))).empty());
  // The gradient of a bias of scores is a sum over the batch of the scores' gradient.
  using Biased = models::Vit<{.image = 112, .patch = 8, .width = 96, .heads = 6, .depth = 2}, models::RelativeBlock>;
  EXPECT_TRUE(attention_gradients(gradients_of(trace<Biased>("biased"))).empty());
}

TEST(PlanAttention, BackwardOfCausalScoresComparesPlacesInEachBlock) {
  using Causal = models::Gpt<{.codes = 32, .positions = 256, .layers = 2, .heads = 4, .width = 96}>;
  const Plan plan = gradients_of(trace<Causal>("causal"));
  EXPECT_EQ(attention_gradients(plan).size(), 1u) << print(plan);
  EXPECT_EQ(reals_of_pairs(plan, 256), 0) << print(plan);
}

/// Of `side` tokens each way.
template <int side>
using Pooled = models::Vit<{.image = 8 * side,
                            .patch = 8,
                            .width = 96,
                            .heads = 6,
                            .depth = 2,
                            .classes = 10,
                            .class_token = false,
                            .pooling = models::Pooling::mean}>;

TEST(PlanAttention, MemoryOfBackwardGrowsAsItsTokensDo) {
  const auto scratch = [](const Plan& plan) { return static_cast<double>(plan.scratch.per_batch); };
  const Plan some = gradients_of(trace<Pooled<16>>("some")), many = gradients_of(trace<Pooled<32>>("many"));
  EXPECT_NEAR(scratch(many) / scratch(some), 4, 0.1);  // of four times the tokens
}

TEST(PlanAttention, LanesOfAMaskedSoftmaxRunAlongNoHeads) {  // of which a block has one; the mask is the same for all
  using Causal = models::Gpt<{.codes = 32, .positions = 256, .layers = 1, .heads = 8, .width = 512}>;
  const Plan forward = forward_pass(trace<Causal>("causal"));
  std::size_t found = 0;
  for (std::size_t at = 0; at < forward.program.kernels.size(); ++at) {
    const codegen::Kernel& kernel = forward.program.kernels[at];
    if (!codegen::attends(kernel)) continue;
    ++found;
    const std::vector<int> heads = codegen::attention_axes(kernel)[1].heads;
    for (const auto& [target, schedules] : forward.schedules)
      EXPECT_EQ(std::count(heads.begin(), heads.end(), schedules[at].fused.at(1).vector), 0) << target;
  }
  EXPECT_GT(found, 0u) << print(forward);
}

TEST(PlanAttention, ACausalMaskTakesNoMemory) {  // it would grow with the square of the tokens
  using Causal = models::Gpt<{.codes = 32, .positions = 48, .layers = 2, .heads = 2, .width = 32}>;
  for (const Plan& plan : plans(trace<Causal>("causal")))
    for (const codegen::TensorId id : plan.program.tensors.ids()) {
      const codegen::Tensor& t = plan.program.tensors[id];
      EXPECT_NE(t.storage, codegen::Storage::table) << plan.program.name << ": " << t.name;
      std::int64_t elements = 1;
      for (const Dim& dim : t.shape) elements *= dim.known() ? dim.value() : 1;
      EXPECT_FALSE(t.storage == codegen::Storage::scratch && t.shape.size() == 2 && elements == 48 * 48)
          << plan.program.name << ": " << t.name;
    }
}

/// Of `tokens` a side, whose biases of scores an MLP of each block makes.
template <int tokens, int width>
using Relative = models::Vit<{.image = 4 * tokens, .patch = 4, .width = width, .heads = 2, .depth = 2, .classes = 10},
                             models::RelativeBlock>;

/// The values of a program that packing computes.
std::vector<codegen::Tensor> folded_values(const Plan& plan) {
  std::vector<codegen::Tensor> found;
  for (const codegen::Tensor& t : plan.program.tensors)
    if (t.packing == codegen::Packing::folded) found.push_back(t);
  return found;
}

TEST(PlanFolding, ComputesWhatDependsOnParametersAloneWhenTheyArePacked) {
  const Plan forward = forward_pass(trace<Relative<8, 64>>("relative"));
  for (const codegen::Kernel& kernel : forward.program.kernels)
    EXPECT_NE(codegen::tasks_of(kernel), codegen::Tasks::once) << kernel.name;
  ASSERT_EQ(forward.folded.size(), 1u);
  for (const codegen::Kernel& kernel : forward.folded[0].program.kernels)
    EXPECT_EQ(codegen::tasks_of(kernel), codegen::Tasks::once) << kernel.name;
  const std::vector<codegen::Tensor> values = folded_values(forward);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].storage, codegen::Storage::packed);
  EXPECT_EQ(values[0].slots, 2) << "one for each layer";
  EXPECT_NE(print(forward).find(values[0].name + " [H=2, GH*GW+1=65, 65] x 2 folded"), std::string::npos)
      << print(forward);
  EXPECT_NE(print(forward).find("when parameters are packed, plan of forward"), std::string::npos) << print(forward);
}

TEST(PlanFolding, KeepsAValueOnceForAllProgramsThatReadIt) {
  const Graph declared = codegen::canonical_order(trace<Relative<8, 64>>("relative"));
  const std::vector<Plan> all = plans(declared);
  EXPECT_TRUE(all[2].folded.empty()) << "training changes parameters";
  const std::vector<codegen::Target> targets = codegen::targets_of(codegen::Precision::fp32);
  const auto entries = [&](const std::vector<Plan>& of) {
    const codegen::PackedArena packed =
        codegen::make_packed_arena(of, codegen::make_arena(declared, all.back().program), targets);
    std::vector<std::int64_t> reals;
    for (const codegen::PackedEntry& e : packed.entries)
      if (e.packing == codegen::Packing::folded) reals.push_back(e.reals * e.count());
    // Behind them lies what they are made from, and it is counted.
    EXPECT_EQ(packed.scratch + all[0].folded[0].scratch.fixed, packed.forward_reals);
    return reals;
  };
  EXPECT_EQ(entries({all[0]}), (std::vector<std::int64_t>{2 * (2 * 65 * 65 + 14)}));
  EXPECT_EQ(entries({all[0], all[1]}), entries({all[0]}));
}

TEST(PlanFolding, KeepsNoMoreThanThereAreParameters) {
  const Graph declared = trace<Relative<16, 16>>("large");
  const Plan forward = forward_pass(declared);
  std::int64_t kept = 0, parameters = 0;
  for (const codegen::Tensor& t : folded_values(forward)) {
    std::int64_t reals = t.slots;
    for (const Dim& d : t.shape) reals *= d.value();
    kept += reals;
  }
  for (const ArenaEntry& e : codegen::make_arena(declared, forward.program).entries) parameters += e.reals * e.count;
  EXPECT_LT(parameters, 2 * 2 * 257 * 257) << "the biases of all pairs are more";
  EXPECT_GT(kept, 0) << "the biases of all distances are not";
  EXPECT_LE(kept, parameters);
  bool computes = false;
  for (const codegen::Kernel& kernel : forward.program.kernels)
    computes |= codegen::tasks_of(kernel) == codegen::Tasks::once;
  EXPECT_TRUE(computes);
}

TEST(PlanFolding, HasNothingToDoWhereEverythingDependsOnImages) {
  for (const Plan& plan : vit_mnist()) EXPECT_TRUE(plan.folded.empty()) << plan.program.name;
}

TEST(PlanDropout, DrawsAFactorOnceForTheGradientOfASoftmax) {
  using Small = models::Vit<{.image = 32, .width = 16, .heads = 2, .depth = 3, .attention_dropout = 0.25}>;
  const Graph train = codegen::differentiate(codegen::canonical_order(trace<Small>("small")), false);
  std::size_t found = 0;
  for (const codegen::Kernel& k : planned(train, codegen::ProgramKind::loss_and_gradients).program.kernels) {
    if (k.name.find("attn_multiply_backward") == std::string::npos || k.anchor != codegen::Anchor::row) continue;
    std::size_t drawn = 0;  // by how many sweeps
    const auto draws = [&](codegen::ExprId e) {
      for (const codegen::ExprId x : k.expressions.ids())
        if (k.expressions[x].kind == codegen::Expression::Kind::keep && codegen::needs(k, e, x)) return true;
      return false;
    };
    for (const codegen::Step& step : k.steps) {
      drawn += step.reduces && draws(step.value);
      for (const codegen::Step::Store& store : step.stores) drawn += !step.reduces && draws(store.value);
    }
    EXPECT_EQ(drawn, 1u) << k.name;
    EXPECT_EQ(k.steps.front().stores.size(), 1u) << k.name;
    ++found;
  }
  EXPECT_EQ(found, 1u) << "the repeated block";
}

TEST(PlanGroups, KeepEverySumOverTheBatchUntilTheLastGroup) {
  for (const std::vector<Plan>& all : {plans(stack()), vit_mnist()}) {
    const Plan& train = all.back();
    EXPECT_TRUE(train.program.groups);
    std::size_t sums = 0;
    for (const codegen::Kernel& k : train.program.kernels) {
      EXPECT_EQ(k.accumulates, k.across_batch) << k.name;
      if (!k.accumulates) continue;
      const int buffer = train.buffer_of[k.steps[1].stores.front().to.tensor];
      if (buffer < 0) continue;
      EXPECT_EQ(train.buffers[static_cast<std::size_t>(buffer)].first, 0) << k.name;
      ++sums;
    }
    EXPECT_GE(sums, 1u) << "that of the loss";
    for (std::size_t i = 0; i + 1 < all.size(); ++i) EXPECT_FALSE(all[i].program.groups);
  }
}

TEST(PlanGroups, AreNoneWhereAnImageNeedsASumOverTheBatch) {
  Sketch s;
  s.graph.name = "centred";
  const NodeId x = s.input("images", {s.B, s.I, s.J});
  const NodeId sum = s.b.broadcast(s.b.reduce(Op::reduce_sum, x, {0}), s.b.shape(x), {1, 2});
  s.value("outputs", s.b.multiply(x, sum));
  EXPECT_FALSE(planned(s.graph, codegen::ProgramKind::loss_and_gradients).program.groups);
}

/// The sentence with which a plan is refused; empty when it is accepted.
std::string refusal(const Plan& plan) {
  try {
    codegen::verify(plan);
  } catch (const codegen::Error& error) {
    return error.what();
  }
  return "";
}

TEST(VerifyPlan, AcceptsEveryPlanThatIsMade) {
  for (const std::vector<Plan>& all : {plans(stack()), vit_mnist()})
    for (const Plan& plan : all) EXPECT_EQ(refusal(plan), "");
}

/// Whether the buffer is live, as a whole, from its first kernel to its last: not so for the slots of a repeated
/// block's values.
bool always_live(const Plan& plan, const Buffer& buffer) {
  return !buffer.tensor.valid() || plan.program.tensors[buffer.tensor].slots == 1;
}

TEST(VerifyPlan, FindsEveryBufferThatIsMovedOntoOneThatIsLiveAtTheSameTime) {
  for (const std::vector<Plan>& all : {plans(stack()), vit_mnist()})
    for (const Plan& plan : all) {
      std::size_t moved = 0;
      for (std::size_t x = 0; x < plan.buffers.size(); ++x)
        for (std::size_t y = 0; y < plan.buffers.size(); ++y) {
          const Buffer &from = plan.buffers[x], &to = plan.buffers[y];
          if (x == y || from.per_image != to.per_image || from.last < to.first || to.last < from.first) continue;
          if (!always_live(plan, from) || !always_live(plan, to)) continue;
          Plan broken = plan;
          broken.buffers[x].offset = to.offset;
          const std::string sentence = refusal(broken);
          EXPECT_EQ(sentence.rfind("plan of " + plan.program.name + ": ", 0), 0u)
              << "buffer " << x << " was moved onto buffer " << y << " in\n"
              << print(plan);
          ++moved;
        }
      EXPECT_TRUE(moved > 10 || plan.program.kind != codegen::ProgramKind::loss_and_gradients) << moved;
    }
}

TEST(VerifyPlan, FindsABufferOutsideTheScratchMemory) {
  for (const std::int64_t by : {-100000, 100000}) {
    Plan plan = plans(stack()).back();
    plan.buffers.front().offset += by;
    EXPECT_NE(refusal(plan).find("lies outside the scratch memory"), std::string::npos) << refusal(plan);
  }
}

TEST(VerifyPlan, FindsAKernelThatRunsBeforeWhatItReads) {
  Plan plan = plans(stack()).back();
  std::reverse(plan.stages[0].begin(), plan.stages[0].end());
  EXPECT_NE(refusal(plan).find("which is not there any more or not yet"), std::string::npos) << refusal(plan);
}

// ---- the parameters ----

/// When each parameter's gradient is written: the place in the running order of the last kernel that does.
std::map<std::string, int> finished(const codegen::KernelProgram& program) {
  std::map<std::string, int> times;
  int now = 0;
  auto visit = [&](const codegen::Kernel& kernel) {
    for (const codegen::Step& step : kernel.steps)
      for (const codegen::Step::Store& store : step.stores) {
        const codegen::Tensor& tensor = program.tensors[store.to.tensor];
        if (tensor.storage == codegen::Storage::gradient) times[program.graph[tensor.parameter].name] = now;
      }
    ++now;
  };
  for (const codegen::Item& item : program.order[0]) {
    if (item.kernel >= 0)
      visit(program.kernels[static_cast<std::size_t>(item.kernel)]);
    else
      for (const codegen::Item& inside : program.order[static_cast<std::size_t>(item.region)])
        visit(program.kernels[static_cast<std::size_t>(inside.kernel)]);
  }
  return times;
}

TEST(ParameterArena, HoldsEveryParameterInTheOrderInWhichTheGradientsAreFinished) {
  for (const Graph& declared : {stack(), trace<models::vit_mnist::VitMnist>("vit_mnist")}) {
    const codegen::KernelProgram program = plans(declared).back().program;
    const Arena arena = codegen::make_arena(declared, program);
    const std::map<std::string, int> times = finished(program);
    ASSERT_EQ(arena.entries.size(), times.size());
    std::vector<int> found;
    std::int64_t offset = -1;
    for (const ArenaEntry& entry : arena.entries) {
      found.push_back(times.at(entry.key));
      EXPECT_GT(entry.at(entry.count - 1), offset) << entry.key;
      offset = entry.at(entry.count - 1);
    }
    EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  }
}

TEST(ParameterArena, HasTheLastLayerFirstAndEachLayerInOneRange) {
  const Arena arena = codegen::make_arena(stack(), plans(stack()).back().program);
  auto range = [&](const std::string& prefix, int layer) {  // where these parameters begin and end, and their sizes
    std::array<std::int64_t, 3> r{arena.reals, 0, 0};
    for (const ArenaEntry& entry : arena.entries) {
      if (entry.key.rfind(prefix, 0) != 0) continue;
      r[0] = std::min(r[0], entry.at(layer));
      r[1] = std::max(r[1], entry.at(layer) + (entry.reals + 15) / 16 * 16);
      r[2] += (entry.reals + 15) / 16 * 16;
    }
    return r;
  };
  for (int layer : {0, 1, 2})
    EXPECT_EQ(range("blocks", layer)[1] - range("blocks", layer)[0], range("blocks", layer)[2]);
  EXPECT_EQ(range("blocks", 2)[1], range("blocks", 1)[0]);
  EXPECT_EQ(range("blocks", 1)[1], range("blocks", 0)[0]);
  EXPECT_LE(range("blocks", 0)[1], range("embed", 0)[0]);
}

TEST(ParameterArena, HasParametersAtCacheLinesThatDoNotOverlap) {
  for (const Graph& declared : {stack(), trace<models::vit_mnist::VitMnist>("vit_mnist")}) {
    const Arena arena = codegen::make_arena(declared, plans(declared).back().program);
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for (const ArenaEntry& entry : arena.entries)
      for (int layer = 0; layer < entry.count; ++layer) {
        EXPECT_EQ(entry.at(layer) % 16, 0) << entry.key_of(layer);
        ranges.push_back({entry.at(layer), entry.at(layer) + entry.reals});
      }
    std::sort(ranges.begin(), ranges.end());
    for (std::size_t r = 1; r < ranges.size(); ++r) EXPECT_LE(ranges[r - 1].second, ranges[r].first);
    EXPECT_LE(ranges.back().second, arena.reals);
  }
}

TEST(ParameterArena, FindsParametersByTheirKeys) {
  const Arena arena = codegen::make_arena(stack(), plans(stack()).back().program);
  EXPECT_EQ(arena.find("blocks.{}.0.weight").count, 3);
  EXPECT_EQ(arena.find("blocks.{}.0.weight").key_of(2), "blocks.2.0.weight");
  EXPECT_EQ(arena.find("head.bias").reals, 2);
  EXPECT_THROW(arena.find("neck.bias"), codegen::Error);
  EXPECT_EQ(arena.place("blocks.{}.0.weight").second, -1);
  EXPECT_EQ(arena.place("blocks.1.0.weight").first->key, "blocks.{}.0.weight");
  EXPECT_EQ(arena.place("blocks.1.0.weight").second, 1);
  EXPECT_EQ(arena.place("head.bias").second, -1);
  EXPECT_THROW(arena.place("blocks.3.0.weight"), codegen::Error);
}

}  // namespace
}  // namespace tessera::test
