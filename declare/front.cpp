#include "declare/front.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;
using runtime::Shape;
using runtime::text;

void find_stem(Findings& f) {
  const Shape& patch = f.shape("patch_embed.proj.weight", 4);
  f.width = patch[0];
  f.channels = patch[1];
  f.height = patch[2];
  f.across = patch[3];
  f.expect("patch_embed.proj.weight", patch);
  const std::string first = f.has("blocks.0.norm1.weight")          ? "blocks.0.norm1"
                            : f.has("blocks.0.in_norm.weight")      ? "blocks.0.in_norm"
                            : f.has("blocks.0.attns.0.norm.weight") ? "blocks.0.attns.0.norm"
                                                                    : "blocks.0.norm1";
  f.shape(first + ".weight", 1);
  f.first_norm = first;
  f.rms = !f.has(first + ".bias");
  if (f.rms) f.field("norm", "Normalization::rms");
  if (f.has("norm_pre.weight")) {
    f.field("stem", "Stem::norm_of_all");
    f.norm("norm_pre", f.width);
  } else {
    f.expect("patch_embed.proj.bias", {f.width});
    if (f.has("patch_embed.norm.weight")) {
      f.field("stem", "Stem::normed");
      f.norm("patch_embed.norm", f.width);
    }
  }
  f.field("channels", f.channels, 3);
  f.field("width", f.width, 192);
  if (f.height == f.across)
    f.field("patch", f.height, 16);
  else
    f.field("patch", text("{", f.height, ", ", f.across, "}"));
}

void find_tokens(Findings& f) {
  f.is_cait = f.has("blocks_token_only.0.norm1.weight");
  if (f.is_cait) f.model.made_of = "Cait";
  const bool class_token = f.has("cls_token");
  if (class_token) f.expect("cls_token", {1, 1, f.width});
  if (!class_token || f.is_cait) f.field("class_token", "false");
  std::int64_t front = class_token && !f.is_cait;
  if (f.has("head_dist.weight") && !f.has("dist_token"))
    fail(f.checkpoint.where, ": has no ", f.named("dist_token"), ", and has ", f.named("head_dist.weight"));
  if (f.has("dist_token")) {
    f.field("distilled", "true");
    f.expect("dist_token", {1, 1, f.width});
    ++front;
  }
  if (f.has("reg_token")) {
    const std::int64_t registers = f.shape("reg_token", 3)[1];
    f.field("registers", std::to_string(registers));
    f.expect("reg_token", {1, registers, f.width});
    front += registers;
  }
  const std::int64_t rows = f.has("pos_embed") ? f.shape("pos_embed", 3)[1] : 0;
  if (f.config.image) {
    f.image = *f.config.image;
    const std::int64_t below = f.image[0] % f.height, right = f.image[1] % f.across;
    // What the convolution of timm's patches leaves out is left out where the positions say so.
    const std::int64_t whole = (f.image[0] / f.height) * (f.image[1] / f.across);
    if ((below || right) && whole > 0 && (rows == whole || rows == whole + front))
      f.field("rest", below == right ? std::to_string(below) : text("{", below, ", ", right, "}"));
    else if (below || right)
      fail(f.config.where, ": pictures of ", f.image[0], " x ", f.image[1], " are no whole number of patches of ",
           f.height, " x ", f.across, ", which ", f.named("patch_embed.proj.weight"), " has");
  } else {
    std::int64_t side = 224 / f.height;
    for (const std::int64_t patches : {rows - front, rows})
      if (const auto root = std::int64_t(std::lround(std::sqrt(double(std::max<std::int64_t>(patches, 0)))));
          root > 0 && root * root == patches) {
        side = root;
        break;
      }
    if (side < 1)
      fail(f.checkpoint.where, ": ", f.named("patch_embed.proj.weight"),
           " has patches larger than a picture of 224 x 224");
    f.image = {side * f.height, side * f.across};
    f.assume(text("no configuration says the size of pictures: ", f.image[0], " x ", f.image[1]));
  }
  f.front = front;
  f.patches = (f.image[0] / f.height) * (f.image[1] / f.across);
  if (f.image[0] == f.image[1])
    f.field("image", f.image[0], 224);
  else
    f.field("image", text("{", f.image[0], ", ", f.image[1], "}"));
  if (rows == 0) {
    f.field("positions", "Positions::none");
  } else {
    const bool fits = rows == f.patches || rows == f.patches + front;
    if (!fits && !class_token && (rows == f.patches + front + 1 || rows == f.patches + 1))
      fail(f.checkpoint.where, ": has no ", f.named("cls_token"), ", and ", f.named("pos_embed"),
           " has a position more than the ", f.patches, " patches");
    if (!fits)
      fail(f.checkpoint.where, ": ", f.named("pos_embed"), " has ", rows, " positions, and pictures of ", f.image[0],
           " x ", f.image[1], " have ", f.patches, " patches and ", front, " tokens before them");
    if (rows == f.patches && front > 0) f.field("patch_positions", "true");
    f.expect("pos_embed", {1, rows, f.width});
  }
}

}  // namespace tessera::declare
