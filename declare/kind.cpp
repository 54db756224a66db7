#include "declare/kind.hpp"

namespace tessera::declare {

Kind kind_of(const Checkpoint& checkpoint) {
  if (checkpoint.has_any("layers.0.blocks.0.")) return Kind::swin;
  if (checkpoint.has_any("neck.fusion_stage.")) return Kind::depth;
  return checkpoint.has("blocks.0.attn.rel_pos_h") ? Kind::sam : Kind::vit;
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::vit:
      return "Vision Transformer";
    case Kind::swin:
      return "Swin Transformer";
    case Kind::sam:
      return "SAM image encoder";
    case Kind::depth:
      return "model of depth";
  }
  __builtin_unreachable();
}

Input input_of(Kind kind) {
  switch (kind) {
    case Kind::vit:
      return {half, half, 0.9};
    case Kind::swin:
      return {imagenet_mean, imagenet_deviation, 0.9};
    case Kind::sam:
      return {imagenet_mean, imagenet_deviation, 1};
    case Kind::depth:
      return {imagenet_mean, imagenet_deviation, 1, false, runtime::Fit::squash};
  }
  __builtin_unreachable();
}

}  // namespace tessera::declare
