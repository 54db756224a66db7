"""bench/peers/gpu.py's tables of linear maps and kernels, with a stand-in for the GPU's profiler, which tells the names
that the emitted file launches. Needs torch. Usage: times_test.py GENERATOR MODEL NAME"""
import collections
import contextlib
import io
import pathlib
import re
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
from torch_stand_in import Profile, launches_of


def main():
    batch = 2
    with tempfile.TemporaryDirectory() as build:
        folder = pathlib.Path(build, "generated", "vit_toy_gpu")
        folder.mkdir(parents=True)
        # A tile that such sizes do not suggest: GEMMs by WGMMA, of which one stands for two rows.
        generator = [*sys.argv[1:], "--precision", "bf16", "--cuda-tile", "wgmma:64x128"]
        text = subprocess.run([*generator, "--predict", "H100", "--batch", str(batch)], capture_output=True, text=True,
                              check=True).stdout
        (folder / f"vit_toy_gpu_predicted_H100_{batch}.txt").write_text(text)
        subprocess.run([*generator, "--isa", "scalar", "--cuda", "--out", build], capture_output=True, check=True)
        emitted = pathlib.Path(build, f"{sys.argv[3]}_cuda.cu").read_text()
        options = types.SimpleNamespace(build=build, gpu="H100", gemms=True, kernels=True, rounds=2, seconds=0.001,
                                        contenders=["tessera"])
        predicted = gpu.Predicted("vit_toy", batch, options)
        assert all(x > 0 for trains in (False, True) for x in predicted.of(trains)), predicted.all
        assert not predicted.of(True) is None and gpu.Predicted("vit_toy", 3, options).of(True) is None

        # The emitted file's own names and loops: every kernel takes twice what is predicted of the plan's rows that it
        # stands for, and the kernels beside the plan a microsecond.
        launches = launches_of(emitted, "run_loss_and_gradients") + launches_of(emitted, "run_update")
        told = {name: count for name, (count, _) in predicted.kernels().items()}
        assert told == launches, sorted(told.items() ^ launches.items())
        rows = collections.Counter(row.kernel for row in predicted.step)
        assert any(count > 1 for count in rows.values()) and any(name.endswith("_train") for name in rows), rows
        Profile.kernels = {name: (launches[name], 2 * us) for name, (_, us) in predicted.kernels().items()} | {"count_on": (1, 1.0)}
        torch.profiler.profile, torch.cuda.synchronize = Profile, lambda: None
        gpu.Tessera = lambda *_: types.SimpleNamespace(run=lambda: None)
        for name in ("randn", "zeros"):  # on the CPU
            made = getattr(torch, name)
            setattr(torch, name, lambda *shape, device=None, made=made, **rest: made(*shape, **rest))

        def tables():
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                gpu.time_kernels("vit_toy", batch, options, None, types.SimpleNamespace(type="cuda"))
            return [[cell.strip() for cell in row.split("|")[1:-1]] for row in said.getvalue().splitlines()]
        said = tables()
        maps = [row for row in said if len(row) == 5 and "cuBLASLt" not in row[2] and row[0] != "---"]
        assert len(maps) == 12, maps  # four linear maps, forward and both gradients
        for name, _, _, ours, _ in maps:
            linear_map = "blocks_" + "_".join(name.split())
            us = sum(2 * row.microseconds for row in predicted.step
                     if re.sub("_(partial|sum|wgmma)|_partial_wgmma", "", row.name) == linear_map)
            assert us > 0 and ours.startswith(f"{us:.1f} us, "), (name, ours, us)
        kernels = {row[0]: row[1:] for row in said if len(row) == 4 and row[1] not in ("launches", "---")}
        assert kernels.pop("count_on") == ["1", "1.0", "-"], kernels
        assert kernels == {name: [str(count), f"{2 * us:.1f}", f"{us:.1f}"]
                           for name, (count, us) in predicted.kernels().items()}, kernels

        # A kernel that is not launched, and one that is launched too often.
        first, second = list(launches)[:2]
        del Profile.kernels[first]
        Profile.kernels[second] = (launches[second] + 1, 1.0)
        kernels = {row[0]: row[1:] for row in tables() if len(row) == 4}
        assert kernels[first][:2] == [f"0, planned are {launches[first]}", "-"], kernels[first]
        assert kernels[second][0] == f"{launches[second] + 1}, planned are {launches[second]}", kernels[second]

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        clock, done = gpu.Clock(20), []
        clock.do("eager", "first", lambda: done.append(1))
        clock.do("compiled", "second", lambda: done.append(2))  # takes longer to begin
        clock.longest["eager"] = 30
        clock.do("eager", "third", lambda: done.append(3))
        clock.do("sdpa", "fourth", lambda: done.append(4))
    assert done == [1, 4] and clock.cut == ["compiled: second", "eager: third"]
    names = {"NVIDIA H100 80GB HBM3": "H100", "NVIDIA H200": "H200", "NVIDIA A100-SXM4-80GB": "A100", "NVIDIA L4": None}
    assert {name: gpu.known_gpu(name) for name in names} == names
    print(f"{len(maps)} products of linear maps, {len(launches)} kernels for {len(predicted.step)} rows")


main()
