// Attention and its backward pass by blocks of queries: which kernels become one, and what memory they need.
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/isa.hpp"
#include "codegen/kernels/query.hpp"
#include "codegen/plan/attention.hpp"
#include "codegen/plan/gemm.hpp"
#include "dsl/trace.hpp"
#include "models/taming.hpp"
#include "models/vit.hpp"
#include "models/vit_mnist.hpp"
#include "models/vit_relpos.hpp"
#include "tests/codegen/support/plans.hpp"

namespace tessera::test {
namespace {

using codegen::Plan;

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
  for (const Plan& small : plans(trace<models::vit_mnist::VitMnist>("vit_mnist")))
    for (const codegen::Kernel& kernel : small.program.kernels) EXPECT_FALSE(codegen::attends(kernel)) << kernel.name;
}

/// Of side x side + 1 tokens.
template <std::int64_t side>
using Squared = models::Vit<{.image = side * 8, .patch = 8, .width = 192, .heads = 3, .depth = 2}>;

TEST(PlanAttention, OfBf16GoesByLargerBlocksOfWhichNoneTakesMoreOfTheStack) {
  const auto expect = [](const graph::Graph& declared, std::int64_t tokens) {
    const Plan forward = forward_pass(declared, codegen::Precision::bf16);
    EXPECT_EQ(reals_of_pairs(forward, tokens), 0) << print(forward);
    std::size_t found = 0;
    for (std::size_t at = 0; at < forward.program.kernels.size(); ++at) {
      const codegen::Kernel& kernel = forward.program.kernels[at];
      if (!codegen::attends(kernel)) continue;
      ++found;
      for (const auto& [target, schedules] : forward.schedules) {
        const std::int64_t queries = schedules[at].queries;
        EXPECT_LE(queries * tokens * 6, 376 << 10) << target;  // scores and, in bf16, probabilities
        EXPECT_GE(queries, std::min<std::int64_t>(tokens, 12)) << target;
      }
    }
    EXPECT_EQ(found, 1u) << print(forward);
  };
  expect(trace<Squared<14>>("some"), 197);
  expect(trace<Squared<24>>("more"), 577);
  expect(trace<Squared<39>>("many"), 1522);
}

TEST(PlanAttention, OfManyKeysGoesByBlocksOfThemAndOnFromRowMaxAndRowSum) {
  const auto kernel_of = [](const Plan& plan) {
    const auto found = std::find_if(plan.program.kernels.begin(), plan.program.kernels.end(), codegen::attends);
    EXPECT_NE(found, plan.program.kernels.end()) << print(plan);
    return found - plan.program.kernels.begin();
  };
  for (const codegen::Precision precision :
       {codegen::Precision::fp32, codegen::Precision::bf16, codegen::Precision::int8}) {
    const Plan plan = forward_pass(trace<Squared<64>>("many"), precision);  // of 4,097 tokens
    EXPECT_EQ(reals_of_pairs(plan, 4097), 0) << print(plan);
    const auto at = static_cast<std::size_t>(kernel_of(plan));
    const codegen::Kernel& kernel = plan.program.kernels[at];
    using Role = codegen::Fused::Role;
    EXPECT_EQ(kernel.fused.roles, (std::vector<Role>{Role::scores, Role::softmax, Role::begin, Role::rescale}));
    for (const codegen::AttentionAxes& axes : codegen::attention_axes(kernel)) EXPECT_EQ(axes.heads.size(), 2u);
    for (const auto& [target, schedules] : plan.schedules) {
      EXPECT_EQ(schedules[at].keys, 480) << target;  // nine blocks, the last of which has 257
      EXPECT_GE(schedules[at].queries, 32) << target;
      EXPECT_LE(schedules[at].queries, 72) << target;
    }
    // With as many queries of as many tokens, memory grows as they do.
    const Plan fewer = forward_pass(trace<Squared<45>>("fewer"), precision);  // of 2,026 tokens
    EXPECT_NEAR(static_cast<double>(plan.scratch.per_batch) / static_cast<double>(fewer.scratch.per_batch),
                4097. / 2026, 0.05);
  }
  using Role = codegen::Fused::Role;
  const auto goes_by_keys = [&](const Plan& plan) {
    return plan.program.kernels[static_cast<std::size_t>(kernel_of(plan))].fused.has(Role::begin);
  };
  EXPECT_TRUE(goes_by_keys(forward_pass(trace<Squared<40>>("more"))));                             // of 1,601
  EXPECT_FALSE(goes_by_keys(forward_pass(trace<Squared<39>>("some"))));                            // of 1,522
  EXPECT_TRUE(goes_by_keys(forward_pass(trace<Squared<37>>("some"), codegen::Precision::int8)));   // of 1,370
  EXPECT_FALSE(goes_by_keys(forward_pass(trace<Squared<31>>("some"), codegen::Precision::int8)));  // of 962
  // A step's row max is one of all keys up to it: what compares places has its bits.
  using Causal = models::Gpt<{.codes = 32, .positions = 1600, .layers = 1, .heads = 1, .width = 32}>;
  EXPECT_FALSE(goes_by_keys(forward_pass(trace<Causal>("causal"))));
}

TEST(PlanAttention, OfWideHeadsAndManyKeysHasFewerQueriesForTheStack) {
  using Wide = models::Vit<{.image = 64 * 8, .patch = 8, .width = 512, .heads = 1, .depth = 2}>;  // a head of 512
  for (const codegen::Precision precision :
       {codegen::Precision::fp32, codegen::Precision::bf16, codegen::Precision::int8}) {
    const Plan plan = forward_pass(trace<Wide>("wide"), precision);
    std::size_t found = 0;
    for (std::size_t at = 0; at < plan.program.kernels.size(); ++at) {
      if (!codegen::attends(plan.program.kernels[at])) continue;
      ++found;
      for (const auto& [target, schedules] : plan.schedules) {
        const std::int64_t queries = schedules[at].queries;
        EXPECT_GE(queries, 4) << target;
        EXPECT_LE(queries * (512 * 4 + 512 * 8), 376 << 10) << target;  // scores, and what was weighed, twice
      }
    }
    EXPECT_EQ(found, 1u) << print(plan);
  }
}

TEST(PlanAttention, OfBf16AndManyKeysStaysThreeKernelsWhereAFactorIsDrawnForEachKey) {
  using Dropping = models::Vit<{
      .image = 46 * 8, .patch = 8, .width = 96, .heads = 3, .depth = 1, .attention_dropout = 0.1}>;  // of 2,117
  for (const codegen::Kernel& kernel :
       gradients_of(trace<Dropping>("dropping"), {}, codegen::Precision::bf16).program.kernels)
    EXPECT_FALSE(codegen::attends(kernel)) << kernel.name;
}

TEST(PlanAttention, OfInt8IsRoundedToBf16WhereATileUnitTakesThatAndNowhereElse) {
  const graph::Graph declared = trace<Squared<14>>("some");
  const Plan int8 = forward_pass(declared, codegen::Precision::int8), fp32 = forward_pass(declared);
  EXPECT_EQ(reals_of_pairs(int8, 197), 0) << print(int8);
  const auto blocks = [](const Plan& plan, const std::string& target) {
    for (std::size_t at = 0; at < plan.program.kernels.size(); ++at)
      if (codegen::attends(plan.program.kernels[at])) return plan.schedules.at(target)[at].queries;
    return std::int64_t{0};
  };
  for (const auto& [target, schedules] : int8.schedules) {
    const std::string same = fp32.schedules.contains(target) ? target : "avx512";  // that it differs from in int8 alone
    if (codegen::find_isa(target)->bf16_tile_rows)
      EXPECT_GT(blocks(int8, target), blocks(fp32, same)) << target;
    else
      EXPECT_EQ(blocks(int8, target), blocks(fp32, same)) << target;
  }
  for (const codegen::Kernel& kernel : int8.program.kernels) EXPECT_NE(kernel.gemm.dtype, codegen::DType::bf16);
}

TEST(PlanAttention, TwoLinearMapsWithANormBetweenThemAreNone) {
  using Wide = models::Vit<{.image = 112, .patch = 8, .width = 192, .heads = 3, .depth = 2}>;
  for (const Plan& plan : {forward_pass(trace<Wide>("wide")), gradients_of(trace<Wide>("wide"))})
    for (const codegen::Kernel& kernel : plan.program.kernels) {
      if (!codegen::attends(kernel)) continue;
      EXPECT_EQ(kernel.name.find("mlp"), std::string::npos) << kernel.name << " reads its weights for each block";
      EXPECT_EQ(kernel.name.find("proj"), std::string::npos) << kernel.name;
    }
}

/// The kernels that are attention's backward pass.
std::vector<const codegen::Kernel*> attention_gradients(const Plan& plan) {
  std::vector<const codegen::Kernel*> found;
  for (const codegen::Kernel& kernel : plan.program.kernels)
    if (kernel.fused.kind == codegen::Fused::Kind::attention_gradient) found.push_back(&kernel);
  return found;
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
  EXPECT_EQ(names, (std::vector<std::string>{"blocks_attn_probabilities_backward",
                                             "blocks_attn_recomputed_scores_backward", "blocks_attn_value_backward",
                                             "blocks_attn_query_backward", "blocks_attn_key_backward"}));
  EXPECT_NE(print(plan).find(" with blocks_attn_query_backward by 102 queries of a head\n"), std::string::npos)
      << print(plan);
  for (const auto& [target, schedules] : plan.schedules) {
    const codegen::Schedule& s = schedules[static_cast<std::size_t>(&kernel - plan.program.kernels.data())];
    ASSERT_EQ(s.fused.size(), 4u);
    for (const std::size_t rows_are_queries : {0u, 1u, 3u}) {
      const codegen::Kernel& part = kernel.fused.parts[rows_are_queries];
      EXPECT_EQ(s.queries % s.fused[rows_are_queries].tile[static_cast<std::size_t>(part.gemm.rows)], 0) << target;
    }
    EXPECT_LE(s.queries * 208, 5 << 13) << target;  // probabilities, and as many gradients, stay in L2
  }
}

TEST(PlanAttention, BackwardGoesByBlocksOfKeysAsWellWhereTheyAreMany) {
  // Of 1,370 tokens; 1,297 have so few scores for each query that blocks of whole tiles of queries have all keys.
  using Many = models::Vit<{.image = 37 * 8, .patch = 8, .width = 96, .heads = 3, .depth = 2}>;
  using Fewer = models::Vit<{.image = 36 * 8, .patch = 8, .width = 96, .heads = 3, .depth = 2}>;
  const Plan plan = gradients_of(trace<Many>("many")), fewer = gradients_of(trace<Fewer>("fewer"));
  ASSERT_EQ(attention_gradients(plan).size(), 1u) << print(plan);
  EXPECT_EQ(print(fewer).find(" keys\n"), std::string::npos) << print(fewer);
  EXPECT_EQ(attention_gradients(fewer).size(), 1u) << print(fewer);
  const codegen::Kernel& kernel = *attention_gradients(plan)[0];
  EXPECT_EQ(reals_of_pairs(plan, 1370), 0) << print(plan);
  const std::vector<codegen::AttentionAxes> axes = codegen::attention_axes(kernel);
  for (const auto& [target, schedules] : plan.schedules) {
    const codegen::Schedule& s = schedules[static_cast<std::size_t>(&kernel - plan.program.kernels.data())];
    EXPECT_GE(s.queries, 100) << target;
    ASSERT_GE(s.keys, 96) << target;
    // A block begins and ends with tiles, whether keys are their columns or their rows.
    const std::int64_t lanes = codegen::find_isa(target)->lanes;
    for (const std::size_t columns_are_keys : {0u, 1u})
      EXPECT_EQ(
          s.keys % (s.fused[columns_are_keys].tile[static_cast<std::size_t>(axes[columns_are_keys].keys)] * lanes), 0)
          << target;
    EXPECT_EQ(s.keys % s.fused[2].tile[static_cast<std::size_t>(axes[2].keys)], 0) << target;
    EXPECT_EQ(s.keys % s.tile[static_cast<std::size_t>(axes[4].keys)], 0) << target;
  }
  EXPECT_NE(print(plan).find(" queries of a head and 192 keys\n"), std::string::npos) << print(plan);
}

TEST(PlanAttention, BackwardKeepsItsKernelsApartWhereItsScoresAreFewOrReadByOthers) {
  using Few = models::Vit<{.image = 112, .patch = 8, .width = 96, .heads = 3, .depth = 2}>;
  EXPECT_TRUE(attention_gradients(gradients_of(trace<Few>("few"))).empty());
  using Dropping =
      models::Vit<{.image = 112, .patch = 8, .width = 96, .heads = 6, .depth = 2, .attention_dropout = 0.1}>;
  // The gradient of a bias of scores is a sum over the batch of the scores' gradient.
  using Biased = models::Vit<{.image = 112, .patch = 8, .width = 96, .heads = 6, .depth = 2}, models::RelativeBlock>;
  for (const codegen::Precision precision : {codegen::Precision::fp32, codegen::Precision::bf16}) {
    EXPECT_TRUE(attention_gradients(gradients_of(trace<Dropping>("dropping"), {}, precision)).empty());
    const Plan biased = gradients_of(trace<Biased>("biased"), {}, precision);
    EXPECT_TRUE(attention_gradients(biased).empty());
    for (const codegen::Kernel& k : biased.program.kernels)  // their factors stay as small as they are
      EXPECT_FALSE(k.gemm.accumulates_fp32) << k.name;
  }
}

TEST(PlanAttention, BackwardOfBf16GoesByTheSameBlocksWhoseSumsAreOfSinglePrecision) {
  using Many = models::Vit<{.image = 112, .patch = 8, .width = 96, .heads = 6, .depth = 2}>;     // of 197 tokens
  using More = models::Vit<{.image = 46 * 8, .patch = 8, .width = 96, .heads = 3, .depth = 2}>;  // of 2,117
  using Causal = models::Gpt<{.codes = 32, .positions = 256, .layers = 2, .heads = 4, .width = 96}>;
  for (const graph::Graph& declared : {trace<Many>("many"), trace<More>("more"), trace<Causal>("causal")}) {
    const Plan plan = gradients_of(declared, {}, codegen::Precision::bf16);
    const std::vector<const codegen::Kernel*> found = attention_gradients(plan);
    ASSERT_EQ(found.size(), 1u) << print(plan);
    std::vector<codegen::Kernel> products = found[0]->fused.parts;
    products.push_back(*found[0]);
    std::set<codegen::TensorId> sums;
    for (const codegen::Kernel& product : products) {
      EXPECT_TRUE(product.gemm.accumulates_fp32) << product.name;
      for (const codegen::Target& target : codegen::targets_of(codegen::Precision::bf16))  // factors are rounded there
        EXPECT_EQ(codegen::factors_on(product, target),
                  target.bf16_tile_rows ? codegen::DType::bf16 : codegen::DType::real)
            << product.name << " " << target.name;
      for (const codegen::TensorId t : codegen::stored_by(product))
        if (plan.program.tensors[t].storage == codegen::Storage::scratch) sums.insert(t);
    }
    ASSERT_FALSE(sums.empty());
    for (const codegen::TensorId t : sums) {
      EXPECT_EQ(plan.program.tensors[t].element, codegen::DType::real) << plan.program.tensors[t].name;
      for (const codegen::Kernel& k : plan.program.kernels)
        if (codegen::loaded_by(k).contains(t)) {
          EXPECT_EQ(k.gemm.columns, -1) << k.name << " reads what it should read rounded";
          for (const codegen::TensorId copy : codegen::stored_by(k))
            EXPECT_EQ(plan.program.tensors[copy].element, codegen::DType::bf16) << k.name;
        }
    }
  }
}

TEST(PlanAttention, BackwardOfBf16HasWholeTilesOfATileUnitInEachBlock) {
  using More = models::Vit<{.image = 46 * 8, .patch = 8, .width = 96, .heads = 3, .depth = 2}>;  // of 2,117 tokens
  const Plan plan = gradients_of(trace<More>("more"), {}, codegen::Precision::bf16);
  EXPECT_EQ(reals_of_pairs(plan, 2117), 0) << print(plan);
  const codegen::Kernel& kernel = *attention_gradients(plan).at(0);
  const std::vector<codegen::AttentionAxes> axes = codegen::attention_axes(kernel);
  for (const codegen::Target& target : codegen::targets_of(codegen::Precision::bf16)) {
    if (!target.bf16_tile_rows) continue;
    const codegen::Schedule& s =
        plan.schedules.at(std::string(target.name))[static_cast<std::size_t>(&kernel - plan.program.kernels.data())];
    EXPECT_GE(s.queries, 100) << target.name;
    EXPECT_EQ(s.keys, 192) << target.name;
    const auto rows = [&](std::size_t part) {
      const codegen::Kernel& product = part == 4 ? kernel : kernel.fused.parts[part];
      return (part == 4 ? s : s.fused[part]).tile[static_cast<std::size_t>(product.gemm.rows)];
    };
    for (const std::size_t rows_are_queries : {0u, 1u, 3u}) EXPECT_EQ(s.queries % rows(rows_are_queries), 0);
    for (const std::size_t rows_are_keys : {2u, 4u}) EXPECT_EQ(s.keys % rows(rows_are_keys), 0);
    EXPECT_LE(s.queries * 192 * 2 * 4, 300 << 10) << target.name;  // of the stack, for scores and their gradients
  }
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
  for (const codegen::Precision precision : {codegen::Precision::fp32, codegen::Precision::bf16}) {
    const Plan some = gradients_of(trace<Pooled<16>>("some"), {}, precision),
               many = gradients_of(trace<Pooled<32>>("many"), {}, precision);
    EXPECT_NEAR(scratch(many) / scratch(some), 4, 0.1) << codegen::name_of(precision);  // of four times the tokens
  }
  const codegen::PassOptions without{.disabled = {"attention_gradient"}};
  EXPECT_GT(scratch(gradients_of(trace<Pooled<32>>("many"), without)) /
                scratch(gradients_of(trace<Pooled<16>>("some"), without)),
            5);
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

}  // namespace
}  // namespace tessera::test
