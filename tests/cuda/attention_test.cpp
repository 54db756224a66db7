// Where attention becomes one kernel, forward and backward, how many blocks share a head, and what that should take.
#include <gtest/gtest.h>

#include <cstdint>

#include "codegen/cuda/device/attention_shares.h"
#include "codegen/cuda/tile.hpp"
#include "codegen/driver.hpp"
#include "codegen/error.hpp"
#include "dsl/trace.hpp"
#include "tests/cuda/emitted_text.hpp"
#include "tests/cuda/example_models.hpp"
#include "tests/cuda/toy_models.hpp"

namespace tessera::codegen::cuda {
namespace {

using test::trace_example;

/// The CUDA file of a ViT with heads of `width / 2`.
template <int width>
std::string vit_in(Precision precision) {
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.cuda = true;
  options.precision = precision;
  using Vit = models::Vit<{.image = 32, .patch = 8, .width = width, .heads = 2, .depth = 2, .classes = 10}>;
  return generate(trace<Vit>("vit"), options).at("vit_cuda.cu");
}

TEST(CudaAttention, IsOneKernelInBf16WhereHeadsAreMadeOfWholeFragments) {
  const std::string text = vit_in<32>(Precision::bf16);
  EXPECT_NE(text.find("  attention<4, 32, 16>(17, 17, "), std::string::npos);
  const std::size_t begin = text.find("void run_forward("), end = text.find("void run_inspect(");  // which shows p
  EXPECT_EQ(text.substr(begin, end - begin).find(" blocks_attn_einsum"), std::string::npos) << "scores are stored";
  EXPECT_EQ(vit_in<24>(Precision::bf16).find("  attention<"), std::string::npos);
  EXPECT_EQ(vit_in<32>(Precision::fp32).find("attention<"), std::string::npos);
}

TEST(CudaAttention, IsOneBlockForAHeadWhereThereAreManyAndMoreWhereThereAreFew) {
  const std::string text = kernels_of(trace<models::VitTiny>("vit_tiny_bf16"), {});
  EXPECT_NE(text.find("dim3(attention_shares(batch * 3, 197, 4, 2, sm_count()), 1, batch * 3),"), std::string::npos);
  // 13 tiles of queries for the four warps of a block, 264 blocks at a time.
  EXPECT_EQ(attention_shares(256 * 12, 197, 4, 2, 132), 1u);  // 12 waves of 1 + 4, not 24 of 1 + 2
  EXPECT_EQ(attention_shares(32 * 12, 197, 4, 2, 132), 2u);   // 3 waves of 1 + 2, not 2 of 1 + 4
  EXPECT_EQ(attention_shares(12, 197, 4, 2, 132), 4u);        // one wave, whatever it is: a tile for each warp
  EXPECT_EQ(attention_shares(12, 197, 4, 2, 6), 1u);
  EXPECT_EQ(attention_shares(1, 64, 4, 2, 132), 1u);  // there are no more tiles
  EXPECT_EQ(attention_shares(1, 65, 4, 2, 132), 2u);
  EXPECT_EQ(attention_shares(1, 1, 4, 1, 1), 1u);
}

TEST(CudaAttention, ItsBackwardPassIsOneKernelThatNobodyNeedsTheChangesOfScoresOf) {
  const graph::Graph wide = trace<models::ToyWideVit>("toy_wide_bf16"), tiny = trace<models::VitTiny>("vit_tiny_bf16");
  const PassOptions stored{.values = {{"attention_recompute", "off"}}};
  const std::string of_wide = kernels_of(wide, {}, stored), of_tiny = kernels_of(tiny, {}, stored);
  EXPECT_NE(of_wide.find(" attention_gradient<32, 16, false>(17, 17, query, key, value, gradient, "),
            std::string::npos);
  EXPECT_NE(of_tiny.find(" attention_gradient<208, 64, false>(197, 197, query, key, value, gradient, "),
            std::string::npos);
  EXPECT_NE(vit_in<256>(Precision::bf16).find(" attention_gradient<32, 128, false>(17, 17, "), std::string::npos);
  // The first layers' have no place in memory, nor do copies of what it gives.
  EXPECT_EQ(of_tiny.find("d_blocks_attn_multiply"), std::string::npos);
  EXPECT_EQ(of_tiny.find("d_blocks_attn_einsum"), std::string::npos);
  const std::string without = kernels_of(tiny, {}, {.disabled = {"attention_gradient"}});
  EXPECT_EQ(without.find(" attention_gradient<"), std::string::npos);
  EXPECT_NE(without.find("d_blocks_attn_multiply"), std::string::npos);
  EXPECT_THROW(kernels_of(wide, {}, {.values = {{"attention_recompute", "64x64"}}}), Error);
  EXPECT_THROW(kernels_of(wide, {}, {.disabled = {"blocks_attn_backward"}}), Error);
}

TEST(CudaAttention, StoresSixteenBytesWhereEightOfARowLieSo) {
  const std::string text =
      kernels_of(trace<models::VitTiny>("vit_tiny_bf16"), {}, {.values = {{"attention_recompute", "off"}}});
  for (const char* which : {"save", "store"})
    EXPECT_NE(text.find(std::string("in_eights(") + which + ", " + which + "_place)"), std::string::npos) << which;
}

TEST(CudaAttention, ItsBackwardPassComputesProbabilitiesAgainAndNoneAreStored) {
  const graph::Graph tiny = trace<models::VitTiny>("vit_tiny_bf16");
  const std::string stored = kernels_of(tiny, {}, {.values = {{"attention_recompute", "off"}}}),
                    again = kernels_of(tiny, {});
  EXPECT_NE(stored.find("  bf16* const blocks_attn_divide_bf16 = "), std::string::npos);
  EXPECT_EQ(again.find("  bf16* const blocks_attn_divide_bf16 = "), std::string::npos);
  EXPECT_NE(again.find("  attention<4, 208, 64>(197, 197, query, key, score, SaveNothing(), keep_row, value,"),
            std::string::npos);
  EXPECT_NE(again.find(" attention_gradient<208, 64, true>(197, 197, query, key, value, gradient, kept, probability, "),
            std::string::npos);
  // p is stored as bf16: what is made again is rounded too.
  EXPECT_NE(again.find("return in_bf16(share_of(sum * real(0.125), row_of_it));"), std::string::npos);
}

TEST(CudaAttention, IsOneKernelWhereAProductOfValuesStandsBetweenTheSoftmaxAndItsMix) {
  const std::string text = kernels_of(trace_example<models::SelfAttention2d<{}>>("self_attention_2d"), {},
                                      {.values = {{"attention_recompute", "off"}}});
  EXPECT_NE(text.find("  attention<4, 256, 32>(256, 256, query, key, score, SaveNothing(), KeepNothing(), value,"),
            std::string::npos);
  EXPECT_NE(text.find("  attention<4, 256, 32>(256, 256, query, key, score, save, KeepNothing(), value, "
                      "in_eights(store, store_place));"),
            std::string::npos);
  EXPECT_NE(text.find(" attention_gradient<256, 32, false>(256, 256, "), std::string::npos);
  const std::size_t begin = text.find("void run_forward("), end = text.find("void run_evaluate(");
  const std::string forward = text.substr(begin, end - begin);
  EXPECT_LT(forward.find("(v_forward, "), forward.find("attention_bytes("));
  EXPECT_EQ(forward.find("divide"), std::string::npos) << "probabilities are stored";
}

TEST(CudaPrediction, AttentionTakesWhatItsTilesOfQueriesDoAndTheLastOnesNoLessThanOne) {
  GeneratorOptions options;
  options.precision = Precision::bf16;
  const graph::Graph tiny = trace<models::VitTiny>("vit_tiny");
  const std::string text = predict(tiny, options, "sm_90a", 256);
  // 768 heads, two blocks on each of 132 SMs: 2.9 waves, which take as long as 3.
  const std::vector<double> row = row_of(text, "forward", "blocks_attn_weighted_values_forward");
  ASSERT_EQ(row.size(), 6u) << text;
  EXPECT_EQ(row[1], 768);
  EXPECT_NEAR(row[2], 768 / 264., 0.01);
  EXPECT_NE(text.find("  blocks for a head: 1\n"), std::string::npos);
  // Queries, keys and values, which lie beside each other in one tensor, and the mix.
  EXPECT_NEAR(row[4], 4 * 256 * 197 * 192 * 2 / 1e6, 0.1);
  // 13 tiles of 16 rows, 208 keys and 24 instructions for each score, a warp's lanes in a cycle: of each of two blocks
  // three for each warp, and one more for one of them. 132 SMs have 3 times two blocks.
  const double tile = 16 * 208 * 24 / 32.;
  EXPECT_NEAR(row[5], 3 * (2 * 3 + 1) * tile / 1750 + 2, 0.1);
  // A block alone on its SM brings 13 tiles' queries in four, and keys and values, at 38 bytes a cycle;
  // then nobody computes while its first factors come.
  const std::string of_one = predict(tiny, options, "sm_90a", 1);
  const std::vector<double> alone = row_of(of_one, "forward", "blocks_attn_weighted_values_forward");
  ASSERT_EQ(alone.size(), 6u) << of_one;
  EXPECT_EQ(alone[1], 3 * 4);
  EXPECT_NE(of_one.find("  blocks for a head: 4\n"), std::string::npos);
  EXPECT_NEAR(alone[5], ((13 / 4. * 16 + 2 * 208) * 64 * 2 / 38 + 1000 + tile) / 1750 + 2, 0.1);
}

TEST(CudaPrediction, ABlockOfAttentionsGradientMultipliesNothingWhileItChangesScores) {
  GeneratorOptions options;
  options.precision = Precision::bf16;
  options.pass_options["attention_recompute"] = "off";
  const std::string text = predict(trace<models::VitTiny>("vit_tiny"), options, "sm_90a", 256);
  // 768 heads on 132 SMs; four products of 197 rows, 197 keys and 64 numbers, the sum of p dp, and a
  // change for each score.
  const std::vector<double> row = row_of(text, "loss_and_gradients", "blocks_attn_key_backward");
  ASSERT_EQ(row.size(), 6u) << text;
  EXPECT_EQ(row[0], 11);
  EXPECT_EQ(row[1], 768);
  EXPECT_NEAR(row[2], 768 / 132., 0.01);
  EXPECT_NEAR(row[3], 1e-9 * 768 * 197 * 197 * (4 * 2 * 64 + 5), 0.02);
  // Six tiles of 32 rows and 208 keys, and half a one: 25 instructions for each of their scores, 128 in a cycle.
  const double alone = 1000 + 208 * 208 * 25 / 128. + 14 * 40 + (208 * 208 - 197 * 197) * 4 * 64 / 1340.;
  const double multiplied = 6 * 132 / 768. * row[3] * 1e9 / 620e12 * 1e6;
  EXPECT_NEAR(row[5], multiplied + 6 * alone / 1750 + 2, 0.5);
}

}  // namespace
}  // namespace tessera::codegen::cuda
