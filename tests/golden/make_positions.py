"""Writes the golden files of resampled position tables.  Usage: make_positions.py OUT_DIR   (needs torch, numpy and timm)

OUT_DIR/positions/positions.safetensors: for each case "KEPT.HxW.HxW" (rows in front, grid before, grid after) the table
before, "<case>.from" [rows, D], and after, "<case>.to", as timm's resample_abs_pos_embed makes it: the kept rows, and
F.interpolate(mode="bicubic", antialias=True) of the others.
OUT_DIR/positions/relative.safetensors: the same of tables of relative position biases, as timm's
resize_rel_pos_bias_table makes them; there the kept rows stand behind.
OUT_DIR/positions/distances.safetensors: for each case "N.M" the table of distances along N rows of patches, "<case>.from"
[2 N - 1, K], and along M, "<case>.to" [2 M - 1, K], of which timm's get_rel_pos (vision_transformer_sam) takes its rows.
"""
import os
import sys

import torch
import torch.nn.functional as F
from make_golden import save
from timm.layers import resize_rel_pos_bias_table
from timm.models.vision_transformer_sam import get_rel_pos

CASES = [(1, (7, 7), (12, 12)), (1, (12, 12), (7, 7)), (0, (4, 4), (16, 16)), (5, (14, 14), (6, 6)), (1, (3, 6), (5, 10)),
         (0, (8, 4), (4, 2)), (2, (1, 1), (3, 3)), (1, (5, 5), (1, 1))]
RELATIVE = [(3, (7, 7), (12, 12)), (3, (12, 12), (7, 7)), (0, (4, 4), (16, 16)), (3, (7, 7), (7, 10)), (3, (3, 6), (5, 4)),
            (3, (4, 4), (5, 5)), (0, (8, 4), (4, 2)), (3, (5, 5), (1, 1))]

DISTANCES = [(4, 8), (8, 4), (1, 3), (7, 2), (14, 20), (3, 1)]


def main(out):
    gen = torch.Generator().manual_seed(7)
    tensors = {}
    for kept, old, new in CASES:
        table = torch.randn(kept + old[0] * old[1], 3, generator=gen)
        grid = table[kept:].reshape(1, *old, -1).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, size=new, mode="bicubic", antialias=True)
        case = f"{kept}.{old[0]}x{old[1]}.{new[0]}x{new[1]}"
        tensors[case + ".from"] = table
        tensors[case + ".to"] = torch.cat([table[:kept], grid.permute(0, 2, 3, 1).reshape(new[0] * new[1], -1)])
    os.makedirs(os.path.join(out, "positions"), exist_ok=True)
    save(os.path.join(out, "positions", "positions.safetensors"), tensors)
    tensors = {}
    for kept, old, new in RELATIVE:
        rows, needed = ((2 * h - 1) * (2 * w - 1) + kept for h, w in (old, new))
        table = torch.randn(rows, 3, generator=gen)
        case = f"{kept}.{old[0]}x{old[1]}.{new[0]}x{new[1]}"
        tensors[case + ".from"] = table
        tensors[case + ".to"] = resize_rel_pos_bias_table(table, new, (needed, 3), old)
    save(os.path.join(out, "positions", "relative.safetensors"), tensors)
    tensors = {}
    for old, new in DISTANCES:
        table = torch.randn(2 * old - 1, 3, generator=gen)
        square = get_rel_pos(new, new, table)  # [queries, keys, 3]: the last key's column, then the first one's
        tensors[f"{old}.{new}.from"] = table
        tensors[f"{old}.{new}.to"] = torch.cat([square[:, -1], square[1:, 0]])
    save(os.path.join(out, "positions", "distances.safetensors"), tensors)


main(sys.argv[1])
