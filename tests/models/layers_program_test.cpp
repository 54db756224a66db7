// The program of a model that gives the tokens of chosen layers, as segmentation and depth want them: it embeds, and
// compares nothing.
#include <layers_vit.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/digits.hpp"
#include "runtime/image.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/safetensors.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

/// That of models/vit.hpp.
constexpr Preprocessing input{.mean = {0.5, 0.5, 0.5}, .deviation = {0.5, 0.5, 0.5}, .crop = 0.9};
constexpr std::int64_t pixels = 28 * 28, pictures = 19, layers = 2, tokens = 17, width = 24;
static_assert(LAYERS_VIT_OUTPUT_FLOATS == layers * tokens * width);

/// Weights that are no others' and three more digits than the program embeds at once.
class LayersProgram : public testing::Test {
 protected:
  LayersProgram() : parameters(Arena::of_floats(LAYERS_VIT_PARAMETER_FLOATS, LAYERS_VIT_ALIGNMENT)) {
    Safetensors file;
    for (const tessera_parameter& p : layers_vit_parameters) {
      std::int64_t floats = 1;
      for (int i = 0; i < p.rank; ++i) floats *= p.shape[i];
      const std::span<float> values(parameters.floats() + p.offset, static_cast<std::size_t>(floats));
      for (std::int64_t i = 0; i < floats; ++i)
        values[static_cast<std::size_t>(i)] =
            0.25F * std::sin(0.37F * static_cast<float>(p.offset + i)) + (std::strstr(p.name, "norm") ? 1 : 0);
      file.tensors[p.name] = Tensor::of(Shape(p.shape, p.shape + p.rank), values);
    }
    write_safetensors(folder / "weights.safetensors", file);
    images.resize(static_cast<std::size_t>(pictures * pixels));
    const Dataset digits = draw_digits(pictures, 1, Split::test);
    for (std::int64_t i = 0; i < pictures; ++i) {
      const Bytes png = encode_png(digits.image(i), 1, 28, 28);
      normalize(prepared({1, 28, 28, {digits.image(i).begin(), digits.image(i).end()}}, input, 28, 28).pixels, 1, input,
                images.data() + i * pixels);
      files.push_back(at("digit" + std::to_string(i) + ".png"));
      spill(files.back(), std::string(png.begin(), png.end()));
    }
    const Result imported = sample({"import", at("weights.safetensors"), "--out", at("run")});
    EXPECT_EQ(imported.code, 0) << imported.err;
  }
  std::string at(const std::string& name) { return (folder / name).string(); }
  Result on_pictures(std::vector<std::string> arguments, const std::string& output) {
    arguments.insert(arguments.end(), files.begin(), files.end());
    arguments.insert(arguments.end(), {"--out", at("run"), "-o", at(output)});
    return sample(arguments);
  }

  TemporaryFolder folder;
  Arena parameters;
  std::vector<std::string> files;
  std::vector<float> images;
};

TEST_F(LayersProgram, EmbedsWhatForwardGivesOfEachLayer) {
  const Result embedded = on_pictures({"embed"}, "features.safetensors");
  ASSERT_EQ(embedded.code, 0) << embedded.err;
  EXPECT_CONTAINS(embedded.out, "features.safetensors: 19 pictures, 816 features each\n");
  const Safetensors file = read_safetensors(folder / "features.safetensors");
  const Tensor& features = file.tensors.at("features");
  EXPECT_EQ(features.shape, (Shape{pictures, layers, tokens, width}));

  const Arena packed = Arena::of_floats(LAYERS_VIT_PACKED_FORWARD_FLOATS, LAYERS_VIT_ALIGNMENT);
  const Arena image = Arena::of_floats(pixels, LAYERS_VIT_ALIGNMENT);
  const Arena outputs = Arena::of_floats(LAYERS_VIT_OUTPUT_FLOATS, LAYERS_VIT_ALIGNMENT);
  const Arena scratch = Arena::of_floats(LAYERS_VIT_FORWARD_SCRATCH_BYTES(1) / 4 + 1, LAYERS_VIT_ALIGNMENT);
  ASSERT_EQ(layers_vit_pack_forward(parameters.floats(), packed.floats()), 0);
  const std::vector<float> written = features.floats();
  for (std::int64_t i = 0; i < pictures; ++i) {
    std::copy_n(images.data() + i * pixels, pixels, image.floats());
    ASSERT_EQ(
        layers_vit_forward(parameters.floats(), packed.floats(), image.floats(), 1, outputs.floats(), scratch.floats()),
        0);
    EXPECT_EQ(std::memcmp(written.data() + i * LAYERS_VIT_OUTPUT_FLOATS, outputs.floats(),
                          LAYERS_VIT_OUTPUT_FLOATS * sizeof(float)),
              0)
        << i;
  }
  // The layers differ, and so do pictures.
  EXPECT_NE(std::memcmp(written.data(), written.data() + tokens * width, tokens * width * sizeof(float)), 0);
  EXPECT_NE(std::memcmp(written.data(), written.data() + LAYERS_VIT_OUTPUT_FLOATS, tokens * width * sizeof(float)), 0);
}

TEST_F(LayersProgram, ComparesAndLabelsNothing) {
  ASSERT_EQ(on_pictures({"embed"}, "features.safetensors").code, 0);
  const std::string help = sample({"--help"}).out;
  EXPECT_CONTAINS(help, "\n  embed ");
  EXPECT_CONTAINS(help, "\n  components ");
  for (const char* command : {"similar", "probe"}) EXPECT_EQ(help.find(command), std::string::npos) << help;
  EXPECT_CONTAINS(sample({"embed", "--help"}).out, "features [pictures, 2 layers, 17, 24]");
  const auto refuses = [](const Result& result, const std::string& why) {
    EXPECT_NE(result.code, 0) << why;
    EXPECT_CONTAINS(result.err, why);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  const std::string no_classes = "the declaration has no classes: layers_vit embed gives its features\n";
  refuses(sample({"predict", files[0], "--out", at("run")}), no_classes);
  refuses(sample({"eval", "--digits", "60", "--out", at("run")}), no_classes);
  refuses(sample({"train", "--out", at("trained")}), "the declaration has no loss");
  for (const std::string command : {"similar", "probe"})
    refuses(sample({command, "--index", at("features.safetensors")}), command);
  // Nor does a model whose features are a row take them for its own.
  const auto trained = [](const std::vector<std::string>& arguments) {
    return Process(paths::trained_program, arguments, {}).wait();
  };
  ASSERT_EQ(trained({"train", "--digits", "60", "--epochs", "1", "--out", at("other")}).code, 0);
  refuses(trained({"similar", files[0], "--index", at("features.safetensors"), "--out", at("other")}),
          "features.safetensors");
}

TEST_F(LayersProgram, DrawsPatchesOfTheLastLayerAndAttention) {
  EXPECT_EQ(on_pictures({"components"}, "components.svg").code, 0);
  EXPECT_CONTAINS(slurp(folder / "components.svg"), "principal components");
  const Result attention = sample({"attention", files[0], "--out", at("run"), "-o", at("attention.svg")});
  EXPECT_EQ(attention.code, 0) << attention.err;
  EXPECT_CONTAINS(slurp(folder / "attention.svg"), "none, the model gives features");
}

TEST_F(LayersProgram, ExportsItsWeightsAndItselfForOnnx) {
  ASSERT_EQ(sample({"export", "--out", at("run"), "-o", at("again.safetensors")}).code, 0);
  EXPECT_EQ(read_safetensors(folder / "again.safetensors").at("blocks.2.mlp.fc1.weight").floats(),
            read_safetensors(folder / "weights.safetensors").at("blocks.2.mlp.fc1.weight").floats());
  const Result onnx = sample({"export", "--out", at("run"), "--onnx", at("model.onnx")});
  EXPECT_EQ(onnx.code, 0) << onnx.err;
}

TEST_F(LayersProgram, NumbersThatAreNoneAreOneSentence) {
  Safetensors file = read_safetensors(folder / "weights.safetensors");
  const std::vector<float> huge(width, 3e38F);
  file.tensors["norm.weight"] = Tensor::of({width}, std::span(huge));
  file.tensors["norm.bias"] = Tensor::of({width}, std::span(huge));
  write_safetensors(folder / "huge.safetensors", file);
  const Result refused =
      sample({"embed", files[0], "--checkpoint", at("huge.safetensors"), "-o", at("none.safetensors")});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  EXPECT_CONTAINS(refused.err, "the features of ");
  EXPECT_FALSE(std::filesystem::exists(folder / "none.safetensors"));
}

}  // namespace
}  // namespace tessera::runtime
