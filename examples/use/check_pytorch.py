import numpy
import torch
from safetensors.torch import load_file
from torch.nn.functional import layer_norm, linear, relu, scaled_dot_product_attention

import my_vit

w = load_file("weights.safetensors")


def norm(x, key):
    return layer_norm(x, (16,), w[key + ".weight"], w[key + ".bias"])


def apply(x, key):
    return linear(x, w[key + ".weight"], w[key + ".bias"])


picture = numpy.random.default_rng(1).integers(0, 256, (20, 12), numpy.uint8)
patches = torch.tensor(picture / 255).float().reshape(5, 4, 4, 3).transpose(1, 2).reshape(20, 12)
x = torch.cat([w["registers"], apply(patches, "embed") + w["positions"]])
for block in ("blocks.0.", "blocks.1."):
    q, k, v = apply(norm(x, block + "norm1"), block + "qkv").reshape(24, 3, 2, 8).permute(1, 2, 0, 3)
    x = x + apply(scaled_dot_product_attention(q, k, v).transpose(0, 1).reshape(24, 16), block + "proj")
    x = x + apply(relu(apply(norm(x, block + "norm2"), block + "mlp.0")), block + "mlp.2")
theirs = apply(norm(x[4:].mean(0), "head.0"), "head.1").softmax(0).numpy()

with my_vit.Model("weights.safetensors") as model:
    labels, ours = model.classify(numpy.stack([picture] * 3, axis=-1), top=10)
print(f"largest difference of a probability: {abs(ours - theirs[labels]).max():.1e}")
assert abs(ours - theirs[labels]).max() < 1e-5
