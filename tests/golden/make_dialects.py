"""Golden numbers of Vision Transformers of other libraries at toy sizes.  Usage: make_dialects.py OUT DINOV2
(needs torch, torchvision, transformers 5, open_clip_torch, numpy; DINOV2 is a checkout of facebookresearch/dinov2)

One folder a model, two blocks of width 24 and images of 16 x 16, or of width 8 and 8 x 8, with random parameters:
  model.safetensors   what save_pretrained writes (Hugging Face), or the state dict
  config.json         the library's own, or arguments of the constructor by their names
  io.safetensors      x, two images, and outputs: logits, or what the model gives for the whole image
Float32, eager, one thread, evaluation mode. tests/models/dialects_test.cpp compares.
"""
import json
import os
import shutil
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
os.environ["XFORMERS_DISABLED"] = "1"
import open_clip
import torch
import torchvision
import transformers as hf
from safetensors import safe_open
from make_golden import randomise, save

torch.set_num_threads(1)
SIZES = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=2, image_size=16, patch_size=8)
WIDE = dict(SIZES, intermediate_size=48)
SMALL = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, image_size=8, patch_size=4, intermediate_size=16)


def torchvisions():
    model = torchvision.models.VisionTransformer(image_size=16, patch_size=8, num_layers=2, num_heads=2, hidden_dim=24,
                                                 mlp_dim=48, num_classes=10)
    return model, model, {"image_size": 16, "num_heads": 2}


def dinov2(**kwargs):
    from dinov2.layers import MemEffAttention, NestedTensorBlock
    from dinov2.models.vision_transformer import DinoVisionTransformer
    from functools import partial
    model = DinoVisionTransformer(img_size=16, patch_size=8, embed_dim=24, depth=2, num_heads=2, init_values=1.0,
                                  block_chunks=0, block_fn=partial(NestedTensorBlock, attn_class=MemEffAttention),
                                  **kwargs)
    return model, model, {"img_size": 16, "num_heads": 2}


def open_clips():
    vision = dict(layers=2, width=24, head_width=12, patch_size=8, image_size=16, mlp_ratio=2.0)
    text = dict(context_length=4, vocab_size=8, width=8, heads=1, layers=1)
    model = open_clip.CLIP(embed_dim=12, vision_cfg=open_clip.CLIPVisionCfg(**vision),
                           text_cfg=open_clip.CLIPTextCfg(**text), quick_gelu=True)
    config = {"model_cfg": {"embed_dim": 12, "quick_gelu": True, "vision_cfg": vision, "text_cfg": text},
              "preprocess_cfg": {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711],
                                 "interpolation": "bicubic", "resize_mode": "shortest"}}
    return model, model.encode_image, config


def clips():
    text = dict(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
                max_position_embeddings=4, bos_token_id=0, eos_token_id=1, pad_token_id=2)
    model = hf.CLIPModel(hf.CLIPConfig(vision_config=WIDE, text_config=text, projection_dim=12))
    return model, lambda x: model.visual_projection(model.vision_model(x).pooler_output), None


def of_hugging_face(model, output):
    return model, lambda x: getattr(model(x), output), None


def class_token(model):
    return model, lambda x: model(x).last_hidden_state[:, 0], None


def masked_autoencoders():
    """Nothing is masked; the order in which it takes patches is random, and the class token does not see it."""
    decoder = dict(decoder_hidden_size=4, decoder_num_attention_heads=1, decoder_num_hidden_layers=1, decoder_intermediate_size=4)
    model = hf.ViTMAEForPreTraining(hf.ViTMAEConfig(**SMALL, **decoder, mask_ratio=0.0))
    return model, lambda x: model.vit(x).last_hidden_state[:, 0], None


def swins(kind, output, **kwargs):
    """A map of 4 x 4 in windows that wrap around, and one of 2 x 2, which is a window."""
    depths = [4 if kind is hf.SwinForImageClassification else 2, 1]
    config = hf.SwinConfig(image_size=8, patch_size=2, embed_dim=2, depths=depths, num_heads=[1, 2], window_size=2,
                           mlp_ratio=2, **kwargs)
    return of_hugging_face(kind(config), output)


def swins_v2():
    """The same with cosines for scores, whose distances are measured by other windows; the MLP of the biases is 512 wide at
    every size."""
    config = hf.Swinv2Config(image_size=8, patch_size=2, embed_dim=4, depths=[2, 1], num_heads=[1, 2], window_size=2, mlp_ratio=2.0,
                             pretrained_window_sizes=[4, 3], num_labels=10)
    model = hf.Swinv2ForImageClassification(config)
    for module in model.modules():
        if hasattr(module, "continuous_position_bias_mlp"):
            module.continuous_position_bias_mlp = torch.nn.Sequential(
                torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, module.num_attention_heads, bias=False))
    return of_hugging_face(model, "logits")


def sams():
    """A map of 4 x 4, whose windows of 3 x 3 are filled up; prompts and masks, which no image needs, are as small as can be."""
    vision = dict(hidden_size=4, num_hidden_layers=2, num_attention_heads=2, image_size=8, patch_size=2, window_size=3,
                  global_attn_indexes=[1], output_channels=4, mlp_dim=8)
    prompts = dict(hidden_size=8, image_embedding_size=4, image_size=8, patch_size=2, mask_input_channels=4)
    masks = dict(hidden_size=8, mlp_dim=4, num_hidden_layers=1, num_attention_heads=1, iou_head_depth=2, iou_head_hidden_dim=4)
    model = hf.SamModel(hf.SamConfig(vision_config=vision, prompt_encoder_config=prompts, mask_decoder_config=masks))
    return model, lambda x: model.vision_encoder(x).last_hidden_state, None


def siglips_with_classes():
    vision = dict(SMALL, model_type="siglip_vision_model")
    config = hf.SiglipConfig(vision_config=vision, text_config=dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                                                                    num_attention_heads=1, vocab_size=8), num_labels=10)
    return of_hugging_face(hf.SiglipForImageClassification(config), "logits")


def clips_with_classes():
    """The norm behind the layers has no part in it."""
    vision = dict(SMALL, model_type="clip_vision_model")
    config = hf.CLIPConfig(vision_config=vision, text_config=dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                                                                  num_attention_heads=1, vocab_size=8), num_labels=10)
    return of_hugging_face(hf.CLIPForImageClassification(config), "logits")


def depths(kind):
    """Four blocks of one head, whose maps are 12 x 12, 6 x 6, 3 x 3 and 2 x 2."""
    encoder = hf.Dinov2Config(hidden_size=4, num_hidden_layers=4, num_attention_heads=2, image_size=12, patch_size=4, mlp_ratio=2,
                              out_indices=[1, 2, 3, 4], reshape_hidden_states=False)
    config = hf.DepthAnythingConfig(backbone_config=encoder, patch_size=4, reassemble_hidden_size=4, neck_hidden_sizes=[2, 2, 4, 2],
                                    fusion_hidden_size=2, head_hidden_size=3, depth_estimation_type=kind,
                                    max_depth=20 if kind == "metric" else 1)
    model = hf.DepthAnythingForDepthEstimation(config)
    return model, lambda x: model(x).predicted_depth, None


def dpts():
    """Four blocks, whose class token is mapped together with each patch; of one channel, and maps of 8 x 8 to 1 x 1."""
    config = hf.DPTConfig(hidden_size=4, num_hidden_layers=4, num_attention_heads=2, intermediate_size=8, image_size=32, num_channels=1,
                          backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[2, 2, 4, 2], fusion_hidden_size=2)
    model = hf.DPTForDepthEstimation(config)
    return model, lambda x: model(x).predicted_depth, None


def in_keys_of_depth_anything(state):
    """As the authors' program has them: queries, keys and values in one map, and the coarsest layer last."""
    head = {"neck.reassemble_stage.layers.": "depth_head.projects.", "neck.convs.": "depth_head.scratch.layer",
            "head.conv1.": "depth_head.scratch.output_conv1.", "head.conv2.": "depth_head.scratch.output_conv2.0.",
            "head.conv3.": "depth_head.scratch.output_conv2.2."}
    named = {}
    for key, value in state.items():
        key = key.replace("backbone.", "pretrained.").replace("embeddings.patch_embeddings.projection", "patch_embed.proj")
        key = key.replace("embeddings.position_embeddings", "pos_embed").replace("embeddings.", "").replace("layernorm", "norm")
        key = key.replace("encoder.layer.", "blocks.").replace("layer_scale1.lambda1", "ls1.gamma")
        key = key.replace("layer_scale2.lambda1", "ls2.gamma").replace("attention.output.dense", "attn.proj")
        if ".attention.attention." in key:
            if ".query." in key:
                name = key.replace("attention.attention.query", "attn.qkv")
                parts = [state[key.replace("pretrained.", "backbone.").replace("blocks.", "encoder.layer.").replace("query", part)]
                         for part in ("query", "key", "value")]
                named[name] = torch.cat(parts)
            continue
        for theirs, own in head.items():
            if key.startswith(theirs):
                key = own + key[len(theirs):]
                if ".resize." in key:
                    key = key.replace("projects", "resize_layers").replace(".resize.", ".")
                key = key.replace(".projection.", ".")
                if "scratch.layer" in key:
                    number, rest = key[len(own):].split(".", 1)
                    key = f"{own}{int(number) + 1}_rn.{rest}"
        if key.startswith("neck.fusion_stage.layers."):
            number, rest = key[len("neck.fusion_stage.layers."):].split(".", 1)
            rest = rest.replace("projection", "out_conv").replace("residual_layer", "resConfUnit").replace("convolution", "conv")
            key = f"depth_head.scratch.refinenet{4 - int(number)}.{rest}"
        named[key] = value
    return named


MODELS = {
    "torchvision": torchvisions,
    "hf_vit": lambda: of_hugging_face(hf.ViTForImageClassification(hf.ViTConfig(**SMALL, num_labels=10)), "logits"),
    "hf_vit_model": lambda: of_hugging_face(hf.ViTModel(hf.ViTConfig(**SMALL)), "pooler_output"),
    "hf_deit": lambda: of_hugging_face(
        hf.DeiTForImageClassificationWithTeacher(hf.DeiTConfig(**SMALL, num_labels=10)), "logits"),
    "hf_dinov2": lambda: of_hugging_face(hf.Dinov2Model(hf.Dinov2Config(**SIZES, mlp_ratio=2)), "pooler_output"),
    "hf_dinov2_registers": lambda: of_hugging_face(hf.Dinov2WithRegistersModel(hf.Dinov2WithRegistersConfig(
        **SMALL, mlp_ratio=2, use_swiglu_ffn=True, num_register_tokens=3)), "pooler_output"),
    "hf_dinov2_classes": lambda: of_hugging_face(hf.Dinov2WithRegistersForImageClassification(hf.Dinov2WithRegistersConfig(
        **SMALL, mlp_ratio=2, num_register_tokens=3, num_labels=10)), "logits"),
    "hf_clip": clips,
    "hf_clip_classes": clips_with_classes,
    "hf_siglip": lambda: of_hugging_face(hf.SiglipVisionModel(hf.SiglipVisionConfig(**SMALL)), "pooler_output"),
    "hf_beit": lambda: of_hugging_face(hf.BeitForImageClassification(hf.BeitConfig(
        **SMALL, num_labels=10, use_relative_position_bias=True)), "logits"),
    "hf_beit_model": lambda: of_hugging_face(hf.BeitModel(hf.BeitConfig(
        **SMALL, use_absolute_position_embeddings=True, use_mask_token=True)), "pooler_output"),
    "hf_dinov3": lambda: of_hugging_face(hf.DINOv3ViTModel(hf.DINOv3ViTConfig(
        **SMALL, num_register_tokens=3)), "pooler_output"),
    "hf_dinov3_gated": lambda: of_hugging_face(hf.DINOv3ViTModel(hf.DINOv3ViTConfig(
        **SMALL, num_register_tokens=3, use_gated_mlp=True, hidden_act="silu", rope_theta=50.0)), "pooler_output"),
    "hf_ijepa": lambda: of_hugging_face(hf.IJepaForImageClassification(hf.IJepaConfig(**SMALL, num_labels=10)), "logits"),
    "hf_mae": masked_autoencoders,
    "hf_msn": lambda: class_token(hf.ViTMSNModel(hf.ViTMSNConfig(**SMALL))),
    "hf_siglip_classes": siglips_with_classes,
    "hf_swin": lambda: swins(hf.SwinForImageClassification, "logits", num_labels=10),
    "hf_swin_model": lambda: swins(hf.SwinModel, "pooler_output"),
    "hf_swin_v2": swins_v2,
    "hf_sam": sams,
    "hf_blip": lambda: class_token(hf.BlipVisionModel(hf.BlipVisionConfig(**SMALL))),
    "dinov2": lambda: dinov2(mlp_ratio=2, ffn_layer="swiglufused"),
    "dinov2_registers": lambda: dinov2(mlp_ratio=2, num_register_tokens=3),
    "open_clip": open_clips,
    "hf_depth_anything": lambda: depths("metric"),
    "hf_dpt": dpts,
    "depth_anything_v2": lambda: depths("relative"),
}
STATE_DICTS = ("hf_vit_model", "hf_dinov2_registers", "hf_beit_model", "hf_dinov3_gated", "hf_swin_model")  # by the names that transformers 5 has in memory

SMALL_ONES = ("hf_vit_model", "hf_deit", "hf_dinov2_registers", "hf_dinov2_classes", "hf_beit", "hf_beit_model", "hf_dinov3",
              "hf_dinov3_gated", "hf_ijepa", "hf_mae", "hf_msn", "hf_siglip_classes", "hf_swin", "hf_swin_model",
              "hf_clip_classes", "hf_swin_v2", "hf_sam", "hf_blip", "hf_siglip", "hf_vit")


def golden(out, name):
    seed = 1000 + sum(map(ord, name))
    gen = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model, call, config = MODELS[name]()
    model.float()
    randomise(model, gen)
    if "depth" in name or name == "hf_dpt":  # convolutions sum more numbers than a row of their weight has; most pixels shall be above 0
        for p in (p for p in (*model.neck.parameters(), *model.head.parameters()) if p.dim() == 4):
            p.data.mul_((p.shape[-1] / p[0].numel()) ** 0.5)
        (model.head.head[4] if name == "hf_dpt" else model.head.conv3).bias.data.add_(1)
    model.eval()
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    side = 32 if name == "hf_dpt" else 12 if "depth" in name else SMALL["image_size"] if name in SMALL_ONES else SIZES["image_size"]
    x = torch.randn(2, 1 if name == "hf_dpt" else 3, side, side, generator=gen)
    with torch.no_grad():
        outputs = call(x)
    save(f"{folder}/io.safetensors", {"x": x, "outputs": outputs})
    if name.startswith("hf_") or name == "depth_anything_v2":
        with tempfile.TemporaryDirectory() as saved:
            model.save_pretrained(saved)
            shutil.copy(f"{saved}/model.safetensors", f"{folder}/model.safetensors")
            with open(f"{saved}/config.json", encoding="utf-8") as file:
                config = json.load(file)
        config.pop("transformers_version", None)
    if name == "depth_anything_v2":
        config = {"num_heads": 2, "img_size": 12}
        with safe_open(f"{folder}/model.safetensors", "pt") as saved:  # by the names that published files have
            save(f"{folder}/model.safetensors", in_keys_of_depth_anything({key: saved.get_tensor(key) for key in saved.keys()}))
    elif not name.startswith("hf_") or name in STATE_DICTS:
        save(f"{folder}/model.safetensors", model.state_dict())
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
        file.write("\n")
    print(name, list(outputs.shape), float(outputs.abs().max()))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[2])
    for name in sys.argv[3:] or MODELS:
        golden(sys.argv[1], name)
