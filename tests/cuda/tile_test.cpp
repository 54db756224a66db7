// Which tile a matrix product gets from its size, and that another can be asked for.
#include "codegen/cuda/tile.hpp"

#include <gtest/gtest.h>

#include "codegen/driver.hpp"
#include "codegen/error.hpp"
#include "dsl/trace.hpp"
#include "tests/cuda/toy_models.hpp"

namespace tessera::codegen::cuda {
namespace {

std::string tile_of(Precision precision, const Products& products, const std::string& wanted = "") {
  const Tile tile = choose_tile(precision, products, wanted);
  return std::to_string(tile.rows) + "x" + std::to_string(tile.columns);
}

TEST(CudaTiles, AProductThatFillsTheGpuGetsALargeTileAndASmallOneManySmallTiles) {
  EXPECT_EQ(tile_of(Precision::bf16, {64 * 197, 768, 768, 1}), "128x128");
  EXPECT_EQ(tile_of(Precision::bf16, {197, 64, 197, 64 * 12}), "128x64");  // no column of the tile is idle
  EXPECT_EQ(tile_of(Precision::bf16, {64, 10, 192, 1}), "32x32");
  EXPECT_EQ(tile_of(Precision::fp32, {64 * 197, 768, 768, 1}), "128x128");
  EXPECT_EQ(tile_of(Precision::fp32, {64, 10, 192, 1}), "16x16");
}

TEST(CudaTiles, AskedForATileAProductGetsIt) {
  EXPECT_EQ(tile_of(Precision::bf16, {64 * 197, 768, 768, 1}, "64x32"), "64x32");
  EXPECT_THROW(choose_tile(Precision::bf16, {64, 64, 64, 1}, "48x48"), Error);
}

TEST(CudaTiles, TheTileAskedForIsThatOfTheNamedKernelAndOfAllOthers) {
  GeneratorOptions options;
  options.targets = {cpu_targets.front()};
  options.cuda = true;
  options.precision = Precision::bf16;
  options.tiles = {{"", "64x64"}, {"blocks_mlp_fc1_forward", "32x64"}};
  const graph::Graph traced = trace<models::ToyVit>("toy_vit");
  const std::string text = generate(traced, options).at("toy_vit_cuda.cu");
  auto product_of = [&](const std::string& kernel) {
    const std::size_t at = text.find(" tensor_product<", text.find(" " + kernel + "("));
    return text.substr(at + 16, text.find(", 2,", at) - at - 16);
  };
  EXPECT_EQ(product_of("blocks_mlp_fc1_forward"), "32, 64");
  EXPECT_EQ(product_of("blocks_mlp_fc2_forward"), "64, 64");
  options.tiles = {{"no_such_kernel", "64x64"}};
  EXPECT_THROW(generate(traced, options), Error);
}

}  // namespace
}  // namespace tessera::codegen::cuda
