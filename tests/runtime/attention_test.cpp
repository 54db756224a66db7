// Attention: how it is rolled out, what is drawn.
#include "runtime/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/divergence.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

TEST(Rollout, IsTheProductOfHalfAttentionAndHalfIdentity) {
  // Two layers of two heads over two tokens, by hand: (A1 + I) / 2 = [[.75 .25] [.5 .5]], (A2 + I) / 2 = [[.5 .5] [0
  // 1]].
  const std::vector<float> maps{1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1};
  EXPECT_EQ(rollout(maps, 2, 2, 2), (std::vector<double>{0.625, 0.375, 0.5, 0.5}));
}

constexpr std::int64_t tokens = 5;  // and a picture of 8x8 in patches of 4x4

/// Two blocks of two heads. The class token of head h in the last block sees patch h alone, all else sees all alike.
/// Where the first pixel is not a number, the second block is none.
int inside(const float*, const float*, const float* images, std::int64_t batch, float* out, float* magnitudes, void*) {
  for (std::int64_t i = 0; i < batch; ++i)
    for (std::int64_t layer = 0; layer < 2; ++layer)
      for (std::int64_t head = 0; head < 2; ++head)
        for (std::int64_t query = 0; query < tokens; ++query)
          for (std::int64_t key = 0; key < tokens; ++key, ++out) {
            *out = layer == 1 && query == 0 ? (key == head + 1 ? 1.0f : 0.0f) : 1.0f / tokens;
            if (layer == 1) *out += 0 * images[i * 64];
          }
  for (std::int64_t i = 0; i < batch; ++i)
    for (std::int64_t layer = 0; layer < 3; ++layer)
      *magnitudes++ = static_cast<float>(layer % 2 + 1) + (layer == 0 ? 0.0f : 0 * images[i * 64]);
  return 0;
}

std::int64_t scratch_bytes(std::int64_t) { return 64; }

class Attention : public testing::Test {
 protected:
  const tessera_parameter token[1]{{"cls_token", 1, 0, {1}, 0, "[1]"}};
  const char* const keys[3]{"embedding", "blocks.0", "blocks.1"};
  Attention() {
    model.name = "toy";
    model.parameters = token;
    model.parameter_floats = 16;
    model.pack_forward = [](const float*, float*) { return 0; };
    std::ranges::copy(std::array{1, 8, 8}, model.image_shape);
    model.patches = {2, 2};
    model.attention = {2, 2, tokens, tokens};
    model.layers = keys;
    model.forward_scratch_bytes = model.evaluate_scratch_bytes = model.inspect_scratch_bytes = scratch_bytes;
    model.inspect = inside;
  }
  Model model;
  std::vector<float> input = std::vector<float>(128), parameters = std::vector<float>(16);
  Image photo{1, 8, 8, Bytes(64, 100)};
};

TEST_F(Attention, OfTheClassTokenIsRolledOutAndOfEachHeadOfTheLastBlock) {
  const std::vector<PatchMap> seen = attention(model, parameters.data(), input.data(), nullptr);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[1].weights, (std::vector<double>{1, 0, 0, 0}));
  EXPECT_EQ(seen[2].weights, (std::vector<double>{0, 1, 0, 0}));
  EXPECT_GT(seen[0].weights[0], seen[0].weights[2]);
  EXPECT_NEAR(seen[0].weights[0], seen[0].weights[1], 1e-12);
  EXPECT_EQ(seen[0].title, "rolled out over 2 blocks");
  EXPECT_EQ(seen[2].title, "block 2, head 2");
}

TEST_F(Attention, WithoutAClassTokenIsTheMeanOverAllTokens) {
  model.parameters = {};
  const std::vector<PatchMap> seen = attention(model, parameters.data(), input.data(), nullptr);
  EXPECT_NEAR(seen[1].weights[0], (1 + 4 * 0.2) / 5, 1e-6);
  EXPECT_NEAR(seen[1].weights[1], 4 * 0.2 / 5, 1e-6);
}

TEST_F(Attention, PictureHasTheHeatWhereTheAttentionIs) {
  const std::vector<PatchMap> seen = attention(model, parameters.data(), input.data(), nullptr);
  const Bytes png = attention_png(photo, seen, model.patches);
  const Image panel = decode_image(png, 3, "panel");
  EXPECT_EQ(panel.height, 224 + 24);
  EXPECT_EQ(panel.width, 4 * (224 + 12) + 12);
  const auto red = [&](std::int64_t cell, std::int64_t y, std::int64_t x) {
    return panel.pixels[static_cast<std::size_t>((12 + y) * panel.width + 12 + cell * 236 + x)];
  };
  EXPECT_EQ(red(0, 50, 50), 100);
  EXPECT_GT(red(2, 10, 10), red(2, 10, 214) + 100);  // head 1 looks at the upper left
  EXPECT_GT(red(3, 10, 214), red(3, 10, 10) + 100);  // head 2 at the upper right
}

TEST_F(Attention, SvgHasAPictureAndATitleForEachMap) {
  const std::string svg = attention_svg(photo, attention(model, parameters.data(), input.data(), nullptr),
                                        model.patches, "a < b", "cat 98.2%");
  for (const char* part : {"a &lt; b", "answer: cat 98.2%", "0.00% to 94.0%", "98th percentile", "what the model reads",
                           "rolled out over 2 blocks", "block 2, head 1"})
    EXPECT_CONTAINS(svg, part);
  std::size_t pictures = 0;
  for (std::size_t at = svg.find("data:image/png"); at != std::string::npos; at = svg.find("data:image/png", at + 1))
    ++pictures;
  EXPECT_EQ(pictures, 4u);
}

TEST_F(Attention, ThatCannotBeDrawnIsRefusedInASentence) {
  const auto error = [&] { return sentence([&] { attention(model, parameters.data(), input.data(), nullptr); }); };
  model.attention.columns = 4;
  EXPECT_EQ(error(), "toy has attention maps of 5x4, and its pictures have 2x2 patches: they cannot be laid over one");
  model.attention.columns = 5;
  model.patches = {2, 3};
  EXPECT_CONTAINS(error(), "attention maps of 5x5, and its pictures have 2x3 patches");
  model.patches = {};
  EXPECT_CONTAINS(error(), "attention maps of 5x5, and its pictures have 0x0 patches");
  model.patches = {2, 2};
  input[0] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error(), "the attention of toy is not a number: these parameters cannot be used");
  model.attention = {};
  EXPECT_EQ(error(), "toy has no attention maps");
}

TEST_F(Attention, FirstLayerThatGivesNoNumbersIsWhyALossIsNone) {
  const Batch batch{.images = input.data(), .size = 2};
  EXPECT_EQ(cause_of_loss(model, parameters.data(), batch),
            "all layers give numbers, the largest blocks.0, 2 on average");
  input[64] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(cause_of_loss(model, parameters.data(), batch), "what blocks.0 gives is the first that is not a number");
}

}  // namespace
}  // namespace tessera::runtime
