#include "runtime/positions.hpp"

#include <charconv>

#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

/// "5.14x14.6x6"
Resampling parse(const std::string& name) {
  Resampling how;
  const char *at = name.data(), *const end = at + name.size();
  for (std::int64_t* number : {&how.kept, &how.from.rows, &how.from.columns, &how.to.rows, &how.to.columns}) {
    at = std::from_chars(at, end, *number).ptr;
    if (at != end) ++at;
  }
  return how;
}

/// A file's tables, by resampling those before; each number to `near`.
void expect_resampled(const std::string& file, double near,
                      std::vector<float> (*resampled)(std::span<const float>, const Resampling&)) {
  const Safetensors golden = read_safetensors(std::filesystem::path(paths::golden) / "positions" / file);
  int cases = 0;
  for (const auto& [name, tensor] : golden.tensors) {
    if (!name.ends_with(".from")) continue;
    ++cases;
    const std::string kind = name.substr(0, name.size() - 5);
    const std::vector<float> got = resampled(tensor.floats(), parse(kind)), want = golden.at(kind + ".to").floats();
    ASSERT_EQ(got.size(), want.size()) << kind;
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], near) << kind << " at " << i;
  }
  EXPECT_EQ(cases, 8);
}

TEST(Positions, AreResampledAsPyTorchDoes) { expect_resampled("positions.safetensors", 2e-6, resample); }

TEST(Positions, OfRelativeBiasesAreResampledAsTimmDoes) {
  expect_resampled("relative.safetensors", 1e-5, resample_relative);
}

TEST(Positions, OfDistancesAreResampledAsTimmDoes) {
  const Safetensors golden = read_safetensors(std::filesystem::path(paths::golden) / "positions/distances.safetensors");
  int cases = 0;
  for (const auto& [name, tensor] : golden.tensors) {
    if (!name.ends_with(".from")) continue;
    ++cases;
    const Tensor& to = golden.at(name.substr(0, name.size() - 5) + ".to");
    const std::vector<float> got = resample_distances(tensor.floats(), tensor.shape[0], to.shape[0]),
                             want = to.floats();
    ASSERT_EQ(got.size(), want.size()) << name;
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << name << " at " << i;
  }
  EXPECT_EQ(cases, 6);
}

TEST(Positions, OfAMapAndOfDistancesAreToldByKeyAndShape) {
  EXPECT_TRUE(is_position_map("pos_embed", {1, 64, 64, 768}, {1, 32, 48, 768}));
  EXPECT_FALSE(is_position_map("pos_embed", {1, 64, 64, 768}, {1, 32, 48, 384})) << "the width differs";
  EXPECT_FALSE(is_position_map("pos_embed", {1, 4096, 768}, {1, 32, 48, 768})) << "the rank differs";
  EXPECT_FALSE(is_position_map("pos_embed", {1, 0, 64, 768}, {1, 32, 48, 768}));
  EXPECT_FALSE(is_position_map("neck.0.weight", {1, 64, 64, 768}, {1, 32, 48, 768}));
  EXPECT_TRUE(is_distance_table("blocks.2.attn.rel_pos_h", {127, 64}, {63, 64}));
  EXPECT_TRUE(is_distance_table("blocks.2.attn.rel_pos_w", {1, 64}, {63, 64}));
  EXPECT_FALSE(is_distance_table("blocks.2.attn.rel_pos_h", {126, 64}, {63, 64})) << "of no number of rows";
  EXPECT_FALSE(is_distance_table("blocks.2.attn.rel_pos_h", {127, 64}, {63, 80})) << "the width differs";
  EXPECT_FALSE(is_distance_table("blocks.2.attn.rel_pos", {127, 64}, {63, 64}));
}

TEST(Positions, GridOfARelativeTableIsToldOrASquareOrHasTheModelsProportions) {
  const auto from = [](std::int64_t found, std::int64_t needed, Grid to, std::optional<Grid> told) {
    const auto how = relative_resampling(found, needed, to, told);
    return how ? text(how->from.rows, "x", how->from.columns, " and ", how->kept) : "none";
  };
  EXPECT_EQ(from(27 * 27 + 3, 47 * 47 + 3, {24, 24}, {}), "14x14 and 3");
  EXPECT_EQ(from(27 * 27, 47 * 47, {24, 24}, {}), "14x14 and 0");
  EXPECT_EQ(from(27 * 27 + 3, 27 * 39 + 3, {14, 20}, {}), "14x14 and 3");
  EXPECT_EQ(from(27 * 39 + 3, 27 * 39 + 3, {14, 20}, {}), "14x20 and 3");
  EXPECT_EQ(from(5 * 3 + 3, 11 * 7 + 3, {6, 4}, {}), "3x2 and 3");
  EXPECT_EQ(from(27 * 39 + 3, 27 * 27 + 3, {14, 14}, {}), "none");
  EXPECT_EQ(from(27 * 39 + 3, 27 * 27 + 3, {14, 14}, Grid{14, 20}), "14x20 and 3");
  EXPECT_EQ(from(27 * 27 + 3, 47 * 47 + 3, {24, 24}, Grid{12, 16}), "none");
  EXPECT_EQ(from(27 * 27 + 3, 47 * 47 + 3, {24, 24}, Grid{1, std::int64_t{1} << 62}), "none");
  EXPECT_EQ(from(4, 27 * 27 + 3, {14, 14}, {}), "1x1 and 3");
  EXPECT_EQ(from(3, 27 * 27 + 3, {14, 14}, {}), "none");
  EXPECT_EQ(from(16 + 3, 27 * 27 + 3, {14, 14}, {}), "none") << "an even number of ways along a side";
  EXPECT_EQ(from(27 * 27 + 3, 27 * 27 + 3, {}, {}), "none");
}

TEST(Positions, TableOfTheSameGridStaysAsItIs) {
  const std::vector<float> table{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(resample(table, {1, {2, 2}, {2, 2}}), table);
}

TEST(Positions, GridOfAFileThatDoesNotTellItIsASquareOrHasTheModelsProportions) {
  const auto expect = [](std::int64_t found, std::int64_t needed, std::int64_t kept, Grid from, Grid to) {
    const auto how = resampling(found, needed, to, {});
    ASSERT_TRUE(how.has_value()) << found << " to " << needed;
    EXPECT_EQ(how->kept, kept);
    EXPECT_EQ(how->from, from);
    EXPECT_EQ(how->to, to);
  };
  expect(197, 577, 1, {14, 14}, {24, 24});
  expect(196, 576, 0, {14, 14}, {24, 24});
  expect(198, 578, 2, {14, 14}, {24, 24});
  expect(201, 581, 5, {14, 14}, {24, 24});
  expect(197, 1 + 24 * 16, 1, {14, 14}, {24, 16});  // a square picture's table for an oblong one
  expect(1 + 8 * 6, 1 + 4 * 3, 1, {8, 6}, {4, 3});
  expect(2, 5, 1, {1, 1}, {2, 2});
}

TEST(Positions, GridThatAFileTellsIsTakenAtItsWord) {
  Safetensors file;
  EXPECT_FALSE(grid_of(file).has_value());
  tell_grid(file, {});
  EXPECT_TRUE(file.metadata.empty()) << "a model that cuts no patches has no grid to tell";
  tell_grid(file, {2, 8});
  EXPECT_EQ(file.metadata.at("patch_grid"), "2x8");
  EXPECT_EQ(grid_of(file), (Grid{2, 8}));
  const auto how = resampling(17, 5, {2, 2}, grid_of(file));
  ASSERT_TRUE(how.has_value());
  EXPECT_EQ(how->from, (Grid{2, 8}));
  EXPECT_FALSE(resampling(17, 5, {2, 2}, Grid{4, 8}).has_value());
  EXPECT_FALSE(resampling(17, 5, {2, 2}, Grid{1, std::int64_t{1} << 62}).has_value());
  for (const char* other :
       {"", "x", "2", "2x", "x8", "0x8", "2x0", "-2x-8", "2x8x", "2*8", " 2x8", "2x99999999999999999999"}) {
    file.metadata["patch_grid"] = other;
    EXPECT_FALSE(grid_of(file).has_value()) << other;
  }
}

TEST(Positions, NumbersOfTokensThatAreNoGridsAreNotGuessedAt) {
  EXPECT_FALSE(resampling(197, 195, {14, 14}, {}).has_value());
  EXPECT_FALSE(resampling(60, 197, {14, 14}, {}).has_value());
  EXPECT_FALSE(resampling(0, 197, {14, 14}, {}).has_value());
  EXPECT_FALSE(resampling(1, 197, {14, 14}, {}).has_value());
  EXPECT_FALSE(resampling(197, 577, {}, {}).has_value());
}

TEST(Positions, TablesAreKnownByNameAndByShape) {
  EXPECT_TRUE(is_position_table("pos_embed", {1, 197, 192}, {1, 577, 192}));
  EXPECT_TRUE(is_position_table("visual.positional_embedding", {50, 8}, {17, 8}));
  EXPECT_TRUE(is_position_table("pos_embed", {1, 197, 192}, {1, 197, 192}));
  EXPECT_FALSE(is_position_table("pos_embed", {1, 197, 192}, {1, 577, 384})) << "the width differs";
  EXPECT_FALSE(is_position_table("pos_embed", {197, 192}, {1, 577, 192})) << "the rank differs";
  EXPECT_FALSE(is_position_table("pos_embed", {2, 197, 192}, {1, 577, 192}));
  EXPECT_FALSE(is_position_table("head.weight", {10, 192}, {20, 192}));
  EXPECT_FALSE(is_position_table("not_pos_embed", {10, 192}, {20, 192}));
  EXPECT_TRUE(is_relative_table("blocks.0.attn.relative_position_bias_table", {732, 12}, {2212, 12}));
  EXPECT_FALSE(is_relative_table("blocks.0.attn.relative_position_bias_table", {732, 12}, {2212, 16}));
  EXPECT_FALSE(is_relative_table("pos_embed", {732, 12}, {2212, 12}));
}

}  // namespace
}  // namespace tessera::runtime
