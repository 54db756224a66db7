// The declared models at sizes at which their CUDA kernels run on the CPU in a moment.
#pragma once

#include "models/beit.hpp"
#include "models/cait.hpp"
#include "models/dpt.hpp"
#include "models/eva.hpp"
#include "models/sam.hpp"
#include "models/swin_v2.hpp"
#include "models/vit.hpp"
#include "models/vit_cifar.hpp"
#include "models/vit_diff.hpp"
#include "models/vit_mnist.hpp"
#include "models/vit_notebook.hpp"
#include "models/vit_parallel.hpp"
#include "models/vit_relpos.hpp"
#include "models/vqgan.hpp"
#include "models/vqgan_discriminator.hpp"
#include "models/vqgan_loss.hpp"

namespace tessera::models {

/// tests/golden/vit_tiny_small
using ToyVit = Vit<{.image = 32, .patch = 8, .width = 24, .heads = 3, .depth = 2, .classes = 10}>;
/// Every product of it is wide enough for the CPU back end, too, to round its factors.
using ToyWideVit = Vit<{.image = 32, .patch = 8, .width = 32, .heads = 2, .depth = 2, .classes = 18}>;
/// Two heads of 128; a token for each 16 x 16 of `image` each way, and one.
template <std::int64_t image>
using HeadsOf128 = Vit<{.image = image, .width = 256, .heads = 2, .depth = 2, .mlp = 2, .classes = 10}>;
/// tests/golden/cifar_vit_small, but with dropout.
using ToyCifarVit = CifarVit<{.image = 16, .width = 32, .heads = 4, .layers = 2, .mlp = 64, .dropout = 0.2}>;
/// tests/golden/notebook_vit_small
using ToyNotebookVit =
    NotebookVit<{.height = 32, .width = 24, .patch = 8, .token = 16, .heads = 4, .classes = 10, .blocks = 3}>;

// What has other kernels than a plain Vit: two heads of 16, as those of attention by one kernel.

inline constexpr VitSpec toy_variant{
    .image = 32, .patch = 8, .width = 32, .heads = 2, .depth = 2, .mlp = 2, .classes = 10};

inline constexpr VitSpec toy_rope = [] {
  VitSpec spec = toy_variant;
  spec.registers = 2;
  spec.hidden = 48;
  return spec;
}();
/// EVA-02's block: rotary positions, three maps, a norm of what attention gives, SwiGLU with a norm.
using ToyRope = Vit<toy_rope, Eva02ClipBlock>;

inline constexpr VitSpec toy_mixed = [] {
  VitSpec spec = toy_variant;
  spec.class_token = false;
  spec.norm = Normalization::rms;
  spec.qk_norm = true;
  spec.layer_scale = 0.5;
  spec.activation = Activation::quick_gelu;
  spec.pooling = Pooling::attention;
  return spec;
}();
/// Learned frequencies of rotary positions, RMSNorm (of heads, too), quick GELU, attention pooling.
using ToyMixedRope = Vit<toy_mixed, RopeMixedBlock>;

inline constexpr VitSpec toy_relative = [] {
  VitSpec spec = toy_variant;
  spec.stem = Stem::norm_of_all;
  spec.layer_scale = 0.5;
  return spec;
}();
/// A table of relative positions; CLIP's stem.
using ToyRelative = Vit<toy_relative, BeitBlock>;
template <class V>
using ToyRelativeMlpBlock = VitBlock<V, Attention<V, FusedQkv<V>, RelativeMlpOfBlock<V, 16>>>;
/// Relative positions by an MLP.
using ToyRelativeMlp = Vit<toy_variant, ToyRelativeMlpBlock>;

inline constexpr VitSpec toy_groups = [] {
  VitSpec spec = toy_variant;
  spec.depth = 3;
  spec.norm = Normalization::rms;
  spec.qk_norm = true;
  spec.layer_scale = 0.5;
  return spec;
}();
template <class V, class Qkv>
using ToyGroupsLayer = VitBlock<V, Attention<V, Qkv, Rotary<V, dinov3_rope>>>;
template <class V>
using ToyGroupsBlocks =
    Stacks<Stack<ToyGroupsLayer<V, SeparateQkv<V>>, 1>, Stack<ToyGroupsLayer<V, GroupedQkv<V, 1>>, 2>>;
/// Stacks of different blocks, the last ones with one head of keys and values for both of queries.
using ToyGroups = Vit<toy_groups, ToyGroupsBlocks>;

inline constexpr VitSpec toy_cait = [] {
  VitSpec spec = toy_variant;
  spec.class_token = false;
  spec.layer_scale = 0.5;
  return spec;
}();
/// Talking heads, and class attention.
using ToyCait = Cait<toy_cait>;

/// Windows of a map that wrap around, and one that is the whole map of the second stage.
using ToySwin = Swin<{.image = {24, 16},
                      .patch = 2,
                      .width = 8,
                      .heads = {2, 4},
                      .depths = {2, 2},
                      .windows = {4, 8},
                      .mlp = 2,
                      .classes = 10}>;

/// The same with cosines for scores, whose distances the first stage measures by a smaller window.
using ToySwinV2 = SwinV2<{.image = {24, 16},
                          .patch = 2,
                          .width = 16,
                          .heads = {2, 4},
                          .depths = {2, 2},
                          .windows = {4, 8},
                          .mlp = 2,
                          .classes = 10,
                          .position_mlp = 16,
                          .pretrained_windows = {3, 0}}>;

/// Windows of a map that are filled up below it, the whole map, and a neck.
using ToySam = SamEncoder<{.image = {24, 16},
                           .patch = 4,
                           .width = 16,
                           .heads = 2,
                           .depth = 4,
                           .mlp = 2,
                           .window = 4,
                           .whole_every = 2,
                           .neck = 8,
                           .classes = 10}>;

/// How far each pixel is away: maps of four layers, enlarged, reduced and fused.
using ToyDepth =
    Dpt<{.image = {24, 32},
         .patch = 8,
         .width = 32,
         .heads = 2,
         .depth = 4,
         .mlp = 2,
         .classes = 0,
         .layer_scale = 1,
         .layers = {0, 1, 2, 3}},
        {.maps = {16, 16, 32, 16}, .fusion = 16, .hidden = 16, .readout = Readout::projected, .farthest = 0.5}>;

using ToyDifferential = Vit<toy_variant, DifferentialParallelBlock>;
using ToyParallel = Vit<toy_variant, ParallelScalingBlock>;

inline constexpr VqganSpec toy_vqgan{.image = 8, .ch = 16, .mult = {1, 2}, .dim = 32, .codes = 32, .groups = 8};
/// A part of each kind of VQGAN's: convolutions, group norms, attention over a map, the nearest code. A gradient
/// reaches both what is looked up and what is found.
struct ToyVqgan : Module {
  using Parts = VqganParts<toy_vqgan>;
  using Images = VqganAxes<toy_vqgan>::Images;

  Parts::Conv3x3<3, 16> conv_in;
  Parts::Downsample<16> down;
  Parts::ResnetBlock<16, 32> block;
  Parts::AttnBlock<32> attn;
  Parts::VectorQuantizer quantize;
  Parts::Upsample<32> up;
  Parts::Norm<32> norm_out{Parts::epsilon};
  Parts::Conv3x3<32, 3> conv_out;
  TESSERA_MEMBERS(ToyVqgan, conv_in, down, block, attn, quantize, up, norm_out, conv_out)

  Images forward(Images images) const {
    const auto z = attn(block(down(conv_in(images))));
    return conv_out(silu(norm_out(up(quantize(z) + quantize.codes(z)))));
  }
};
/// Convolutions of 4 x 4 with and without a step, leaky ReLU.
struct ToyDiscriminator : Module {
  NLayerDiscriminator<DiscriminatorSpec{.filters = 8, .layers = 2}> discriminator;
  TESSERA_MEMBERS(ToyDiscriminator, discriminator)

  static constexpr auto B = axis<"B">;
  Tensor<B, 1_c, 2_c, 2_c> forward(Tensor<B, 3_c, 16_c, 16_c> images) const { return discriminator(images); }
};
/// VGG's convolutions and poolings: the metric between images and darker ones.
struct ToyLpips : Module {
  Lpips<LpipsSpec{{8, 8, 16, 16, 16}}> metric;
  TESSERA_MEMBERS(ToyLpips, metric)

  static constexpr auto B = axis<"B">;
  using Images = Tensor<B, 3_c, 16_c, 16_c>;
  Tensor<B, 1_c, 1_c, 1_c> forward(Images images) const { return metric(images, Images(images * 0.5)); }
};

/// Whose times tests/cuda/times_test.py writes tables of.
using TimedVit = Vit<{.image = 32, .width = 64, .heads = 2, .depth = 3}>;

}  // namespace tessera::models
