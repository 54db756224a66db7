// What `tessera declare` makes of Depth Anything's models.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "declare/declare.hpp"
#include "declare/input.hpp"
#include "runtime/safetensors.hpp"
#include "tests/declare/refusal.hpp"
#include "tests/paths.hpp"

namespace {

using namespace tessera;
using tessera::declare::Checkpoint;
using tessera::declare::Config;
using tessera::test::expect_a_sentence;
using tessera::test::refusal;
namespace fs = std::filesystem;

Checkpoint checkpoint(const char* name) {
  return declare::read_checkpoint(fs::path(paths::golden) / "dialects" / name / "model.safetensors");
}
const char* const faces = "hf_depth_anything";
const char* const authors = "depth_anything_v2";

TEST(Declare, ReadsDepthAnythingInItsAuthorsKeys) {
  const Checkpoint read = checkpoint(authors);
  EXPECT_EQ(read.keys.dialect->library, "Depth Anything");
  EXPECT_EQ(read.keys.theirs("neck.fusion_stage.layers.1.residual_layer2.convolution1.bias"),
            "depth_head.scratch.refinenet3.resConfUnit2.conv1.bias");
  EXPECT_EQ(read.shapes, checkpoint(faces).shapes);
  // A file of a model that tells metres has the same keys.
  const Config metres = declare::parse_config(R"({"num_heads": 2, "max_depth": 80})", "config.json");
  const std::string header = declare::declare(read, metres, "M").header;
  EXPECT_NE(header.find(".fusion = 2, .hidden = 3, .farthest = 80}>;"), std::string::npos) << header;
}

TEST(Declare, AssumesTheLayersOfDepthAnythingThatNoConfigurationSays) {
  const auto written = declare::declare(checkpoint(authors), Config{}, "M");
  EXPECT_NE(written.header.find(".layers = {0, 1, 2, 3}}, {.maps = {2, 2, 4, 2}, .fusion = 2, .hidden = 3}>;"),
            std::string::npos)
      << written.header;
  const auto assumed = [&](const std::string& what) {
    for (const std::string& sentence : written.assumptions)
      if (sentence.find(what) != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(assumed("no configuration says which blocks the head reads: 0, 1, 2, 3, counted from 0"));
  EXPECT_TRUE(
      assumed("the model tells inverse depth up to a factor and an offset; of one that tells metres the "
              "configuration has max_depth"));
  EXPECT_TRUE(assumed("crop_pct 1, interpolation bicubic, crop_mode squash"));
  EXPECT_TRUE(assumed("5 more are left out") || assumed("4 more are left out"));
}

TEST(Declare, ReadsTheConfigurationOfHuggingFacesDepthAnything) {
  const auto read = [](const std::string& rest, const std::string& encoder) {
    return declare::parse_config(R"({"model_type": "depth_anything", )" + rest +
                                     R"("backbone_config": {"image_size": 12, )" + encoder +
                                     R"("num_attention_heads": 2}})",
                                 "config.json");
  };
  const Config relative = read("", R"("out_indices": [1, 2, 3, 4], )");
  EXPECT_EQ(relative.library, "Hugging Face's Depth Anything");
  EXPECT_EQ(relative.layers, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_FALSE(relative.farthest);
  EXPECT_EQ(read(R"("depth_estimation_type": "metric", "max_depth": 20, )", "").farthest, 20);
  const auto sentence = [&](const std::string& rest, const std::string& encoder) {
    return refusal([&] { read(rest, encoder); });
  };
  expect_a_sentence(sentence(R"("depth_estimation_type": "both", )", ""),
                    "config.json: depth_estimation_type 'both' is none of relative and metric");
  expect_a_sentence(sentence(R"("head_in_index": 1, )", ""),
                    "config.json: head_in_index is 1, and the head reads the last map, -1");
  expect_a_sentence(sentence("", R"("model_type": "swin", )"),
                    "config.json: the model_type of backbone_config is 'swin', and has to be dinov2");
  expect_a_sentence(sentence("", R"("apply_layernorm": false, )"),
                    "config.json: apply_layernorm is false, and layers are declared with the norm behind them");
  for (const char* indices : {"[1, 2.5]", "[0]", "[65]", "\"last\""})
    expect_a_sentence(sentence("", std::string(R"("out_indices": )") + indices + ", "),
                      "config.json: out_indices is no list of blocks, counted from 1 to 64");
}

TEST(Declare, ReadsHuggingFacesDptAndRefusesWhatItIsNot) {
  const auto read = [](const std::string& rest) {
    return declare::parse_config(R"({"model_type": "dpt", )" + rest + R"("image_size": 32, "num_attention_heads": 2})",
                                 "config.json");
  };
  EXPECT_EQ(read(R"("backbone_out_indices": [5, 11, 17, 23], )").layers, (std::vector<std::int64_t>{5, 11, 17, 23}));
  const auto sentence = [&](const std::string& rest) { return refusal([&] { read(rest); }); };
  expect_a_sentence(
      sentence(R"("is_hybrid": true, )"),
      "config.json: the encoder is a hybrid of convolutions and ViT (backbone_config), and of a DPT a ViT "
      "can be declared");
  expect_a_sentence(sentence(R"("backbone_config": {"model_type": "swinv2"}, )"),
                    "config.json: the encoder is another model (backbone_config), and of a DPT a ViT can be declared");
  expect_a_sentence(sentence(R"("readout_type": "add", )"),
                    "config.json: readout_type 'add' is none of project and ignore");
  expect_a_sentence(sentence(R"("backbone_out_indices": [64], )"),
                    "config.json: backbone_out_indices is no list of blocks, counted from 0 to 63");
  expect_a_sentence(sentence(R"("head_in_index": 0, )"),
                    "config.json: head_in_index is 0, and the head reads the last map, -1");

  Checkpoint whole = checkpoint("hf_dpt");
  std::vector<std::string> assumed;
  EXPECT_EQ(input_of(whole, Config{}, assumed),
            (declare::Input{declare::half, declare::half, 1, false, runtime::Fit::squash}));
  whole.shapes["head.projection.weight"] = {2, 2, 3, 3};
  expect_a_sentence(refusal([&] { declare::declare(whole, read(""), "M"); }),
                    "no declaration says 'head.projection.weight'");
  whole = checkpoint("hf_dpt");
  whole.shapes["pos_embed"] = {1, 10, 4};
  Config odd = read("");
  odd.image = {48, 48};
  expect_a_sentence(
      refusal([&] { declare::declare(whole, odd, "M"); }),
      "pictures of 48 x 48 in patches of 16 x 16: depths are as large as a picture for patches of 16, of which "
      "there is an even number");
}

TEST(Declare, RefusesADepthAnythingThatNoSpecSays) {
  const auto sentence = [&](const std::function<void(Checkpoint&, Config&)>& spoil) {
    Checkpoint whole = checkpoint(faces);
    Config config = declare::read_config(fs::path(paths::golden) / "dialects" / faces / "config.json");
    spoil(whole, config);
    return refusal([&] { declare::declare(whole, config, "M"); });
  };
  const auto spoiled = [&](const std::string& key, const runtime::Shape& shape) {
    return sentence([&](Checkpoint& of, Config&) { of.shapes[key] = shape; });
  };
  EXPECT_EQ(sentence([](Checkpoint&, Config&) {}), "nothing was refused");
  expect_a_sentence(spoiled("neck.convs.0.weight", {3, 2, 3, 3}),
                    "'neck.convs.0.weight' makes 3 channels, which the head cannot halve");
  expect_a_sentence(spoiled("neck.reassemble_stage.layers.0.resize.weight", {2, 2, 3, 3}),
                    "'neck.reassemble_stage.layers.0.resize.weight' is [2, 2, 3, 3] instead of [2, 2, 4, 4]");
  expect_a_sentence(sentence([](Checkpoint& of, Config&) { of.shapes.erase("head.conv2.weight"); }),
                    "has no 'head.conv2.weight', which every model of depth has");
  expect_a_sentence(sentence([](Checkpoint& of, Config&) { of.shapes.erase("norm.weight"); }),
                    "has no 'backbone.layernorm.weight'");
  const auto of_layers = [&](std::vector<std::int64_t> layers) {
    return sentence([&](Checkpoint&, Config& config) { config.layers = layers; });
  };
  const std::string four = " of 4, and a declaration has four, of at most 64, the last block among them";
  expect_a_sentence(of_layers({0, 1, 3}), "config.json: the head reads blocks 0, 1, 3" + four);
  expect_a_sentence(of_layers({0, 1, 1, 3}), "the head reads blocks 0, 1, 1, 3" + four);
  expect_a_sentence(of_layers({0, 1, 2, 5}), "the head reads blocks 0, 1, 2, 5" + four);
}

}  // namespace
