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
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/subgraph.hpp"
#include "codegen/plan/arena.hpp"
#include "codegen/plan/tuned.hpp"
#include "dsl/trace.hpp"
#include "models/taming.hpp"
#include "models/vit.hpp"
#include "models/vit_cifar.hpp"
#include "models/vit_mnist.hpp"
#include "models/vit_relpos.hpp"
#include "tests/codegen/support/plans.hpp"
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

TEST(PlanSchedules, LetTheDepthOfAPanelThatManyImagesReadGoByInBlocksOfSixteenKilobytes) {
  using Wide = models::Gpt<models::GptSpec{.codes = 64, .positions = 16, .layers = 1, .heads = 2, .width = 512}>;
  constexpr auto kind = codegen::ProgramKind::step;
  constexpr std::int64_t reals = 4096;
  const Graph declared = codegen::passed(trace<Wide>("wide"), codegen::declaration_passes());
  const Plan plan = codegen::make_plan(
      codegen::lower(
          codegen::passed(codegen::passed(declared, codegen::program_passes(kind)), codegen::primitive_passes()), kind),
      codegen::targets_of(codegen::Precision::fp32));
  for (const codegen::Target& target : codegen::targets_of(codegen::Precision::fp32)) {
    const std::vector<codegen::Schedule>& schedules = plan.schedules.at(std::string(target.name));
    int blocked = 0;
    for (std::size_t at = 0; at < schedules.size(); ++at)
      if (const std::int64_t depth = schedules[at].depth; depth > 0) {
        ++blocked;
        const std::int64_t values = depth * schedules[at].tile[plan.program.kernels[at].gemm.columns] * target.lanes;
        EXPECT_LE(values, reals) << target.name;
        EXPECT_GT(values, reals / 2) << target.name;
        EXPECT_EQ(512 % depth, 0) << target.name;
      }
    EXPECT_EQ(blocked > 0, target.lanes > 1) << target.name;
  }
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
