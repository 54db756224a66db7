// What `tessera declare` makes of Swin Transformers.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "declare/declare.hpp"
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

TEST(Declare, ReadsMicrosoftsSwinAndTheTablesThatOlderFilesOfTimmHave) {
  const fs::path swin = fs::path(paths::golden) / "timm" / "swin_tiny_patch4_window7_224" / "params.safetensors";
  const runtime::Safetensors timms = runtime::read_safetensors(swin);
  const Checkpoint now = declare::checkpoint_of(timms);
  const auto table = [](runtime::Shape shape) {
    const auto bytes = static_cast<std::size_t>(8 * runtime::elements(shape));
    return runtime::Tensor{"I64", std::move(shape), runtime::Bytes(bytes)};
  };
  runtime::Safetensors older = timms, microsofts{{}, {}, timms.where};
  for (const auto& [key, tensor] : timms.tensors) {
    const bool merges = key.starts_with("layers.1.downsample."), head = key.starts_with("head.fc.");
    microsofts.tensors[merges ? "layers.0" + key.substr(8) : head ? "head" + key.substr(7) : key] = tensor;
  }
  for (auto* file : {&older, &microsofts}) {
    file->tensors["layers.0.blocks.0.attn.relative_position_index"] = table({16, 16});
    file->tensors["layers.0.blocks.1.attn_mask"] = runtime::Tensor::of({6, 16, 16}, std::vector<float>(6 * 256));
    const Checkpoint read = declare::checkpoint_of(*file);
    EXPECT_EQ(read.keys.dialect->library, file == &older ? "timm" : "Microsoft's Swin");
    EXPECT_EQ(read.shapes, now.shapes);
    EXPECT_EQ(read.left_out, (std::vector<std::string>{"layers.0.blocks.0.attn.relative_position_index",
                                                       "layers.0.blocks.1.attn_mask"}));
    Config config;
    config.image = {24, 16};
    const std::string header = declare::declare(read, config, "M").header;
    EXPECT_EQ(header.find("epsilon"), std::string::npos) << header;  // as SwinSpec has it
  }
}

/// In Microsoft's keys, with its tables, windows that only a configuration says, and without one.
TEST(Declare, TheWindowsOfASwinTransformerV2AreInItsConfiguration) {
  const fs::path folder = fs::path(paths::golden) / "timm" / "swinv2_base_window12to16_192to256";
  runtime::Safetensors timms = runtime::read_safetensors(folder / "params.safetensors"), microsofts{{}, {}, "a file"};
  for (const auto& [key, tensor] : timms.tensors) {
    const bool merges = key.starts_with("layers.1.downsample."), head = key.starts_with("head.fc.");
    microsofts.tensors[merges ? "layers.0" + key.substr(8) : head ? "head" + key.substr(7) : key] = tensor;
  }
  microsofts.tensors["layers.0.blocks.0.attn.relative_coords_table"] =
      runtime::Tensor::of({1, 7, 7, 2}, std::vector<float>(98));
  const Checkpoint whole = declare::checkpoint_of(microsofts);
  EXPECT_EQ(whole.keys.dialect->library, "Microsoft's Swin");
  EXPECT_EQ(whole.shapes, declare::checkpoint_of(timms).shapes);
  const auto declared = [&](const std::string& config) {
    std::string sentence, header;
    sentence = refusal([&] { header = declare::declare(whole, declare::parse_config(config, "c.json"), "M").header; });
    return header.empty() ? sentence : header;
  };
  const std::string own = declared(R"({"img_size": [24, 16], "window_size": 2})");
  EXPECT_NE(own.find(".windows = {2, 2},\n    .mlp = 2,\n    .classes = 10,\n    .position_mlp = 8}>;"),
            std::string::npos)
      << own;
  const std::string others =
      declared(R"({"img_size": [24, 16], "window_size": [[4, 4], [8, 8]], "pretrained_window_sizes": [3, 0]})");
  EXPECT_NE(others.find(".windows = {4, {6, 4}},"), std::string::npos) << others;
  EXPECT_NE(others.find(".pretrained_windows = {3, 0}}>;"), std::string::npos) << others;
  expect_a_sentence(declared(R"({"img_size": [24, 16]})"),
                    "the windows of a Swin Transformer V2 are in no shape, and no configuration says them of stage 0");
  expect_a_sentence(declared(R"({"img_size": [24, 16], "window_size": [2, 0]})"),
                    "no configuration says them of stage 1");
  expect_a_sentence(declared(R"({"window_size": 2})"), "the size of pictures is in no shape of a Swin Transformer V2");
  expect_a_sentence(declared(R"({"img_size": [24, 16], "window_size": 4})"),
                    "a window of 4 x 4 does not divide stage 1's map of 6 x 4 tokens");
  expect_a_sentence(declared(R"({"img_size": [24, 16], "window_size": "8"})"),
                    "window_size is no window of 0 to 65536");
  expect_a_sentence(declared(R"({"img_size": [24, 16], "window_size": [[2, 2, 2]]})"),
                    "window_size has a window of 3 numbers");
}

TEST(Declare, RefusesASwinTransformerThatSwinSpecCannotSay) {
  const fs::path swin = fs::path(paths::golden) / "timm" / "swin_tiny_patch4_window7_224" / "params.safetensors";
  const Checkpoint whole = declare::checkpoint_of(runtime::read_safetensors(swin));
  const auto sentence = [&](const std::function<void(Checkpoint&, Config&)>& spoil) {
    Checkpoint checkpoint = whole;
    Config config;
    config.image = {24, 16};
    spoil(checkpoint, config);
    return refusal([&] { declare::declare(checkpoint, config, "M"); });
  };
  EXPECT_EQ(sentence([](Checkpoint&, Config&) {}), "nothing was refused");
  // The window of its last stage is no square; where it is, it tells the size of pictures.
  Checkpoint square = whole;
  for (const char* in : {"layers.0.blocks.0", "layers.0.blocks.1"})
    square.shapes[std::string(in) + ".attn.relative_position_bias_table"] = {23 * 23, 1};
  square.shapes["layers.1.blocks.0.attn.relative_position_bias_table"] = {23 * 23, 2};
  const declare::Declaration assumed = declare::declare(square, Config{}, "M");
  EXPECT_NE(assumed.header.find(".image = 48,"), std::string::npos) << assumed.header;
  EXPECT_NE(assumed.header.find(".windows = {12, 12}"), std::string::npos) << assumed.header;
  expect_a_sentence(sentence([](Checkpoint&, Config& config) { config.image = {20, 16}; }),
                    "which no window has that divides a map of 10 x 8 tokens: pictures of 20 x 16 would be filled up "
                    "with zeros");
  expect_a_sentence(sentence([](Checkpoint&, Config& config) { config.image = {22, 16}; }),
                    "no window has that divides a map of 11 x 8");
  expect_a_sentence(
      sentence([](Checkpoint& checkpoint, Config& config) {
        config.image = {24, 18};
        for (const char* block : {"0", "1"})
          checkpoint.shapes["layers.0.blocks." + std::string(block) + ".attn.relative_position_bias_table"] = {25, 1};
      }),
      "pictures of 24 x 18 are no whole number of tokens of 4 x 4");
  expect_a_sentence(sentence([](Checkpoint&, Config& config) { config.pool = "token"; }),
                    "global_pool is 'token', and of a Swin Transformer it is avg");
  expect_a_sentence(sentence([](Checkpoint&, Config& config) { config.classes = 7; }),
                    "num_classes is 7, and the checkpoint has 'head.fc.weight' of 10");
  expect_a_sentence(sentence([](Checkpoint&, Config& config) { config.facts["activation"] = "relu"; }),
                    "the activation is relu, and that of a Swin Transformer is gelu");
  expect_a_sentence(
      sentence([](Checkpoint& checkpoint, Config&) { checkpoint.shapes["patch_embed.proj.weight"] = {4, 3, 2, 4}; }),
      "has patches of 2 x 4, and those of a Swin Transformer are square");
  expect_a_sentence(sentence([](Checkpoint& checkpoint, Config&) {
                      checkpoint.shapes["layers.0.blocks.0.attn.relative_position_bias_table"] = {49, 3};
                    }),
                    "is of 3 heads, which do not divide 4");
  expect_a_sentence(
      sentence([](Checkpoint& checkpoint, Config&) { checkpoint.shapes["layers.0.blocks.0.mlp.fc1.weight"] = {3, 4}; }),
      "is narrower than a token");
}

}  // namespace
