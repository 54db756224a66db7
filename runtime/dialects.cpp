#include "runtime/dialects.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "runtime/error.hpp"

namespace tessera::runtime {
namespace {

using enum Layout;

std::vector<Rule> joined(std::vector<Rule> first, const std::vector<Rule>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Swin's blocks as timm has them, and as Microsoft's program has: tables of its windows are buffers.
const std::vector<Rule> swin_blocks{
    {"layers.#.blocks.#.norm1.*", "layers.#.blocks.#.norm1.*"},
    {"layers.#.blocks.#.attn.relative_position_bias_table", "layers.#.blocks.#.attn.relative_position_bias_table"},
    {"layers.#.blocks.#.attn.relative_position_index", ""},
    {"layers.#.blocks.#.attn.relative_coords_table", ""},
    {"layers.#.blocks.#.attn.logit_scale", "layers.#.blocks.#.attn.logit_scale"},
    {"layers.#.blocks.#.attn.cpb_mlp.*", "layers.#.blocks.#.attn.cpb_mlp.*"},
    {"layers.#.blocks.#.attn.q_bias", "layers.#.blocks.#.attn.q_bias"},
    {"layers.#.blocks.#.attn.v_bias", "layers.#.blocks.#.attn.v_bias"},
    {"layers.#.blocks.#.attn.qkv.*", "layers.#.blocks.#.attn.qkv.*"},
    {"layers.#.blocks.#.attn.proj.*", "layers.#.blocks.#.attn.proj.*"},
    {"layers.#.blocks.#.attn_mask", ""},
    {"layers.#.blocks.#.norm2.*", "layers.#.blocks.#.norm2.*"},
    {"layers.#.blocks.#.mlp.fc1.*", "layers.#.blocks.#.mlp.fc1.*"},
    {"layers.#.blocks.#.mlp.fc2.*", "layers.#.blocks.#.mlp.fc2.*"},
};

const std::vector<Rule> timms_rules = joined(
    {
        {"patch_embed.*", "patch_embed.*"},
        {"cls_token", "cls_token"},
        {"dist_token", "dist_token"},
        {"reg_token", "reg_token"},
        {"pos_embed", "pos_embed"},
        {"norm_pre.*", "norm_pre.*"},
        {"blocks.#.norm1.*", "blocks.#.norm1.*"},
        {"blocks.#.norm2.*", "blocks.#.norm2.*"},
        {"blocks.#.attn.*", "blocks.#.attn.*"},
        {"blocks.#.attns.*", "blocks.#.attns.*"},
        {"blocks.#.mlp.fc1.*", "blocks.#.mlp.fc1.*"},
        {"blocks.#.mlp.fc1_g.*", "blocks.#.mlp.fc1_g.*"},
        {"blocks.#.mlp.fc1_x.*", "blocks.#.mlp.fc1_x.*"},
        {"blocks.#.mlp.norm.*", "blocks.#.mlp.norm.*"},
        {"blocks.#.mlp.fc2.*", "blocks.#.mlp.fc2.*"},
        {"blocks.#.ffns.*", "blocks.#.ffns.*"},
        {"blocks.#.ls.gamma", "blocks.#.ls.gamma"},
        {"blocks.#.ls1.gamma", "blocks.#.ls1.gamma"},
        {"blocks.#.ls2.gamma", "blocks.#.ls2.gamma"},
        {"blocks.#.gamma_1", "blocks.#.gamma_1"},
        {"blocks.#.gamma_2", "blocks.#.gamma_2"},
        {"blocks.#.in_norm.*", "blocks.#.in_norm.*"},
        {"blocks.#.in_proj.*", "blocks.#.in_proj.*"},
        {"blocks.#.out_proj.*", "blocks.#.out_proj.*"},
        {"blocks.#.attn_out_proj.*", "blocks.#.attn_out_proj.*"},
        {"blocks.#.mlp_out_proj.*", "blocks.#.mlp_out_proj.*"},
        {"blocks.#.mlp_bias", "blocks.#.mlp_bias"},
        {"blocks.#.q_norm.*", "blocks.#.q_norm.*"},
        {"blocks.#.k_norm.*", "blocks.#.k_norm.*"},
        {"blocks.#.sub_norm.*", "blocks.#.sub_norm.*"},
        {"blocks.#.lambda_*", "blocks.#.lambda_*"},
        {"blocks_token_only.#.*", "blocks_token_only.#.*"},
        {"layers.1.downsample.*", "layers.1.downsample.*"},
        {"layers.2.downsample.*", "layers.2.downsample.*"},
        {"layers.3.downsample.*", "layers.3.downsample.*"},
        {"rope.*", "rope.*"},
        {"shared_rel_pos.*", "shared_rel_pos.*"},
        {"neck.*", "neck.*"},
        {"norm.*", "norm.*"},
        {"fc_norm.*", "fc_norm.*"},
        {"attn_pool.*", "attn_pool.*"},
        {"pre_logits.*", "pre_logits.*"},
        {"head.*", "head.*"},
        {"head_dist.*", "head_dist.*"},
    },
    swin_blocks);

/// The layers of Hugging Face's CLIP and SigLIP, and what only their texts need.
const std::vector<Rule> clip_layers{
    {"embeddings.position_ids", ""},
    {"embeddings.patch_embedding.*", "patch_embed.proj.*"},
    {"embeddings.position_embedding.weight", "pos_embed", batched},
    {"encoder.layers.#.layer_norm1.*", "blocks.#.norm1.*"},
    {"encoder.layers.#.self_attn.q_proj.*", "blocks.#.attn.qkv.*", part, 0, 3},
    {"encoder.layers.#.self_attn.k_proj.*", "blocks.#.attn.qkv.*", part, 1, 3},
    {"encoder.layers.#.self_attn.v_proj.*", "blocks.#.attn.qkv.*", part, 2, 3},
    {"encoder.layers.#.self_attn.out_proj.*", "blocks.#.attn.proj.*"},
    {"encoder.layers.#.layer_norm2.*", "blocks.#.norm2.*"},
    {"encoder.layers.#.mlp.fc1.*", "blocks.#.mlp.fc1.*"},
    {"encoder.layers.#.mlp.fc2.*", "blocks.#.mlp.fc2.*"},
    {"post_layernorm.*", "norm.*"},
};
const std::vector<Rule> clip_texts{
    {"text_model.*", ""}, {"text_projection.weight", ""}, {"logit_scale", ""}, {"logit_bias", ""}};
const std::vector<Rule> open_clip_texts{{"transformer.*", ""},
                                        {"token_embedding.weight", ""},
                                        {"positional_embedding", ""},
                                        {"ln_final.*", ""},
                                        {"text_projection", ""},
                                        {"text_projection.*", ""},
                                        {"logit_scale", ""},
                                        {"logit_bias", ""},
                                        {"attn_mask", ""},
                                        {"text.*", ""},
                                        {"input_resolution", ""},
                                        {"context_length", ""},
                                        {"vocab_size", ""}};

/// What makes masks of SAM's embedding.
const std::vector<Rule> sam_prompts{{"prompt_encoder.*", ""}, {"mask_decoder.*", ""}, {"shared_image_embedding.*", ""}};

/// Names of the MLP's layers as a state dict has them, or as the published files do.
Dialect torchvisions(std::string_view library, const std::vector<Rule>& mlp) {
  return {library,
          {""},
          joined(
              {
                  {"conv_proj.*", "patch_embed.proj.*"},
                  {"class_token", "cls_token", batched},
                  {"encoder.pos_embedding", "pos_embed", batched},
                  {"encoder.layers.encoder_layer_#.ln_1.*", "blocks.#.norm1.*"},
                  {"encoder.layers.encoder_layer_#.self_attention.in_proj_*", "blocks.#.attn.qkv.*"},
                  {"encoder.layers.encoder_layer_#.self_attention.out_proj.*", "blocks.#.attn.proj.*"},
                  {"encoder.layers.encoder_layer_#.ln_2.*", "blocks.#.norm2.*"},
                  {"encoder.ln.*", "norm.*"},
                  {"heads.head.*", "head.*"},
              },
              mlp),
          {}};
}

/// Hugging Face's ViT and DeiT, and those pretrained as MAE, MSN and I-JEPA, by the names of their layers, which
/// transformers 5 changed.
Dialect face_vit(std::string_view library, const std::vector<Rule>& layers) {
  return {library,
          {"vit.", "deit.", "ijepa.", ""},
          joined(
              {
                  {"embeddings.patch_embeddings.projection.*", "patch_embed.proj.*"},
                  {"embeddings.cls_token", "cls_token"},
                  {"embeddings.distillation_token", "dist_token"},
                  {"embeddings.mask_token", ""},
                  {"embeddings.position_embeddings", "pos_embed"},
                  {"layernorm.*", "norm.*"},
                  {"pooler.dense.*", "pre_logits.fc.*"},
              },
              layers),
          {{"classifier.*", "head.*"},
           {"cls_classifier.*", "head.*"},
           {"distillation_classifier.*", "head_dist.*"},
           {"decoder.*", ""}}};  // of pictures of which patches are masked
}

/// Hugging Face's BEiT and Data2Vec. Keys have no bias.
Dialect face_beit(std::string_view library, const std::vector<Rule>& layers) {
  return {library,
          {"beit.", "data2vec_vision.", ""},
          joined(
              {
                  {"embeddings.patch_embeddings.projection.*", "patch_embed.proj.*"},
                  {"embeddings.cls_token", "cls_token"},
                  {"embeddings.mask_token", ""},
                  {"embeddings.position_embeddings", "pos_embed"},
                  {"layernorm.*", "norm.*"},
                  {"pooler.layernorm.*", "fc_norm.*"},
              },
              layers),
          {{"classifier.*", "head.*"}, {"layernorm.*", "norm.*"}, {"lm_head.*", ""}}};
}

/// Hugging Face's DINOv3 by the names of its blocks, which transformers 5 changed. Keys have no bias.
Dialect face_dino3(std::string_view library, const std::vector<Rule>& layers) {
  return {library,
          {""},
          joined(
              {
                  {"embeddings.patch_embeddings.*", "patch_embed.proj.*"},
                  {"embeddings.cls_token", "cls_token"},
                  {"embeddings.register_tokens", "reg_token"},
                  {"embeddings.mask_token", ""},
                  {"norm.*", "norm.*"},
              },
              layers),
          {}};
}

/// The same in other names: `before` stands before the library's.
std::vector<Rule> behind(std::string_view before, std::vector<Rule> rules) {
  static std::deque<std::string> names;
  for (Rule& rule : rules) rule.theirs = names.emplace_back(std::string(before) + std::string(rule.theirs));
  return rules;
}

const std::vector<Rule> dino3_block{
    {"layer.#.norm1.*", "blocks.#.norm1.*"},
    {"layer.#.attention.q_proj.weight", "blocks.#.attn.qkv.weight", part, 0, 3},
    {"layer.#.attention.k_proj.weight", "blocks.#.attn.qkv.weight", part, 1, 3},
    {"layer.#.attention.v_proj.weight", "blocks.#.attn.qkv.weight", part, 2, 3},
    {"layer.#.attention.q_proj.bias", "blocks.#.attn.q_bias"},
    {"layer.#.attention.v_proj.bias", "blocks.#.attn.v_bias"},
    {"layer.#.attention.o_proj.*", "blocks.#.attn.proj.*"},
    {"layer.#.layer_scale1.lambda1", "blocks.#.gamma_1"},
    {"layer.#.norm2.*", "blocks.#.norm2.*"},
    {"layer.#.mlp.down_proj.*", "blocks.#.mlp.fc2.*"},
    {"layer.#.layer_scale2.lambda1", "blocks.#.gamma_2"},
};
const std::vector<Rule> dino3_mlp{{"layer.#.mlp.up_proj.*", "blocks.#.mlp.fc1.*"}};
const std::vector<Rule> dino3_gated_mlp{{"layer.#.mlp.gate_proj.*", "blocks.#.mlp.fc1_g.*"},
                                        {"layer.#.mlp.up_proj.*", "blocks.#.mlp.fc1_x.*"}};

Dialect face_dino(std::string_view library, const std::vector<Rule>& layers) {
  return {library,
          {"dinov2.", "dinov2_with_registers.", ""},
          joined(
              {
                  {"embeddings.patch_embeddings.projection.*", "patch_embed.proj.*"},
                  {"embeddings.cls_token", "cls_token"},
                  {"embeddings.register_tokens", "reg_token"},
                  {"embeddings.mask_token", ""},
                  {"embeddings.position_embeddings", "pos_embed"},
                  {"encoder.layer.#.norm1.*", "blocks.#.norm1.*"},
                  {"encoder.layer.#.layer_scale1.lambda1", "blocks.#.ls1.gamma"},
                  {"encoder.layer.#.norm2.*", "blocks.#.norm2.*"},
                  {"encoder.layer.#.mlp.fc1.*", "blocks.#.mlp.fc1.*"},
                  {"encoder.layer.#.mlp.fc2.*", "blocks.#.mlp.fc2.*"},
                  {"encoder.layer.#.layer_scale2.lambda1", "blocks.#.ls2.gamma"},
                  {"layernorm.*", "norm.*"},
              },
              layers),
          {{"classifier.*", "head.*"}},
          false,
          true};
}

/// Hugging Face's Swin by the names of its layers, which transformers 5 changed, and its second version.
Dialect face_swin(std::string_view library, std::string_view prefix, const std::vector<Rule>& layers) {
  return {library,
          {prefix, ""},
          joined(
              {
                  {"embeddings.patch_embeddings.projection.*", "patch_embed.proj.*"},
                  {"embeddings.norm.*", "patch_embed.norm.*"},
                  {"embeddings.mask_token", ""},
                  {"encoder.layers.#.blocks.#.layernorm_before.*", "layers.#.blocks.#.norm1.*"},
                  {"encoder.layers.#.blocks.#.layernorm_after.*", "layers.#.blocks.#.norm2.*"},
                  {"encoder.layers.0.downsample.*", "layers.1.downsample.*"},
                  {"encoder.layers.1.downsample.*", "layers.2.downsample.*"},
                  {"encoder.layers.2.downsample.*", "layers.3.downsample.*"},
                  {"layernorm.*", "norm.*"},
              },
              layers),
          {{"classifier.*", "head.fc.*"}, {"decoder.*", ""}}};  // of pictures of which patches are masked
}

const std::vector<Dialect> table{
    {"timm", {""}, timms_rules, {}},
    torchvisions("torchvision",
                 {
                     {"encoder.layers.encoder_layer_#.mlp.0.*", "blocks.#.mlp.fc1.*"},
                     {"encoder.layers.encoder_layer_#.mlp.3.*", "blocks.#.mlp.fc2.*"},
                 }),
    torchvisions("torchvision's published files",
                 {
                     {"encoder.layers.encoder_layer_#.mlp.linear_1.*", "blocks.#.mlp.fc1.*"},
                     {"encoder.layers.encoder_layer_#.mlp.linear_2.*", "blocks.#.mlp.fc2.*"},
                 }),
    face_vit("Hugging Face's ViT",
             {
                 {"encoder.layer.#.layernorm_before.*", "blocks.#.norm1.*"},
                 {"encoder.layer.#.attention.attention.query.*", "blocks.#.attn.qkv.*", part, 0, 3},
                 {"encoder.layer.#.attention.attention.key.*", "blocks.#.attn.qkv.*", part, 1, 3},
                 {"encoder.layer.#.attention.attention.value.*", "blocks.#.attn.qkv.*", part, 2, 3},
                 {"encoder.layer.#.attention.output.dense.*", "blocks.#.attn.proj.*"},
                 {"encoder.layer.#.layernorm_after.*", "blocks.#.norm2.*"},
                 {"encoder.layer.#.intermediate.dense.*", "blocks.#.mlp.fc1.*"},
                 {"encoder.layer.#.output.dense.*", "blocks.#.mlp.fc2.*"},
             }),
    face_vit("Hugging Face's ViT of transformers 5",
             {
                 {"layers.#.layernorm_before.*", "blocks.#.norm1.*"},
                 {"layers.#.attention.q_proj.*", "blocks.#.attn.qkv.*", part, 0, 3},
                 {"layers.#.attention.k_proj.*", "blocks.#.attn.qkv.*", part, 1, 3},
                 {"layers.#.attention.v_proj.*", "blocks.#.attn.qkv.*", part, 2, 3},
                 {"layers.#.attention.o_proj.*", "blocks.#.attn.proj.*"},
                 {"layers.#.layernorm_after.*", "blocks.#.norm2.*"},
                 {"layers.#.mlp.fc1.*", "blocks.#.mlp.fc1.*"},
                 {"layers.#.mlp.fc2.*", "blocks.#.mlp.fc2.*"},
             }),
    face_dino("Hugging Face's DINOv2",
              {
                  {"encoder.layer.#.attention.attention.query.*", "blocks.#.attn.qkv.*", part, 0, 3},
                  {"encoder.layer.#.attention.attention.key.*", "blocks.#.attn.qkv.*", part, 1, 3},
                  {"encoder.layer.#.attention.attention.value.*", "blocks.#.attn.qkv.*", part, 2, 3},
                  {"encoder.layer.#.attention.output.dense.*", "blocks.#.attn.proj.*"},
                  {"encoder.layer.#.mlp.weights_in.*", "blocks.#.mlp.fc1.*"},
                  {"encoder.layer.#.mlp.weights_out.*", "blocks.#.mlp.fc2.*"},
              }),
    face_dino("Hugging Face's DINOv2 of transformers 5",
              {
                  {"encoder.layer.#.attention.q_proj.*", "blocks.#.attn.qkv.*", part, 0, 3},
                  {"encoder.layer.#.attention.k_proj.*", "blocks.#.attn.qkv.*", part, 1, 3},
                  {"encoder.layer.#.attention.v_proj.*", "blocks.#.attn.qkv.*", part, 2, 3},
                  {"encoder.layer.#.attention.o_proj.*", "blocks.#.attn.proj.*"},
                  {"encoder.layer.#.mlp.gate_proj.*", "blocks.#.mlp.fc1.*", part, 0, 2},
                  {"encoder.layer.#.mlp.up_proj.*", "blocks.#.mlp.fc1.*", part, 1, 2},
                  {"encoder.layer.#.mlp.down_proj.*", "blocks.#.mlp.fc2.*"},
              }),
    face_beit("Hugging Face's BEiT",
              {
                  {"encoder.layer.#.layernorm_before.*", "blocks.#.norm1.*"},
                  {"encoder.layer.#.attention.attention.query.weight", "blocks.#.attn.qkv.weight", part, 0, 3},
                  {"encoder.layer.#.attention.attention.key.weight", "blocks.#.attn.qkv.weight", part, 1, 3},
                  {"encoder.layer.#.attention.attention.value.weight", "blocks.#.attn.qkv.weight", part, 2, 3},
                  {"encoder.layer.#.attention.attention.query.bias", "blocks.#.attn.q_bias"},
                  {"encoder.layer.#.attention.attention.value.bias", "blocks.#.attn.v_bias"},
                  {"encoder.layer.#.attention.attention.relative_position_bias.relative_position_bias_table",
                   "blocks.#.attn.relative_position_bias_table"},
                  {"encoder.layer.#.attention.attention.relative_position_bias.relative_position_index", ""},
                  {"encoder.layer.#.attention.output.dense.*", "blocks.#.attn.proj.*"},
                  {"encoder.layer.#.lambda_1", "blocks.#.gamma_1"},
                  {"encoder.layer.#.layernorm_after.*", "blocks.#.norm2.*"},
                  {"encoder.layer.#.intermediate.dense.*", "blocks.#.mlp.fc1.*"},
                  {"encoder.layer.#.output.dense.*", "blocks.#.mlp.fc2.*"},
                  {"encoder.layer.#.lambda_2", "blocks.#.gamma_2"},
              }),
    face_beit("Hugging Face's BEiT of transformers 5",
              {
                  {"layers.#.layernorm_before.*", "blocks.#.norm1.*"},
                  {"layers.#.attention.q_proj.weight", "blocks.#.attn.qkv.weight", part, 0, 3},
                  {"layers.#.attention.k_proj.weight", "blocks.#.attn.qkv.weight", part, 1, 3},
                  {"layers.#.attention.v_proj.weight", "blocks.#.attn.qkv.weight", part, 2, 3},
                  {"layers.#.attention.q_proj.bias", "blocks.#.attn.q_bias"},
                  {"layers.#.attention.v_proj.bias", "blocks.#.attn.v_bias"},
                  {"layers.#.relative_position_bias.relative_position_bias_table",
                   "blocks.#.attn.relative_position_bias_table"},
                  {"layers.#.attention.o_proj.*", "blocks.#.attn.proj.*"},
                  {"layers.#.lambda_1", "blocks.#.gamma_1"},
                  {"layers.#.layernorm_after.*", "blocks.#.norm2.*"},
                  {"layers.#.mlp.fc1.*", "blocks.#.mlp.fc1.*"},
                  {"layers.#.mlp.fc2.*", "blocks.#.mlp.fc2.*"},
                  {"layers.#.lambda_2", "blocks.#.gamma_2"},
              }),
    face_dino3("Hugging Face's DINOv3", joined(dino3_block, dino3_mlp)),
    face_dino3("Hugging Face's DINOv3 with a gate", joined(dino3_block, dino3_gated_mlp)),
    face_dino3("Hugging Face's DINOv3 of transformers 5", behind("model.", joined(dino3_block, dino3_mlp))),
    face_dino3("Hugging Face's DINOv3 with a gate of transformers 5",
               behind("model.", joined(dino3_block, dino3_gated_mlp))),
    {"Hugging Face's CLIP",
     {"vision_model.", ""},
     joined({{"embeddings.class_embedding", "cls_token", batched}, {"pre_layrnorm.*", "norm_pre.*"}}, clip_layers),
     joined({{"visual_projection.weight", "head.weight"}}, clip_texts),
     true},
    {"Hugging Face's SigLIP",
     {"vision_model.", ""},
     joined(
         {
             {"head.probe", "attn_pool.latent"},
             {"head.attention.in_proj_*", "attn_pool.q.*", first_third},
             {"head.attention.in_proj_*", "attn_pool.kv.*", last_two_thirds},
             {"head.attention.out_proj.*", "attn_pool.proj.*"},
             {"head.layernorm.*", "attn_pool.norm.*"},
             {"head.mlp.fc1.*", "attn_pool.mlp.fc1.*"},
             {"head.mlp.fc2.*", "attn_pool.mlp.fc2.*"},
         },
         clip_layers),
     clip_texts},
    {"Hugging Face's SigLIP with classes",
     {"vision_model."},
     joined({{"head.*", ""}}, clip_layers),
     {{"classifier.*", "head.*"}}},
    {"DINOv2",
     {""},
     {
         {"patch_embed.proj.*", "patch_embed.proj.*"},
         {"cls_token", "cls_token"},
         {"register_tokens", "reg_token"},
         {"mask_token", ""},
         {"pos_embed", "pos_embed"},
         {"blocks.#.norm1.*", "blocks.#.norm1.*"},
         {"blocks.#.attn.qkv.*", "blocks.#.attn.qkv.*"},
         {"blocks.#.attn.proj.*", "blocks.#.attn.proj.*"},
         {"blocks.#.ls1.gamma", "blocks.#.ls1.gamma"},
         {"blocks.#.norm2.*", "blocks.#.norm2.*"},
         {"blocks.#.mlp.fc1.*", "blocks.#.mlp.fc1.*"},
         {"blocks.#.mlp.fc2.*", "blocks.#.mlp.fc2.*"},
         {"blocks.#.mlp.w12.*", "blocks.#.mlp.fc1.*"},
         {"blocks.#.mlp.w3.*", "blocks.#.mlp.fc2.*"},
         {"blocks.#.ls2.gamma", "blocks.#.ls2.gamma"},
         {"norm.*", "norm.*"},
     },
     {},
     false,
     true},
    {"Hugging Face's BLIP",
     {"vision_model.", ""},
     {
         {"embeddings.class_embedding", "cls_token", batched},
         {"embeddings.patch_embedding.*", "patch_embed.proj.*"},
         {"embeddings.position_embedding", "pos_embed", batched},
         {"encoder.layers.#.layer_norm1.*", "blocks.#.norm1.*"},
         {"encoder.layers.#.self_attn.qkv.*", "blocks.#.attn.qkv.*"},
         {"encoder.layers.#.self_attn.projection.*", "blocks.#.attn.proj.*"},
         {"encoder.layers.#.layer_norm2.*", "blocks.#.norm2.*"},
         {"encoder.layers.#.mlp.fc1.*", "blocks.#.mlp.fc1.*"},
         {"encoder.layers.#.mlp.fc2.*", "blocks.#.mlp.fc2.*"},
         {"post_layernorm.*", "norm.*"},
     },
     {{"text_model.*", ""},
      {"text_encoder.*", ""},
      {"text_decoder.*", ""},
      {"text_projection.*", ""},
      {"visual_projection.*", ""},
      {"text_proj.*", ""},
      {"vision_proj.*", ""},
      {"itm_head.*", ""},
      {"logit_scale", ""}}},
    {"OpenCLIP",
     {"visual.", ""},
     {
         {"conv1.weight", "patch_embed.proj.weight"},
         {"class_embedding", "cls_token", batched},
         {"positional_embedding", "pos_embed", batched},
         {"ln_pre.*", "norm_pre.*"},
         {"transformer.resblocks.#.ln_1.*", "blocks.#.norm1.*"},
         {"transformer.resblocks.#.attn.in_proj_*", "blocks.#.attn.qkv.*"},
         {"transformer.resblocks.#.attn.out_proj.*", "blocks.#.attn.proj.*"},
         {"transformer.resblocks.#.ls_1.gamma", "blocks.#.ls1.gamma"},
         {"transformer.resblocks.#.ln_2.*", "blocks.#.norm2.*"},
         {"transformer.resblocks.#.mlp.c_fc.*", "blocks.#.mlp.fc1.*"},
         {"transformer.resblocks.#.mlp.c_proj.*", "blocks.#.mlp.fc2.*"},
         {"transformer.resblocks.#.ls_2.gamma", "blocks.#.ls2.gamma"},
         {"ln_post.*", "norm.*"},
         {"proj", "head.weight", transposed},
     },
     open_clip_texts,
     true},
    {"Microsoft's Swin",
     {""},
     joined(
         {
             {"patch_embed.proj.*", "patch_embed.proj.*"},
             {"patch_embed.norm.*", "patch_embed.norm.*"},
             {"layers.0.downsample.*", "layers.1.downsample.*"},
             {"layers.1.downsample.*", "layers.2.downsample.*"},
             {"layers.2.downsample.*", "layers.3.downsample.*"},
             {"norm.*", "norm.*"},
             {"head.weight", "head.fc.weight"},
             {"head.bias", "head.fc.bias"},
         },
         swin_blocks),
     {}},
    face_swin("Hugging Face's Swin", "swin.",
              {
                  {"encoder.layers.#.blocks.#.attention.self.relative_position_bias_table",
                   "layers.#.blocks.#.attn.relative_position_bias_table"},
                  {"encoder.layers.#.blocks.#.attention.self.relative_position_index", ""},
                  {"encoder.layers.#.blocks.#.attention.self.query.*", "layers.#.blocks.#.attn.qkv.*", part, 0, 3},
                  {"encoder.layers.#.blocks.#.attention.self.key.*", "layers.#.blocks.#.attn.qkv.*", part, 1, 3},
                  {"encoder.layers.#.blocks.#.attention.self.value.*", "layers.#.blocks.#.attn.qkv.*", part, 2, 3},
                  {"encoder.layers.#.blocks.#.attention.output.dense.*", "layers.#.blocks.#.attn.proj.*"},
                  {"encoder.layers.#.blocks.#.intermediate.dense.*", "layers.#.blocks.#.mlp.fc1.*"},
                  {"encoder.layers.#.blocks.#.output.dense.*", "layers.#.blocks.#.mlp.fc2.*"},
              }),
    face_swin(
        "Hugging Face's Swin V2", "swinv2.",
        {
            {"encoder.layers.#.blocks.#.attention.self.logit_scale", "layers.#.blocks.#.attn.logit_scale"},
            {"encoder.layers.#.blocks.#.attention.self.continuous_position_bias_mlp.*",
             "layers.#.blocks.#.attn.cpb_mlp.*"},
            {"encoder.layers.#.blocks.#.attention.self.relative_coords_table", ""},
            {"encoder.layers.#.blocks.#.attention.self.relative_position_index", ""},
            {"encoder.layers.#.blocks.#.attention.self.query.weight", "layers.#.blocks.#.attn.qkv.weight", part, 0, 3},
            {"encoder.layers.#.blocks.#.attention.self.key.weight", "layers.#.blocks.#.attn.qkv.weight", part, 1, 3},
            {"encoder.layers.#.blocks.#.attention.self.value.weight", "layers.#.blocks.#.attn.qkv.weight", part, 2, 3},
            {"encoder.layers.#.blocks.#.attention.self.query.bias", "layers.#.blocks.#.attn.q_bias"},
            {"encoder.layers.#.blocks.#.attention.self.value.bias", "layers.#.blocks.#.attn.v_bias"},
            {"encoder.layers.#.blocks.#.attention.output.dense.*", "layers.#.blocks.#.attn.proj.*"},
            {"encoder.layers.#.blocks.#.intermediate.dense.*", "layers.#.blocks.#.mlp.fc1.*"},
            {"encoder.layers.#.blocks.#.output.dense.*", "layers.#.blocks.#.mlp.fc2.*"},
        }),
    face_swin("Hugging Face's Swin of transformers 5", "swin.",
              {
                  {"encoder.layers.#.blocks.#.attention.relative_position_bias.relative_position_bias_table",
                   "layers.#.blocks.#.attn.relative_position_bias_table"},
                  {"encoder.layers.#.blocks.#.attention.q_proj.*", "layers.#.blocks.#.attn.qkv.*", part, 0, 3},
                  {"encoder.layers.#.blocks.#.attention.k_proj.*", "layers.#.blocks.#.attn.qkv.*", part, 1, 3},
                  {"encoder.layers.#.blocks.#.attention.v_proj.*", "layers.#.blocks.#.attn.qkv.*", part, 2, 3},
                  {"encoder.layers.#.blocks.#.attention.o_proj.*", "layers.#.blocks.#.attn.proj.*"},
                  {"encoder.layers.#.blocks.#.mlp.fc1.*", "layers.#.blocks.#.mlp.fc1.*"},
                  {"encoder.layers.#.blocks.#.mlp.fc2.*", "layers.#.blocks.#.mlp.fc2.*"},
              }),
    {"Segment Anything",
     {"image_encoder.", ""},
     {
         {"patch_embed.proj.*", "patch_embed.proj.*"},
         {"pos_embed", "pos_embed"},
         {"blocks.#.norm1.*", "blocks.#.norm1.*"},
         {"blocks.#.attn.*", "blocks.#.attn.*"},
         {"blocks.#.norm2.*", "blocks.#.norm2.*"},
         {"blocks.#.mlp.lin1.*", "blocks.#.mlp.fc1.*"},
         {"blocks.#.mlp.lin2.*", "blocks.#.mlp.fc2.*"},
         {"neck.*", "neck.*"},
     },
     sam_prompts},
    {"Hugging Face's SAM",
     {"vision_encoder.", ""},
     {
         {"patch_embed.projection.*", "patch_embed.proj.*"},
         {"pos_embed", "pos_embed"},
         {"layers.#.layer_norm1.*", "blocks.#.norm1.*"},
         {"layers.#.attn.*", "blocks.#.attn.*"},
         {"layers.#.layer_norm2.*", "blocks.#.norm2.*"},
         {"layers.#.mlp.lin1.*", "blocks.#.mlp.fc1.*"},
         {"layers.#.mlp.lin2.*", "blocks.#.mlp.fc2.*"},
         {"neck.conv1.*", "neck.0.*"},
         {"neck.layer_norm1.*", "neck.1.*"},
         {"neck.conv2.*", "neck.2.*"},
         {"neck.layer_norm2.*", "neck.3.*"},
     },
     sam_prompts},
    {"OpenCLIP over timm",
     {"visual.trunk."},
     timms_rules,
     joined({{"visual.head.proj.weight", "head.weight"}}, open_clip_texts),
     true},
};

/// What stands for each # and for *.
struct Match {
  std::vector<std::string> numbers;
  std::string rest;
};

std::optional<Match> match(std::string_view pattern, std::string_view key) {
  Match found;
  for (; !pattern.empty(); pattern.remove_prefix(1)) {
    if (pattern[0] == '*') {
      found.rest = key;
      return key.empty() ? std::nullopt : std::optional(found);
    }
    if (pattern[0] == '#') {
      std::string number;
      while (!key.empty() && std::isdigit(static_cast<unsigned char>(key[0]))) number += key[0], key.remove_prefix(1);
      if (number.empty()) return std::nullopt;
      found.numbers.push_back(std::move(number));
      continue;
    }
    if (key.empty() || key[0] != pattern[0]) return std::nullopt;
    key.remove_prefix(1);
  }
  return key.empty() ? std::optional(found) : std::nullopt;
}

std::string filled(std::string_view pattern, const Match& with) {
  std::string name;
  auto number = with.numbers.begin();
  for (const char c : pattern) name += c == '#' ? *number++ : c == '*' ? with.rest : std::string(1, c);
  return name;
}

using Found = std::vector<std::pair<const Rule*, Match>>;

/// The rules that a key falls under: several where timm splits it, those behind the prefix before the others.
Found rules_of(const Keys& keys, std::string_view key) {
  Found found;
  const auto look = [&](const std::vector<Rule>& rules, std::string_view name) {
    for (const Rule& rule : rules)
      if (const auto with = match(rule.theirs, name)) found.emplace_back(&rule, *with);
  };
  if (key.starts_with(keys.prefix)) look(keys.dialect->rules, key.substr(keys.prefix.size()));
  if (found.empty()) look(keys.dialect->others, key);
  return found;
}

bool says(const Found& found) { return !found.empty() && !found[0].first->timms.empty(); }

/// Takes what training put before every key of a file away from them, and gives it.
std::string unwrap(Safetensors& file) {
  constexpr std::array<std::string_view, 3> wrappers{"module.", "_orig_mod.", "model."};
  std::string all;
  for (bool again = !file.tensors.empty(); again;) {
    const auto wrapper = std::ranges::find_if(wrappers, [&](std::string_view w) {
      return std::ranges::all_of(file.tensors, [&](const auto& tensor) { return tensor.first.starts_with(w); });
    });
    again = wrapper != wrappers.end();
    if (!again) break;
    std::map<std::string, Tensor> tensors;
    for (auto& [key, tensor] : file.tensors) tensors.emplace(key.substr(wrapper->size()), std::move(tensor));
    file.tensors = std::move(tensors);
    all += *wrapper;
  }
  return all;
}

/// The keys that a dialect says most of; the first of several.
Keys keys_of(const Safetensors& file) {
  Keys best{&table.front(), "", "", {}};
  std::ptrdiff_t most = 0;
  for (const Dialect& dialect : table)
    for (const std::string_view prefix : dialect.prefixes) {
      const Keys keys{&dialect, "", std::string(prefix), {}};
      const auto count = std::ranges::count_if(
          file.tensors, [&](const auto& tensor) { return !rules_of(keys, tensor.first).empty(); });
      if (count > most) most = count, best = keys;
    }
  return best;
}

/// Refuses a key that only another dialect says.
void refuse_mixed(const Safetensors& file, const Keys& keys) {
  const auto theirs =
      std::ranges::find_if(file.tensors, [&](const auto& tensor) { return says(rules_of(keys, tensor.first)); });
  if (theirs == file.tensors.end()) return;
  for (const auto& [key, tensor] : file.tensors) {
    if (!rules_of(keys, key).empty()) continue;
    for (const Dialect& dialect : table)
      for (const std::string_view prefix : dialect.prefixes)
        if (&dialect != keys.dialect && says(rules_of({&dialect, "", std::string(prefix), {}}, key)))
          fail(file.where, ": mixes keys of ", keys.dialect->library, " (", printable(theirs->first), ") and of ",
               dialect.library, " (", printable(key), ")");
  }
}

/// Rows of the first dim.
Tensor rows(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  const std::size_t bytes = tensor.bytes.size() / static_cast<std::size_t>(tensor.shape[0]);
  Tensor some{tensor.dtype, tensor.shape,
              tensor.bytes.part(bytes * static_cast<std::size_t>(first), bytes * static_cast<std::size_t>(count))};
  some.shape[0] = count;
  return some;
}

Tensor transpose(const Tensor& tensor) {
  const auto rows = static_cast<std::size_t>(tensor.shape[0]), columns = static_cast<std::size_t>(tensor.shape[1]);
  const std::size_t bytes = tensor.bytes.size() / (rows * columns);
  Bytes room;
  const std::span<const std::uint8_t> given = tensor.bytes.all(room);
  Bytes turned(given.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      std::copy_n(given.begin() + static_cast<std::ptrdiff_t>((i * columns + j) * bytes), bytes,
                  turned.begin() + static_cast<std::ptrdiff_t>((j * rows + i) * bytes));
  return {tensor.dtype, {tensor.shape[1], tensor.shape[0]}, std::move(turned)};
}

Tensor laid_out(Tensor tensor, Layout layout, const std::string& where, const std::string& key) {
  const auto wrong = [&](const char* instead) {
    fail(where, ": ", printable(key), " is ", printed(tensor.shape), " instead of ", instead);
  };
  if (layout == batched) {
    while (tensor.shape.size() < 3) tensor.shape.insert(tensor.shape.begin(), 1);
  } else if (layout == transposed) {
    if (tensor.shape.size() != 2) wrong("a matrix");
    return transpose(tensor);
  } else if (layout == first_third || layout == last_two_thirds) {
    if (tensor.shape.empty() || tensor.shape[0] < 3 || tensor.shape[0] % 3)
      wrong("the rows of queries, keys and values, as many of each");
    const std::int64_t third = tensor.shape[0] / 3;
    return layout == first_third ? rows(tensor, 0, third) : rows(tensor, third, 2 * third);
  }
  return tensor;
}

/// Tensors that timm concatenates, by their place.
struct Part {
  const Rule* rule;
  std::string key;
  Tensor tensor;
};
using Parts = std::map<int, Part>;

Tensor concatenated(const Parts& parts, const std::string& where) {
  const Part& first = parts.begin()->second;
  if (first.tensor.shape.empty()) fail(where, ": ", printable(first.key), " has no dims");
  Tensor whole{first.tensor.dtype, first.tensor.shape};
  whole.shape[0] = 0;
  Bytes bytes;
  for (const auto& [place, one] : parts) {
    if (one.tensor.shape != first.tensor.shape || one.tensor.dtype != first.tensor.dtype)
      fail(where, ": ", printable(one.key), " is ", one.tensor.dtype, " ", printed(one.tensor.shape), ", and ",
           printable(first.key), " beside it ", first.tensor.dtype, " ", printed(first.tensor.shape));
    bytes.resize(bytes.size() + one.tensor.bytes.size());
    one.tensor.bytes.read(0, std::span(bytes).last(one.tensor.bytes.size()));
    whole.shape[0] += one.tensor.shape[0];
  }
  whole.bytes = std::move(bytes);
  return whole;
}

/// The class token with its position, and the positions of the patches alone.
void fold_class_position(std::map<std::string, Tensor>& tensors) {
  const auto token = tensors.find("cls_token"), table = tensors.find("pos_embed");
  if (!tensors.contains("reg_token") || token == tensors.end() || table == tensors.end()) return;
  Tensor &cls = token->second, &positions = table->second;
  if (!cls.is_real() || !positions.is_real() || positions.shape.size() != 3 || positions.shape[0] != 1 ||
      positions.shape[1] < 2 || cls.shape != Shape{1, 1, positions.shape[2]})
    return;
  std::vector<float> sum = cls.floats();
  positions.shape.erase(positions.shape.begin());
  const std::vector<float> first = rows(positions, 0, 1).floats();
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += first[i];
  cls = Tensor::of(cls.shape, sum);
  positions = rows(positions, 1, positions.shape[0] - 1);
  positions.shape.insert(positions.shape.begin(), 1);
}

}  // namespace

std::span<const Dialect> dialects() { return table; }

bool Keys::are_timms() const { return dialect == &table.front(); }

std::string Keys::theirs(const std::string& key) const {
  std::string first;
  for (const auto& [rules, front] : {std::pair(&dialect->rules, prefix), std::pair(&dialect->others, std::string())})
    for (const Rule& rule : *rules) {
      const auto with = rule.timms.empty() ? std::nullopt : match(rule.timms, key);
      if (!with) continue;
      const std::string name = wrapper + front + filled(rule.theirs, *with);
      if (std::ranges::find(used, &rule) != used.end()) return name;
      if (first.empty()) first = name;
    }
  return first.empty() ? wrapper + key : first;
}

bool Keys::transposes(const std::string& key) const {
  return std::ranges::any_of(
      used, [&](const Rule* rule) { return rule->layout == transposed && match(rule->timms, key).has_value(); });
}

Translation in_timms_keys(Safetensors file) {
  const std::string wrapper = unwrap(file);
  Translation result{{}, keys_of(file), {}};
  result.keys.wrapper = wrapper;
  refuse_mixed(file, result.keys);
  if (result.keys.are_timms()) {
    for (auto tensor = file.tensors.begin(); tensor != file.tensors.end();) {
      const Found found = rules_of(result.keys, tensor->first);
      const bool leaves_out = !found.empty() && !says(found);
      if (leaves_out) result.left_out.push_back(wrapper + tensor->first);
      tensor = leaves_out ? file.tensors.erase(tensor) : std::next(tensor);
    }
    result.file = std::move(file);
    return result;
  }
  const Dialect& dialect = *result.keys.dialect;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> sources;
  std::map<std::string, Parts> parts;
  for (auto& [key, tensor] : file.tensors) {
    // Of nothing, a shape may claim any number of rows.
    if (elements(tensor.shape) < 1)
      fail(file.where, ": ", printable(wrapper + key), " ", printed(tensor.shape), " holds no numbers");
    const Found found = rules_of(result.keys, key);
    if (found.empty()) {
      tensors.emplace(key, std::move(tensor));
      sources.emplace(key, key);
    } else if (!says(found)) {
      result.left_out.push_back(wrapper + key);
    }
    for (const auto& [rule, with] : found) {
      if (rule->timms.empty()) continue;
      if (std::ranges::find(result.keys.used, rule) == result.keys.used.end()) result.keys.used.push_back(rule);
      const std::string name = filled(rule->timms, with);
      if (rule->layout == part) {
        parts[name].emplace(rule->place, Part{rule, key, std::move(tensor)});
        continue;
      }
      if (const auto [other, fresh] = sources.emplace(name, key); !fresh)
        fail(file.where, ": ", printable(wrapper + other->second), " and ", printable(wrapper + key),
             " are both what timm calls ", printable(name));
      Tensor made = laid_out(found.size() == 1 ? std::move(tensor) : tensor, rule->layout, file.where, key);
      tensors.emplace(name, std::move(made));
    }
  }
  for (const auto& [name, some] : parts) {
    const Part& one = some.begin()->second;
    for (int place = 0; place < one.rule->of; ++place)
      if (!some.contains(place))
        fail(file.where, ": has no ",
             printable(wrapper + result.keys.prefix +
                       filled(one.rule[place - one.rule->place].theirs, *match(one.rule->timms, name))),
             " beside ", printable(wrapper + one.key));
    if (!tensors.emplace(name, concatenated(some, file.where)).second)
      fail(file.where, ": ", printable(wrapper + one.key), " is there in another form too");
  }
  if (const auto head = tensors.find("head.weight"); dialect.zero_head_bias && head != tensors.end() &&
                                                     head->second.shape.size() == 2 && !tensors.contains("head.bias"))
    tensors["head.bias"] =
        Tensor::of({head->second.shape[0]}, std::vector<float>(static_cast<std::size_t>(head->second.shape[0])));
  if (dialect.class_position) fold_class_position(tensors);
  result.file = {std::move(tensors), std::move(file.metadata), std::move(file.where)};
  return result;
}

}  // namespace tessera::runtime
