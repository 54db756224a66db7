#include "tests/cuda/cuda_models.hpp"

#include "dsl/trace.hpp"
#include "tests/cuda/example_models.hpp"
#include "tests/cuda/toy_models.hpp"
#include "tests/models/forward_only_models.hpp"
#include "tests/models/taming_models.hpp"

namespace tessera::test {
namespace {

using codegen::PassOptions;

/// Attention's backward pass reads probabilities that forward has stored.
PassOptions stored() { return {.values = {{"attention_recompute", "off"}}}; }
/// It computes them again, also for heads of 128.
PassOptions again() { return {.values = {{"attention_recompute", "on"}}}; }

/// The backward passes of norms make sums over their rows, which are few here, in so many blocks.
PassOptions in_norms(PassOptions options = {}) {
  options.values["column_reductions"] = "18";
  return options;
}

/// `pass` is left out. norm_gradients: the gradients that norms read are not rounded, as the CPU rounds none of them.
/// norm_recompute: what backward reads of a norm's result is stored, not computed again.
PassOptions without(const char* pass, PassOptions options) {
  options.disabled.insert(pass);
  return options;
}

}  // namespace

CudaModel vit_tiny_again() { return {trace<models::VitTiny>("vit_tiny_again_bf16"), {}, again()}; }

std::vector<CudaModel> heads_of_128() {
  return {{trace<models::HeadsOf128<48>>("heads_of_128_bf16")},
          {trace<models::HeadsOf128<208>>("heads_of_128_and_more_keys_bf16")},
          {trace<models::HeadsOf128<208>>("heads_of_128_again_bf16"), {}, again()}};
}

std::vector<CudaModel> toy_cuda_models() {
  return {
      {trace<models::vit_mnist::VitMnist>("toy_mnist")},
      {trace<models::vit_mnist::VitMnist>("toy_mnist_bf16")},
      {trace<models::ToyVit>("toy_vit")},
      {trace_example<ToySelfAttention>("toy_self_attention")},
      {trace_example<ToySelfAttention>("toy_self_attention_bf16")},
      {trace_example<models::SentenceAttention>("sentence_attention")},
      {trace_example<models::SentenceAttention>("sentence_attention_bf16")},
      {trace_example<models::ScalarGraph>("scalar_graph")},
      {trace<models::GoldenGpt>("toy_gpt")},
      {trace<models::ToyCifarVit>("toy_cifar"), {}, in_norms()},
      {trace<models::ToyCifarVit>("toy_cifar_bf16")},
      {trace<models::ToyNotebookVit>("toy_notebook"), {}, in_norms()},
      {trace<models::ToyNotebookVit>("toy_notebook_bf16")},
      // Tiles that sizes like these do not suggest.
      {trace<models::ToyVit>("toy_vit_bf16"),
       {{"", "64x64"},
        {"wgmma:", "128x64"},
        {"blocks_attn_qkv_forward", "64x128"},
        {"blocks_mlp_fc1_forward", "32x64"},
        {"blocks_mlp_fc2_forward", "128x64"},
        {"wgmma:blocks_mlp_fc1_forward", "128x128"},
        {"wgmma:blocks_mlp_fc2_forward", "128x192"}},
       in_norms()},
      {trace<models::ToyWideVit>("toy_wide_bf16"),
       {{"wgmma:", "64x128"}},
       without("norm_gradients", in_norms(stored()))},
      {trace<models::ToyWideVit>("toy_wide_again_bf16"),
       {{"wgmma:", "64x128"}},
       without("norm_recompute", without("norm_gradients", in_norms(again())))},
      {trace_example<WideSelfAttention>("wide_self_attention_bf16"), {{"wgmma:", "64x128"}}, stored()},
      {trace_example<WideSelfAttention>("self_attention_again_bf16"), {{"wgmma:", "64x128"}}, again()},
      {trace<models::ToyRope>("toy_rope")},
      {trace<models::ToyRope>("toy_rope_bf16")},
      {trace<models::ToyMixedRope>("toy_mixed_rope")},
      {trace<models::ToyMixedRope>("toy_mixed_rope_bf16")},
      {trace<models::ToyGroups>("toy_groups")},
      {trace<models::ToyGroups>("toy_groups_bf16")},
      {trace<models::ToyRelative>("toy_relative")},
      {trace<models::ToyRelative>("toy_relative_bf16")},
      {trace<models::ToyRelativeMlp>("toy_relative_mlp")},
      {trace<models::ToyRelativeMlp>("toy_relative_mlp_bf16")},
      {trace<models::ToyCait>("toy_cait")},
      {trace<models::ToyCait>("toy_cait_bf16")},
      {trace_example<models::ToyDepth>("toy_depth")},
      {trace_example<models::ToyDepth>("toy_depth_bf16")},
      {trace<models::ToySam>("toy_sam")},
      {trace<models::ToySam>("toy_sam_bf16")},
      {trace<models::ToySwin>("toy_swin")},
      {trace<models::ToySwin>("toy_swin_bf16")},
      {trace<models::ToySwinV2>("toy_swin_v2")},
      {trace<models::ToySwinV2>("toy_swin_v2_bf16")},
      {trace<models::ToyDifferential>("toy_differential")},
      {trace<models::ToyDifferential>("toy_differential_bf16")},
      {trace<models::ToyParallel>("toy_parallel")},
      {trace<models::ToyParallel>("toy_parallel_bf16")},
      {trace_example<models::ToyVqgan>("toy_vqgan")},
      {trace_example<models::ToyVqgan>("toy_vqgan_bf16")},
      {trace_example<models::ToyDiscriminator>("toy_discriminator")},
      {trace_example<models::ToyDiscriminator>("toy_discriminator_bf16")},
      {trace_example<models::ToyLpips>("toy_lpips")},
      {trace_example<models::ToyLpips>("toy_lpips_bf16")},
      {trace<models::GoldenGpt>("toy_gpt_bf16")},
      // Declarations without a loss.
      {trace<VitMnistInference>("toy_mnist_inference")},
      {trace<ForwardOnly<models::ToyWideVit>>("toy_wide_inference_bf16"), {{"wgmma:", "64x128"}}},
      {trace<models::vit_mnist::VitMnist>("toy_race")},
  };
}

}  // namespace tessera::test
