"""The Vision Transformer of models/vit.hpp in plain PyTorch, with every switch of its VitSpec.

Written from the papers and from timm's documented behaviour, with timm's parameter names (state_dict keys); not from the
C++ declaration, which it is there to check.
"""
import torch
import torch.nn.functional as F
from torch import nn

from reference_models import sinusoidal_table


def sincos_2d(down, across, d, inclusive):
    """[down * across, d], row by row: sin and cos of the column, then of the row, each over d/4 frequencies from 1 towards
    1/10000, in MoCo v3 (Chen, Xie, He 2021) and MAE (He et al. 2022) without that end, in Beyer et al. 2022 with it."""
    rate = 10000.0 ** -(torch.arange(d // 4, dtype=torch.float64) / (d // 4 - 1 if inclusive else d // 4))
    y, x = torch.meshgrid(torch.arange(down).double(), torch.arange(across).double(), indexing="ij")
    x, y = x.reshape(-1, 1) * rate, y.reshape(-1, 1) * rate
    return torch.cat([x.sin(), x.cos(), y.sin(), y.cos()], dim=1).float()


ACTIVATIONS = {"gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "relu": F.relu, "silu": F.silu}


class Attention(nn.Module):
    def __init__(self, d, heads, bias, norm, eps):
        super().__init__()
        self.heads, self.k = heads, d // heads
        self.qkv = nn.Linear(d, 3 * d, bias=bias)
        self.q_norm = nn.LayerNorm(self.k, eps=eps) if norm else nn.Identity()
        self.k_norm = nn.LayerNorm(self.k, eps=eps) if norm else nn.Identity()
        self.proj = nn.Linear(d, d)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (t.reshape(b, n, self.heads, self.k).transpose(1, 2) for t in self.qkv(x).split(d, dim=-1))
        q, k = self.q_norm(q), self.k_norm(k)
        p = torch.softmax(q @ k.transpose(-2, -1) / self.k ** 0.5, dim=-1)
        return self.proj((p @ v).transpose(1, 2).reshape(b, n, d))


class Mlp(nn.Module):
    """SwiGLU as timm packs it (SwiGLUPacked): fc1 makes the gate and the value, in this order."""

    def __init__(self, d, m, activation):
        super().__init__()
        self.activation, self.m = activation, m
        self.fc1 = nn.Linear(d, 2 * m if activation == "swiglu" else m)
        self.fc2 = nn.Linear(m, d)

    def forward(self, x):
        x = self.fc1(x)
        if self.activation == "swiglu":
            return self.fc2(F.silu(x[..., : self.m]) * x[..., self.m:])
        return self.fc2(ACTIVATIONS[self.activation](x))


class LayerScale(nn.Module):
    def __init__(self, d, start):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((d,), start))

    def forward(self, x):
        return x * self.gamma


class Block(nn.Module):
    def __init__(self, d, heads, m, bias, qk_norm, layer_scale, activation, norms, eps):
        super().__init__()
        self.norms = norms
        self.norm1, self.norm2 = nn.LayerNorm(d, eps=eps), nn.LayerNorm(d, eps=eps)
        self.attn, self.mlp = Attention(d, heads, bias, qk_norm, eps), Mlp(d, m, activation)
        self.ls1 = LayerScale(d, layer_scale) if layer_scale else nn.Identity()
        self.ls2 = LayerScale(d, layer_scale) if layer_scale else nn.Identity()

    def forward(self, x):
        if self.norms == "before":  # Dosovitskiy et al. 2021
            x = x + self.ls1(self.attn(self.norm1(x)))
            return x + self.ls2(self.mlp(self.norm2(x)))
        if self.norms == "after":  # timm's ResPostBlock
            x = x + self.ls1(self.norm1(self.attn(x)))
            return x + self.ls2(self.norm2(self.mlp(x)))
        x = self.norm1(x + self.ls1(self.attn(x)))  # Vaswani et al. 2017
        return self.norm2(x + self.ls2(self.mlp(x)))


class Vit(nn.Module):
    def __init__(self, image, patch, d, heads, depth, m, classes, channels=3, class_token=True, registers=0,
                 positions="learned", patch_positions=False, norms="before", qkv_bias=True, qk_norm=False,
                 layer_scale=0.0, activation="gelu", pooling="class_token", final_norm="before_pooling",
                 representation=0, eps=1e-6):
        super().__init__()
        self.grid, self.d = (image[0] // patch[0], image[1] // patch[1]), d
        n = self.grid[0] * self.grid[1]
        self.prefix = int(class_token) + registers
        patch_positions = patch_positions or positions.startswith("grid")  # no other token has a row and a column
        self.positions, self.patch_positions, self.pooling = positions, patch_positions, pooling
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(channels, d, patch, patch)
        if class_token:
            self.cls_token = nn.Parameter(torch.zeros(1, 1, d))
        if registers:
            self.reg_token = nn.Parameter(torch.zeros(1, registers, d))
        if positions == "learned":
            self.pos_embed = nn.Parameter(torch.zeros(1, n + (0 if patch_positions else self.prefix), d))
        self.blocks = nn.ModuleList([Block(d, heads, m, qkv_bias, qk_norm, layer_scale, activation, norms, eps)
                                     for _ in range(depth)])
        if final_norm == "before_pooling":
            self.norm = nn.LayerNorm(d, eps=eps)
        if final_norm == "after_pooling":
            self.fc_norm = nn.LayerNorm(d, eps=eps)
        if representation:
            self.pre_logits = nn.Module()
            self.pre_logits.fc = nn.Linear(d, representation)
        self.head = nn.Linear(representation or d, classes)

    def with_positions(self, t):
        if self.positions == "learned":
            return t + self.pos_embed
        if self.positions == "sinusoidal":
            return t + sinusoidal_table(t.shape[1], self.d)
        return t + sincos_2d(*self.grid, self.d, self.positions == "grid_inclusive")

    def forward(self, x):
        t = self.patch_embed.proj(x).flatten(2).transpose(1, 2)
        if self.patch_positions:
            t = self.with_positions(t)
        front = [getattr(self, key).expand(len(x), -1, -1) for key in ("cls_token", "reg_token") if hasattr(self, key)]
        t = torch.cat(front + [t], dim=1)
        if not self.patch_positions:
            t = self.with_positions(t)
        for block in self.blocks:
            t = block(t)
        if hasattr(self, "norm"):
            t = self.norm(t)
        t = t[:, 0] if self.pooling == "class_token" else t[:, self.prefix:].mean(dim=1)
        if hasattr(self, "fc_norm"):
            t = self.fc_norm(t)
        if hasattr(self, "pre_logits"):
            t = torch.tanh(self.pre_logits.fc(t))
        return self.head(t)
