#include "declare/swin.hpp"

#include <algorithm>

#include "declare/input.hpp"
#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;
using runtime::printable;
using runtime::Shape;
using runtime::text;

namespace {

using Sides = std::array<std::int64_t, 2>;

constexpr int most_stages = 4;  // as SwinSpec has room for

std::string stage(int i, const std::string& rest) { return "layers." + std::to_string(i) + "." + rest; }
std::string block(int i, int j, const std::string& rest) {
  return stage(i, "blocks." + std::to_string(j) + "." + rest);
}

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

std::string printed(const Sides& sides) {
  return sides[0] == sides[1] ? std::to_string(sides[0]) : text("{", sides[0], ", ", sides[1], "}");
}

/// Of the pictures of published models: the last stage's map is one window.
std::int64_t usual_side(const Findings& f) {
  int last = 0;
  while (last + 1 < most_stages && f.checkpoint.has_any(stage(last + 1, "blocks."))) ++last;
  const std::int64_t rows = f.shape(block(last, 0, "attn.relative_position_bias_table"), 2)[0];
  std::int64_t window = 1;
  while ((2 * window - 1) * (2 * window - 1) < rows) ++window;
  return window * (f.height << last);
}

void find_patches(Findings& f) {
  const Shape& patch = f.shape("patch_embed.proj.weight", 4);
  f.width = patch[0];
  f.channels = patch[1];
  f.height = f.across = patch[2];
  if (patch[3] != patch[2])
    fail(f.checkpoint.where, ": ", f.named("patch_embed.proj.weight"), " has patches of ", patch[2], " x ", patch[3],
         ", and those of a Swin Transformer are square");
  f.expect("patch_embed.proj.weight", patch);
  f.expect("patch_embed.proj.bias", {f.width});
  f.norm("patch_embed.norm", f.width);
  f.field("channels", f.channels, 3);
  f.field("width", f.width, 96);
  f.field("patch", f.height, 4);
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

bool is_swin(const Checkpoint& checkpoint) { return checkpoint.has_any(block(0, 0, "")); }

void find_swin(Findings& f) {
  f.model.made_of = "Swin";
  f.model.include = "models/swin.hpp";
  f.first_norm = block(0, 0, "norm1");
  find_patches(f);
  std::vector<std::string> heads, depths, windows;
  std::int64_t width = f.width, pixels = f.height, mlp = 0;
  for (int i = 0; i < most_stages && f.checkpoint.has_any(stage(i, "blocks.")); ++i, ++f.depth) {
    if (i > 0) {
      f.norm(stage(i, "downsample.norm"), 4 * width);
      f.linear(stage(i, "downsample.reduction"), 4 * width, 2 * width, false);
      width *= 2;
      pixels *= 2;
    }
    const Sides map{f.image[0] / pixels, f.image[1] / pixels};
    if (map[0] < 1 || map[1] < 1 || f.image[0] % pixels || f.image[1] % pixels)
      fail(f.config.image ? f.config.where : f.checkpoint.where, ": pictures of ", f.image[0], " x ", f.image[1],
           " are no whole number of tokens of ", pixels, " x ", pixels, ", as ", f.named(block(i, 0, "norm1.weight")),
           " is of");
    const std::string table = block(i, 0, "attn.relative_position_bias_table");
    const Sides window = window_of(f, table, map);
    const std::int64_t of_stage = f.shape(table, 2)[1], inner = f.shape(block(i, 0, "mlp.fc1.weight"), 2)[0];
    if (width % of_stage)
      fail(f.checkpoint.where, ": ", f.named(table), " is of ", of_stage, " heads, which do not divide ", width);
    if (i == 0) mlp = inner / width;
    int depth = 0;
    for (; depth < 4096 && f.checkpoint.has_any(block(i, depth, "")); ++depth) {
      const auto key = [&](const char* rest) { return block(i, depth, rest); };
      f.norm(key("norm1"), width), f.norm(key("norm2"), width);
      f.expect(key("attn.relative_position_bias_table"), {(2 * window[0] - 1) * (2 * window[1] - 1), of_stage});
      f.linear(key("attn.qkv"), width, 3 * width);
      f.linear(key("attn.proj"), width, width);
      f.linear(key("mlp.fc1"), width, mlp * width);
      f.linear(key("mlp.fc2"), mlp * width, width);
    }
    heads.push_back(std::to_string(of_stage));
    depths.push_back(std::to_string(depth));
    windows.push_back(printed(window));
  }
  if (mlp < 1) fail(f.checkpoint.where, ": ", f.named(block(0, 0, "mlp.fc1.weight")), " is narrower than a token");
  if (const std::string all = listed(heads); all != "{3, 6, 12, 24}") f.field("heads", all);
  if (const std::string all = listed(depths); all != "{2, 2, 6, 2}") f.field("depths", all);
  if (const std::string all = listed(windows); all != "{7, 7, 7, 7}") f.field("windows", all);
  f.field("mlp", mlp, 4);
  f.norm("norm", width);
  if (const std::string activation = f.fact("activation", "gelu"); activation != "gelu")
    fail(f.config.where, ": the activation is ", activation, ", and that of a Swin Transformer is gelu");
  if (f.config.pool.value_or("avg") != "avg")
    fail(f.config.where, ": global_pool is ", printable(*f.config.pool), ", and of a Swin Transformer it is avg");
  f.model.classes = f.has("head.fc.weight") ? f.shape("head.fc.weight", 2)[0] : 0;
  if (f.config.classes && *f.config.classes != f.model.classes)
    fail(f.config.where, ": num_classes is ", *f.config.classes, ", and the checkpoint ",
         f.model.classes ? text("has ", f.named("head.fc.weight"), " of ", f.model.classes)
                         : text("has no ", f.named("head.fc.weight")));
  f.field("classes", f.model.classes, 1000);
  if (f.model.classes) f.linear("head.fc", width, f.model.classes);
  if (const double epsilon = std::stod(f.fact("epsilon", "1e-5")); epsilon != 1e-5) f.field("epsilon", number(epsilon));
}

}  // namespace tessera::declare
