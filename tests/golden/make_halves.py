"""Writes the golden file of numbers of two bytes.  Usage: make_halves.py OUT_DIR   (needs torch and numpy)

OUT_DIR/halves/halves.safetensors: "values", floats of every size and those between two neighbours of either type; "F16"
and "BF16", the same as PyTorch rounds them, as the bits that they have (int64).
"""
import os
import sys

import torch
from make_golden import save


def main(out):
    gen = torch.Generator().manual_seed(11)
    every = torch.arange(0, 65536, 317, dtype=torch.int32).to(torch.int16)
    values = []
    for dtype in (torch.float16, torch.bfloat16):
        here = every.view(dtype).float()
        there = (every + 1).view(dtype).float()
        values += [here, (here + there) / 2, here + (there - here) * 0.499, here + (there - here) * 0.501]
    size = torch.rand(500, generator=gen) * 90 - 45
    values += [torch.randn(500, generator=gen) * torch.pow(2.0, size)]
    values += [torch.tensor([0.0, -0.0, float("inf"), -float("inf"), 65504.0, 65519.996, 65520.0, 2.0**-24, 2.0**-25,
                             1.5 * 2.0**-24, 2.0**-25 * 1.0001, 2.0**-14, 2.0**-14 - 2.0**-25, 3.3895e38, 3.4e38, 1e-45])]
    values = torch.cat(values)
    values = values[~values.isnan()]
    bits = lambda dtype: values.to(dtype).view(torch.int16).long() & 0xFFFF
    os.makedirs(os.path.join(out, "halves"), exist_ok=True)
    save(os.path.join(out, "halves", "halves.safetensors"),
         {"values": values, "F16": bits(torch.float16), "BF16": bits(torch.bfloat16)})


main(sys.argv[1])
