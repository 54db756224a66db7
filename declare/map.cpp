#include "declare/map.hpp"

#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;
using runtime::printable;
using runtime::Shape;
using runtime::text;

std::string printed(const Sides& sides) {
  return sides[0] == sides[1] ? std::to_string(sides[0]) : text("{", sides[0], ", ", sides[1], "}");
}

void find_square_patches(Findings& f, std::int64_t width, std::int64_t side) {
  const Shape& patch = f.shape("patch_embed.proj.weight", 4);
  f.width = patch[0];
  f.channels = patch[1];
  f.height = f.across = patch[2];
  if (patch[3] != patch[2])
    fail(f.checkpoint.where, ": ", f.named("patch_embed.proj.weight"), " has patches of ", patch[2], " x ", patch[3],
         ", and those of a ", name_of(f.model.kind), " are square");
  f.expect("patch_embed.proj.weight", patch);
  f.expect("patch_embed.proj.bias", {f.width});
  f.field("channels", f.channels, 3);
  f.field("width", f.width, width);
  f.field("patch", f.height, side);
}

void find_head_of_map(Findings& f, std::int64_t channels, std::int64_t classes) {
  if (const std::string activation = f.fact("activation", "gelu"); activation != "gelu")
    fail(f.config.where, ": the activation is ", activation, ", and that of a ", name_of(f.model.kind), " is gelu");
  f.model.classes = f.has("head.fc.weight") ? f.shape("head.fc.weight", 2)[0] : 0;
  if (f.config.classes && *f.config.classes != f.model.classes)
    fail(f.config.where, ": num_classes is ", *f.config.classes, ", and the checkpoint ",
         f.model.classes ? text("has ", f.named("head.fc.weight"), " of ", f.model.classes)
                         : text("has no ", f.named("head.fc.weight")));
  f.field("classes", f.model.classes, classes);
  if (f.model.classes) f.linear("head.fc", channels, f.model.classes);
}

void demand_mean(const Findings& f) {
  if (f.config.pool.value_or("avg") != "avg")
    fail(f.config.where, ": global_pool is ", printable(*f.config.pool), ", and of a ", name_of(f.model.kind),
         " it is avg");
}

}  // namespace tessera::declare
