// Maps of depths: scaled, drawn and written.
#include "runtime/depth.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

TEST(Depth, ScalingKeepsTheCornersAndWhatIsLinear) {
  const auto plane = [](std::int64_t height, std::int64_t width) {  // of 3 rows and 5 columns, more or less finely
    DepthMap map{height, width, {}};
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x)
        map.depths.push_back(static_cast<float>(height > 1 ? 2.0 * double(y) / double(height - 1) : 0) +
                             static_cast<float>(width > 1 ? 40.0 * double(x) / double(width - 1) : 0));
    return map;
  };
  const DepthMap small = plane(3, 5);
  for (const auto& [height, width] : {std::pair(7, 12), {3, 5}, {2, 9}, {30, 2}}) {
    const DepthMap found = scaled(small, height, width), expected = plane(height, width);
    EXPECT_EQ(found.height, height);
    EXPECT_EQ(found.width, width);
    ASSERT_EQ(found.depths.size(), expected.depths.size());
    for (std::size_t i = 0; i < found.depths.size(); ++i)
      EXPECT_NEAR(found.depths[i], expected.depths[i], 1e-5) << height << " x " << width << ", " << i;
  }
  EXPECT_EQ(scaled(small, 3, 5).depths, small.depths);
  EXPECT_EQ(scaled(small, 1, 1).depths, std::vector<float>{small.depths[0]});
  EXPECT_EQ(scaled({1, 1, {7}}, 2, 3).depths, std::vector<float>(6, 7));
  // Between four pixels it is bilinear.
  EXPECT_EQ(scaled({2, 2, {0, 1, 2, 7}}, 3, 3).depths, (std::vector<float>{0, 0.5, 1, 1, 2.5, 4, 2, 4.5, 7}));
}

TEST(Depth, TheNearestPixelIsWhite) {
  const auto grey = [](const DepthMap& map, Depth kind) {
    return decode_image(depth_png(map, kind), 1, "depth.png").pixels;
  };
  const DepthMap map{1, 3, {1, 3, 5}};
  EXPECT_EQ(grey(map, Depth::inverse), (Bytes{0, 128, 255}));
  EXPECT_EQ(grey(map, Depth::metres), (Bytes{255, 128, 0}));
  EXPECT_EQ(grey({2, 1, {4, 4}}, Depth::metres), (Bytes{255, 255}));
}

TEST(Depth, IsDrawnBelowAWidePictureAndBesideAHighOne) {
  const auto drawing = [](std::int64_t height, std::int64_t width, Depth kind) {
    const auto pixels = static_cast<std::size_t>(height * width);
    DepthMap map{height, width, std::vector<float>(pixels, 2.5F)};
    map.depths[0] = 0.25F;
    return depth_svg({3, height, width, Bytes(3 * pixels, 9)}, map, kind, "m: a <b>.png");
  };
  const std::string wide = drawing(60, 100, Depth::inverse), high = drawing(100, 60, Depth::metres);
  EXPECT_CONTAINS(wide, "<image x=\"24.0\" y=\"128.0\"");
  EXPECT_CONTAINS(wide, ">near</text>");
  EXPECT_CONTAINS(wide, ">far</text>");
  EXPECT_CONTAINS(wide, "m: a &lt;b>.png");
  EXPECT_CONTAINS(high, "<image x=\"96.0\" y=\"56.0\"");
  EXPECT_CONTAINS(high, ">0.25 m</text>");
  EXPECT_CONTAINS(high, ">2.50 m</text>");
}

TEST(Depth, IsWrittenByThePicturesNames) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "d.safetensors";
  write_depths(path, {"a.png", "b/a.png"}, {{1, 2, {3, 4}}, {1, 1, {5}}}, Depth::inverse, {{"model", "m"}});
  const Safetensors file = read_safetensors(path);
  EXPECT_EQ(file.at("a.png").shape, (Shape{1, 2}));
  EXPECT_EQ(file.at("b/a.png").floats(), std::vector<float>{5});
  EXPECT_EQ(file.metadata.at("unit"), "inverse depth");
  EXPECT_CONTAINS(sentence([&] { write_depths(path, {"a", "a"}, {{1, 1, {1}}, {1, 1, {1}}}, Depth::inverse, {}); }),
                  "'a' is there twice");
  EXPECT_CONTAINS(sentence([&] { write_depths(path, {"\xff"}, {{1, 1, {1}}}, Depth::inverse, {}); }), "is not UTF-8");
  EXPECT_EQ(read_safetensors(path).tensors.size(), 2u);
}

}  // namespace
}  // namespace tessera::runtime
