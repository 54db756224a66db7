"""Writes operators.safetensors: what PyTorch makes of operations that ONNX's tests (golden/onnx) do not have.

Usage: make_operators.py OUT_DIR   (needs torch and numpy)

Keys: "ROW/in.0", "ROW/in.1", ... and "ROW/out.0", ...; the rows are said in the DSL in tests/onnx/rows_pytorch.cpp.
"""
import sys

import torch
import torch.nn.functional as F

from make_golden import save

gen = torch.Generator().manual_seed(41)


def randn(*shape):
    return torch.randn(shape, generator=gen)


def whole(*shape):
    """Small whole numbers as reals, so that many agree."""
    return torch.randint(-2, 3, shape, generator=gen).float()


def labels(count, *shape):
    return torch.randint(0, count, shape, generator=gen)


def positive(*shape):
    return torch.rand(shape, generator=gen) + 0.25


def convolution(x, *kernel, **how):
    weight, bias = randn(4, 3, *kernel), randn(4)
    return [x, weight, bias], [F.conv2d(x, weight, bias, **how)]


def masked_attention(scores, mask):
    return torch.softmax(scores.masked_fill(mask <= 0, torch.finfo(torch.float).min), -1)


def sincos(width, position):
    """get_1d_sincos_pos_embed_from_grid of facebookresearch/mae, util/pos_embed.py."""
    angle = position.reshape(-1, 1).double() / 10000 ** (torch.arange(width // 2) / (width / 2))
    return torch.cat((angle.sin(), angle.cos()), 1).float()


def rows():
    yield "conv2d_of_1", *convolution(randn(2, 3, 5, 4), 1, 1)
    yield "conv2d_of_3_padded", *convolution(randn(2, 3, 6, 5), 3, 3, padding=1)
    yield "conv2d_of_3_with_stride_2", *convolution(randn(2, 3, 6, 5), 3, 3, stride=2, padding=1)
    yield "conv2d_of_7_with_stride_4", *convolution(randn(2, 3, 16, 13), 7, 7, stride=4, padding=3)
    yield "conv2d_uneven", *convolution(randn(2, 3, 9, 8), 3, 2, stride=(2, 3), padding=(2, 1), dilation=(1, 2))
    x, weight, bias = randn(2, 3, 8, 6), randn(5, 3, 2, 2), randn(5)
    yield "patch_convolution", [x, weight, bias], [F.conv2d(x, weight, bias, stride=2).flatten(2).transpose(1, 2)]

    x = whole(3, 5, 4)
    yield "argmax", [x], [x.argmax(1).float(), x.argmax(2).float()]
    x = randn(3, 5, 4)
    yield "least_and_greatest", [x], [x.amin(1), x.amin((1, 2)), x.amax((1, 2)), x.amax(2)]
    x = randn(2, 6, 4, 3)
    nchw = x.permute(0, 3, 1, 2)
    yield "pooling", [x], [F.max_pool2d(nchw, 2).permute(0, 2, 3, 1), F.avg_pool2d(nchw, (3, 2)).permute(0, 2, 3, 1)]
    x = randn(5, 4)
    yield "mean_over_the_batch", [x], [x.mean(0)]

    a, b = whole(3, 17), whole(3, 17)
    yield "comparisons", [a, b], [t.float() for t in (a > b, a < b, a == b, a >= b, a <= b, a != b, a == 1)]
    c, a, b = whole(3, 5, 4), randn(3, 5, 4), randn(5, 4)
    yield "where", [c, a, b], [torch.where(c > 0, a, b), torch.where(c > 0, a, -7.5), torch.where(b > 0, c, a)]
    x = randn(2, 3, 5, 5)
    yield "causal_mask", [x], [masked_attention(x, torch.ones(5, 5).tril())]
    x, mask = randn(3, 2, 4, 7), (randn(3, 7) > -0.5).float()
    yield "mask_of_keys", [x, mask], [masked_attention(x, mask[:, None, None])]

    y = labels(7, 5)
    yield "one_hot", [y], [F.one_hot(y, 7).float()]
    x, y = randn(5, 7), labels(7, 5)
    yield "cross_entropy", [x, y], [F.cross_entropy(x, y)]
    yield "cross_entropy_with_label_smoothing", [x, y], [F.cross_entropy(x, y, label_smoothing=0.1)]
    yield "cross_entropy_of_probabilities", [x.softmax(1), y], [F.nll_loss(x.softmax(1).log(), y)]
    x, y = randn(5, 7), randn(5, 7).softmax(1)
    yield "cross_entropy_of_soft_targets", [x, y], [F.cross_entropy(x, y)]
    x, y = randn(3, 6), labels(9, 3)
    table = randn(9, 6)
    yield "embedding_added", [x, y, table], [x + F.embedding(y, table)]

    x = randn(3, 19) * 3
    yield "activations", [x], [x.relu(), x.tanh(), x.sigmoid(), F.silu(x), F.gelu(x), F.gelu(x, approximate="tanh"),
                               x.erf(), x.abs(), -x]
    x = positive(3, 19)
    yield "roots_and_powers", [x], [x.exp(), x.log(), x.sqrt(), x ** 3, x ** -2, x ** 5]
    a, b = randn(3, 5, 4), randn(4)
    yield "arithmetic", [a, b], [a + b, b - a, a * b, b / a, 1 - a, 2 / a, a / 3, a * -0.5, 0.25 + a, a - 4,
                                 torch.maximum(a, b), torch.minimum(a, b)]

    a, b = randn(2, 3, 4, 5), randn(5, 3)
    yield "expand_by_name", [a, b], [a + b.T[None, :, None], a * b.mean(0)[None, :, None, None]]
    a, b = randn(2, 3, 4, 5), randn(5, 6)
    yield "einsum_of_the_last_axis", [a, b], [a @ b]
    q, k, v = randn(2, 4, 6), randn(2, 4, 6), randn(2, 4, 6)
    s = torch.stack((q, k, v))
    yield "stacks", [q, k, v], [s[1], torch.stack((q, k, v), -1), torch.stack((q, k), 1), s.mean(0)]
    token, tokens, registers = randn(1, 6), randn(2, 4, 6), randn(3, 6)
    all_tokens = torch.cat((token.expand(2, 1, 6), registers.expand(2, 3, 6), tokens), 1)
    yield "tokens", [token, tokens, registers], [all_tokens, all_tokens[:, 0], all_tokens[:, 4:], all_tokens[:, 1:4].sum(1)]
    x = randn(2, 6, 12)
    yield "reshapes", [x], [x.reshape(2, 72), x.reshape(2, 6, 3, 4), x.transpose(1, 2), x[:, 2:5], x.reshape(2, 2, 3, 12)]

    x = randn(2, 12, 8)
    column, row = torch.meshgrid(torch.arange(4), torch.arange(3), indexing="xy")
    yield "sinusoidal_positions_2d", [x], [x + torch.cat((sincos(4, column), sincos(4, row)), 1)]

    x = randn(2, 3, 4, 5)
    yield "resize", [x], [F.interpolate(x, size, mode="bilinear", align_corners=True) for size in ((7, 9), (4, 12), (2, 3), (1, 1))]
    x, weight, bias = randn(2, 3, 4, 2), randn(3, 5, 2, 2), randn(5)
    yield "conv_transpose2d", [x, weight, bias], [F.conv_transpose2d(x, weight, bias, stride=2)]


def main(out):
    tensors = {}
    for name, inputs, outputs in rows():
        for i, x in enumerate(inputs): tensors[f"{name}/in.{i}"] = x
        for i, x in enumerate(outputs): tensors[f"{name}/out.{i}"] = x
    save(f"{out}/operators.safetensors", tensors)


if __name__ == "__main__":
    main(sys.argv[1])
