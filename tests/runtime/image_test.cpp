#include "runtime/image.hpp"

#include <gtest/gtest.h>

#include "runtime/digits.hpp"
#include "runtime/predictions.hpp"
#include "runtime/raster.hpp"
#include "runtime/report.hpp"
#include "runtime/safetensors.hpp"
#include "tests/runtime/helpers.hpp"
#include "tests/runtime/png_file.hpp"

namespace tessera::runtime {
namespace {

TEST(Image, PngIsDecodedToThePixelsItWasMadeOf) {
  const Dataset data = draw_digits(1, 1, Split::test);
  const Image image = decode_image(encode_png(data.image(0), 1, 28, 28), 1, "x");
  EXPECT_EQ(image.height, 28);
  EXPECT_EQ(image.width, 28);
  EXPECT_TRUE(std::equal(image.pixels.begin(), image.pixels.end(), data.pixels.begin()));
}

TEST(Image, ColoursStayInTheirChannels) {
  Bytes planes(12, 10);
  std::fill(planes.begin() + 4, planes.begin() + 8, std::uint8_t{200});
  const Image image = decode_image(encode_png(planes, 3, 2, 2), 3, "x");
  EXPECT_EQ(image.pixels, planes);
}

TEST(Image, EveryFormatIsDecodedToPillowsBytes) {
  const Safetensors file = read_safetensors(std::string(paths::golden) + "/pictures/decoded.safetensors");
  const auto bytes = [&](const std::string& name) {
    const std::vector<std::int64_t> values = file.at(name).integers();
    return Bytes(values.begin(), values.end());
  };
  int cases = 0;
  for (const auto& [key, content] : file.tensors) {
    if (!key.ends_with("/file")) continue;
    ++cases;
    const std::string name = key.substr(0, key.size() - 5);
    for (const auto& [colours, channels] : {std::pair{"/rgb", 3}, {"/grey", 1}}) {
      const Image image = decode_image(bytes(key), channels, name);
      EXPECT_EQ((Shape{image.channels, image.height, image.width}), file.at(name + colours).shape) << name;
      EXPECT_TRUE(image.pixels == bytes(name + colours)) << name << colours;
    }
  }
  EXPECT_EQ(cases, 31);
}

TEST(Image, DamagedExifIsAnUprightPicture) {
  // A header, a directory at byte 8 of two entries, the second the orientation.
  const auto exif = [](bool little, std::uint32_t directory, std::uint16_t entries, std::uint16_t value) {
    Bytes tiff{little ? std::uint8_t{'I'} : std::uint8_t{'M'}, little ? std::uint8_t{'I'} : std::uint8_t{'M'}};
    const auto put = [&](std::uint32_t number, int bytes) {
      for (int i = 0; i < bytes; ++i)
        tiff.push_back(static_cast<std::uint8_t>(number >> 8 * (little ? i : bytes - 1 - i)));
    };
    put(42, 2), put(directory, 4), put(entries, 2);
    for (const std::uint16_t tag : {0x010f, 0x0112})
      put(tag, 2), put(3, 2), put(1, 4), put(tag == 0x0112 ? value : 2, 2), put(0, 2);
    return tiff;
  };
  for (const bool little : {false, true}) {
    for (std::uint16_t value = 1; value <= 8; ++value) EXPECT_EQ(exif_orientation(exif(little, 8, 2, value)), value);
    EXPECT_EQ(exif_orientation(exif(little, 8, 2, 0)), 1);
    EXPECT_EQ(exif_orientation(exif(little, 8, 2, 9)), 1);
    EXPECT_EQ(exif_orientation(exif(little, 8, 1, 6)), 1);           // the directory ends before it
    EXPECT_EQ(exif_orientation(exif(little, 0xfffffff0, 2, 6)), 1);  // it lies beyond the end
    EXPECT_EQ(exif_orientation(exif(little, 8, 0xffff, 9)), 1);      // it goes on beyond the end
    Bytes cut = exif(little, 8, 2, 6);
    cut.resize(cut.size() - 4);
    EXPECT_EQ(exif_orientation(cut), 1);
    cut.resize(7);
    EXPECT_EQ(exif_orientation(cut), 1);
  }
  EXPECT_EQ(exif_orientation(bytes_of(std::string("IM*\0\0\0\0\0", 8))), 1);
  EXPECT_EQ(exif_orientation(bytes_of("XXXXXXXX")), 1);
}

TEST(Image, InterlacedPngIsDecodedToTheSamePixels) {
  // 3 x 3 at depth 8: the pixels of each of Adam7's passes that has any.
  const std::string passes = std::string("\0\1", 2) + std::string("\0\3", 2) + std::string("\0\7\11", 3) +
                             std::string("\0\2", 2) + std::string("\0\10", 2) + std::string("\0\4\5\6", 4);
  EXPECT_EQ(decode_image(bytes_of(png_file(3, 3, 0, 1, passes)), 1, "x").pixels, (Bytes{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Image, WhatIsTransparentBecomesWhite) {
  // Grey and opacity, and a grey that a tRNS chunk calls transparent.
  const std::string opaque = std::string("\0\100\377\100\0\100\200", 7);
  EXPECT_EQ(decode_image(bytes_of(png_file(3, 1, 4, 0, opaque)), 1, "x").pixels, (Bytes{64, 255, 159}));
  const std::string grey = std::string("\0\100\101", 3);
  EXPECT_EQ(
      decode_image(bytes_of(png_file(2, 1, 0, 0, grey, png_chunk("tRNS", std::string("\0\101", 2)))), 1, "x").pixels,
      (Bytes{64, 255}));
}

TEST(Image, PgmIsDecoded) {
  const Image image = decode_image(bytes_of(std::string("P5 2 1 255\n") + '\x10' + '\x20'), 1, "x");
  EXPECT_EQ(image.pixels, (Bytes{0x10, 0x20}));
}

TEST(Image, ShrinkingTakesTheMeanOfTheArea) {
  const Image image{1, 4, 4, {0, 4, 8, 8, 4, 8, 8, 8, 100, 100, 0, 0, 100, 100, 0, 0}};
  EXPECT_EQ(fit(image, 2, 2).pixels, (Bytes{4, 8, 100, 0}));
}

TEST(Image, UnevenShrinkingWeighsPartsOfPixels) {
  const Image image{1, 3, 3, {0, 30, 60, 0, 30, 60, 0, 30, 60}};
  EXPECT_EQ(fit(image, 2, 2).pixels, (Bytes{10, 50, 10, 50}));
}

TEST(Image, FittingKeepsProportionsAndFillsWithTheBorder) {
  Image image{1, 8, 2, Bytes(16, 90)};
  const Image fitted = fit(image, 4, 4);
  EXPECT_EQ(fitted.pixels, Bytes(16, 90));
  image.pixels.assign(16, 0);
  image.pixels[6] = image.pixels[7] = 160;
  EXPECT_EQ(fit(image, 4, 4).height, 4);
  EXPECT_EQ(fit({1, 1, 1, {7}}, 3, 5).pixels, Bytes(15, 7));
}

TEST(Image, InvertingTwiceChangesNothing) {
  Image image{1, 1, 3, {0, 100, 255}};
  invert(image);
  EXPECT_EQ(image.pixels, (Bytes{255, 155, 0}));
  invert(image);
  EXPECT_EQ(image.pixels, (Bytes{0, 100, 255}));
}

TEST(Predictions, PictureShowsMistakesWithTheTruth) {
  const Dataset data = draw_digits(40, 1, Split::test);
  Evaluation evaluation;
  evaluation.predicted = data.labels;
  evaluation.confidence.assign(40, 0.75f);
  EXPECT_EQ(predictions_svg(data, evaluation, "t").find("mistake"), std::string::npos);
  evaluation.predicted[35] = (data.labels[35] + 1) % 10;
  const std::string svg = predictions_svg(data, evaluation, "t");
  EXPECT_CONTAINS(svg, "Of the 1 mistake, the 1 with the surest answer");
  EXPECT_CONTAINS(svg, text("is ", data.labels[35]));
  EXPECT_CONTAINS(svg, "data:image/png;base64,iVBORw0KGgo");
  EXPECT_CONTAINS(svg, "75.0%");
}

TEST(Report, EvaluationTableNamesTheCommonestConfusion) {
  Dataset data;
  data.classes = 3;
  data.source = "three";
  data.labels = {0, 0, 0, 1, 1, 2};
  Evaluation evaluation;
  evaluation.predicted = {0, 2, 2, 1, 1, 2};
  evaluation.correct = 4;
  Model model;
  EXPECT_EQ(evaluation_table(model, data, evaluation).find("loss"), std::string::npos);
  model.evaluate = [](auto...) { return 0; };
  const std::string table = evaluation_table(model, data, evaluation);
  EXPECT_CONTAINS(table, "loss      0.0000\n");
  EXPECT_CONTAINS(table, "66.67% (4 of 6)");
  EXPECT_CONTAINS(table, "2 (2 times, 66.7%)");
  EXPECT_CONTAINS(table, "\n    0        3       1     33.33%");
  data.names = {"cat", "dog", "automobile"};
  const std::string named = evaluation_table(model, data, evaluation);
  EXPECT_CONTAINS(named, "automobile (2 times, 66.7%)");
  EXPECT_CONTAINS(named, "\ncat               3       1     33.33%");
}

TEST(Report, PredictionLineBeginsWithTheLikeliestClass) {
  const std::vector<float> row{0.1f, 0.7f, 0.2f};
  EXPECT_EQ(prediction_line("a.png", row, 2, {}), "a.png                         1 0.7000  2 0.2000\n");
  EXPECT_CONTAINS(prediction_line("a.png", row, 99, {}), "0 0.1000");
}

}  // namespace
}  // namespace tessera::runtime
