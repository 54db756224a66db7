// Models that are a forward pass alone, as published ones often are: what is generated of them is for inference.
#pragma once

#include "models/sam.hpp"
#include "models/self_attention_2d.hpp"
#include "models/vit.hpp"
#include "models/vit_mnist.hpp"
#include "tests/models/bf16_models.hpp"
#include "tests/models/golden_models.hpp"

namespace tessera::test {

/// The same declaration without its recipe, and so without a loss.
template <class Model>
struct ForwardOnly : Model {
  static constexpr Preprocessing input = Model::recipe.input;

 private:
  using Model::recipe;
};

using VitMnistInference = ForwardOnly<models::vit_mnist::VitMnist>;
using GoldenVitInference = ForwardOnly<models::GoldenVit>;
using SmallVitInference = ForwardOnly<SmallVit>;

/// tests/golden/self_attention_2d
using GoldenSelfAttention =
    models::SelfAttention2d<{.channels = 32, .height = 6, .width = 5, .heads = 4, .head = 8, .value = 4}>;

/// The tokens that two of three layers give of a digit, the class token before those of patches: [B, 2, 17, 24].
using LayersVit = models::Vit<{
    .image = 28, .patch = 7, .channels = 1, .width = 24, .heads = 2, .depth = 3, .classes = 0, .layers = {0, 2}}>;

/// A feature map, [B, 12, 6, 4].
using MapSam = models::SamEncoder<{.image = {24, 16},
                                   .patch = 4,
                                   .width = 32,
                                   .heads = 2,
                                   .depth = 2,
                                   .mlp = 2,
                                   .window = 4,
                                   .whole_every = 2,
                                   .neck = 12}>;

}  // namespace tessera::test
