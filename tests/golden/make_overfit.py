"""Writes the golden file of batches learned by heart.  Usage: make_overfit.py OUT_DIR   (needs torch and numpy)

OUT_DIR/overfit.safetensors: for each model folder that make_golden.py and make_variants.py wrote into OUT_DIR, by its path,
PyTorch's loss after 600 Adam steps on its one batch from its parameters.
Where the head ends in a softmax or a tanh, the loss cannot fall to zero: outputs between bounds are taken for logits. The
least is log(e + 9) - 1 = 1.461 for the softmax; of the tanh's two images PyTorch brings one to log(e + 9/e) - 1 and leaves
the other at log(2e + 8/e) - 1, a second class at one, where the tanh has no gradient: 0.961 in the mean.
"""
import os
import sys

import reference_models as R
import torch
import torch.nn.functional as F
from make_golden import save
from make_variants import VARIANTS
from reference_vit import Vit
from tensors import load

STEPS = 600
MODELS = {
    "mnist_vit": (R.MnistVit(), 0.005),
    "cifar_vit_small": (R.CifarVit(d=32, m=64, heads=4, layers=2, image=16), 1e-3),
    "vit_tiny_small": (R.TimmVit(image=32, patch=8, d=24, heads=3, depth=2, classes=10), 1e-3),
    "notebook_vit_small": (R.NotebookVit((3, 32, 24), (8, 8), d=16, heads=4, classes=10, blocks=3), 1e-3),
    **{f"variants/{name}": (Vit(**spec, depth=2, classes=5), 1e-3) for name, spec in VARIANTS.items()},
}


def main(out):
    torch.set_num_threads(1)
    result = {}
    for folder, (model, rate) in MODELS.items():
        model.load_state_dict(load(os.path.join(out, folder, "params.safetensors")), strict=True)
        model.eval()
        batch = load(os.path.join(out, folder, "batch.safetensors"))
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        for _ in range(STEPS + 1):
            loss = F.cross_entropy(model(batch["images"]), batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        result[folder] = loss
        print(f"{folder}: {loss.item():.4f}")
    save(os.path.join(out, "overfit.safetensors"), result)


if __name__ == "__main__":
    main(sys.argv[1])
