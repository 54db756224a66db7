"""Writes the golden file of training recipes.  Usage: make_recipes.py OUT_DIR   (needs torch and numpy)

OUT_DIR/recipes/recipes.safetensors: a small classifier ("params.<key>"), the images and labels of 12 batches, and for
each recipe of tests/recipes/recipes.hpp, after 12 steps of PyTorch's own optimisers and schedulers, the parameters
("<recipe>.<key>"), the losses ("<recipe>.losses") and the learning rates ("<recipe>.rates").
"""
import copy
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
from make_golden import save

STEPS, BATCH, PER_EPOCH = 12, 5, 3


class Probe(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(6, 5)
        self.norm = torch.nn.LayerNorm(5)
        self.head = torch.nn.Linear(5, 3)

    def forward(self, images):
        return self.head(self.norm(torch.tanh(self.hidden(images.flatten(1)))))


def groups(model, decay):
    """Weight decay is of weights, not of biases and norms."""
    weights = [model.hidden.weight, model.head.weight]
    rest = [p for p in model.parameters() if all(p is not w for w in weights)]
    return [{"params": weights, "weight_decay": decay}, {"params": rest, "weight_decay": 0.0}]


def cosine(t, n, w, floor, rate):
    """Of the step after t steps; PyTorch's CosineAnnealingLR where there is no warm-up."""
    if t + 1 <= w:
        return rate * (t + 1) / w
    return floor + (rate - floor) * (1 + math.cos(math.pi * (t - w) / (n - w))) / 2


RECIPES = {
    "adam": dict(optimizer=lambda m: torch.optim.Adam(m.parameters(), lr=0.02)),
    "adam_decay": dict(optimizer=lambda m: torch.optim.Adam(groups(m, 0.3), lr=0.02)),
    "adamw": dict(optimizer=lambda m: torch.optim.AdamW(groups(m, 0.3), lr=0.02, betas=(0.8, 0.95), eps=1e-6)),
    "descent": dict(optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=0.1)),
    "momentum": dict(optimizer=lambda m: torch.optim.SGD(groups(m, 0.1), lr=0.1, momentum=0.9)),
    "nesterov": dict(optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.8, nesterov=True)),
    "clipped": dict(optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=0.5), clip=0.2),
    "averaged": dict(optimizer=lambda m: torch.optim.AdamW(groups(m, 0.1), lr=0.02), average=0.8),
    "smoothed": dict(optimizer=lambda m: torch.optim.Adam(m.parameters(), lr=0.02), smoothing=0.1),
    "accumulated": dict(optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=0.1), accumulate=3),
    "cosine": dict(optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=0.1),
                   schedule=lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, STEPS, eta_min=0.01)),
    "warm_cosine": dict(optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=1.0),
                        schedule=lambda o: torch.optim.lr_scheduler.LambdaLR(
                            o, lambda t: cosine(t, STEPS, 1.5 * PER_EPOCH, 0.01, 0.1))),
    "steps": dict(optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=0.1),
                  schedule=lambda o: torch.optim.lr_scheduler.StepLR(o, 2 * PER_EPOCH, gamma=0.5)),
}


def train(start, images, labels, optimizer, clip=0, average=0, smoothing=0, accumulate=1, schedule=None):
    model = copy.deepcopy(start)
    step = optimizer(model)
    rates = schedule(step) if schedule else None
    averaged = None
    if average:
        averaged = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(average))
    result = {"losses": [], "rates": []}
    for i in range(STEPS):
        loss = F.cross_entropy(model(images[i]), labels[i], label_smoothing=smoothing)
        result["losses"].append(loss.item())
        if i % accumulate == 0:
            step.zero_grad()
        (loss / accumulate).backward()
        if (i + 1) % accumulate:
            continue
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        result["rates"].append(step.param_groups[0]["lr"])
        step.step()
        if rates:
            rates.step()
        if averaged:
            averaged.update_parameters(model)
    result = {name: torch.tensor(numbers) for name, numbers in result.items()}
    result.update(model.state_dict())
    if averaged:
        result.update({"average." + name: p for name, p in averaged.module.state_dict().items()})
    return result


def main(out):
    torch.manual_seed(41)
    start = Probe()
    images, labels = torch.randn(STEPS, BATCH, 1, 2, 3), torch.randint(0, 3, (STEPS, BATCH))
    tensors = {"images": images, "labels": labels}
    tensors.update({"params." + name: p for name, p in start.state_dict().items()})
    for name, recipe in RECIPES.items():
        tensors.update({f"{name}.{key}": value for key, value in train(start, images, labels, **recipe).items()})
    folder = pathlib.Path(out) / "recipes"
    folder.mkdir(parents=True, exist_ok=True)
    save(folder / "recipes.safetensors", tensors)


if __name__ == "__main__":
    main(sys.argv[1])
