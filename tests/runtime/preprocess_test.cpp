// From a picture of any size to what a model reads, against Pillow's bytes.
#include "runtime/preprocess.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "runtime/resize.hpp"
#include "runtime/safetensors.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

TEST(Prepared, PictureThatWouldBeScaledToAFullMemoryIsRefused) {
  const Image narrow{1, 1, 1 << 20, Bytes(1 << 20)};
  EXPECT_EQ(sentence([&] { prepared(narrow, {.mean = {}, .deviation = {1, 1, 1}, .crop = 0.5}, 28, 28); }),
            "a picture of 1048576x1 is too narrow to be cropped: scaled, it would have 58720256x56 pixels");
}

class Pillow : public testing::TestWithParam<const char*> {
 protected:
  Image picture(const std::string& name) const {
    const Tensor& tensor = file.at(name);
    Image image{tensor.shape[0], tensor.shape[1], tensor.shape[2], {}};
    for (const float value : tensor.floats()) image.pixels.push_back(static_cast<std::uint8_t>(value));
    return image;
  }
  const Safetensors file = read_safetensors(std::string(paths::golden) + "/pictures/resize.safetensors");
};

TEST_P(Pillow, ResizesToTheSameBytes) {
  const std::string name = GetParam();
  const Image want = picture(name + "/out");
  const auto how = name.starts_with("linear_") ? Interpolation::bilinear : Interpolation::bicubic;
  EXPECT_EQ(resized(picture(name + "/in"), want.height, want.width, how).pixels, want.pixels);
}

INSTANTIATE_TEST_SUITE_P(Cases, Pillow,
                         testing::Values("smaller", "larger", "much_smaller", "one_pixel", "flatter", "narrower",
                                         "down_and_up", "linear_smaller", "linear_larger", "linear_narrower"));

using PillowOnce = Pillow;
TEST_P(PillowOnce, CropsTheMiddleOfTheShorterSideAsTimmDoes) {
  const Image want = picture("prepared/out");
  EXPECT_EQ(prepared(picture("prepared/in"), {.crop = 0.9}, 28, 28).pixels, want.pixels);
}

TEST_P(PillowOnce, SquashesBothSidesAsTimmDoes) {
  const Preprocessing input{.crop = 0.9, .interpolation = Interpolation::bilinear, .fit = Fit::squash};
  const Image want = picture("squashed/out");
  EXPECT_EQ(prepared(picture("squashed/in"), input, 28, 28).pixels, want.pixels);
}

TEST_P(PillowOnce, RoundsTheLongerSideOfAnOblongModelAsTimmDoes) {
  const Image want = picture("oblong/out");
  EXPECT_EQ(prepared(picture("oblong/in"), {.crop = 0.9}, 28, 20).pixels, want.pixels);
}

INSTANTIATE_TEST_SUITE_P(Cases, PillowOnce, testing::Values("prepared"));

TEST(Prepared, CoversAnInputThatIsNotSquare) {
  const Image tall{1, 40, 10, Bytes(400, 9)}, wide{1, 10, 40, Bytes(400, 9)};
  for (const Image& image : {tall, wide}) {
    const Image result = prepared(image, {.crop = 1}, 8, 16);
    EXPECT_EQ(result.height, 8);
    EXPECT_EQ(result.width, 16);
    EXPECT_EQ(result.pixels, Bytes(8 * 16, 9));
  }
}

TEST(Prepared, AShareOfWholePixelsLosesNone) {
  for (std::int64_t larger = 33; larger < 100; ++larger) {
    // The picture has the larger side already: nothing is resized, its middle comes out byte for byte.
    Image image{1, larger, larger, Bytes(static_cast<std::size_t>(larger * larger))};
    for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i * 7);
    const Image middle = prepared(image, {.crop = 32.0 / static_cast<double>(larger)}, 32, 32);
    const std::int64_t first = std::lrint(static_cast<double>(larger - 32) / 2);
    ASSERT_EQ(middle.pixels[0], image.pixels[static_cast<std::size_t>(first * larger + first)]) << larger;
    ASSERT_EQ(middle.pixels[33], image.pixels[static_cast<std::size_t>((first + 1) * larger + first + 1)]) << larger;
  }
}

TEST(Prepared, WithoutACropTheWholePictureIsFittedIn) {
  const Image image{1, 4, 4, {0, 4, 8, 8, 4, 8, 8, 8, 100, 100, 0, 0, 100, 100, 0, 0}};
  EXPECT_EQ(prepared(image, {}, 2, 2).pixels, fit(image, 2, 2).pixels);
}

TEST(Prepared, PadsBelowOrToTheRightWithWhatNormalizesToZero) {
  const Preprocessing input{.mean = {0.485, 0.456, 0.406},
                            .deviation = {0.229, 0.224, 0.225},
                            .crop = 1,
                            .interpolation = Interpolation::bilinear,
                            .fit = Fit::pad};
  struct Case {
    std::int64_t height, width, rows, columns;  ///< of the picture, and of it in 16 x 16
  };
  // Segment Anything's ResizeLongestSide: int(side * 16 / longest + 0.5).
  for (const auto& [height, width, rows, columns] :
       {Case{40, 30, 16, 12}, {30, 41, 12, 16}, {8, 8, 16, 16}, {1, 900, 1, 16}, {16, 7, 16, 7}}) {
    Image image{3, height, width, Bytes(static_cast<std::size_t>(3 * height * width))};
    for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i * 37 + 11);
    const Image result = prepared(image, input, 16, 16),
                scaled = resized(image, rows, columns, Interpolation::bilinear);
    ASSERT_EQ(result.pixels.size(), 3u * 16 * 16);
    std::vector<float> values(result.pixels.size()), wanted(scaled.pixels.size());
    normalize(result, input, values.data());
    normalize(scaled.pixels, 3, input, wanted.data());
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t y = 0; y < 16; ++y)
        for (std::int64_t x = 0; x < 16; ++x) {
          const auto at = static_cast<std::size_t>((c * 16 + y) * 16 + x);
          const bool of_picture = y < rows && x < columns;
          const float want = of_picture ? wanted[static_cast<std::size_t>((c * rows + y) * columns + x)] : 0;
          ASSERT_EQ(values[at], want) << height << "x" << width << ": " << c << ", " << y << ", " << x;
          if (!of_picture) {
            ASSERT_EQ(result.pixels[at], (std::array{124, 116, 104})[static_cast<std::size_t>(c)]);
          }
        }
  }
}

TEST(Normalize, TakesEachChannelsOwnMeanAndDeviation) {
  const Bytes pixels{0, 255, 0, 255, 51, 255};
  float values[6];
  normalize(pixels, 3, {.mean = {0, 0.5, 0.2}, .deviation = {1, 0.5, 0.8}}, values);
  EXPECT_FLOAT_EQ(values[0], 0);
  EXPECT_FLOAT_EQ(values[1], 1);
  EXPECT_FLOAT_EQ(values[2], -1);
  EXPECT_FLOAT_EQ(values[3], 1);
  EXPECT_NEAR(values[4], 0, 1e-7);
  EXPECT_FLOAT_EQ(values[5], 1);
}

}  // namespace
}  // namespace tessera::runtime
