#include "declare/depth.hpp"

#include <array>

#include "declare/block.hpp"
#include "declare/front.hpp"
#include "declare/input.hpp"
#include "declare/key_check.hpp"
#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;
using runtime::Shape;
using runtime::text;

namespace {

std::string reassembled(int i, const std::string& rest) { return text("neck.reassemble_stage.layers.", i, ".", rest); }
std::string fused(int i, const std::string& rest) { return text("neck.fusion_stage.layers.", i, ".", rest); }

void convolution(Findings& f, const std::string& key, std::int64_t in, std::int64_t out, std::int64_t side) {
  f.expect(key + ".weight", {out, in, side, side});
  f.expect(key + ".bias", {out});
}

void find_encoder(Findings& f) {
  check_blocks(f.checkpoint);
  find_stem(f);
  find_tokens(f);
  find_block(f);
  if (!f.model.block.empty() || !f.model.alias.empty() || f.is_cait)
    fail(f.checkpoint.where, ": its blocks are not those of ViT or DINOv2, which a ", name_of(f.model.kind), " has");
  if (f.has("norm.weight") || f.library().find("Depth Anything") != std::string::npos)
    f.norm("norm", f.width);
  else
    f.field("final_norm", "FinalNorm::none");
  f.field("classes", "0");
  // Depth Anything enlarges a map to the size of the finer one; DPT twofold each, and to twice the finest in the end.
  const std::int64_t down = f.image[0] / f.height, across = f.image[1] / f.across;
  if (f.library() == "Hugging Face's DPT" && (f.height != 16 || f.across != 16 || down % 2 || across % 2))
    fail(f.checkpoint.where, ": pictures of ", f.image[0], " x ", f.image[1], " in patches of ", f.height, " x ",
         f.across, ": depths are as large as a picture for patches of 16, of which there is an even number");
}

bool projects(const Findings& f) { return f.checkpoint.has_any("neck.reassemble_stage.readout_projects."); }

/// Which blocks the maps are made of: the configuration's, or those of the published models.
void find_layers(Findings& f) {
  std::vector<std::int64_t> layers = f.config.layers;
  if (layers.empty()) {
    if (f.depth < 4) fail(f.checkpoint.where, ": has ", f.depth, " blocks, and a DPT head reads four");
    layers = f.depth == 24 && !projects(f)
                 ? std::vector<std::int64_t>{4, 11, 17, 23}
                 : std::vector<std::int64_t>{f.depth / 4 - 1, f.depth / 2 - 1, f.depth * 3 / 4 - 1, f.depth - 1};
  }
  std::string list;
  for (const std::int64_t layer : layers) list += text(list.empty() ? "" : ", ", layer);
  if (f.config.layers.empty())
    f.assume(text("no configuration says which blocks the head reads: ", list, ", counted from 0"));
  bool rises = layers.size() == 4;
  for (std::size_t i = 1; i < layers.size(); ++i) rises = rises && layers[i - 1] < layers[i];
  if (!rises || layers.front() < 0 || layers.back() != f.depth - 1 || f.depth > 64)
    fail(f.config.where, ": the head reads blocks ", list, " of ", f.depth,
         ", and a declaration has four, of at most 64, the last block among them");
  f.field("layers", "{" + list + "}");
}

void find_head(Findings& f) {
  std::array<std::int64_t, 4> maps{};
  for (int i = 0; i < 4; ++i) {
    const std::int64_t channels = maps[static_cast<std::size_t>(i)] =
        f.shape(reassembled(i, "projection.weight"), 4)[0];
    convolution(f, reassembled(i, "projection"), f.width, channels, 1);
    constexpr std::int64_t sides[] = {4, 2, 0, 3};  // of what enlarges or reduces a map
    if (sides[i]) convolution(f, reassembled(i, "resize"), channels, channels, sides[i]);
  }
  const std::int64_t fusion = f.shape("neck.convs.0.weight", 4)[0], hidden = f.shape("head.conv2.weight", 4)[0];
  if (fusion % 2)
    fail(f.checkpoint.where, ": ", f.named("neck.convs.0.weight"), " makes ", fusion,
         " channels, which the head cannot halve");
  for (int i = 0; i < 4; ++i) {
    f.expect(text("neck.convs.", i, ".weight"), {fusion, maps[static_cast<std::size_t>(i)], 3, 3});
    convolution(f, fused(i, "projection"), fusion, fusion, 1);
    for (const char* const layer : {"residual_layer1.convolution1", "residual_layer1.convolution2",
                                    "residual_layer2.convolution1", "residual_layer2.convolution2"})
      if (i > 0 || layer[14] == '2') convolution(f, fused(i, layer), fusion, fusion, 3);
  }
  for (int i = 0; i < 4 && projects(f); ++i)
    f.linear(text("neck.reassemble_stage.readout_projects.", i, ".0"), 2 * f.width, f.width);
  convolution(f, "head.conv1", fusion, fusion / 2, 3);
  convolution(f, "head.conv2", fusion / 2, hidden, 3);
  convolution(f, "head.conv3", hidden, 1, 1);

  std::string spec;
  const auto field = [&](const char* name, const std::string& value) {
    spec += text(spec.empty() ? "" : ", ", ".", name, " = ", value);
  };
  if (maps != std::array<std::int64_t, 4>{48, 96, 192, 384})
    field("maps", text("{", maps[0], ", ", maps[1], ", ", maps[2], ", ", maps[3], "}"));
  if (fusion != 64) field("fusion", text(fusion));
  if (hidden != 32) field("hidden", text(hidden));
  if (projects(f)) field("readout", "Readout::projected");
  if (f.config.farthest) field("farthest", number(*f.config.farthest));
  if (!spec.empty()) f.model.block = "{" + spec + "}";
  if (f.config.where == Config{}.where)
    f.assume(
        "the model tells inverse depth up to a factor and an offset; of one that tells metres the configuration "
        "has max_depth");
}

}  // namespace

void find_depth(Findings& f) {
  find_encoder(f);
  f.model.made_of = "Dpt";
  f.model.include = "models/dpt.hpp";
  find_layers(f);
  find_head(f);
}

}  // namespace tessera::declare
