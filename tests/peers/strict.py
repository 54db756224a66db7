"""strict.py WRITE_EXPORTS GOLDEN_FOLDER: runs WRITE_EXPORTS, loads every exported file into the reference models with
strict=True, and compares their answers; halves must be the bits that PyTorch rounds to. Prints "skipped: ..." where PyTorch
is not installed."""
import os
import subprocess
import sys
import tempfile

OUTPUT = 1e-5


def main(program, golden):
    try:
        import torch
    except ImportError:
        print("skipped: PyTorch is not installed for this Python")
        return 0
    sys.path.insert(0, golden)
    import reference_models as R
    from tensors import load
    torch.set_num_threads(1)
    models = {
        "vit_mnist": R.MnistVit(),
        "vit_tiny_small": R.TimmVit(image=32, patch=8, d=24, heads=3, depth=2, classes=10),
        "vit_cifar_small": R.CifarVit(d=32, m=64, heads=4, layers=2, image=16),
        "vit_notebook_small": R.NotebookVit((3, 32, 24), (8, 8), d=16, heads=4, classes=10, blocks=3),
    }
    good = True
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder], check=True)
        read = lambda name, what: load(os.path.join(folder, f"{name}.{what}.safetensors"))
        for name, model in models.items():
            whole, answers = read(name, "F32"), read(name, "answers")
            model.load_state_dict(whole, strict=True)
            model.eval()
            with torch.no_grad():
                largest = (model(answers["images"]) - answers["outputs"]).abs().max().item()
            fits = largest <= OUTPUT
            for kind, dtype in (("F16", torch.float16), ("BF16", torch.bfloat16)):
                halves = read(name, kind)
                model.load_state_dict(halves, strict=True)
                fits = fits and all(
                    halves[key].dtype == dtype and torch.equal(halves[key].view(torch.int16),
                                                               whole[key].to(dtype).view(torch.int16)) for key in whole)
            good = good and fits
            print(f"{name}: {len(whole)} tensors loaded strictly, answers differ by at most {largest:.1e}"
                  f"{'' if fits else '  WRONG'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
