// What `tessera declare` writes: of reduced instances of timm's architectures the headers of tests/models/declared,
// which timm_test compiles and compares with timm's numbers; of bad checkpoints a sentence. With --write the headers
// are written.
#include "declare/declare.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <set>
#include <sstream>

#include "models/vit.hpp"
#include "runtime/error.hpp"
#include "tests/declare/camel.hpp"
#include "tests/declare/refusal.hpp"
#include "tests/paths.hpp"

namespace {

using namespace tessera;
using tessera::declare::Checkpoint;
using tessera::declare::Config;
using tessera::runtime::Shape;
using tessera::test::camel;
using tessera::test::expect_a_sentence;
using tessera::test::refusal;
namespace fs = std::filesystem;

bool writes = false;

std::vector<fs::path> kinds() {
  std::vector<fs::path> found;
  const char* shared = std::getenv("TESSERA_SHARED");
  for (const fs::path& golden : {fs::path(paths::golden), fs::path(shared ? shared : "") / "golden"})
    if (fs::exists(golden / "timm"))
      for (const auto& entry : fs::directory_iterator(golden / "timm")) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// That of the instance, or where it is in tests/golden, which has none, what every one's has.
Config config_of(const fs::path& kind) {
  if (fs::exists(kind / "config.json")) return declare::read_config(kind / "config.json");
  Config config;
  config.architecture = kind.filename();
  config.image = {24, 16};
  config.heads = 2;
  return config;
}

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Declare, WritesTheHeadersThatAreComparedWithTimm) {
  int count = 0;
  for (const fs::path& kind : kinds()) {
    const std::string name = kind.filename();
    const fs::path header = fs::path(TESSERA_DECLARED) / (name + ".hpp");
    std::string text;
    ASSERT_NO_THROW(
        text = declare::declare(declare::read_checkpoint(kind / "params.safetensors"), config_of(kind), camel(name))
                   .header)
        << name;
    if (writes) std::ofstream(header) << text;
    EXPECT_EQ(text, content(header)) << "declare_test --write refreshes " << header;
    ++count;
  }
  std::printf("  %d kinds\n", count);
  EXPECT_GE(count, 39);
}

/// ViT-Ti/16 of 2 blocks, as a checkpoint has it.
Checkpoint vit() {
  Checkpoint c{{}, "vit.safetensors"};
  c.shapes = {
      {"cls_token", {1, 1, 192}},       {"pos_embed", {1, 197, 192}}, {"patch_embed.proj.weight", {192, 3, 16, 16}},
      {"patch_embed.proj.bias", {192}}, {"norm.weight", {192}},       {"norm.bias", {192}},
      {"head.weight", {1000, 192}},     {"head.bias", {1000}}};
  for (const std::string block : {"blocks.0.", "blocks.1."}) {
    for (const char* norm : {"norm1", "norm2"})
      c.shapes[block + norm + ".weight"] = c.shapes[block + norm + ".bias"] = {192};
    c.shapes[block + "attn.qkv.weight"] = {576, 192};
    c.shapes[block + "attn.qkv.bias"] = {576};
    c.shapes[block + "attn.proj.weight"] = {192, 192};
    c.shapes[block + "attn.proj.bias"] = {192};
    c.shapes[block + "mlp.fc1.weight"] = {768, 192};
    c.shapes[block + "mlp.fc1.bias"] = {768};
    c.shapes[block + "mlp.fc2.weight"] = {192, 768};
    c.shapes[block + "mlp.fc2.bias"] = {192};
  }
  return c;
}
Config of_tiny() {
  Config config;
  config.architecture = "vit_tiny_patch16_224";
  return config;
}

TEST(Declare, SaysOnlyWhatDiffersFromVitTiny) {
  const auto written = declare::declare(vit(), of_tiny(), "MyVit");
  EXPECT_NE(written.header.find("using MyVit = Vit<{\n    .depth = 2}>;"), std::string::npos) << written.header;
  EXPECT_EQ(written.assumptions.size(), 2u);  // the size of pictures, and how they are prepared
}

TEST(Declare, FindsVitTinyInItsPublishedWeights) {
  // One type has one graph: what is declared of the checkpoint is what the header of ViT-Tiny declares.
  static_assert(std::is_same_v<models::Vit<{}>, models::VitTiny>);
  const char* shared = std::getenv("TESSERA_SHARED");
  const fs::path weights = fs::path(shared ? shared : "") / "weights" / "vit_tiny_patch16_224.safetensors";
  if (!fs::exists(weights)) GTEST_SKIP() << "TESSERA_SHARED names no folder with " << weights.filename();
  const auto written = declare::declare(declare::read_checkpoint(weights), of_tiny(), "MyVit");
  EXPECT_NE(written.header.find("using MyVit = Vit<{}>;"), std::string::npos) << written.header;
}

TEST(Declare, RefusesACheckpointWithoutAnyOneOfItsKeysOrWithAnotherShape) {
  int cases = 0;
  const Checkpoint whole = vit();
  for (const auto& [key, shape] : whole.shapes) {
    const std::string quoted = "'" + key + "'";
    Checkpoint less = vit();
    less.shapes.erase(key);
    expect_a_sentence(refusal([&] { declare::declare(less, of_tiny(), "M"); }), "vit.safetensors: has no " + quoted);
    Checkpoint other = vit();
    other.shapes[key].push_back(7);
    expect_a_sentence(refusal([&] { declare::declare(other, of_tiny(), "M"); }), quoted);
    Checkpoint empty = vit();
    empty.shapes[key][0] = 0;
    expect_a_sentence(refusal([&] { declare::declare(empty, of_tiny(), "M"); }), quoted + " [0");
    cases += 3;
  }
  std::printf("  %d cases\n", cases);
}

TEST(Declare, WhatEveryBlockLacksIsDeclaredOrRefused) {
  for (const auto& [key, shape] : vit().shapes) {
    if (!key.starts_with("blocks.0.")) continue;
    const std::string rest = key.substr(9);
    Checkpoint less = vit();
    less.shapes.erase("blocks.0." + rest), less.shapes.erase("blocks.1." + rest);
    if (rest == "attn.qkv.bias" || rest == "attn.proj.bias") {
      const char* says = rest == "attn.qkv.bias" ? ".qkv_bias = false" : "LinearWithoutBias<V::A, V::D>";
      EXPECT_NE(declare::declare(less, of_tiny(), "M").header.find(says), std::string::npos) << rest;
    } else {
      expect_a_sentence(refusal([&] { declare::declare(less, of_tiny(), "M"); }), "has no '" + key + "'");
    }
  }
}

/// Assumptions that hold the words.
long assumed(const declare::Declaration& written, const std::string& words) {
  return std::count_if(written.assumptions.begin(), written.assumptions.end(),
                       [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

TEST(Declare, SaysWhatTheConfigurationDoesNot) {
  Checkpoint packed = vit();
  for (const char* block : {"blocks.0.", "blocks.1."}) {
    packed.shapes[std::string(block) + "mlp.fc1.weight"] = {1536, 192};
    packed.shapes[std::string(block) + "mlp.fc1.bias"] = {1536};
  }
  const auto silent = declare::declare(packed, Config{}, "M");
  EXPECT_EQ(assumed(silent, "heads there are: 3, each 64 wide"), 1);
  EXPECT_EQ(assumed(silent, "'blocks.0.mlp.fc1.weight' makes two maps, and nothing says of what kind: SwiGLU"), 1);
  EXPECT_EQ(assumed(silent,
                    "pictures are prepared: mean 0.5, std 0.5, crop_pct 0.9, interpolation bicubic, crop_mode "
                    "center"),
            1);
  const Config spoken = declare::parse_config(
      R"({"architecture": "vit_tiny_patch16_224", "pretrained_cfg": {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5],
          "crop_pct": 0.9, "interpolation": "bilinear", "crop_mode": "squash", "input_size": [3, 224, 224]}})",
      "config.json");
  const auto said = declare::declare(vit(), spoken, "M");
  EXPECT_EQ(said.assumptions.size(), 0u);
  EXPECT_NE(said.header.find(".crop = 0.9, .interpolation = Interpolation::bilinear, .fit = Fit::squash}"),
            std::string::npos)
      << said.header;
  Config gated = of_tiny();
  gated.facts = {{"heads", "3"}, {"gate", "gelu"}};
  expect_a_sentence(refusal([&] { declare::declare(packed, gated, "M"); }), "a gate of gelu has no declaration");
  // A number that is below all normal ones is written as it is.
  const Config small = declare::parse_config(
      R"({"architecture": "vit_tiny_patch16_224", "pretrained_cfg": {"mean": [1e-310, 0.5, 0.5]}})", "config.json");
  EXPECT_NE(declare::declare(vit(), small, "M").header.find(".mean = {1e-310, 0.5, 0.5}"), std::string::npos);
  for (const auto& [width, heads] : std::vector<std::pair<int, const char*>>{{1280, "16"}, {1152, "16"}, {256, "4"}}) {
    Checkpoint wide = vit();
    for (auto& [key, shape] : wide.shapes)
      for (std::int64_t& dim : shape) dim = dim == 192 ? width : dim == 576 ? 3 * width : dim == 768 ? 4 * width : dim;
    EXPECT_EQ(assumed(declare::declare(wide, Config{}, "M"), std::string("heads there are: ") + heads), 1) << width;
  }
}

TEST(Declare, SaysThatTextsAreOutOfScopeWhereThereWereSome) {
  const std::string says = "// Images alone: texts, and zero-shot classification by them, are out of scope.\n";
  const auto of_name = [&](const std::string& name) {
    Config config = of_tiny();
    config.architecture = name;
    config.pool = "token";  // as of vit()
    return declare::declare(vit(), config, "M").header.find(says) != std::string::npos;
  };
  for (const char* name :
       {"vit_base_patch16_clip_224", "vit_large_patch14_clip_quickgelu_224", "eva02_base_patch16_clip_224",
        "vit_base_patch16_siglip_224", "vit_base_patch16_siglip_gap_224"})
    EXPECT_TRUE(of_name(name)) << name;
  for (const char* name : {"vit_tiny_patch16_224", "deit_tiny_patch16_224"}) EXPECT_FALSE(of_name(name)) << name;
  int with_texts = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(paths::golden) / "dialects")) {
    const std::string name = entry.path().filename();
    const auto written = declare::declare(declare::read_checkpoint(entry.path() / "model.safetensors"),
                                          declare::read_config(entry.path() / "config.json"), "M");
    const bool said = written.header.find(says) != std::string::npos;
    EXPECT_EQ(said, name == "hf_blip" || name == "hf_clip" || name == "hf_siglip" || name == "open_clip") << name;
    with_texts += said;
  }
  EXPECT_EQ(with_texts, 4);
}

/// Whose image encoders have CLIP's keys, and BLIP's.
TEST(Declare, ReadsTheConfigurationsOfClipsRelatives) {
  for (const std::string type : {"clip", "chinese_clip", "metaclip_2", "blip"})
    for (const std::string& name : {type, type + "_vision_model"}) {
      const Config config = declare::parse_config(
          R"({"model_type": ")" + name + R"(", "vision_config": {"image_size": 24}})", "config.json");
      EXPECT_EQ(config.library, type == "blip" ? "Hugging Face's BLIP" : "Hugging Face's CLIP") << name;
      EXPECT_EQ(config.facts.at("activation"), type == "blip" ? "gelu" : "quick_gelu") << name;
      EXPECT_EQ(config.facts.at("pool"), "token") << name;
      EXPECT_EQ(config.facts.at("epsilon"), "1e-05") << name;
    }
}

/// A model of another library, as tests/golden/make_dialects.py writes it.
const fs::path dialects = fs::path(paths::golden) / "dialects";

std::vector<std::string> dialect_models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(dialects)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Declare, WritesTheHeadersThatAreComparedWithOtherLibraries) {
  for (const std::string& name : dialect_models()) {
    const fs::path header = fs::path(TESSERA_DECLARED) / (name + ".hpp");
    std::string text;
    ASSERT_NO_THROW(text = declare::declare(declare::read_checkpoint(dialects / name / "model.safetensors"),
                                            declare::read_config(dialects / name / "config.json"), camel(name))
                               .header)
        << name;
    if (writes) std::ofstream(header) << text;
    EXPECT_EQ(text, content(header)) << "declare_test --write refreshes " << header;
  }
  EXPECT_EQ(dialect_models().size(), 29u);
}

TEST(Declare, ReadsTheFilesOfTorchvisionAndOfOpenClipOverTimm) {
  const auto renamed = [](runtime::Safetensors file, const std::function<std::string(std::string)>& name) {
    std::map<std::string, runtime::Tensor> tensors;
    for (auto& [key, tensor] : file.tensors) tensors.emplace(name(key), std::move(tensor));
    file.tensors = std::move(tensors);
    return declare::checkpoint_of(std::move(file));
  };
  const runtime::Safetensors file = runtime::read_safetensors(dialects / "torchvision" / "model.safetensors");
  const Checkpoint published = renamed(file, [](std::string key) {
    for (const auto& [from, to] : {std::pair("mlp.0.", "mlp.linear_1."), std::pair("mlp.3.", "mlp.linear_2.")})
      if (const auto at = key.find(from); at != std::string::npos) key.replace(at, std::strlen(from), to);
    return key;
  });
  EXPECT_EQ(published.shapes, declare::checkpoint_of(file).shapes);
  EXPECT_EQ(published.keys.theirs("blocks.1.mlp.fc2.bias"), "encoder.layers.encoder_layer_1.mlp.linear_2.bias");
  for (const fs::path& kind : kinds()) {
    const runtime::Safetensors trunk = runtime::read_safetensors(kind / "params.safetensors");
    const Checkpoint over = renamed(trunk, [](const std::string& key) { return "visual.trunk." + key; });
    EXPECT_EQ(over.keys.dialect->library, "OpenCLIP over timm") << kind;
    EXPECT_EQ(over.shapes, declare::checkpoint_of(trunk).shapes) << kind;
  }
}

/// Microsoft's program merges tokens at a stage's end, and its checkpoints have the tables of its windows.
TEST(Declare, ReadsWhatTrainingPutBeforeEveryKey) {
  for (const std::string& name : dialect_models())
    for (const std::string wrapper : {"module.", "_orig_mod.", "model.", "module._orig_mod."}) {
      const runtime::Safetensors file = runtime::read_safetensors(dialects / name / "model.safetensors");
      const Checkpoint published = declare::checkpoint_of(file);
      runtime::Safetensors wrapped{{}, file.metadata, file.where};
      for (const auto& [key, tensor] : file.tensors) wrapped.tensors[wrapper + key] = tensor;
      const Checkpoint read = declare::checkpoint_of(wrapped);
      EXPECT_EQ(read.shapes, published.shapes) << name;
      EXPECT_EQ(read.keys.theirs("blocks.1.mlp.fc2.bias"), wrapper + published.keys.theirs("blocks.1.mlp.fc2.bias"));
      // Of a file that has another key it is part of the keys' names.
      wrapped.tensors["epoch"] = runtime::Tensor::of({1}, std::vector<float>{0});
      EXPECT_NE(declare::checkpoint_of(wrapped).shapes, published.shapes) << name;
    }
}

TEST(Declare, RefusesAModelOfAnotherLibraryWithoutAnyOneOfItsKeys) {
  // What another model of the library lacks as well.
  const std::set<std::string> may_lack = {"visual.proj", "visual_projection.weight", "register_tokens"};
  int cases = 0;
  for (const std::string& name : dialect_models()) {
    const runtime::Safetensors whole = runtime::read_safetensors(dialects / name / "model.safetensors");
    const Config config = declare::read_config(dialects / name / "config.json");
    const auto& left_out = declare::checkpoint_of(whole).left_out;
    for (const auto& [key, tensor] : whole.tensors) {
      runtime::Safetensors less = whole;
      less.tensors.erase(key);
      const std::string sentence = refusal([&] { declare::declare(declare::checkpoint_of(less), config, "M"); });
      if (may_lack.contains(key) || key.ends_with("embeddings.register_tokens") ||
          std::find(left_out.begin(), left_out.end(), key) != left_out.end())
        EXPECT_EQ(sentence, "nothing was refused") << name << " without " << key;
      else
        expect_a_sentence(sentence, "has no '" + key + "'");
      ++cases;
    }
  }
  std::printf("  %d cases\n", cases);
}

TEST(Declare, RefusesMixedDialects) {
  const std::map<std::string, std::string> foreign = {{"timm", "blocks.0.mlp.fc1_g.weight"},
                                                      {"torchvision", "conv_proj.weight"},
                                                      {"Hugging Face", "encoder.layer.0.layernorm_before.weight"},
                                                      {"OpenCLIP", "visual.conv1.weight"}};
  for (const std::string& name : dialect_models())
    for (const auto& [library, key] : foreign) {
      runtime::Safetensors mixed = runtime::read_safetensors(dialects / name / "model.safetensors");
      const std::string own(runtime::in_timms_keys(mixed).keys.dialect->library);
      if (own.starts_with(library)) continue;
      mixed.tensors[key] = runtime::Tensor::of({1}, std::vector<float>{0});
      const std::string sentence = refusal([&] { declare::checkpoint_of(mixed); });
      expect_a_sentence(sentence, "mixes keys of " + own + " ('");
      EXPECT_NE(sentence.find("('" + key + "')"), std::string::npos) << sentence;
    }
}

TEST(Declare, RefusesTensorsThatATableOfKeysCannotTurn) {
  struct Case {
    const char *model, *says;
    std::function<void(runtime::Safetensors&)> spoil;
  };
  const auto of = [](runtime::Shape shape) {
    return runtime::Tensor::of(shape, std::vector<float>(static_cast<std::size_t>(runtime::elements(shape))));
  };
  const std::vector<Case> cases = {
      {"open_clip", "'visual.proj' is [24, 12, 1] instead of a matrix",
       [&](auto& f) { f.tensors["visual.proj"] = of({24, 12, 1}); }},
      {"open_clip", "'visual.proj' is [23, 12] instead of [24, 12]",
       [&](auto& f) { f.tensors["visual.proj"] = of({23, 12}); }},
      {"hf_siglip", "in_proj_bias' is [71] instead of the rows of queries, keys and values",
       [&](auto& f) { f.tensors["head.attention.in_proj_bias"] = of({71}); }},
      {"hf_vit",
       "'vit.encoder.layer.0.attention.attention.key.bias' is F32 [25], and 'vit.encoder.layer.0.attention."
       "attention.query.bias' beside it F32 [8]",
       [&](auto& f) { f.tensors["vit.encoder.layer.0.attention.attention.key.bias"] = of({25}); }},
      {"torchvision", "'class_token' [0, 24] holds no numbers",
       [&](auto& f) { f.tensors["class_token"] = of({0, 24}); }},
      {"torchvision", "'class_token' is I64, and parameters are",
       [&](auto& f) { f.tensors["class_token"] = runtime::Tensor::of({1}, std::vector<std::int64_t>{1}); }},
      {"torchvision", "'encoder.layers.encoder_layer_1.ln_1.bias' has numbers that are infinite or none",
       [&](auto& f) {
         f.tensors["encoder.layers.encoder_layer_1.ln_1.bias"] =
             runtime::Tensor::of({1}, std::vector<float>{std::numeric_limits<float>::infinity()});
       }},
      {"hf_clip", "is a configuration of Hugging Face's CLIP, and the checkpoint's keys are those of timm",
       [&](auto& f) { f = runtime::read_safetensors(fs::path(paths::golden) / "timm/test_vit2/params.safetensors"); }},
      {"hf_vit",
       "is a configuration of Hugging Face's ViT, and the checkpoint's keys are those of Hugging Face's SigLIP",
       [&](auto& f) { f = runtime::read_safetensors(dialects / "hf_siglip/model.safetensors"); }},
      {"torchvision", "'encoder.pos_embedding' has 5 positions, and pictures of 24 x 16", [&](auto&) {}},
      {"hf_dinov3", "has no 'layer.0.attention.k_proj.weight' beside 'layer.0.attention.q_proj.weight'",
       [&](auto& f) { f.tensors.erase("layer.0.attention.k_proj.weight"); }},
      {"hf_beit",
       "has no 'beit.embeddings.cls_token', and 'beit.encoder.layer.0.attention.attention.relative_position_bias."
       "relative_position_bias_table' has rows for a token before the patches",
       [&](auto& f) { f.tensors.erase("beit.embeddings.cls_token"); }},
  };
  for (const Case& one : cases) {
    runtime::Safetensors file = runtime::read_safetensors(dialects / one.model / "model.safetensors");
    Config config = declare::read_config(dialects / one.model / "config.json");
    one.spoil(file);
    if (std::string(one.says).find("24 x 16") != std::string::npos) config.image = {24, 16};
    expect_a_sentence(refusal([&] { declare::declare(declare::checkpoint_of(file), config, "M"); }), one.says);
  }
}

TEST(Declare, WithoutAConfigurationALibrarysUsualModelIsAssumed) {
  for (const auto& [name, says] :
       std::vector<std::pair<std::string, std::string>>{{"torchvision", "the activation is gelu and epsilon 1e-06"},
                                                        {"hf_vit", "the activation is gelu and epsilon 1e-12"},
                                                        {"hf_dinov2", "the activation is gelu and epsilon 1e-06"},
                                                        {"hf_clip", "the activation is quick_gelu and epsilon 1e-05"},
                                                        {"hf_siglip", "the activation is gelu_tanh and epsilon 1e-06"},
                                                        {"dinov2", "the activation is gelu and epsilon 1e-06"},
                                                        {"open_clip", "the activation is gelu and epsilon 1e-05"}}) {
    const auto written =
        declare::declare(declare::read_checkpoint(dialects / name / "model.safetensors"), Config{}, "M");
    EXPECT_EQ(assumed(written, says), 1) << name;
    EXPECT_EQ(assumed(written, "keys are those of "), 1) << name;
    const char* const heads = name == "hf_vit" || name == "hf_siglip" ? "heads there are: 1, each 8 wide"
                                                                      : "heads there are: 1, each 24 wide";
    EXPECT_EQ(assumed(written, heads), 1) << name;
    EXPECT_EQ(assumed(written, "are left out: images do not need them, and texts are out of scope"),
              name.find("clip") != std::string::npos)
        << name;
  }
}

/// What is written says so.
void expect_says(const std::string& text, const std::string& what) {
  EXPECT_NE(text.find(what), std::string::npos) << what << " in\n" << text;
}

TEST(Declare, WithoutAConfigurationNoMeanTakesAMissingTokensPlaceUnsaid) {
  // SigLIP's keys without its head are CLIP's without a class token.
  runtime::Safetensors file = runtime::read_safetensors(dialects / "hf_siglip" / "model.safetensors");
  std::erase_if(file.tensors, [](const auto& tensor) { return tensor.first.starts_with("head."); });
  expect_a_sentence(refusal([&] { declare::declare(declare::checkpoint_of(file), Config{}, "M"); }),
                    "has no 'embeddings.class_embedding', which becomes the vector of a picture");
  for (const auto& [name, pool] : {std::pair("hf_ijepa", "avg"), std::pair("hf_mae", "token")}) {
    const auto written =
        declare::declare(declare::read_checkpoint(dialects / name / "model.safetensors"), Config{}, "M");
    EXPECT_EQ(assumed(written, std::string("tokens become one vector by ") + pool), 1) << name;
  }
}

TEST(Declare, OfHuggingFacesDinov3TheConfigurationTellsTheRotaryPositionsAndTheGate) {
  const auto read = [](const char* name) { return declare::read_checkpoint(dialects / name / "model.safetensors"); };
  const auto written = declare::declare(read("hf_dinov3"), Config{}, "M");
  EXPECT_EQ(assumed(written, "the activation is gelu and epsilon 1e-05, as is usual for Hugging Face's DINOv3"), 1);
  expect_says(written.header, "Rope{.temperature = 100, .pairs = RopePairs::halves, .places = RopePlaces::centres}");
  for (const char* newer : {"", R"(, "rope_theta": 50)", R"(, "rope_parameters": {"rope_theta": 25.5})"}) {
    const Config config = declare::parse_config(
        R"({"model_type": "dinov3_vit", "num_attention_heads": 2, "image_size": 8)" + std::string(newer) + "}", "c");
    expect_says(declare::declare(read("hf_dinov3"), config, "M").header,
                std::string("temperature = ") + (std::strstr(newer, "25.5") ? "25.5,"
                                                 : *newer                   ? "50,"
                                                                            : "100,"));
  }
  Config gelu = declare::read_config(dialects / "hf_dinov3_gated" / "config.json");
  gelu.facts["gate"] = "gelu";
  expect_a_sentence(
      refusal([&] { declare::declare(read("hf_dinov3_gated"), gelu, "M"); }),
      "'model.layer.0.mlp.gate_proj.weight' makes the map of a gate, and a gate of gelu has no declaration");
}

TEST(Declare, AHeadOfTwiceTheWidthSeesClassTokenAndMean) {
  Checkpoint c = vit();
  const std::int64_t width = c.shapes.at("norm.weight")[0];
  c.shapes["head.weight"] = {c.shapes.at("head.weight")[0], 2 * width};
  Config config = of_tiny();
  config.pool.reset();
  const auto written = declare::declare(c, config, "M");
  expect_says(written.header, ".pooling = Pooling::class_token_and_mean");
  EXPECT_EQ(assumed(written, "'head.weight' sees twice the width of a token: class token and mean of the patches"), 1);
  config.pool = "token";
  expect_a_sentence(refusal([&] { declare::declare(c, config, "M"); }), "'head.weight' is ");
}

TEST(Declare, ReadsTheFilesOfData2VecAndOlderOnesOfBeit) {
  runtime::Safetensors file = runtime::read_safetensors(dialects / "hf_beit" / "model.safetensors");
  const Checkpoint beit = declare::checkpoint_of(file);
  std::map<std::string, runtime::Tensor> tensors;
  for (auto& [key, tensor] : file.tensors)
    tensors.emplace(key.starts_with("beit.") ? "data2vec_vision." + key.substr(5) : key, std::move(tensor));
  const std::string index =
      "data2vec_vision.encoder.layer.0.attention.attention.relative_position_bias.relative_position_index";
  tensors.emplace(index, runtime::Tensor::of({1}, std::vector<std::int64_t>{0}));
  file.tensors = std::move(tensors);
  const Checkpoint data2vec = declare::checkpoint_of(file);
  EXPECT_EQ(data2vec.shapes, beit.shapes);
  EXPECT_EQ(data2vec.left_out, std::vector<std::string>{index});
  const Config config = declare::parse_config(
      R"({"model_type": "data2vec-vision", "num_attention_heads": 2, "image_size": 8, "layer_scale_init_value": 0.25})",
      "c");
  const auto written = declare::declare(data2vec, config, "M");
  expect_says(written.header, ".layer_scale = 0.25");
  EXPECT_EQ(assumed(written, "is left out: images do not need it"), 1);
}

/// Three maps make queries, keys and values, these of so many rows in block 1.
void share_keys(Checkpoint& c, std::int64_t keys, std::int64_t values) {
  for (const auto& [block, k, v] : {std::tuple<std::string, std::int64_t, std::int64_t>{"blocks.0.attn.", 192, 192},
                                    {"blocks.1.attn.", keys, values}}) {
    for (const auto& [map, rows] : {std::pair{"q_proj", std::int64_t{192}}, {"k_proj", k}, {"v_proj", v}}) {
      c.shapes[block + map + ".weight"] = {rows, 192};
      c.shapes[block + map + ".bias"] = {rows};
    }
    c.shapes.erase(block + "qkv.weight");
    c.shapes.erase(block + "qkv.bias");
  }
}

TEST(Declare, RefusesWhatContradictsItselfOrTheConfiguration) {
  struct Case {
    const char* says;
    std::function<void(Checkpoint&, Config&)> spoil;
  };
  const std::vector<Case> cases = {
      {"timm has no plain Vision Transformer", [](auto&, auto& f) { f.architecture = "resnet50"; }},
      {"timm has no plain Vision Transformer 'vit?[2J'", [](auto&, auto& f) { f.architecture = "vit\x1b[2J"; }},
      {"num_classes is 10, and", [](auto&, auto& f) { f.classes = 10; }},
      {"num_classes is 0, and", [](auto&, auto& f) { f.classes = 0; }},
      {"which 5 heads do not divide", [](auto&, auto& f) { f.heads = 5; }},
      {"which 0 heads do not divide", [](auto&, auto& f) { f.heads = 0; }},
      {"which -3 heads do not divide", [](auto&, auto& f) { f.heads = -3; }},
      {"no whole number of patches", [](auto&, auto& f) { f.image = {225, 240}; }},
      {"'pos_embed' has 197 positions", [](auto&, auto& f) { f.image = {384, 384}; }},
      {"interpolation 'lanczos' is none of bicubic and bilinear", [](auto&, auto& f) { f.interpolation = "lanczos"; }},
      {"crop_mode 'border' is none of center, squash and pad", [](auto&, auto& f) { f.crop_mode = "border"; }},
      {"is none of token", [](auto&, auto& f) { f.pool = "avgmax"; }},
      {"is none of token", [](auto&, auto& f) { f.pool = "map"; }},
      {"global_pool is empty", [](auto&, auto& f) { f.pool = ""; }},
      {"no declaration says 'blocks.0.attn.surprise', 'blocks.1.attn.surprise'",
       [](auto& c, auto&) { c.shapes["blocks.0.attn.surprise"] = c.shapes["blocks.1.attn.surprise"] = {3}; }},
      {"has no 'blocks.1.attn.surprise', and has 'blocks.0.attn.surprise'",
       [](auto& c, auto&) { c.shapes["blocks.0.attn.surprise"] = {3}; }},
      {"and 1 more",
       [](auto& c, auto&) {
         for (const char* key : {"x1", "x2", "x3", "x4"}) c.shapes[key] = {1};
       }},
      {"no declaration says 'encoder.layer.0.weight'",
       [](auto& c, auto&) { c.shapes["encoder.layer.0.weight"] = {1}; }},
      {"has no 'patch_embed.proj.weight'",
       [](auto& c, auto&) { c.shapes = {{"encoder.conv_proj.weight", {768, 3, 16, 16}}}; }},
      {"has no 'patch_embed.proj.weight'", [](auto& c, auto&) { c.shapes.clear(); }},
      {"no declaration says 'blocks.00.norm1.weight'",
       [](auto& c, auto&) { c.shapes["blocks.00.norm1.weight"] = {192}; }},
      {"'blocks.1.attn.q_norm.weight' is [32] and 'blocks.0.attn.q_norm.weight' [64]: blocks that differ",
       [](auto& c, auto&) {
         c.shapes["blocks.0.attn.q_norm.weight"] = {64};
         c.shapes["blocks.1.attn.q_norm.weight"] = {32};
       }},
      {"'blocks.1.attn.k_proj.weight' has 96 rows, and 3 heads of queries, each 64 wide, do not share them evenly",
       [](auto& c, auto&) { share_keys(c, 96, 96); }},
      {"'blocks.1.attn.k_proj.weight' has 128 rows, and 3 heads of queries",
       [](auto& c, auto&) { share_keys(c, 128, 128); }},
      {"'blocks.1.attn.v_proj.bias' is [192] instead of [64]", [](auto& c, auto&) { share_keys(c, 64, 192); }},
      {"has no 'blocks.1.attn.k_proj.bias', which attention whose heads share keys has",
       [](auto& c, auto&) {
         share_keys(c, 64, 64);
         for (const char* block : {"blocks.0.", "blocks.1."}) c.shapes.erase(std::string(block) + "attn.k_proj.bias");
       }},
      {"has no 'blocks.2.attn.proj.bias', and has 'blocks.0.attn.proj.bias'",
       [](auto& c, auto&) { c.shapes["blocks.3.norm1.weight"] = {192}; }},
      {"has no 'blocks.2.attn.proj.bias'", [](auto& c, auto&) { c.shapes["blocks.2.norm1.weight"] = {192}; }},
      {"has a dim", [](auto& c, auto&) { c.shapes["norm.weight"] = {std::numeric_limits<std::int64_t>::max()}; }},
      {"has a dim", [](auto& c, auto&) { c.shapes["cls_token"] = {-1, 1, 192}; }},
      {"has no 'head_dist.bias'",
       [](auto& c, auto&) { c.shapes["dist_token"] = {1, 1, 192}, c.shapes["pos_embed"] = {1, 198, 192}; }},
      {"'pos_embed' has 197", [](auto& c, auto& f) { c.shapes["reg_token"] = {1, 4, 192}, f.image = {224, 224}; }},
      {"no declaration says 'norm.bias', 'norm.weight'",
       [](auto& c, auto&) { c.shapes["fc_norm.weight"] = c.shapes["fc_norm.bias"] = {192}; }},
      {"has no 'blocks.0.gamma_2'",
       [](auto& c, auto&) { c.shapes["blocks.0.gamma_1"] = c.shapes["blocks.1.gamma_1"] = {192}; }},
      {"has no 'blocks.0.attn.v_bias'",
       [](auto& c, auto&) {
         for (const std::string block : {"blocks.0.", "blocks.1."}) {
           c.shapes.erase(block + "attn.qkv.bias");
           c.shapes[block + "attn.q_bias"] = {192};
         }
       }},
      {"'blocks.0.attn.relative_position_bias_table' is [5, 3] instead of [732, 3]",
       [](auto& c, auto&) {
         for (const char* block : {"blocks.0.", "blocks.1."})
           c.shapes[std::string(block) + "attn.relative_position_bias_table"] = {5, 3};
       }},
      {"'rope.freqs' is [2, 2, 3, 7] instead of [2, 2, 3, 32]",
       [](auto& c, auto&) { c.shapes["rope.freqs"] = {2, 2, 3, 7}; }},
      {"has no 'attn_pool.mlp.fc1.weight'", [](auto& c, auto&) { c.shapes["attn_pool.latent"] = {1, 1, 192}; }},
  };
  for (const Case& one : cases) {
    Checkpoint checkpoint = vit();
    Config config = of_tiny();
    one.spoil(checkpoint, config);
    expect_a_sentence(refusal([&] { declare::declare(checkpoint, config, "M"); }), one.says);
  }
}

TEST(Declare, RefusesAConfigurationThatIsNone) {
  for (const auto& [content, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "no JSON object"},
           {"[]", "no JSON object"},
           {"{\"architecture\": ", "no JSON object"},
           {R"({"architecture": 3})", "architecture is not"},
           {R"({"num_heads": "two"})", "num_heads is not"},
           {R"({"model_type": "convnext"})", "model_type 'convnext' is none of vit,"},
           {R"({"model_type": 7})", "model_type is not"},
           {R"({"model_type": "clip", "vision_config": 1})", "vision_config is no"},
           {R"({"model_type": "vit", "hidden_act": "mish"})", "hidden_act 'mish' is no"},
           {R"({"model_type": "vit", "num_attention_heads": 0})", "num_attention_heads is 0"},
           {R"({"model_type": "vit", "layer_norm_eps": -1})", "layer_norm_eps has"},
           {R"({"model_type": "vit", "layer_norm_eps": 1e-320})", "layer_norm_eps has to be from 1e-30 to 1e30"},
           {R"({"model_type": "vit", "layer_norm_eps": 1.7e308})", "layer_norm_eps has"},
           {R"({"model_type": "vit", "num_attention_heads": 1e300})", "num_attention_heads is not"},
           {R"({"num_heads": 2.5})", "num_heads is not"},
           {R"({"num_heads": 18446744073709551615})", "num_heads is not"},
           {R"({"pretrained_cfg": {"mean": [1.7e308, 0, 0]}})", "mean is not"},
           {R"({"pretrained_cfg": {"std": [1e-320, 1, 1]}})", "std has to be"},
           {R"({"pretrained_cfg": {"crop_pct": 1e-9}})", "crop_pct has to be from 0.05 to 1"},
           {R"({"model_type": "vit", "image_size": 0})", "image_size is no"},
           {R"({"model_type": "dinov3_vit", "rope_theta": 0})", "rope_theta has to be from 1e-30 to 1e30"},
           {R"({"model_type": "dinov3_vit", "rope_parameters": 3})", "rope_parameters is no JSON object"},
           {R"({"model_type": "beit", "layer_scale_init_value": -1})", "layer_scale_init_value has"},
           {R"({"model_cfg": []})", "model_cfg is no"},
           {R"({"model_cfg": {"vision_cfg": {"head_width": 0}}})", "head_width is 0"},
           {R"({"model_cfg": {"vision_cfg": {"pool_type": "max"}}})", "pool_type 'max' is none"},
           {R"({"model_cfg": {"quick_gelu": 3}})", "quick_gelu is not"},
           {R"({"num_classes": "ten"})", "num_classes is not"},
           {R"({"model_args": 3})", "model_args is no"},
           {R"({"model_args": {"img_size": [0, 3]}})", "img_size is no"},
           {R"({"model_args": {"img_size": 1e30}})", "img_size is no"},
           {R"({"model_args": {"img_size": []}})", "img_size has"},
           {R"({"pretrained_cfg": {"mean": [1]}})", "mean is not"},
           {R"({"pretrained_cfg": {"std": [0, 1, 1]}})", "std has to be"},
           {R"({"pretrained_cfg": {"crop_pct": 7}})", "crop_pct has"}})
    expect_a_sentence(refusal([&, &text = content] { declare::parse_config(text, "config.json"); }), says);
}

TEST(Declare, RefusesFilesThatAreNoCheckpoints) {
  const auto header = [](const std::string& json, std::size_t bytes) {
    std::string file(8, '\0');
    for (int i = 0; i < 8; ++i) file[i] = static_cast<char>(json.size() >> (8 * i));
    return file + json + std::string(bytes, '\0');
  };
  const std::string nan = header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 0) + "\xff\xff\xff\x7f";
  const fs::path path = fs::path(testing::TempDir()) / "declare_bad.safetensors";
  for (
      const auto& [file, says] : std::vector<std::pair<std::string, std::string>>{
          {"PK\x03\x04 archive", "a pickle of PyTorch"},
          {"\x80\x02}q", "a pickle of PyTorch"},
          {"", "0 bytes"},
          {"1234", "4 bytes"},
          {std::string(8, '\xff') + "{}", "header"},
          {nan, "NaN"},
          {header(R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", 8), "parameters are"},
          {header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4), "a"},
          {header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3), "a"},
          {header(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", 4), "a"},
          {header(
               R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
               6),
           ""}}) {
    std::ofstream(path, std::ios::binary) << file;
    const std::string sentence = refusal([&] { declare::read_checkpoint(path); });
    expect_a_sentence(sentence, says);
    EXPECT_NE(sentence.find("declare_bad"), std::string::npos) << sentence;
  }
  // A header of 640 bytes: its length begins as a pickle does.
  std::string json = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  json.resize(640, ' ');
  std::ofstream(path, std::ios::binary) << header(json, 4);
  EXPECT_EQ(declare::read_checkpoint(path).shapes.size(), 1u);
  fs::remove(path);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) writes = writes || std::strcmp(argv[i], "--write") == 0;
  return RUN_ALL_TESTS();
}
