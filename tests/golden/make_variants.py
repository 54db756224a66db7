"""Writes the golden files of the variants of models/vit.hpp.  Usage: make_variants.py OUT_DIR   (needs torch and numpy)

The files are those of make_golden.py, one folder a variant. The variants are small, of odd sizes, and together use every
switch of VitSpec but dropout. Their C++ declarations stand in tests/models/golden_variants.hpp.
"""
import sys

import torch.nn.functional as F

from make_golden import classification
from reference_vit import Vit

VARIANTS = {
    # No class token, patches and image not square, no bias of queries, keys and values.
    "vit_gap": dict(image=(10, 6), patch=(5, 3), d=14, heads=2, m=28, class_token=False, pooling="mean",
                    final_norm="after_pooling", activation="relu", qkv_bias=False),
    # DINOv2 with registers (Darcet et al. 2024), the giant's MLP, and normalised queries and keys.
    "vit_registers": dict(image=(9, 8), patch=(3, 4), d=12, heads=2, m=10, registers=3, patch_positions=True,
                          layer_scale=0.5, activation="swiglu", qk_norm=True, qkv_bias=False),
    # Beyer et al. 2022, with GELU's tanh approximation.
    "vit_simple": dict(image=(12, 6), patch=(3, 3), d=16, heads=2, m=24, class_token=False, positions="grid_inclusive",
                       pooling="mean", activation="gelu_tanh"),
    # Vaswani et al. 2017: sinusoidal positions, norms of the sums and no last one; a layer before the head.
    "vit_vaswani": dict(image=(8, 8), patch=(4, 4), d=12, heads=3, m=20, positions="sinusoidal", norms="on_sum",
                        activation="silu", final_norm="none", representation=9),
    # Class token and registers, all of them with positions, and yet the mean of the patches; norms of the branches.
    "vit_mean_of_patches": dict(image=(6, 9), patch=(3, 3), d=10, heads=2, m=15, registers=2, norms="after",
                                layer_scale=0.1, pooling="mean", final_norm="after_pooling", channels=1),
    # Registers and no class token, fixed positions of the patches.
    "vit_only_registers": dict(image=(4, 10), patch=(4, 2), d=8, heads=1, m=8, class_token=False, registers=1,
                               positions="grid", pooling="mean", representation=6),
}


def main(out):
    for seed, (name, spec) in enumerate(VARIANTS.items(), start=31):
        images = (3, spec.get("channels", 3), *spec["image"])
        classification(out, name, Vit(**spec, depth=2, classes=5), images, 5, F.cross_entropy, 1e-3, seed)


if __name__ == "__main__":
    main(sys.argv[1])
