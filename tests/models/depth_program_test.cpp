// The program of a declaration that `tessera declare` wrote for a model of depth: what it tells of pictures is what the
// C API gives, scaled to the picture, as numbers and drawn.
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "dialect_depth.h"
#include "runtime/arena.hpp"
#include "runtime/depth.hpp"
#include "runtime/philox.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/translation.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

const std::string published = std::string(paths::golden) + "/dialects/hf_depth_anything/model.safetensors";
const Preprocessing input{
    .mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 1, .fit = Fit::squash};

class DepthProgram : public testing::Test {
 protected:
  void SetUp() override {
    const Result imported = sample({"import", published, "--out", at("run")});
    ASSERT_EQ(imported.code, 0) << imported.err;
    EXPECT_CONTAINS(imported.out + imported.err, "keys of Hugging Face's Depth Anything are read as timm's\n");
  }
  std::string at(const std::string& name) const { return (folder / name).string(); }

  /// A picture of noise, as a PNG file.
  Image drawn(const std::string& name, std::int64_t height, std::int64_t width) const {
    Image image{3, height, width, Bytes(static_cast<std::size_t>(3 * height * width))};
    Random random(static_cast<std::uint64_t>(height), 0, 0);
    for (std::uint8_t& pixel : image.pixels) pixel = static_cast<std::uint8_t>(random.uniform(0, 255.9));
    const Bytes png = encode_png(image.pixels, 3, height, width);
    spill(at(name), std::string(png.begin(), png.end()));
    return image;
  }

  /// What the C API gives of it, scaled to it.
  static DepthMap expected(const Image& image) {
    const Safetensors file = in_timms_keys(read_safetensors(published)).file;
    const Arena parameters = Arena::of_floats(DIALECT_DEPTH_PARAMETER_FLOATS, 64),
                packed = Arena::of_floats(DIALECT_DEPTH_PACKED_FORWARD_FLOATS, 64),
                values = Arena::of_floats(DIALECT_DEPTH_IMAGE_FLOATS, 64),
                scratch(DIALECT_DEPTH_FORWARD_SCRATCH_BYTES(1), 64);
    for (const tessera_parameter& row : dialect_depth_parameters) {
      const std::vector<float> numbers = file.at(row.name).floats();
      std::copy(numbers.begin(), numbers.end(), parameters.floats() + row.offset);
    }
    EXPECT_EQ(dialect_depth_pack_forward(parameters.floats(), packed.floats()), 0);
    normalize(prepared(image, input, 12, 12), input, values.floats());
    DepthMap map{12, 12, std::vector<float>(DIALECT_DEPTH_OUTPUT_FLOATS)};
    EXPECT_EQ(dialect_depth_forward(parameters.floats(), packed.floats(), values.floats(), 1, map.depths.data(),
                                    scratch.data()),
              0);
    return scaled(map, image.height, image.width);
  }

  TemporaryFolder folder;
};

TEST_F(DepthProgram, WritesTheDepthsOfPicturesAsNumbersOfTheirSizes) {
  const Image wide = drawn("wide.png", 9, 20), high = drawn("high.png", 31, 14);
  const Result told =
      sample({"depth", "--out", at("run"), at("wide.png"), at("high.png"), "-o", at("depths.safetensors")});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_CONTAINS(told.out, at("depths.safetensors") + ": " + at("wide.png") + ", 9 x 20, ");
  EXPECT_CONTAINS(told.out, " m\n");
  const Safetensors file = read_safetensors(at("depths.safetensors"));
  EXPECT_EQ(file.metadata.at("unit"), "m");
  EXPECT_EQ(file.metadata.at("model"), "dialect_depth");
  ASSERT_EQ(file.tensors.size(), 2u);
  for (const auto& [name, image] : {std::pair("wide.png", &wide), {"high.png", &high}}) {
    const Tensor& found = file.at(at(name));
    EXPECT_EQ(found.shape, (Shape{image->height, image->width}));
    EXPECT_EQ(found.floats(), expected(*image).depths) << name;
  }
  // The same again on another number of threads, in the place of what was written.
  const Result again = sample(
      {"depth", "--threads", "3", "--out", at("run"), at("wide.png"), at("high.png"), "-o", at("depths.safetensors")});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(bytes_of(read_safetensors(at("depths.safetensors")).at(at("wide.png"))), bytes_of(file.at(at("wide.png"))));
}

TEST_F(DepthProgram, DrawsThemGreyOrInColoursBesideThePicture) {
  const DepthMap map = expected(drawn("a.png", 9, 20));
  ASSERT_EQ(sample({"depth", "--out", at("run"), at("a.png"), "-o", at("grey.png")}).code, 0);
  const std::string png = slurp(at("grey.png"));
  const Image grey = decode_image(bytes_of(png), 1, "grey.png");
  EXPECT_EQ(grey.height, 9);
  EXPECT_EQ(grey.width, 20);
  const auto [least, most] = map.range();
  for (std::size_t i = 0; i < map.depths.size(); ++i)  // metres: the nearest is white
    EXPECT_NEAR(grey.pixels[i], 255 * (most - map.depths[i]) / (most - least), 0.51) << i;
  ASSERT_EQ(sample({"depth", "--out", at("run"), at("a.png"), "-o", at("seen.svg")}).code, 0);
  const std::string svg = slurp(at("seen.svg"));
  EXPECT_CONTAINS(svg, ">dialect_depth: a.png</text>");
  EXPECT_CONTAINS(svg, " m</text>");
}

TEST_F(DepthProgram, WritesThoseOfSeveralPicturesIntoAFolder) {
  drawn("a.png", 9, 20);
  drawn("b.png", 14, 14);
  std::filesystem::create_directory(at("drawn"));
  const Result told = sample({"depth", "--out", at("run"), at("a.png"), at("b.png"), "-o", at("drawn")});
  ASSERT_EQ(told.code, 0) << told.err;
  for (const char* name : {"drawn/a.png", "drawn/b.png"})
    EXPECT_TRUE(std::filesystem::is_regular_file(at(name))) << name;
  EXPECT_TRUE(partial_files(folder.path()).empty());
}

TEST_F(DepthProgram, RefusesInOneSentenceAndWritesNothing) {
  drawn("a.png", 9, 20);
  std::filesystem::create_directory(at("other"));
  std::filesystem::copy_file(at("a.png"), at("other/a.png"));
  const std::string before = slurp(at("a.png")), run = slurp(at("run/checkpoint.safetensors"));
  const auto refused = [&](std::vector<std::string> arguments, const std::string& says) {
    arguments.insert(arguments.begin(), {"depth", "--out", at("run")});
    const Result result = sample(arguments);
    EXPECT_EQ(result.code, 1) << says;
    EXPECT_CONTAINS(result.err, says);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  refused({at("a.png"), "-o", at("depth.tif")},
          "depth.tif names no picture: it has to end in .png, .svg or .safetensors, or be a folder");
  refused({at("a.png"), at("other/a.png"), "-o", at("depth.png")},
          "depth.png is no folder: the depths of 2 pictures go into a folder, which has to be there");
  refused({at("a.png"), at("other/a.png"), "-o", at("run")}, "and of another picture would both be ");
  refused({at("a.png"), at("a.png"), "-o", at("d.safetensors")}, "is there twice");
  refused({at("a.png"), "-o", at("a.png")}, "cannot write");
  refused({at("a.png"), "-o", folder.path().string()}, "cannot write");  // a.png of the same name
  refused({at("a.png"), "-o", at("run/checkpoint.safetensors")}, "cannot write");
  refused({at("missing.png")}, "missing.png");
  EXPECT_EQ(slurp(at("a.png")), before);
  EXPECT_EQ(slurp(at("run/checkpoint.safetensors")), run);
  EXPECT_FALSE(std::filesystem::exists(at("depth.png")));
  EXPECT_FALSE(std::filesystem::exists(at("d.safetensors")));

  for (const char* command : {"predict", "eval"}) {
    std::vector<std::string> arguments{command, "--out", at("run")};
    if (arguments[0] == "predict") arguments.push_back(at("a.png"));
    const Result result = sample(arguments);
    EXPECT_EQ(result.code, 1);
    EXPECT_CONTAINS(
        result.err,
        "the declaration has no classes: dialect_depth depth tells how far away the pixels of pictures are");
  }
}

TEST_F(DepthProgram, DrawsWhatItLooksAt) {
  drawn("a.png", 9, 20);
  const Result drawing = sample({"attention", "--out", at("run"), at("a.png"), "-o", at("seen.svg")});
  ASSERT_EQ(drawing.code, 0) << drawing.err;
  EXPECT_CONTAINS(slurp(at("seen.svg")), "answer: none, the model gives depths");
}

}  // namespace
}  // namespace tessera::runtime
