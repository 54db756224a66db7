// The variants of tests/golden/make_variants.py: small, and together they use every switch of VitSpec but dropout.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

/// tests/golden/variants/vit_gap
using VitGap = Vit<{.image = {10, 6},
                    .patch = {5, 3},
                    .width = 14,
                    .heads = 2,
                    .depth = 2,
                    .mlp = 2,
                    .classes = 5,
                    .class_token = false,
                    .qkv_bias = false,
                    .activation = Activation::relu,
                    .final_norm = FinalNorm::after_pooling,
                    .pooling = Pooling::mean}>;

/// tests/golden/variants/vit_registers
using VitRegisters = Vit<{.image = {9, 8},
                          .patch = {3, 4},
                          .width = 12,
                          .heads = 2,
                          .depth = 2,
                          .classes = 5,
                          .hidden = 10,
                          .registers = 3,
                          .patch_positions = true,
                          .qkv_bias = false,
                          .qk_norm = true,
                          .layer_scale = 0.5,
                          .activation = Activation::swiglu}>;

/// tests/golden/variants/vit_simple
using VitSimple = Vit<{.image = {12, 6},
                       .patch = 3,
                       .width = 16,
                       .heads = 2,
                       .depth = 2,
                       .classes = 5,
                       .hidden = 24,
                       .class_token = false,
                       .positions = Positions::grid_inclusive,
                       .activation = Activation::gelu_tanh,
                       .pooling = Pooling::mean}>;

/// tests/golden/variants/vit_vaswani
using VitVaswani = Vit<{.image = 8,
                        .patch = 4,
                        .width = 12,
                        .heads = 3,
                        .depth = 2,
                        .classes = 5,
                        .hidden = 20,
                        .positions = Positions::sinusoidal,
                        .norms = Norms::on_sum,
                        .activation = Activation::silu,
                        .final_norm = FinalNorm::none,
                        .representation = 9}>;

/// tests/golden/variants/vit_mean_of_patches
using VitMeanOfPatches = Vit<{.image = {6, 9},
                              .patch = 3,
                              .channels = 1,
                              .width = 10,
                              .heads = 2,
                              .depth = 2,
                              .classes = 5,
                              .hidden = 15,
                              .registers = 2,
                              .norms = Norms::after,
                              .layer_scale = 0.1,
                              .final_norm = FinalNorm::after_pooling,
                              .pooling = Pooling::mean}>;

/// tests/golden/variants/vit_only_registers
using VitOnlyRegisters = Vit<{.image = {4, 10},
                              .patch = {4, 2},
                              .width = 8,
                              .heads = 1,
                              .depth = 2,
                              .mlp = 1,
                              .classes = 5,
                              .class_token = false,
                              .registers = 1,
                              .positions = Positions::grid,
                              .pooling = Pooling::mean,
                              .representation = 6}>;

}  // namespace tessera::models
