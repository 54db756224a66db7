// Which tile a matrix product gets from its size, that another can be asked for, and what all kernels should take.
#include "codegen/cuda/tile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "codegen/driver.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/dead_slices.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/flops.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/subgraph.hpp"
#include "codegen/plan/plan.hpp"
#include "dsl/trace.hpp"
#include "tests/cuda/emitted_text.hpp"
#include "tests/cuda/example_models.hpp"
#include "tests/cuda/toy_models.hpp"

namespace tessera::codegen::cuda {
namespace {

std::string tile_of(Precision precision, const GemmSizes& products, const std::string& wanted = "") {
  const CtaTile tile = choose_tile(precision, products, wanted);
  return std::to_string(tile.rows) + "x" + std::to_string(tile.columns);
}

TEST(CudaTiles, AProductThatFillsTheGpuGetsALargeTileAndASmallOneManySmallTiles) {
  // Of the largest tile an SM has one block: nobody multiplies while it stores its sums.
  EXPECT_EQ(tile_of(Precision::bf16, {64 * 197, 768, 3072, 1, 20}), "128x256");
  EXPECT_EQ(tile_of(Precision::bf16, {64 * 197, 768, 768, 1, 56}), "128x128");
  EXPECT_EQ(tile_of(Precision::bf16, {197, 64, 197, 64 * 12}), "128x64");  // no column of the tile is idle
  EXPECT_EQ(tile_of(Precision::bf16, {64, 10, 192, 1}), "32x32");
  EXPECT_EQ(tile_of(Precision::fp32, {64 * 197, 768, 768, 1}), "128x128");
  EXPECT_EQ(tile_of(Precision::fp32, {64, 10, 192, 1}), "16x16");
}

TEST(CudaTiles, WarpgroupsTakeAProductUnlessMmaIsFaster) {
  auto by_warpgroups = [](const GemmSizes& products, const std::string& wanted = "") {
    const std::optional<CtaTile> tile = choose_wgmma_tile(products, choose_tile(Precision::bf16, products, ""), wanted);
    return !tile ? ""
                 : std::to_string(tile->rows) + "x" + std::to_string(tile->columns) + " by " +
                       std::to_string(tile->cluster);
  };
  EXPECT_EQ(by_warpgroups({64 * 197, 768, 3072, 1, 20}), "128x128 by 2");
  EXPECT_EQ(by_warpgroups({64 * 197, 768, 3072, 1, 20}, "128x192"), "128x192 by 2");
  EXPECT_EQ(by_warpgroups({64 * 197, 3072, 768, 1, 56}), "128x128 by 2");            // on an SM one more that stores
  EXPECT_EQ(by_warpgroups({64 * 197, 128, 768, 1, 56}, "128x128"), "128x128 by 2");  // nothing beside it
  EXPECT_EQ(by_warpgroups({128, 3072, 768, 16, 16}, "128x256"), "128x256 by 1");  // a second block would have no rows
  EXPECT_EQ(by_warpgroups({64, 10, 192, 1}), "");
  EXPECT_EQ(by_warpgroups({64, 10, 192, 1}, "64x128"), "64x128 by 1");
  EXPECT_EQ(by_warpgroups({64 * 197, 768, 3072, 1, 20}, "none"), "");
  EXPECT_THROW(by_warpgroups({64, 64, 64, 1}, "64x64"), Error);
}

// What nvcc makes of them: Nvcc.NoKernelSpills.vqgan_digits_encode_bf16 and _decode_bf16.
TEST(CudaTiles, NumbersThatAThreadLoadsByItselfTakeRegistersOfWhichATileHasEnough) {
  GemmSizes convolution{32, nominal_batch * 784, 288, 1, 20};
  const CtaTile copied = choose_tile(Precision::bf16, convolution, "32x64");
  EXPECT_EQ(copied.ctas, 4);  // of 128 threads, with 128 registers
  convolution.b_registers = 6.1;
  const CtaTile loaded = choose_tile(Precision::bf16, convolution, "32x64");
  EXPECT_EQ(loaded.ctas, 3);  // with 168
  EXPECT_EQ(choose_tile(Precision::bf16, convolution, "32x32").ctas, 4);
  EXPECT_EQ(choose_tile(Precision::bf16, convolution, "64x64").ctas, 2);
  EXPECT_EQ(choose_tile(Precision::bf16, convolution, "128x128").ctas, 1);
  // Of 128 x 256 a thread would spill: chosen where copies bring its operands, or where it is asked for.
  GemmSizes wide{128, nominal_batch * 1024, 4608, 1, 20};
  EXPECT_EQ(tile_of(Precision::bf16, wide), "128x256");
  wide.b_registers = 6.1;
  EXPECT_NE(tile_of(Precision::bf16, wide), "128x256");
  EXPECT_EQ(tile_of(Precision::bf16, wide, "128x256"), "128x256");
}

TEST(CudaTiles, AskedForATileAProductGetsIt) {
  EXPECT_EQ(tile_of(Precision::bf16, {64 * 197, 768, 768, 1}, "64x32"), "64x32");
  EXPECT_THROW(choose_tile(Precision::bf16, {64, 64, 64, 1}, "48x48"), Error);
}

TEST(CudaTiles, TheTileAskedForIsThatOfTheNamedKernelAndOfAllOthers) {
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.cuda = true;
  options.precision = Precision::bf16;
  options.tiles = {{"", "64x64"},
                   {"blocks_mlp_fc1_forward", "32x64"},
                   {"wgmma:", "128x64"},
                   {"wgmma:blocks_mlp_fc1_forward", "64x256"},
                   {"wgmma:blocks_mlp_fc2_backward", "none"}};
  const graph::Graph traced = trace<models::ToyVit>("toy_vit");
  const std::string text = generate(traced, options).at("toy_vit_cuda.cu");
  auto product_of = [&](const std::string& kernel) {
    const std::size_t at = text.find(" tensor_product<", text.find(" " + kernel + "("));
    return text.substr(at + 16, text.find(", 2,", at) - at - 16);
  };
  EXPECT_EQ(product_of("blocks_mlp_fc1_forward"), "32, 64");
  EXPECT_EQ(product_of("blocks_mlp_fc2_forward"), "64, 64");
  // Beside it the kernel for sm_90a; both are started from one place.
  auto of_warpgroups = [&](const std::string& kernel) -> std::string {
    const std::size_t at = text.find(" " + kernel + "_wgmma(");
    return at == std::string::npos ? "none" : text.substr(text.find(" warpgroup_product<", at) + 19, 10);
  };
  EXPECT_EQ(of_warpgroups("blocks_mlp_fc1_forward"), "64, 256, 1");
  EXPECT_EQ(of_warpgroups("blocks_mlp_fc2_forward"), "128, 64, 2");
  EXPECT_EQ(of_warpgroups("blocks_mlp_fc2_backward"), "none");
  EXPECT_EQ(of_warpgroups("head_weight_gradient"), "none");  // lines of 10 classes: no multiple of 16 bytes
  EXPECT_NE(text.find("    if (warpgroups) {\n      launch_warpgroups(blocks_mlp_fc1_forward_wgmma, 2, "),
            std::string::npos);
  for (const char* kernel : {"no_such_kernel", "wgmma:no_such_kernel", "wgmma:head_weight_gradient"}) {
    options.tiles = {{kernel, "128x64"}};
    EXPECT_THROW(generate(traced, options), Error) << kernel;
  }
}

TEST(CudaPlans, TheMapsOfAllLayersLimitTheBatchOfNobodyElse) {
  const std::string text = kernels_of(trace<models::VitLarge>("vit_large"), {});
  const auto number_behind = [&](const std::string& what) {
    const std::size_t at = text.find(what);
    return at == std::string::npos ? 0 : std::stol(text.substr(at + what.size()));
  };
  EXPECT_EQ(number_behind("largest_batch_of_inspect = "), ((std::int64_t{1} << 31) - 1) / (24 * 16 * 197 * 197));
  const std::int64_t of_others = number_behind("vit_large_cuda_largest_batch(void) { return ");
  EXPECT_GE(of_others, 1024);
  EXPECT_EQ(of_others,
            std::min({number_behind("largest_batch_of_forward = "), number_behind("largest_batch_of_evaluate = "),
                      number_behind("largest_batch_of_loss_and_gradients = "),
                      number_behind("largest_batch_of_input_gradient = ")}));
  EXPECT_NE(text.find("batch > largest_batch_of_loss_and_gradients) return VIT_LARGE_ERROR_BATCH;"), std::string::npos);
}

TEST(CudaPlans, SayHowEveryKernelIsLaunched) {
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.cuda = true;
  options.precision = Precision::bf16;
  options.tiles = {{"", "64x64"}, {"wgmma:", "128x64"}};
  std::string plans;
  options.dump = [&](const std::string& stage, const std::string& text) {
    if (stage == "loss_and_gradients_cuda_plan") plans = text;
  };
  const std::string text = generate(trace<models::ToyVit>("toy_vit"), options).at("toy_vit_cuda.cu");
  EXPECT_NE(plans.find("\nlaunches\n"), std::string::npos);
  EXPECT_NE(plans.find("\n  blocks_mlp_fc1_forward: GEMM by mma.sync, tile 64 x 64; CTAs ["), std::string::npos)
      << plans;
  EXPECT_NE(plans.find("\n  on sm_90a  blocks_mlp_fc1_forward_wgmma: GEMM by WGMMA, tile 128 x 64, "),
            std::string::npos)
      << plans;
  EXPECT_NE(plans.find(": GEMM by mma.sync, tile 64 x 64, split-K "), std::string::npos) << plans;
  // What stands in the list is a kernel of the file under its name, but for those that repeat another one's text.
  std::istringstream lines(plans.substr(plans.find("\nlaunches\n") + 10));
  int launches = 0, named = 0;
  for (std::string line; std::getline(lines, line); ++launches) {
    const std::size_t begin = line.rfind("  ", line.find(": ")) + 2;
    named += text.find(" " + line.substr(begin, line.find(": ") - begin) + "(") != std::string::npos;
  }
  EXPECT_GT(named, launches / 2) << plans;
  EXPECT_GT(launches, 20);
}

TEST(CudaSums, ChunksOfAWeightsGradientFillTheMachineAndAreFew) {
  for (const std::int64_t rows : {768, 2304, 3072}) {  // of ViT-B
    const GemmSizes products{rows, 768, nominal_summed_batch * 197, 1, 16, true};
    const int chunks = choose_split_k(products, true, "", "128x256");
    EXPECT_LT(chunks, batch_chunks) << "each chunk's sums are written and read";
    const auto blocks = static_cast<double>(rows / 128 * 3 * chunks);
    EXPECT_GT(blocks / (std::ceil(blocks / 132) * 132), 0.85) << rows;
  }
  // One tile: chunks alone make many blocks.
  EXPECT_EQ(choose_split_k({64, 64, nominal_summed_batch * 197, 1, 16, true}, false, "", "64x64"), batch_chunks);
}

TEST(CudaSums, ThatReadTheSameAreOneKernel) {
  const std::string text = kernels_of(trace<models::VitTiny>("vit_tiny_bf16"), {}, {.disabled = {"column_reductions"}});
  const std::size_t at = text.find(" blocks_norm2_weight_gradient_and_bias_gradient_partial(");
  ASSERT_NE(at, std::string::npos);
  const std::string kernel = text.substr(at, text.find("\n}\n", at) - at);
  EXPECT_NE(kernel.find("    partial[chunk * 192 + d] = sum0;\n    partial[chunk * 192 + (d + 3072)] = sum1;\n"),
            std::string::npos)
      << kernel;
  EXPECT_EQ(text.find(" blocks_norm2_bias_gradient"), std::string::npos);
  EXPECT_NE(text.find(" blocks_mlp_fc1_bias_gradient_partial("), std::string::npos) << "which reads something else";
}

TEST(CudaSums, OfABiasesGradientAreMadeByTheProductByWarpgroupsThatReadsTheSame) {
  const std::string text = kernels_of(trace<models::VitTiny>("vit_tiny_bf16"), {});
  EXPECT_NE(text.find("const auto store_sum"), std::string::npos);
  const std::string run = text.substr(text.find("void run_loss_and_gradients("));
  const std::size_t product = run.find("(blocks_mlp_fc1_weight_gradient_partial_wgmma"),
                    otherwise = run.find("    if (!(warpgroups)) {\n      launch(blocks_mlp_fc1_bias_gradient_partial"),
                    sum = run.find("    launch(blocks_mlp_fc1_bias_gradient_sum");
  ASSERT_NE(sum, std::string::npos) << run;
  EXPECT_LT(product, otherwise);
  EXPECT_LT(otherwise, sum);
  // Which reads single precision; and where it is not wanted.
  EXPECT_EQ(run.find("blocks_mlp_fc2_bias_gradient_partial_wgmma"), std::string::npos);
  const std::string without =
      kernels_of(trace<models::VitTiny>("vit_tiny_bf16"), {}, {.disabled = {"operand_row_reductions"}});
  EXPECT_EQ(without.find("const auto store_sum"), std::string::npos);
  EXPECT_NE(without.find("\n    launch(blocks_mlp_fc1_bias_gradient_partial"), std::string::npos);
  EXPECT_THROW(
      kernels_of(trace<models::VitTiny>("vit_tiny_bf16"), {}, {.values = {{"operand_row_reductions", "64x64"}}}),
      Error);
}

TEST(CudaSums, OverRowsAreMadeByTheBackwardPassOfANormThatHasWhatTheyAreMadeOf) {
  const graph::Graph tiny = trace<models::VitTiny>("vit_tiny_bf16");
  const std::string text = kernels_of(tiny, {}, {.disabled = {"norm_recompute"}});
  const auto part = [&](const std::string& of, const std::string& from, const std::string& to) {
    const std::size_t at = of.find(from);
    return at == std::string::npos ? "" : of.substr(at, of.find(to, at) + 1 - at);
  };
  // Of the gradient that it reads, of what the norm gave, and of the gradient that it stores.
  const std::string norm = part(text, " blocks_norm2_backward(", "\n}\n");
  for (const char* line : {"  real* const sums = sums_of_warp(768);\n",
                           "  for (int row = block_x() * 8 + thread_x() / 32; row < batch * 197; row += 4224) {\n",
                           "      sums[d] += x1;\n", "      sums[d + 384] += x2;\n", "      sums[d + 576] += t5;\n",
                           "  store_sums_of_warps(768, blocks_norm2_backward_partial + block_x() * 768);\n"})
    EXPECT_NE(norm.find(line), std::string::npos) << line << norm;
  const std::string sums = part(text, " blocks_norm2_backward_sums(", "\n}\n");
  for (const char* line : {"block < 528; block += 64", "gradient_blocks_mlp_fc2_bias[d] = sum0;",
                           "gradient_blocks_norm2_weight[d] = sum1;", "gradient_blocks_norm2_bias[d] = sum2;",
                           "gradient_blocks_attn_proj_bias[d] = sum3;"})
    EXPECT_NE(sums.find(line), std::string::npos) << line << sums;
  // Right behind it, before the next layer's gradient lies where the one that it read did.
  const std::string run = part(text, "void run_loss_and_gradients(", "\n}\n");
  const std::size_t first = run.find("    launch(blocks_norm2_backward, "),
                    second = run.find("    launch(blocks_norm2_backward_sums, "),
                    next = run.find("    launch(blocks_norm1_backward, ");
  EXPECT_LT(first, second);
  EXPECT_LT(second, next);
  EXPECT_EQ(run.find("fc2_bias_gradient_partial"), run.find("blocks_11_mlp_fc2_bias_gradient_partial") + 14)
      << "which sums 256 rows alone";

  const std::string without = kernels_of(tiny, {}, {.disabled = {"column_reductions"}});
  EXPECT_EQ(without.find("store_sums_of_warps(768"), std::string::npos);
  EXPECT_NE(without.find("    launch(blocks_mlp_fc2_bias_gradient_partial, "), std::string::npos);
  EXPECT_NE(kernels_of(tiny, {}, {.values = {{"column_reductions", "40"}}})
                .find("thread_x() / 32; row < batch * 197; row += 320) {"),
            std::string::npos);
  for (const char* wrong : {"0", "64x64", "70000", "-1"})
    EXPECT_THROW(kernels_of(tiny, {}, {.values = {{"column_reductions", wrong}}}), Error) << wrong;
}

TEST(CudaNorms, HaveHalfOfARowInRegistersWhereThereIsTooMuchOfIt) {
  const std::string tiny = kernels_of(trace<models::VitTiny>("vit_tiny_bf16"), {}),
                    large = kernels_of(trace<models::Dinov2Large>("dinov2_large"), {});
  EXPECT_NE(tiny.find("unrolled<6, 6>(elements);"), std::string::npos);
  EXPECT_NE(large.find("unrolled<32, 16>(elements);"), std::string::npos);
}

TEST(CudaNorms, KeepTheirInputsForBackwardInThePlaceOfTheirResults) {
  const graph::Graph tiny = trace<models::VitTiny>("vit_tiny_bf16");
  const std::string text = kernels_of(tiny, {}), without = kernels_of(tiny, {}, {.disabled = {"norm_recompute"}});
  const auto run_of = [](const std::string& of) {
    const std::size_t at = of.find("void run_loss_and_gradients(");
    return of.substr(at, of.find("\n}\n", at) - at);
  };
  const std::string run = run_of(text), stored = run_of(without);
  for (const char* result : {" blocks_norm1_multiply = ", " blocks_norm2_multiply = "}) {
    EXPECT_EQ(run.find(result), std::string::npos) << result;
    EXPECT_NE(stored.find(result), std::string::npos) << result;
  }
  EXPECT_NE(run.find("// [B, N+1=197, D=192] x 12 slots, kernels"), std::string::npos) << "the residual stream";
  EXPECT_NE(stored.find("// [B, N+1=197, D=192] x 2 slots, kernels"), std::string::npos);
  EXPECT_NE(text.find("= (blocks_add[row * 192 + d] - blocks_norm2_multiply_row[row]) * blocks_norm2_rsqrt[row];"),
            std::string::npos);
  EXPECT_THROW(kernels_of(tiny, {}, {.values = {{"norm_recompute", "all"}}}), Error);
  // What only sums over the batch read besides is stored.
  EXPECT_NE(run_of(kernels_of(tiny, {}, {.disabled = {"column_reductions"}})).find(" blocks_norm1_multiply = "),
            std::string::npos);
}

TEST(CudaNorms, ReadInBf16WhatLinearLayersHandThemOfGradients) {
  const graph::Graph tiny = trace<models::VitTiny>("vit_tiny_bf16");
  const std::string text = kernels_of(tiny, {}), without = kernels_of(tiny, {}, {.disabled = {"norm_gradients"}});
  const auto kernel = [](const std::string& of, const std::string& name) {
    const std::size_t at = of.find(" " + name + "(");
    return at == std::string::npos ? "" : of.substr(at, of.find("\n}\n", at) - at);
  };
  const auto has = [&](const std::string& of, const std::string& name, const std::string& part) {
    return kernel(of, name).find(part) != std::string::npos;
  };
  for (const std::string linear : {"blocks_mlp_fc1_backward", "blocks_attn_qkv_backward", "head_backward"})
    for (const std::string kind : {"", "_wgmma"}) {
      if (kernel(text, linear + kind).empty() && linear == "head_backward" && kind == "_wgmma") continue;
      const bool pairs = kind == "_wgmma";
      EXPECT_TRUE(has(text, linear + kind, pairs ? "bf16* __restrict d_" : " = rounded(sum);"))
          << kernel(text, linear + kind);
      EXPECT_TRUE(has(without, linear + kind, pairs ? "real* __restrict d_" : "] = sum;"))
          << kernel(without, linear + kind);
      EXPECT_EQ(has(text, linear + kind, "store_pair(") && has(without, linear + kind, "store_pair("), pairs);
    }
  for (const char* norm : {"blocks_norm1_backward", "blocks_norm2_backward", "norm_backward"}) {
    EXPECT_TRUE(has(text, norm, "widened(")) << kernel(text, norm);
    EXPECT_FALSE(has(without, norm, "widened(")) << kernel(without, norm);
  }
  // What is added up along the residual stream stays exact, and so does what is no gradient.
  EXPECT_TRUE(has(text, "blocks_norm2_backward", " real* __restrict d_blocks_add,"))
      << kernel(text, "blocks_norm2_backward");
  EXPECT_FALSE(has(text, "blocks_attn_proj_forward", "rounded(")) << kernel(text, "blocks_attn_proj_forward");
  EXPECT_THROW(kernels_of(tiny, {}, {.values = {{"norm_gradients", "bf16"}}}), Error);
}

TEST(CudaPrediction, SumsOverRowsTakeTheirWayThroughMemoryAndSharedMemory) {
  GeneratorOptions options;
  options.precision = Precision::bf16;
  const graph::Graph tiny = trace<models::VitTiny>("vit_tiny");
  options.disabled_passes = {"norm_recompute"};
  const std::string text = predict(tiny, options, "sm_90a", 256);
  options.disabled_passes.insert("column_reductions");
  const std::string without = predict(tiny, options, "sm_90a", 256);
  const std::vector<double> norm = row_of(text, "loss_and_gradients", "blocks_norm2_backward"),
                            alone = row_of(without, "loss_and_gradients", "blocks_norm2_backward"),
                            sums = row_of(text, "loss_and_gradients", "blocks_norm2_backward_sums");
  ASSERT_EQ(norm.size(), 6u) << text;
  ASSERT_EQ(alone.size(), 6u) << without;
  ASSERT_EQ(sums.size(), 6u) << text;
  const double partial = 528 * 4 * 192 * 4 / 1e6, numbers = 256 * 197 * 192;
  EXPECT_EQ(norm[1], 528);
  EXPECT_NEAR(norm[3] - alone[3], 5 * numbers / 1e9, 0.03);  // four sums, one of products
  EXPECT_NEAR(norm[4], alone[4] + partial, 0.02);
  EXPECT_NEAR(norm[5], norm[4] / 4.3 + 2, 0.2);
  EXPECT_GT(norm[5], 2 * 4 * 4 * numbers / (128 * 1750. * 132) + 2) << "of shared memory, which is faster";
  EXPECT_NEAR(sums[4], partial + 4 * 192 * 4 / 1e6, 0.02);
  EXPECT_NEAR(sums[5], sums[4] / (4.3 * 24 / 132) + 2, 0.2);  // 24 blocks
  EXPECT_NE(text.find("  with 4 sums over its rows"), std::string::npos);
  // Forward does not write the norm's result, but a number of each row, which backward reads.
  options.disabled_passes = {};
  const std::string again = predict(tiny, options, "sm_90a", 256);
  const auto bytes = [&](const std::string& table, const std::string& kernel) {
    return row_of(table, "loss_and_gradients", kernel).at(4);
  };
  EXPECT_NEAR(bytes(again, "blocks_norm1_forward"),
              bytes(text, "blocks_norm1_forward") - (numbers - 256 * 197) * 4 / 1e6, 0.02);
  EXPECT_NEAR(bytes(again, "blocks_norm1_backward"), bytes(text, "blocks_norm1_backward") + 256 * 197 * 4 / 1e6, 0.02);
  // What norms read of linear layers is half as long in bf16.
  EXPECT_NE(again.find("  with 4 sums over its rows, reads bf16\n"), std::string::npos) << again;
  options.disabled_passes = {"norm_gradients"};
  const std::string exact = predict(tiny, options, "sm_90a", 256);
  EXPECT_EQ(exact.find("reads bf16"), std::string::npos) << exact;
  for (const char* kernel : {"blocks_norm1_backward", "blocks_norm2_backward", "blocks_mlp_fc1_backward_wgmma"})
    EXPECT_NEAR(bytes(again, kernel), bytes(exact, kernel) - numbers * 2 / 1e6, 0.02) << kernel;
}

TEST(CudaSums, OfAResidualConnectionAreTheProductsBeforeTheNorm) {
  const std::string text = kernels_of(trace<models::VitTiny>("vit_tiny_bf16"), {});
  const auto kernel = [&](const std::string& name) {
    const std::size_t at = text.find(" " + name + "(");
    return text.substr(at, text.find("\n}\n", at) - at);
  };
  EXPECT_NE(kernel("blocks_attn_proj_forward")
                .find("    const real x0 = blocks_carry[row * 192 + d] + (sum + blocks_attn_proj_bias[d]);\n"
                      "    const auto later = [=]() { blocks_add[row * 192 + d] = x0; };\n"
                      "    return later;\n"),
            std::string::npos)
      << kernel("blocks_attn_proj_forward");
  EXPECT_NE(kernel("blocks_attn_proj_add_forward").find("const real* __restrict blocks_add"), std::string::npos);
  const std::string computing = text.substr(0, text.find("void run_inspect("));  // which shows what each layer gives
  EXPECT_EQ(computing.find(" blocks_attn_proj_einsum = "), std::string::npos) << "has a place in memory";
}

TEST(CudaPrediction, OperationsAreTheGraphsAndTimeIsWhatTheSlowestPartTakes) {
  GeneratorOptions options;
  options.precision = Precision::bf16;
  options.tiles = {{"", "128x128"}, {"wgmma:", "none"}, {"wgmma:blocks_mlp_fc2_forward", "128x192"}};
  const graph::Graph traced = trace<models::VitTiny>("vit_tiny");
  const std::string text = predict(traced, options, "sm_90a", 256);
  const std::vector<double> all = row_of(text, "forward", "in all");
  ASSERT_EQ(all.size(), 3u) << text;
  const graph::Graph forward =
      simplify(decompose(eliminate_dead_slices(subgraph(without_dropout(traced), {"outputs"}))));
  EXPECT_NEAR(all[0] * 1e9, static_cast<double>(flops(forward).at(256)), all[0] * 1e7);
  // 256 * 197 rows in tiles of 128 and 768 columns: 394 * 6 blocks, two on each of 132 SMs at a time, and a
  // last wave that is not full takes its time too. Each loads 256 rows and columns, 192 deep, at 38 bytes a cycle;
  // then, while the other does so, it stores its sums: 38 instructions for each, with GELU and rounding, 128 in a
  // cycle.
  const std::vector<double> fc1 = row_of(text, "forward", "blocks_mlp_fc1_forward");
  ASSERT_EQ(fc1.size(), 6u) << text;
  EXPECT_EQ(fc1[0], 11);  // the last layer has a kernel of its own
  EXPECT_EQ(fc1[1], 394 * 6);
  EXPECT_NEAR(fc1[3], 2e-9 * 256 * 197 * 768 * 192, 0.2);
  EXPECT_NEAR(fc1[5], 18 / 2 * (256 * 192 * 2 / 38. + 1000 + 128 * 128 * 38 / 128) / 1750. + 2, 0.1);
  // By warpgroups 394 blocks, one on each SM at a time, in three waves; on sm_80 there are none.
  const std::vector<double> fc2 = row_of(text, "forward", "blocks_mlp_fc2_forward_wgmma");
  ASSERT_EQ(fc2.size(), 6u) << text;
  EXPECT_EQ(fc2[1], 394);
  EXPECT_NEAR(fc2[2], 394 / 132., 0.01);
  EXPECT_TRUE(text.find("\nblocks_mlp_fc2_forward ") == std::string::npos);
  EXPECT_NE(text.find("  tiles of 128 x 192"), std::string::npos);
  // The update reads parameters, gradients and two moments, and writes all but the gradients, and a copy as bf16.
  const std::vector<double> update = row_of(text, "update", "update");
  ASSERT_EQ(update.size(), 6u) << text;
  EXPECT_NEAR(update[4], 5.72 * (7 * 4 + 2), 1);
  const std::string on_sm_80 = predict(traced, options, "sm_80", 256);
  EXPECT_EQ(row_of(on_sm_80, "forward", "blocks_mlp_fc2_forward").size(), 6u);
  EXPECT_EQ(on_sm_80.find("_wgmma"), std::string::npos);
  EXPECT_THROW(predict(traced, options, "sm_61", 256), Error);
  // An H100 is an H200 with slower memory: which the update waits for.
  const auto of_update = [&](const std::string& gpu) {
    return row_of(predict(traced, options, gpu, 256), "update", "update")[5] - 2;
  };
  EXPECT_NEAR(of_update("H100") / of_update("H200"), 4.3 / 3.0, 0.01);
  EXPECT_EQ(of_update("H200"), of_update("sm_90a"));
  EXPECT_EQ(of_update("A100"), of_update("sm_80"));
}

}  // namespace
}  // namespace tessera::codegen::cuda
