"""Golden numbers of timm's Vision Transformers at toy sizes.  Usage: make_timm.py OUT [ARCHITECTURE ...]
(needs timm 1.0.31, torch, numpy; without architectures it makes those that tests/golden/timm has)

One folder an architecture, a reduced instance of it (width 24, 2 blocks, images of 24 x 16, 10 classes; of Swin
Transformers width 4, of V2 8, in two stages; of SAM width 8, 4 blocks), with random parameters:
  config.json           where images have another size, and of instances that tests/declare/programs makes
  params.safetensors    the state dict as timm saves it
  batch.safetensors     x [2, C, H, W] and grad_output
  forward.safetensors   outputs: logits, or where there are no classes the pooled features, of SAM the map of its neck
  backward.safetensors  the gradients of sum(outputs * grad_output): of every parameter, and grad_input
  pooling.safetensors   of the first instance with a learned query, POOLING: its probabilities [2, heads, tokens]
  larger.safetensors    where it is: features of pictures of 48 x 32 of one colour, COLOURS, with the same parameters
Of ARCHITECTURE_layers, which LAYERS has, outputs are timm's forward_intermediates: all tokens of the chosen layers, each
behind the last norm, [2, layers, tokens, width].
Float32, eager, one thread, evaluation mode. ../../tests/models/timm_golden.hpp compares.

So that 48 instances take little room, parameters, x and grad_output are numbers that float16 has, and lie as such;
gradients lie as 16-bit integers, each tensor's times its scale: half a step is 1.5e-5 of its largest. `scales` has them
in the order of the keys.
"""
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
import timm
import torch
from make_golden import randomise, save

torch.set_num_threads(1)


# What some are made with besides: pictures with a rest that no patch sees; all heads with keys of their own, or shared in the
# two middle blocks.
SHARED = {"depth": 4, "num_kv_heads": (2, 1, 1, 2), "mlp_ratio": 1}
BESIDES = {"vit_so400m_patch14_siglip_384": {"img_size": (28, 19)}, "vit_base_patch16_sapiens2": {"num_kv_heads": 2},
           "cait_m36_384": {"mlp_ratio": 1, "mlp_ratio_token_only": 1}, "vit_base_patch16_18x2_224": {"mlp_ratio": 1},
           **{f"vit_{size}_patch16_sapiens2": SHARED for size in ("large", "huge", "giant", "5b")}}


# The first that an architecture's constructor takes.
SIZES = ({"embed_dim": 24, "num_heads": 2}, {"embed_dim": 48, "num_heads": 4}, {"embed_dim": 64, "num_heads": 4})

# Maps of 12 x 8, in windows that wrap around, and of 6 x 4, which is one window.
SWIN = {"patch_size": 2, "embed_dim": 4, "depths": (2, 1), "num_heads": (1, 2), "window_size": ((4, 4), (8, 8)), "mlp_ratio": 2}


# A map of 6 x 4, whose windows are filled up below and on the right.
SAM = {"patch_size": 4, "embed_dim": 8, "num_heads": 2, "depth": 4, "window_size": 3, "global_attn_indexes": (1, 3), "mlp_ratio": 2}


def reduced(name):
    """The instance, and what it is made with."""
    architecture = name.removesuffix("_layers")
    classes = min(10, timm.models.get_pretrained_cfg(architecture).num_classes)
    if architecture.startswith("samvit_"):
        arguments = {"img_size": (24, 16), "num_classes": classes, **SAM}
        if classes == 0:
            arguments["neck_chans"] = 4
        return timm.create_model(architecture, **arguments).eval(), arguments
    if architecture.startswith(("swin_", "swinv2_")):
        arguments = {"img_size": (24, 16), "num_classes": classes, **SWIN}
        if "_s3_" in name:
            arguments["window_size"] = ((4, 4), (2, 2))
        if "_tiny_" not in name:
            arguments["depths"] = (4, 2)
        if "swinv2" in name:
            arguments |= {"embed_dim": 8, "num_heads": (2, 2)}  # a head of fewer has no direction where it is near 0
        if "12to" in name:
            arguments["pretrained_window_sizes"] = (3, 6)
        model = timm.create_model(architecture, **arguments)
        for module in model.modules():  # the MLP of the biases is 512 wide at every size
            if hasattr(module, "cpb_mlp"):
                heads = module.num_heads
                module.cpb_mlp = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, heads, bias=False))
        return model.eval(), arguments
    for sizes in SIZES:
        arguments = {"img_size": (24, 16), "patch_size": 8, "depth": 2, "num_classes": classes, **sizes, **BESIDES.get(name, {})}
        try:
            model = timm.create_model(architecture, **arguments).eval()
            model(torch.zeros(1, 3, *arguments["img_size"]))
            return model, arguments
        except (AssertionError, RuntimeError, ValueError):
            if sizes == SIZES[-1]:
                raise


# Instances that give what some of their blocks give: what they are made with, and the blocks. The hidden layer is as wide as
# a token, so that four blocks take little room.
LAYERS = {"vit_base_patch14_reg4_dinov2_layers": ({"depth": 4, "mlp_ratio": 1}, (0, 2, 3))}
BESIDES |= {name: arguments for name, (arguments, _) in LAYERS.items()}


def outputs_of(model, name, x):
    if name.startswith("samvit_") and model.num_classes == 0:
        return model.forward_features(x)
    if name not in LAYERS:
        return model(x)
    chosen = model.forward_intermediates(x, indices=list(LAYERS[name][1]), norm=True, output_fmt="NLC",
                                         return_prefix_tokens=True, intermediates_only=True)
    return torch.stack([torch.cat((front, patches), dim=1) for patches, front in chosen], dim=1)


# Whose probabilities of the learned query that pools are kept.
POOLING = "vit_so150m_patch16_reg4_map_256"


def pooling(model, x):
    """As timm's AttentionPoolLatent computes them where attention is not fused: it hands them to its dropout."""
    kept = []
    model.attn_pool.fused_attn = False
    softmax = torch.Tensor.softmax

    def keeping(self, *arguments, **named):
        kept.append(softmax(self, *arguments, **named))
        return kept[-1]

    torch.Tensor.softmax = keeping
    try:
        with torch.no_grad():
            model(x)
    finally:
        torch.Tensor.softmax = softmax
    (probabilities,) = kept
    return probabilities[:, :, 0]


# Whose grid becomes a larger one: learned positions, those beside rotary ones, and tables of relative biases.
LARGER = ("vit_base_patch16_gap_224", "vit_base_patch16_rope_ape_224", "beit_large_patch16_224")
COLOURS = ((205, 13, 21), (21, 13, 205))


def larger(model):
    model.set_input_size(img_size=(48, 32))
    x = torch.tensor(COLOURS, dtype=torch.float32)[:, :, None, None].expand(-1, -1, 48, 32) / 255
    with torch.no_grad():
        return model.forward_head(model.forward_features((x - 0.5) / 0.5), pre_logits=True)


def rounded(tensor):
    return tensor.half().float()


def integers(tensors):
    """The tensors as 16-bit integers, and `scales`, one for each in the order of the keys."""
    scales = {k: t.abs().max() / 32767 for k, t in tensors.items()}
    whole = {k: torch.round(t / (scales[k] if scales[k] > 0 else 1)).to(torch.int16) for k, t in tensors.items()}
    return {**whole, "scales": torch.stack([scales[k] for k in sorted(tensors)])}


def golden(out, name, configured=False):
    seed = 1000 + sum(map(ord, name))
    gen = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model, arguments = reduced(name)
    randomise(model, gen)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(rounded(p))
    image = arguments["img_size"]
    x = rounded(torch.randn(2, 3, *image, generator=gen)).requires_grad_()
    outputs = outputs_of(model, name, x)
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    all_said = configured or name in LAYERS or name.startswith("swinv2_")  # whose windows are in no shape
    if all_said or image != (24, 16):
        said = arguments if all_said else {"img_size": image, "num_heads": 2}
        with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
            json.dump({"architecture": name.removesuffix("_layers"), "model_args": said}, file)
            file.write("\n")
    g = rounded(torch.randn(outputs.shape, generator=gen))
    (outputs * g).sum().backward()
    parameters = {k: p.half() for k, p in model.named_parameters()}
    save(f"{folder}/params.safetensors", {**model.state_dict(), **parameters})
    save(f"{folder}/batch.safetensors", {"x": x.half(), "grad_output": g.half()})
    save(f"{folder}/forward.safetensors", {"outputs": outputs})
    gradients = {k: p.grad for k, p in model.named_parameters() if p.grad is not None}
    save(f"{folder}/backward.safetensors", integers({"grad_input": x.grad, **gradients}))
    if name == POOLING:
        save(f"{folder}/pooling.safetensors", {"pooling": pooling(model, x)})
    if name in LARGER:
        save(f"{folder}/larger.safetensors", {"features": larger(model)})


if __name__ == "__main__":
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "timm")
    for name in sys.argv[2:] or sorted(os.listdir(here)):
        golden(sys.argv[1], name)
