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
#include "tests/paths.hpp"

namespace {

using namespace tessera;
using tessera::declare::Checkpoint;
using tessera::declare::Config;
using tessera::runtime::Shape;
namespace fs = std::filesystem;

bool writes = false;

std::string camel(const std::string& kind) {
  std::string name;
  bool starts = true;
  for (const char letter : kind) {
    if (letter != '_') name += starts ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    starts = letter == '_';
  }
  return name;
}

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

std::string refusal(const std::function<void()>& does) {
  try {
    does();
  } catch (const runtime::Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

void expect_a_sentence(const std::string& sentence, const std::string& what) {
  EXPECT_NE(sentence.find(what), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  EXPECT_LT(sentence.size(), 500u) << sentence;
}

TEST(Declare, SaysOnlyWhatDiffersFromVitTiny) {
  const auto written = declare::declare(vit(), of_tiny(), "MyVit");
  EXPECT_NE(written.header.find("using MyVit = Vit<{\n    .depth = 2}>;"), std::string::npos) << written.header;
  EXPECT_EQ(written.assumptions.size(), 2u);
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
    Checkpoint less = vit();
    less.shapes.erase(key);
    const bool token = key == "cls_token" || key == "pos_embed";  // then others do not fit
    const bool told_by_lack = key == "head.weight" || key.ends_with("norm.weight") || key.ends_with("qkv.bias") ||
                              key.ends_with("norm1.bias") || key.ends_with("fc1.bias") || key.ends_with("fc2.bias") ||
                              key.ends_with("attn.proj.bias") || token;
    const std::string sentence = refusal([&] { declare::declare(less, of_tiny(), "M"); });
    expect_a_sentence(sentence, told_by_lack && key != "pos_embed" ? ":" : key);
    Checkpoint other = vit();
    other.shapes[key].push_back(7);
    expect_a_sentence(refusal([&] { declare::declare(other, of_tiny(), "M"); }), "vit.safetensors: ");
    Checkpoint empty = vit();
    empty.shapes[key][0] = 0;
    expect_a_sentence(refusal([&] { declare::declare(empty, of_tiny(), "M"); }), "has a dim that is not from 1");
    cases += 3;
  }
  std::printf("  %d cases\n", cases);
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
      {"no whole number of patches", [](auto&, auto& f) { f.image = {225, 224}; }},
      {"pos_embed has 197 positions", [](auto&, auto& f) { f.image = {384, 384}; }},
      {"is none of token", [](auto&, auto& f) { f.pool = "avgmax"; }},
      {"is none of token", [](auto&, auto& f) { f.pool = "map"; }},
      {"global_pool is empty", [](auto&, auto& f) { f.pool = ""; }},
      {"no declaration says", [](auto& c, auto&) { c.shapes["blocks.0.attn.surprise"] = {3}; }},
      {"and 1 more",
       [](auto& c, auto&) {
         for (const char* key : {"x1", "x2", "x3", "x4"}) c.shapes[key] = {1};
       }},
      {"no declaration says 'encoder.layer.0.weight'",
       [](auto& c, auto&) { c.shapes["encoder.layer.0.weight"] = {1}; }},
      {"has no patch_embed.proj.weight",
       [](auto& c, auto&) { c.shapes = {{"encoder.conv_proj.weight", {768, 3, 16, 16}}}; }},
      {"has no patch_embed.proj.weight", [](auto& c, auto&) { c.shapes.clear(); }},
      {"blocks.3", [](auto& c, auto&) { c.shapes["blocks.3.norm1.weight"] = {192}; }},
      {"has no blocks.2", [](auto& c, auto&) { c.shapes["blocks.2.norm1.weight"] = {192}; }},
      {"has a dim", [](auto& c, auto&) { c.shapes["norm.weight"] = {std::numeric_limits<std::int64_t>::max()}; }},
      {"has a dim", [](auto& c, auto&) { c.shapes["cls_token"] = {-1, 1, 192}; }},
      {"has no head_dist",
       [](auto& c, auto&) { c.shapes["dist_token"] = {1, 1, 192}, c.shapes["pos_embed"] = {1, 198, 192}; }},
      {"pos_embed has 197", [](auto& c, auto& f) { c.shapes["reg_token"] = {1, 4, 192}, f.image = {224, 224}; }},
      {"norm.weight", [](auto& c, auto&) { c.shapes["fc_norm.weight"] = c.shapes["fc_norm.bias"] = {192}; }},
      {"gamma_2", [](auto& c, auto&) { c.shapes["blocks.0.gamma_1"] = {192}; }},
      {"has no blocks.0.attn.v_bias", [](auto& c, auto&) { c.shapes["blocks.0.attn.q_bias"] = {192}; }},
      {"relative_position_bias_table",
       [](auto& c, auto&) { c.shapes["blocks.0.attn.relative_position_bias_table"] = {5, 3}; }},
      {"rope.freqs", [](auto& c, auto&) { c.shapes["rope.freqs"] = {2, 2, 3, 7}; }},
      {"attn_pool", [](auto& c, auto&) { c.shapes["attn_pool.latent"] = {1, 1, 192}; }},
  };
  for (const Case& one : cases) {
    Checkpoint checkpoint = vit();
    Config config = of_tiny();
    one.spoil(checkpoint, config);
    expect_a_sentence(refusal([&] { declare::declare(checkpoint, config, "M"); }), one.says);
  }
}

TEST(Declare, RefusesAConfigurationThatIsNone) {
  for (const auto& [content, says] :
       std::vector<std::pair<std::string, std::string>>{{"", "no JSON object"},
                                                        {"[]", "no JSON object"},
                                                        {"{\"architecture\": ", "no JSON object"},
                                                        {R"({"architecture": 3})", "architecture is not"},
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
          {"", ""},
          {"1234", ""},
          {std::string(8, '\xff') + "{}", ""},
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
