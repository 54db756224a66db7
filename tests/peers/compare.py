"""compare.py TRAIN_FIFTY GOLDEN_FOLDER: runs TRAIN_FIFTY, trains the same models in PyTorch from the same weights on the
same batches, and compares losses and final parameters. Prints "skipped: ..." where PyTorch is not installed."""
import os
import subprocess
import sys
import tempfile

LOSS, PARAMETER = 1e-3, 1e-3


def is_key_bias(name):
    """A key's bias moves every score of a row alike, so its gradient is zero but for rounding, which Adam scales up to
    steps of the learning rate: nothing can be said of where it ends."""
    return "k_mappings" in name and name.endswith("bias") or name.endswith(("qkv.bias", "in_proj_bias"))


def train(model, tensors, prefix, rate):
    import torch
    import torch.nn.functional as F
    start = {name[len(prefix) + 7:]: t for name, t in tensors.items() if name.startswith(prefix + ".start.")}
    model.load_state_dict(start, strict=True)
    model.eval()  # no dropout: the emitted models have none
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for images, labels in zip(tensors[prefix + ".images"], tensors[prefix + ".labels"]):
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, dict(model.named_parameters())


def main(program, golden):
    try:
        import torch
    except ImportError:
        print("skipped: PyTorch is not installed for this Python")
        return 0
    sys.path.insert(0, golden)
    sys.dont_write_bytecode = True
    import reference_models as R
    from tensors import load
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "fifty.safetensors")
        subprocess.run([program, path], check=True)
        tensors = load(path)
    models = {
        "vit_mnist": (R.MnistVit(), 0.005),
        "vit_tiny_small": (R.TimmVit(image=32, patch=8, d=24, heads=3, depth=2, classes=10), 1e-3),
        "vit_cifar_small": (R.CifarVit(d=32, m=64, heads=4, layers=2, image=16), 1e-3),
    }
    good = True
    for name, (model, rate) in models.items():
        losses, parameters = train(model, tensors, name, rate)
        curve = max(abs(a - b) for a, b in zip(losses, tensors[name + ".losses"].tolist()))
        worst, where = 0.0, ""
        for key, theirs in parameters.items():
            ours, theirs = tensors[f"{name}.end.{key}"], theirs.detach()
            difference = (ours - theirs).abs()
            if is_key_bias(key):  # of fused biases, the middle third
                if "k_mappings" in key:
                    continue
                third = difference.numel() // 3
                difference = torch.cat([difference[:third], difference[2 * third:]])
            if difference.max().item() > worst:
                worst, where = difference.max().item(), key
        fits = curve <= LOSS and worst <= PARAMETER
        good = good and fits
        print(f"{name}: 50 steps, loss {losses[0]:.4f} to {losses[-1]:.4f}; losses differ by at most {curve:.1e}, "
              f"parameters by {worst:.1e} ({where}){'' if fits else '  TOO MUCH'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
