"""bench/peers/gpu.py's tables of linear maps and kernels, with a stand-in for the GPU's profiler: what --predict says is
taken as measured. Needs torch. Usage: times_test.py GENERATOR [MODEL NAME]"""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import types

try:
    import numpy
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"))
import gpu


class Profile:
    kernels = {}

    def __init__(self, activities):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def events(self):  # of three runs
        for name, us in self.kernels.items():
            for _ in range(3):
                yield types.SimpleNamespace(name=f"void (anonymous namespace)::{name}(int, float*)",
                                            device_type=torch.autograd.DeviceType.CUDA,
                                            time_range=types.SimpleNamespace(elapsed_us=lambda us=us: us))


def main():
    batch = 2
    with tempfile.TemporaryDirectory() as build:
        folder = pathlib.Path(build, "generated", "vit_toy_gpu")
        folder.mkdir(parents=True)
        text = subprocess.run([*sys.argv[1:], "--precision", "bf16", "--predict", "sm_90a", "--batch", str(batch)],
                              capture_output=True, text=True, check=True).stdout
        (folder / f"vit_toy_gpu_predicted_{batch}.txt").write_text(text)
        options = types.SimpleNamespace(build=build, gemms=True, kernels=True, rounds=2, seconds=0.001,
                                        contenders=["tessera"])
        predicted = gpu.Predicted("vit_toy", batch, options)
        assert all(x > 0 for trains in (False, True) for x in predicted.of(trains)), predicted.all
        Profile.kernels = predicted.kernels
        torch.profiler.profile, torch.cuda.synchronize = Profile, lambda: None
        gpu.Tessera = lambda *_: types.SimpleNamespace(run=lambda: None)
        for name in ("randn", "zeros"):  # on the CPU
            made = getattr(torch, name)
            setattr(torch, name, lambda *shape, device=None, made=made, **rest: made(*shape, **rest))
        gpu.SIZES["vit_toy"] = gpu.SIZES["vit_toy"][:3] + (3,)  # layers, of which the last has names of its own
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            gpu.time_kernels("vit_toy", batch, options, None, types.SimpleNamespace(type="cuda"))
    rows = said.getvalue().splitlines()
    maps = [row for row in rows if row.count("TFLOP/s") == 2]
    assert len(maps) == 12, said.getvalue()  # four linear maps, forward and both gradients, by both
    kernels = [[cell.strip() for cell in row.split("|")[1:4]] for row in rows[rows.index("|---|---|---|") + 1:]]
    assert {name for name, _, _ in kernels} == set(predicted.kernels), kernels
    assert all(measured == guess for _, measured, guess in kernels), kernels
    assert not predicted.of(True) is None and gpu.Predicted("vit_toy", 3, options).of(True) is None

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        clock, done = gpu.Clock(20), []
        clock.do("first", lambda: done.append(1))
        clock.longest = 30
        clock.do("second", lambda: done.append(2))
    assert done == [1] and clock.cut == ["second"]
    print(f"{len(maps)} products of linear maps, {len(kernels)} kernels")


main()
