// The toy models with both back ends' functions: one list for the CPU that stands for a GPU (models_test.cpp) and for a
// GPU (gpu_check.cpp). scripts/gpu-check reads here which emitted files are compiled.
#pragma once

#include <vector>

#include "scalar_graph_cuda.h"
#include "self_attention_again_bf16_cuda.h"
#include "sentence_attention_bf16_cuda.h"
#include "sentence_attention_cuda.h"
#include "tests/cuda/model_run.hpp"
#include "toy_cait_bf16_cuda.h"
#include "toy_cait_cuda.h"
#include "toy_cifar_bf16_cuda.h"
#include "toy_cifar_cuda.h"
#include "toy_depth_bf16_cuda.h"
#include "toy_depth_cuda.h"
#include "toy_differential_bf16_cuda.h"
#include "toy_differential_cuda.h"
#include "toy_discriminator_bf16_cuda.h"
#include "toy_discriminator_cuda.h"
#include "toy_groups_bf16_cuda.h"
#include "toy_groups_cuda.h"
#include "toy_lpips_bf16_cuda.h"
#include "toy_lpips_cuda.h"
#include "toy_mixed_rope_bf16_cuda.h"
#include "toy_mixed_rope_cuda.h"
#include "toy_mnist_bf16_cuda.h"
#include "toy_mnist_cuda.h"
#include "toy_notebook_bf16_cuda.h"
#include "toy_notebook_cuda.h"
#include "toy_parallel_bf16_cuda.h"
#include "toy_parallel_cuda.h"
#include "toy_relative_bf16_cuda.h"
#include "toy_relative_cuda.h"
#include "toy_relative_mlp_cuda.h"
#include "toy_rope_cuda.h"
#include "toy_sam_bf16_cuda.h"
#include "toy_sam_cuda.h"
#include "toy_self_attention_bf16_cuda.h"
#include "toy_self_attention_cuda.h"
#include "toy_swin_bf16_cuda.h"
#include "toy_swin_cuda.h"
#include "toy_swin_v2_bf16_cuda.h"
#include "toy_swin_v2_cuda.h"
#include "toy_vit_bf16_cuda.h"
#include "toy_vit_cuda.h"
#include "toy_vqgan_bf16_cuda.h"
#include "toy_vqgan_cuda.h"
#include "toy_wide_again_bf16_cuda.h"
#include "toy_wide_bf16_cuda.h"
#include "wide_self_attention_bf16_cuda.h"

namespace tessera::test {

/// DeviceArray: memory of the device. It starts as not-a-number.
template <template <class> class DeviceArray>
struct ToyModels {
  /// In single precision on both devices.
  static std::vector<Model> in_fp32() {
    return {TESSERA_TOY_MODEL(toy_mnist, TOY_MNIST),
            TESSERA_TOY_MODEL(toy_cifar, TOY_CIFAR),
            TESSERA_TOY_MODEL(toy_vit, TOY_VIT),
            TESSERA_TOY_MODEL(toy_notebook, TOY_NOTEBOOK),
            TESSERA_TOY_MODEL(toy_self_attention, TOY_SELF_ATTENTION),
            TESSERA_TOY_MODEL(sentence_attention, SENTENCE_ATTENTION),
            TESSERA_TOY_MODEL(scalar_graph, SCALAR_GRAPH),
            TESSERA_TOY_MODEL(toy_rope, TOY_ROPE),
            TESSERA_TOY_MODEL(toy_mixed_rope, TOY_MIXED_ROPE),
            TESSERA_TOY_MODEL(toy_groups, TOY_GROUPS),
            TESSERA_TOY_MODEL(toy_relative, TOY_RELATIVE),
            TESSERA_TOY_MODEL(toy_relative_mlp, TOY_RELATIVE_MLP),
            TESSERA_TOY_MODEL(toy_cait, TOY_CAIT),
            TESSERA_TOY_MODEL(toy_depth, TOY_DEPTH),
            TESSERA_TOY_MODEL(toy_sam, TOY_SAM),
            TESSERA_TOY_MODEL(toy_swin, TOY_SWIN),
            TESSERA_TOY_MODEL(toy_swin_v2, TOY_SWIN_V2),
            TESSERA_TOY_MODEL(toy_differential, TOY_DIFFERENTIAL),
            TESSERA_TOY_MODEL(toy_parallel, TOY_PARALLEL),
            TESSERA_TOY_MODEL(toy_vqgan, TOY_VQGAN),
            TESSERA_TOY_MODEL(toy_discriminator, TOY_DISCRIMINATOR),
            TESSERA_TOY_MODEL(toy_lpips, TOY_LPIPS)};
  }
  /// With operands of bf16 on the GPU alone, which stay as near to single precision as bf16 does.
  static std::vector<Model> in_bf16() {
    return {TESSERA_TOY_MODEL_BF16(toy_mnist, TOY_MNIST),
            TESSERA_TOY_MODEL_BF16(toy_cifar, TOY_CIFAR),
            TESSERA_TOY_MODEL_BF16(toy_vit, TOY_VIT),
            TESSERA_TOY_MODEL_BF16(toy_notebook, TOY_NOTEBOOK),
            TESSERA_TOY_MODEL_BF16(toy_self_attention, TOY_SELF_ATTENTION),
            TESSERA_TOY_MODEL_BF16(sentence_attention, SENTENCE_ATTENTION),
            TESSERA_TOY_MODEL_BF16(toy_mixed_rope, TOY_MIXED_ROPE),
            TESSERA_TOY_MODEL_BF16(toy_relative, TOY_RELATIVE),
            TESSERA_TOY_MODEL_BF16(toy_cait, TOY_CAIT),
            TESSERA_TOY_MODEL_BF16(toy_sam, TOY_SAM),
            TESSERA_TOY_MODEL_BF16(toy_swin, TOY_SWIN),
            TESSERA_TOY_MODEL_BF16(toy_swin_v2, TOY_SWIN_V2),
            TESSERA_TOY_MODEL_BF16(toy_differential, TOY_DIFFERENTIAL),
            TESSERA_TOY_MODEL_BF16(toy_parallel, TOY_PARALLEL)};
  }
  /// Rotary attention of three blocks, two of them with one head of keys and values for two of queries: further off
  /// than those, the images' gradients by 1.2e-2, as is an interpreter that rounds (1.3e-2).
  static std::vector<Model> groups_in_bf16() { return {TESSERA_TOY_MODEL_BF16(toy_groups, TOY_GROUPS)}; }
  /// VQGAN's parts in bf16, one step of training each: gradients of differences of nearly equal features (LPIPS) or
  /// behind batch norms (PatchGAN) are further off than those of `in_bf16`, and after more steps of rounded gradients a
  /// code may be another one.
  static std::vector<Model> vqgan_in_bf16() {
    std::vector<Model> all{TESSERA_TOY_MODEL_BF16(toy_vqgan, TOY_VQGAN),
                           TESSERA_TOY_MODEL_BF16(toy_discriminator, TOY_DISCRIMINATOR),
                           TESSERA_TOY_MODEL_BF16(toy_lpips, TOY_LPIPS)};
    for (Model& m : all) m.steps = 1;
    return all;
  }
  /// Depths, one step of training: of many ReLUs rounding turns some on that were off, which a gradient has all of or
  /// nothing; the images' are 4e-2 off, as an interpreter's that rounds.
  static std::vector<Model> depths_in_bf16() {
    std::vector<Model> all{TESSERA_TOY_MODEL_BF16(toy_depth, TOY_DEPTH)};
    all[0].steps = 1;
    return all;
  }
  /// With GEMMs that are all wide enough for the CPU to round at the same places.
  static std::vector<Model> rounded_on_both() {
    return {TESSERA_TOY_MODEL(toy_wide_bf16, TOY_WIDE_BF16),
            TESSERA_TOY_MODEL(toy_wide_again_bf16, TOY_WIDE_AGAIN_BF16),
            TESSERA_TOY_MODEL(self_attention_again_bf16, SELF_ATTENTION_AGAIN_BF16),
            TESSERA_TOY_MODEL(wide_self_attention_bf16, WIDE_SELF_ATTENTION_BF16)};
  }
};

}  // namespace tessera::test
