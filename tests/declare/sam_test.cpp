// What `tessera declare` makes of SAM's image encoders.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
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

runtime::Safetensors of_timm() {
  return runtime::read_safetensors(fs::path(paths::golden) / "timm" / "samvit_base_patch16" / "params.safetensors");
}

/// Under the keys of Segment Anything's program, with two of what makes masks.
runtime::Safetensors as_published() {
  runtime::Safetensors timms = of_timm(), published{{}, {}, "sam_vit_b.safetensors"};
  for (const auto& [key, tensor] : timms.tensors) {
    std::string name = "image_encoder." + key;
    if (const auto at = name.find(".mlp.fc"); at != std::string::npos) name.replace(at, 7, ".mlp.lin");
    published.tensors[name] = tensor;
  }
  for (const char* key : {"prompt_encoder.no_mask_embed.weight", "mask_decoder.iou_token.weight"})
    published.tensors[key] = runtime::Tensor::of({1, 4}, std::vector<float>(4));
  return published;
}

TEST(Declare, ReadsTheImageEncoderOfSegmentAnything) {
  const Checkpoint read = declare::checkpoint_of(as_published());
  EXPECT_EQ(read.keys.dialect->library, "Segment Anything");
  EXPECT_EQ(read.shapes, declare::checkpoint_of(of_timm()).shapes);
  EXPECT_EQ(read.left_out,
            (std::vector<std::string>{"mask_decoder.iou_token.weight", "prompt_encoder.no_mask_embed.weight"}));
  const std::string header = declare::declare(read, Config{}, "M").header;
  EXPECT_NE(header.find("// A SAM image encoder of Segment Anything"), std::string::npos) << header;
  EXPECT_NE(header.find("struct M : SamEncoder<{\n    .image = {24, 16},\n    .patch = 4,\n    .width = 8,\n"
                        "    .heads = 2,\n    .depth = 4,\n    .mlp = 2,\n    .window = 3,\n    .whole_every = 2,\n"
                        "    .neck = 4}> {"),
            std::string::npos)
      << header;  // epsilon is SAM's, and not timm's
  // Its program scales the longer side, and fills up what is left.
  EXPECT_NE(header.find(".crop = 1, .interpolation = Interpolation::bilinear, .fit = Fit::pad};"), std::string::npos)
      << header;
}

/// Its masks are others: the image encoder is the same.
TEST(Declare, ReadsTheConfigurationOfSamHq) {
  for (const char* type : {"sam", "sam_hq", "sam_hq_vision_model"}) {
    const Config config =
        declare::parse_config(std::string(R"({"model_type": ")") + type +
                                  R"(", "vision_config": {"image_size": 24, "layer_norm_eps": 1e-05}})",
                              "config.json");
    EXPECT_EQ(config.library, "Hugging Face's SAM");
    EXPECT_EQ(config.image, (std::array<std::int64_t, 2>{24, 24}));
    EXPECT_EQ(config.facts.at("epsilon"), "1e-05");
  }
}

TEST(Declare, PadsPicturesAsTheProcessorOfHuggingFacesSamDoes) {
  const auto read = [](const std::string& sizes) {
    Config config =
        declare::parse_config(R"({"model_type": "sam", "vision_config": {"image_size": 24}})", "config.json");
    declare::add_preprocessor(config, R"({"do_resize": true, "do_pad": true, "resample": 2, )" + sizes + "}", "p.json");
    return config;
  };
  const Config config = read(R"("size": {"longest_edge": 24}, "pad_size": {"height": 24, "width": 24})");
  EXPECT_EQ(config.crop, 1);
  EXPECT_EQ(config.crop_mode, "pad");
  EXPECT_EQ(config.interpolation, "bilinear");
  EXPECT_EQ(refusal([&] { read(R"("size": {"longest_edge": 24}, "pad_size": {"height": 32, "width": 32})"); }),
            "p.json: pictures are scaled to 24 and filled up to 32, which have to be the same");
  std::vector<std::string> assumed;
  const declare::Input input = input_of(declare::checkpoint_of(as_published()), config, assumed);
  EXPECT_EQ(input.fit, runtime::Fit::pad);
  EXPECT_TRUE(input.bilinear);
}

TEST(Declare, RefusesASamEncoderThatSamSpecCannotSay) {
  const Checkpoint whole = declare::checkpoint_of(as_published());
  const auto sentence = [&](const std::function<void(Checkpoint&, Config&)>& spoil) {
    Checkpoint checkpoint = whole;
    Config config;
    spoil(checkpoint, config);
    return refusal([&] { declare::declare(checkpoint, config, "M"); });
  };
  const auto spoiled = [&](const std::string& key, const runtime::Shape& shape) {
    return sentence([&](Checkpoint& checkpoint, Config&) { checkpoint.shapes[key] = shape; });
  };
  EXPECT_EQ(sentence([](Checkpoint&, Config&) {}), "nothing was refused");
  expect_a_sentence(spoiled("patch_embed.proj.weight", {8, 3, 4, 2}),
                    "has patches of 4 x 2, and those of a SAM image encoder are square");
  expect_a_sentence(spoiled("blocks.0.attn.rel_pos_h", {4, 4}), "has 4 rows, and of so many tokens there are 2 n - 1");
  expect_a_sentence(
      spoiled("blocks.2.attn.rel_pos_h", {7, 4}),
      "'image_encoder.blocks.2.attn.rel_pos_h' is of 4 x 3 tokens, and a declaration has squares, of 3 x 3");
  expect_a_sentence(
      sentence([](Checkpoint& checkpoint, Config&) {
        checkpoint.shapes["blocks.2.attn.rel_pos_h"] = {11, 4};
        checkpoint.shapes["blocks.2.attn.rel_pos_w"] = {7, 4};
      }),
      "'image_encoder.blocks.2.attn.rel_pos_h' is of 6 x 4 tokens: no declaration says which blocks attend "
      "to the map of 6 x 4 but the last of each group of 2");
  expect_a_sentence(spoiled("blocks.0.attn.rel_pos_h", {5, 3}), "is of heads 3 wide, which do not divide 8");
  expect_a_sentence(spoiled("blocks.0.mlp.fc1.weight", {15, 8}), "is 15 wide, which is no multiple of a token's 8");
  expect_a_sentence(spoiled("pos_embed", {1, 6, 5, 8}),
                    "'image_encoder.pos_embed' is [1, 6, 5, 8] instead of [1, 6, 4, 8]");
  expect_a_sentence(spoiled("neck.2.weight", {4, 4, 5, 5}), "is [4, 4, 5, 5] instead of [4, 4, 3, 3]");
  expect_a_sentence(sentence([](Checkpoint&, Config& config) { config.image = {32, 16}; }),
                    "pictures of 32 x 16 have other tokens than 'image_encoder.blocks.3.attn.rel_pos_h', which is of "
                    "24 x 16 pixels");
  expect_a_sentence(sentence([](Checkpoint&, Config& config) { config.classes = 7; }),
                    "num_classes is 7, and the checkpoint has no 'head.fc.weight'");
  expect_a_sentence(sentence([](Checkpoint&, Config& config) { config.facts["activation"] = "relu"; }),
                    "the activation is relu, and that of a SAM image encoder is gelu");
  expect_a_sentence(sentence([](Checkpoint& checkpoint, Config&) {
                      for (auto shape = checkpoint.shapes.begin(); shape != checkpoint.shapes.end();)
                        shape =
                            shape->first.starts_with("blocks.3.") ? checkpoint.shapes.erase(shape) : std::next(shape);
                    }),
                    "but the last of each group of 1");
}

}  // namespace
