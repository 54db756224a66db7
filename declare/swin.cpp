#include "declare/swin.hpp"

#include <algorithm>
#include <sstream>

#include "declare/input.hpp"
#include "declare/map.hpp"
#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;
using runtime::text;

namespace {

constexpr int most_stages = 4;  // as SwinSpec has room for

std::string stage(int i, const std::string& rest) { return "layers." + std::to_string(i) + "." + rest; }
std::string block(int i, int j, const std::string& rest) {
  return stage(i, "blocks." + std::to_string(j) + "." + rest);
}

/// Whether it is a Swin Transformer V2.
bool is_swin_v2(const Checkpoint& checkpoint) { return checkpoint.has_any(block(0, 0, "attn.cpb_mlp.")); }

/// As a field of SwinSpec that has one for each stage.
std::string listed(const std::vector<std::string>& of) {
  std::string all;
  for (const std::string& one : of) all += (all.empty() ? "" : ", ") + one;
  return "{" + all + "}";
}

/// The window that a table of biases has so many rows for: (2h-1)(2w-1). A square, else one as high or as wide as the
/// map is.
Sides window_of(const Findings& f, const std::string& table, const Sides& map) {
  const std::int64_t rows = f.shape(table, 2)[0];
  Sides found{};
  for (Sides w = {1, 1}; w[0] <= map[0]; ++w[0]) {
    if (map[0] % w[0] || rows % (2 * w[0] - 1)) continue;
    w[1] = (rows / (2 * w[0] - 1) + 1) / 2;
    if ((2 * w[0] - 1) * (2 * w[1] - 1) != rows || w[1] > map[1] || map[1] % w[1]) continue;
    if (w[0] == w[1]) return w;
    if (w[0] == map[0] || w[1] == map[1]) found = w;
  }
  if (found[0] == 0)
    fail(f.checkpoint.where, ": ", f.named(table), " has ", rows, " rows, which no window has that divides a map of ",
         map[0], " x ", map[1], " tokens: pictures of ", f.image[0], " x ", f.image[1],
         " would be filled up with zeros");
  return found;
}

/// The window of a stage of V2, whose numbers do not tell it: what the configuration says, or the architecture's name.
/// It is no larger than the map.
Sides window_of_v2(const Findings& f, int stage, const Sides& map) {
  const auto at = static_cast<std::size_t>(stage);
  const std::vector<Sides>& windows = f.config.windows;
  Sides w{};
  if (const std::string side = f.fact("window", ""); windows.empty() && !side.empty())
    w = {std::stoll(side), std::stoll(side)};
  else if (windows.size() == 1 || at < windows.size())
    w = windows[windows.size() == 1 ? 0 : at];
  if (w[0] < 1 || w[1] < 1)
    fail(windows.empty() ? f.checkpoint.where : f.config.where,
         ": the windows of a Swin Transformer V2 are in no shape, and no configuration says them of stage ", stage,
         R"( (window_size: "window_size": 8 says that of all stages))");
  for (const int side : {0, 1}) {
    w[side] = std::min(w[side], map[side]);
    if (map[side] % w[side])
      fail(f.config.where, ": a window of ", w[0], " x ", w[1], " does not divide stage ", stage, "'s map of ", map[0],
           " x ", map[1], " tokens: it would be filled up with zeros");
  }
  return w;
}

/// What a stage of V2 measures distances by; {0, 0}: its window.
Sides pretrained_of(const Findings& f, int stage) {
  std::vector<Sides> all = f.config.pretrained_windows;
  if (all.empty()) {
    std::istringstream sides(f.fact("pretrained_windows", ""));
    for (std::string side; std::getline(sides, side, ',');) all.push_back({std::stoll(side), std::stoll(side)});
  }
  const auto at = static_cast<std::size_t>(stage);
  return at < all.size() && all[at][0] > 0 ? all[at] : Sides{};
}

/// Of the pictures of published models: the last stage's map is one window.
std::int64_t usual_side(const Findings& f) {
  if (is_swin_v2(f.checkpoint))
    fail(f.checkpoint.where,
         ": the size of pictures is in no shape of a Swin Transformer V2, and no configuration says "
         R"(it (image_size: "image_size": 256))");
  int last = 0;
  while (last + 1 < most_stages && f.checkpoint.has_any(stage(last + 1, "blocks."))) ++last;
  const std::int64_t rows = f.shape(block(last, 0, "attn.relative_position_bias_table"), 2)[0];
  std::int64_t window = 1;
  while ((2 * window - 1) * (2 * window - 1) < rows) ++window;
  return window * (f.height << last);
}

void find_patches(Findings& f) {
  find_square_patches(f, 96, 4);
  f.norm("patch_embed.norm", f.width);
  if (f.config.image) {
    f.image = *f.config.image;
  } else {
    const std::int64_t side = usual_side(f);
    f.image = {side, side};
    f.assume(text("no configuration says the size of pictures: ", side, " x ", side, ", whose last map is one window"));
  }
  if (f.image != Sides{224, 224}) f.field("image", printed(f.image));
}

}  // namespace

void find_swin(Findings& f) {
  const bool v2 = is_swin_v2(f.checkpoint);
  f.model.made_of = v2 ? "SwinV2" : "Swin";
  f.model.include = v2 ? "models/swin_v2.hpp" : "models/swin.hpp";
  f.first_norm = block(0, 0, "norm1");
  find_patches(f);
  std::vector<std::string> heads, depths, windows, pretrained;
  std::int64_t width = f.width, pixels = f.height, mlp = 0, position_mlp = 512;
  for (int i = 0; i < most_stages && f.checkpoint.has_any(stage(i, "blocks.")); ++i, ++f.depth) {
    if (i > 0) {
      f.norm(stage(i, "downsample.norm"), v2 ? 2 * width : 4 * width);
      f.linear(stage(i, "downsample.reduction"), 4 * width, 2 * width, false);
      width *= 2;
      pixels *= 2;
    }
    const Sides map{f.image[0] / pixels, f.image[1] / pixels};
    if (map[0] < 1 || map[1] < 1 || f.image[0] % pixels || f.image[1] % pixels)
      fail(f.config.image ? f.config.where : f.checkpoint.where, ": pictures of ", f.image[0], " x ", f.image[1],
           " are no whole number of tokens of ", pixels, " x ", pixels, ", as ", f.named(block(i, 0, "norm1.weight")),
           " is of");
    const std::string table = block(i, 0, v2 ? "attn.logit_scale" : "attn.relative_position_bias_table");
    const Sides window = v2 ? window_of_v2(f, i, map) : window_of(f, table, map);
    const std::int64_t of_stage = v2 ? f.shape(table, 3)[0] : f.shape(table, 2)[1],
                       inner = f.shape(block(i, 0, "mlp.fc1.weight"), 2)[0];
    if (width % of_stage)
      fail(f.checkpoint.where, ": ", f.named(table), " is of ", of_stage, " heads, which do not divide ", width);
    if (i == 0) mlp = inner / width;
    if (v2 && i == 0) position_mlp = f.shape(block(0, 0, "attn.cpb_mlp.0.weight"), 2)[0];
    int depth = 0;
    for (; depth < 4096 && f.checkpoint.has_any(block(i, depth, "")); ++depth) {
      const auto key = [&](const char* rest) { return block(i, depth, rest); };
      f.norm(key("norm1"), width), f.norm(key("norm2"), width);
      if (v2) {
        f.expect(key("attn.logit_scale"), {of_stage, 1, 1});
        f.linear(key("attn.cpb_mlp.0"), 2, position_mlp);
        f.linear(key("attn.cpb_mlp.2"), position_mlp, of_stage, false);
        f.expect(key("attn.q_bias"), {width}), f.expect(key("attn.v_bias"), {width});
      } else {
        f.expect(key("attn.relative_position_bias_table"), {(2 * window[0] - 1) * (2 * window[1] - 1), of_stage});
      }
      f.linear(key("attn.qkv"), width, 3 * width, !v2);
      f.linear(key("attn.proj"), width, width);
      f.linear(key("mlp.fc1"), width, mlp * width);
      f.linear(key("mlp.fc2"), mlp * width, width);
    }
    heads.push_back(std::to_string(of_stage));
    depths.push_back(std::to_string(depth));
    windows.push_back(printed(window));
    pretrained.push_back(printed(pretrained_of(f, i)));
  }
  if (mlp < 1) fail(f.checkpoint.where, ": ", f.named(block(0, 0, "mlp.fc1.weight")), " is narrower than a token");
  if (const std::string all = listed(heads); all != "{3, 6, 12, 24}") f.field("heads", all);
  if (const std::string all = listed(depths); all != "{2, 2, 6, 2}") f.field("depths", all);
  if (const std::string all = listed(windows); all != "{7, 7, 7, 7}") f.field("windows", all);
  f.field("mlp", mlp, 4);
  if (v2) {
    f.field("position_mlp", position_mlp, 512);
    if (std::any_of(pretrained.begin(), pretrained.end(), [](const std::string& w) { return w != "0"; }))
      f.field("pretrained_windows", listed(pretrained));
    if (f.config.architecture.empty() && f.config.pretrained_windows.empty())
      f.assume("no configuration says pretrained_window_sizes: distances are measured by each stage's own window");
  }
  f.norm("norm", width);
  find_head_of_map(f, width, 1000);
  demand_mean(f);
  if (const double epsilon = std::stod(f.fact("epsilon", "1e-5")); epsilon != 1e-5) f.field("epsilon", number(epsilon));
}

}  // namespace tessera::declare
