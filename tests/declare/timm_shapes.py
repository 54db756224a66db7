#!/usr/bin/env python3
"""Writes what the checkpoints of timm's 275 plain Vision Transformers, 21 Swin Transformers and 4 image encoders of SAM hold, at full size and without a number of them: for
each name a line "= NAME PARAMETERS CLASSES POOL HEIGHT WIDTH" (POOL is - where tokens are not pooled), then a line
"KEY DIM..." for each tensor of its state dict. Usage: timm_shapes.py FILE   (needs timm 1.0.31)"""
import sys
import warnings

warnings.filterwarnings("ignore")
try:
    import timm
    import torch
except ImportError as missing:
    print(f"skipped: no {missing.name}")
    sys.exit(0)
if timm.__version__ != "1.0.31":
    print(f"skipped: timm is {timm.__version__}")
    sys.exit(0)

MODULES = ("vision_transformer", "deit", "eva", "beit", "vision_transformer_relpos", "cait", "swin_transformer", "swin_transformer_v2",
           "vision_transformer_sam")

with open(sys.argv[1], "w", encoding="utf-8") as file:
    for name in sorted(name for module in MODULES for name in timm.list_models(module=module)):
        with torch.device("meta"):
            model = timm.create_model(name)
        size = model.pretrained_cfg["input_size"]
        count = sum(p.numel() for p in model.parameters())
        file.write(f"= {name} {count} {model.num_classes} {getattr(model, 'global_pool', None) or '-'} {size[1]} {size[2]}\n")
        for key, tensor in model.state_dict().items():
            file.write(" ".join([key, *map(str, tensor.shape)]) + "\n")
