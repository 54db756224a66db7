#include "declare/sam.hpp"

#include "declare/map.hpp"
#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;

namespace {

std::string block(int i, const std::string& rest) { return "blocks." + std::to_string(i) + "." + rest; }

/// Tokens down and across what a block attends to: its tables have a row for each distance.
Sides reach_of(const Findings& f, int i) {
  Sides reach{};
  for (const int side : {0, 1}) {
    const std::string table = block(i, side ? "attn.rel_pos_w" : "attn.rel_pos_h");
    const std::int64_t rows = f.shape(table, 2)[0];
    if (rows % 2 == 0)
      fail(f.checkpoint.where, ": ", f.named(table), " has ", rows, " rows, and of so many tokens there are 2 n - 1");
    reach[side] = (rows + 1) / 2;
  }
  return reach;
}

/// The map that the last block attends to, and the pictures that it is of.
Sides find_map(Findings& f) {
  const Sides map = reach_of(f, f.depth - 1);
  f.image = {map[0] * f.height, map[1] * f.height};
  if (f.config.image && *f.config.image != f.image)
    fail(f.config.where, ": pictures of ", (*f.config.image)[0], " x ", (*f.config.image)[1],
         " have other tokens than ", f.named(block(f.depth - 1, "attn.rel_pos_h")), ", which is of ", f.image[0], " x ",
         f.image[1], " pixels");
  if (f.image != Sides{1024, 1024}) f.field("image", printed(f.image));
  if (f.has("pos_embed") || !f.checkpoint.keys.are_timms())
    f.expect("pos_embed", {1, map[0], map[1], f.width});
  else
    f.field("learned_positions", "false");
  return map;
}

/// In groups of blocks the last one attends to the map, and the others to windows.
void find_groups(Findings& f, const Sides& map) {
  int every = 1;
  while (reach_of(f, every - 1) != map) ++every;  // the last block does
  std::int64_t window = 0;
  for (int i = 0; i < f.depth; ++i) {
    const Sides reach = reach_of(f, i);
    if ((i % every == every - 1) != (reach == map))
      fail(f.checkpoint.where, ": ", f.named(block(i, "attn.rel_pos_h")), " is of ", reach[0], " x ", reach[1],
           " tokens: no declaration says which blocks attend to the map of ", map[0], " x ", map[1],
           " but the last of each group of ", every);
    if (reach == map) continue;
    if (window == 0) window = reach[0];
    if (reach != Sides{window, window})
      fail(f.checkpoint.where, ": ", f.named(block(i, "attn.rel_pos_h")), " is of ", reach[0], " x ", reach[1],
           " tokens, and a declaration has squares, of ", window, " x ", window);
  }
  if (f.depth % every) fail(f.checkpoint.where, ": has ", f.depth, " blocks, which are no groups of ", every);
  if (window) f.field("window", window, 14);
  f.field("whole_every", every, 3);
}

void find_blocks(Findings& f) {
  const std::int64_t head = f.shape(block(0, "attn.rel_pos_h"), 2)[1];
  const std::int64_t inner = f.shape(block(0, "mlp.fc1.weight"), 2)[0];
  if (f.width % head)
    fail(f.checkpoint.where, ": ", f.named(block(0, "attn.rel_pos_h")), " is of heads ", head,
         " wide, which do not divide ", f.width);
  if (inner % f.width)
    fail(f.checkpoint.where, ": ", f.named(block(0, "mlp.fc1.weight")), " is ", inner,
         " wide, which is no multiple of a token's ", f.width);
  f.field("heads", f.width / head, 12);
  f.field("mlp", inner / f.width, 4);
  for (int i = 0; i < f.depth; ++i) {
    const auto key = [&](const char* rest) { return block(i, rest); };
    const Sides reach = reach_of(f, i);
    f.norm(key("norm1"), f.width), f.norm(key("norm2"), f.width);
    f.expect(key("attn.rel_pos_h"), {2 * reach[0] - 1, head});
    f.expect(key("attn.rel_pos_w"), {2 * reach[1] - 1, head});
    f.linear(key("attn.qkv"), f.width, 3 * f.width);
    f.linear(key("attn.proj"), f.width, f.width);
    f.linear(key("mlp.fc1"), f.width, inner);
    f.linear(key("mlp.fc2"), inner, f.width);
  }
}

/// Gives the channels of the map.
std::int64_t find_neck(Findings& f) {
  if (f.has("neck.weight")) {
    f.norm("neck", f.width);
    f.field("neck", "0");
    return f.width;
  }
  const std::int64_t channels = f.shape("neck.0.weight", 4)[0];
  f.expect("neck.0.weight", {channels, f.width, 1, 1});
  f.norm("neck.1", channels);
  f.expect("neck.2.weight", {channels, channels, 3, 3});
  f.norm("neck.3", channels);
  f.field("neck", channels, 256);
  return channels;
}

}  // namespace

void find_sam(Findings& f) {
  f.model.made_of = "SamEncoder";
  f.model.include = "models/sam.hpp";
  f.first_norm = block(0, "norm1");
  find_square_patches(f, 768, 16);
  while (f.depth < 4096 && f.checkpoint.has_any(block(f.depth, ""))) ++f.depth;
  f.field("depth", f.depth, 12);
  find_groups(f, find_map(f));
  find_blocks(f);
  find_head_of_map(f, find_neck(f), 0);
  if (f.model.classes)
    demand_mean(f);
  else if (f.checkpoint.keys.are_timms())
    f.assume("there are no classes: the model gives the map of its neck, whose mean timm's gives");
  const double epsilon = std::stod(f.fact("epsilon", "1e-5"));  // timm's; SAM's own is 1e-6
  if (epsilon != 1e-6) f.field("epsilon", number(epsilon));
}

}  // namespace tessera::declare
