#include "runtime/dialects.hpp"

#include <deque>
#include <string>

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

/// The layers of Hugging Face's CLIP and SigLIP, the norm behind them, and what only their texts need.
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
};
const std::vector<Rule> clip_front{{"embeddings.class_embedding", "cls_token", batched},
                                   {"pre_layrnorm.*", "norm_pre.*"}};
const std::vector<Rule> clip_norm{{"post_layernorm.*", "norm.*"}};
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

const std::vector<Rule> vit_layers{
    {"encoder.layer.#.layernorm_before.*", "blocks.#.norm1.*"},
    {"encoder.layer.#.attention.attention.query.*", "blocks.#.attn.qkv.*", part, 0, 3},
    {"encoder.layer.#.attention.attention.key.*", "blocks.#.attn.qkv.*", part, 1, 3},
    {"encoder.layer.#.attention.attention.value.*", "blocks.#.attn.qkv.*", part, 2, 3},
    {"encoder.layer.#.attention.output.dense.*", "blocks.#.attn.proj.*"},
    {"encoder.layer.#.layernorm_after.*", "blocks.#.norm2.*"},
    {"encoder.layer.#.intermediate.dense.*", "blocks.#.mlp.fc1.*"},
    {"encoder.layer.#.output.dense.*", "blocks.#.mlp.fc2.*"},
};

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

/// Hugging Face's DINOv2 by the names of its layers, which transformers 5 changed.
std::vector<Rule> face_dino_rules(const std::vector<Rule>& layers) {
  return joined(
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
      layers);
}
Dialect face_dino(std::string_view library, const std::vector<Rule>& layers) {
  return {
      library, {"dinov2.", "dinov2_with_registers.", ""}, face_dino_rules(layers), {{"classifier.*", "head.*"}}, false,
      true};
}
const std::vector<Rule> dino_layers{
    {"encoder.layer.#.attention.attention.query.*", "blocks.#.attn.qkv.*", part, 0, 3},
    {"encoder.layer.#.attention.attention.key.*", "blocks.#.attn.qkv.*", part, 1, 3},
    {"encoder.layer.#.attention.attention.value.*", "blocks.#.attn.qkv.*", part, 2, 3},
    {"encoder.layer.#.attention.output.dense.*", "blocks.#.attn.proj.*"},
    {"encoder.layer.#.mlp.weights_in.*", "blocks.#.mlp.fc1.*"},
    {"encoder.layer.#.mlp.weights_out.*", "blocks.#.mlp.fc2.*"},
};
const std::vector<Rule> dino_layers_of_5{
    {"encoder.layer.#.attention.q_proj.*", "blocks.#.attn.qkv.*", part, 0, 3},
    {"encoder.layer.#.attention.k_proj.*", "blocks.#.attn.qkv.*", part, 1, 3},
    {"encoder.layer.#.attention.v_proj.*", "blocks.#.attn.qkv.*", part, 2, 3},
    {"encoder.layer.#.attention.o_proj.*", "blocks.#.attn.proj.*"},
    {"encoder.layer.#.mlp.gate_proj.*", "blocks.#.mlp.fc1.*", part, 0, 2},
    {"encoder.layer.#.mlp.up_proj.*", "blocks.#.mlp.fc1.*", part, 1, 2},
    {"encoder.layer.#.mlp.down_proj.*", "blocks.#.mlp.fc2.*"},
};

/// What makes depths in Hugging Face's models, whose keys are a declaration's. The first layer of the fusion has a
/// branch that nothing goes into.
const std::vector<Rule> face_depth_neck{
    {"neck.reassemble_stage.*", "neck.reassemble_stage.*"},
    {"neck.convs.*", "neck.convs.*"},
    {"neck.fusion_stage.layers.0.residual_layer1.*", ""},
    {"neck.fusion_stage.layers.0.residual_layer2.*", "neck.fusion_stage.layers.0.residual_layer2.*"},
    {"neck.fusion_stage.layers.0.projection.*", "neck.fusion_stage.layers.0.projection.*"},
    {"neck.fusion_stage.layers.1.*", "neck.fusion_stage.layers.1.*"},
    {"neck.fusion_stage.layers.2.*", "neck.fusion_stage.layers.2.*"},
    {"neck.fusion_stage.layers.3.*", "neck.fusion_stage.layers.3.*"},
};
/// Depth Anything, over a DINOv2.
Dialect face_depth(std::string_view library, const std::vector<Rule>& layers) {
  return {
      library,
      {"backbone."},
      face_dino_rules(layers),
      joined(face_depth_neck,
             {{"head.conv1.*", "head.conv1.*"}, {"head.conv2.*", "head.conv2.*"}, {"head.conv3.*", "head.conv3.*"}})};
}

/// A DINOv2 in its authors' keys.
const std::vector<Rule> dino_rules{
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
};

/// The head of Depth Anything's own program, whose last layer is fused first.
const std::vector<Rule> depth_head{
    {"depth_head.projects.#.*", "neck.reassemble_stage.layers.#.projection.*"},
    {"depth_head.resize_layers.#.*", "neck.reassemble_stage.layers.#.resize.*"},
    {"depth_head.scratch.layer1_rn.weight", "neck.convs.0.weight"},
    {"depth_head.scratch.layer2_rn.weight", "neck.convs.1.weight"},
    {"depth_head.scratch.layer3_rn.weight", "neck.convs.2.weight"},
    {"depth_head.scratch.layer4_rn.weight", "neck.convs.3.weight"},
    {"depth_head.scratch.refinenet4.resConfUnit1.*", ""},
    {"depth_head.scratch.refinenet4.resConfUnit2.conv#.*", "neck.fusion_stage.layers.0.residual_layer2.convolution#.*"},
    {"depth_head.scratch.refinenet4.out_conv.*", "neck.fusion_stage.layers.0.projection.*"},
    {"depth_head.scratch.refinenet3.resConfUnit#.conv#.*", "neck.fusion_stage.layers.1.residual_layer#.convolution#.*"},
    {"depth_head.scratch.refinenet3.out_conv.*", "neck.fusion_stage.layers.1.projection.*"},
    {"depth_head.scratch.refinenet2.resConfUnit#.conv#.*", "neck.fusion_stage.layers.2.residual_layer#.convolution#.*"},
    {"depth_head.scratch.refinenet2.out_conv.*", "neck.fusion_stage.layers.2.projection.*"},
    {"depth_head.scratch.refinenet1.resConfUnit#.conv#.*", "neck.fusion_stage.layers.3.residual_layer#.convolution#.*"},
    {"depth_head.scratch.refinenet1.out_conv.*", "neck.fusion_stage.layers.3.projection.*"},
    {"depth_head.scratch.output_conv1.*", "head.conv1.*"},
    {"depth_head.scratch.output_conv2.0.*", "head.conv2.*"},
    {"depth_head.scratch.output_conv2.2.*", "head.conv3.*"},
};

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
    face_vit("Hugging Face's ViT", vit_layers),
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
    face_dino("Hugging Face's DINOv2", dino_layers),
    face_dino("Hugging Face's DINOv2 of transformers 5", dino_layers_of_5),
    {"Hugging Face's DPT",
     {"dpt."},
     joined(
         {
             {"embeddings.patch_embeddings.projection.*", "patch_embed.proj.*"},
             {"embeddings.cls_token", "cls_token"},
             {"embeddings.position_embeddings", "pos_embed"},
             {"layernorm.*", ""},  // of what no layer of the head reads
         },
         vit_layers),
     joined(face_depth_neck,
            {{"head.head.0.*", "head.conv1.*"}, {"head.head.2.*", "head.conv2.*"}, {"head.head.4.*", "head.conv3.*"}})},
    face_depth("Hugging Face's Depth Anything", dino_layers),
    face_depth("Hugging Face's Depth Anything of transformers 5", dino_layers_of_5),
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
     joined(clip_front, joined(clip_layers, clip_norm)),
     joined({{"visual_projection.weight", "head.weight"}}, clip_texts),
     true},
    {"Hugging Face's CLIP with classes",  // of the patches' mean, which nothing has normed
     {"vision_model."},
     joined(clip_front, joined(clip_layers, {{"post_layernorm.*", ""}})),
     {{"classifier.*", "head.*"}}},
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
         joined(clip_layers, clip_norm)),
     clip_texts},
    {"Hugging Face's SigLIP with classes",
     {"vision_model."},
     joined({{"head.*", ""}}, joined(clip_layers, clip_norm)),
     {{"classifier.*", "head.*"}}},
    {"DINOv2", {""}, dino_rules, {}, false, true},
    {"Depth Anything", {"pretrained."}, dino_rules, depth_head},
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

}  // namespace

std::span<const Dialect> dialects() { return table; }

}  // namespace tessera::runtime
