#!/usr/bin/env python3
"""Times Vision Transformers on a GPU: Tessera's CUDA kernels beside PyTorch, in turns, in one process.

Needs torch with CUDA, numpy and nvcc, and the emitted sources in --build (target bench_gpu_sources): its folders
generated/vit_*_gpu can be carried to the machine with the GPU together with this tree. Nothing else is built there.

PyTorch runs under bf16 autocast with its fused Adam: eager, with attention as one operation, and under torch.compile with
mode max-autotune. Tessera's products are of bf16 too, and a forward pass or a training step is one CUDA graph. Outputs are
first compared with those of PyTorch in single precision, by 0.05 of the largest, and the loss with that loss. Then each
round times every contender once, in turn, for at least --seconds; the table shows medians over rounds.

MFU is the declared FLOPs, from the emitted header, over the time and --tflops. The roofline of a work is the longer of its
FLOPs at --tflops and of one reading of its parameters (in training also of what the optimiser reads and writes, seven times
that) at --bandwidth; "of it" is that over the time. --gemms times the linear maps of the models alone, as PyTorch runs them
by cuBLASLt: what a product can reach on this machine.

--device cpu runs everything on the CPU, Tessera's kernels by the tests' stand-in: for the model vit_toy alone, to see that
this script works. Its times say nothing.
"""
import argparse
import ctypes
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import numpy as np
import torch

import cpu as peers  # what the CPU's comparison knows of reading headers

ROOT = peers.ROOT
RATE = 1e-4
SIZES = {"vit_tiny": (224, 192, 3, 12), "vit_small": (224, 384, 6, 12), "vit_base": (224, 768, 12, 12),
         "vit_large": (224, 1024, 16, 24), "vit_toy": (32, 64, 2, 1)}  # image, width, heads, depth; patches of 16


def reference(model):
    sys.path.insert(0, str(ROOT / "tests" / "golden"))
    import reference_models as R
    torch.manual_seed(1)
    image, d, heads, depth = SIZES[model]
    return R.TimmVit(image=image, patch=16, d=d, heads=heads, depth=depth, classes=1000)


class Torch:
    """A job is a function without arguments; `outputs` and `loss` are what it gave."""

    def __init__(self, kind, model, images, labels, trains, device):
        self.kind = kind
        module = reference(model).to(device)
        if kind != "eager":
            peers.fuse_attention(module)
        module.train(trains)
        run = torch.compile(module, mode="max-autotune") if kind == "compiled" else module
        with torch.no_grad(), self.autocast(device):
            self.outputs = module(images).float()
        if not trains:
            def job():
                with torch.no_grad(), self.autocast(device):
                    run(images)
        else:
            optimizer = torch.optim.Adam(module.parameters(), lr=RATE, fused=True)

            def job():
                with self.autocast(device):
                    loss = torch.nn.functional.cross_entropy(run(images), labels)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                return loss.detach()
        self.run = job
        first = job()
        self.loss = float(first) if trains else None

    @staticmethod
    def autocast(device):
        return torch.autocast(device.type, torch.bfloat16)


class Tessera:
    """The emitted kernels; what they need lies in PyTorch's memory, and runs in its stream."""
    kind = "tessera"

    def __init__(self, library, folder, model, images, labels, trains, device):
        batch, name = len(images), emitted(model)
        limit = library[f"{name}_cuda_largest_batch"]
        limit.restype = ctypes.c_int64
        if batch > limit():
            raise peers.Cannot(f"has no room for {batch} images")
        def macro(what):
            return peers.macro(folder, name, what, batch)

        rows = (peers.Tessera.Parameter * macro("PARAMETERS")).in_dll(library, f"{name}_parameters")
        arena = np.zeros(macro("PARAMETER_FLOATS"), np.float32)
        peers.fill(arena, rows, reference(model).state_dict())
        self.parameters = torch.from_numpy(arena).to(device)
        self.packed = torch.zeros(macro("CUDA_PACKED_BYTES"), dtype=torch.uint8, device=device)
        self.images, self.labels = images.contiguous(), labels.to(torch.int32)
        self.outputs = torch.zeros(batch, macro("OUTPUT_FLOATS"), device=device)
        self.answer = torch.zeros(1, device=device)
        what = "TRAIN" if trains else "FORWARD"
        bytes_ = max(macro(f"CUDA_{what}_SCRATCH_BYTES"), macro("CUDA_UPDATE_SCRATCH_BYTES"), 1)
        self.scratch = torch.zeros(bytes_, dtype=torch.uint8, device=device)
        count = ctypes.c_int64(batch)
        if trains:
            self.gradients = torch.zeros_like(self.parameters)
            self.optimizer = torch.zeros(macro("OPTIMIZER_FLOATS"), device=device)
            step = struct.pack("<Qqf", 1, 1, RATE).ljust(64, b"\0")  # tessera_cuda_step, and room behind it
            self.step = torch.frombuffer(bytearray(step), dtype=torch.uint8).to(device)

        def call(function, *arguments):
            passed = [ctypes.c_void_p(a.data_ptr()) if torch.is_tensor(a) else a for a in arguments]
            stream = torch.cuda.current_stream().cuda_stream if device.type == "cuda" else 0
            peers.check(library[f"{name}_cuda_{function}"](*passed, ctypes.c_void_p(stream)), f"{name}_cuda_{function}")

        def forward():
            call("forward", self.parameters, self.packed, self.images, count, self.outputs, self.scratch)

        def train():
            call("train_step", self.parameters, self.packed, self.gradients, self.optimizer, self.images, self.labels,
                 self.step, count, self.outputs, self.answer, self.scratch)
            call("next_step", self.step)

        call("pack", self.parameters, self.packed)
        job = train if trains else forward
        job()  # loads the kernels
        first = self.outputs.clone()
        self.loss = float(self.answer) if trains else None
        self.run = self.graph(job) if device.type == "cuda" else job
        self.outputs = first

    @staticmethod
    def graph(job):
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            job()
        return graph.replay

    def macro(self, what, batch=0):
        return macro(self.header, self.name, what, batch)


def emitted(model):
    """Under which name the build emits it."""
    return f"{model}_gpu"


def architecture_of(device):
    """For nvcc. Warpgroups and tensor maps are of sm_90a alone, which native does not mean."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) == (9, 0):
        return "sm_90a"
    return "native"


def compiled(model, options, folder):
    """The emitted sources of a model as one library."""
    name = emitted(model)
    sources = pathlib.Path(options.build) / "generated" / name
    cu, out, include = sources / f"{name}_cuda.cu", f"{folder}/lib{name}.so", [f"-I{sources}", f"-I{ROOT}"]
    if not cu.exists():
        raise SystemExit(f"{sources} holds no emitted model: cmake --build {options.build} --target bench_gpu_sources")
    host = [str(sources / f"{name}.cpp"), str(sources / f"{name}_scalar.cpp")]
    if options.device == "cpu":
        stand_in = [str(ROOT / "tests/cuda/host" / f) for f in ("run.cpp", "cuda_runtime.cpp")]
        subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", *include,
                        '-DTESSERA_DEVICE_HEADER="tests/cuda/host/device.hpp"', *host, *stand_in, "-x", "c++", str(cu),
                        "-o", out], check=True)
    else:
        nvcc = options.nvcc if os.path.exists(options.nvcc) else "nvcc"
        subprocess.run([nvcc, "-std=c++20", "-O3", "-shared", f"-arch={options.architecture}", "-Xcompiler", "-fPIC,-O1",
                        *include, *host, str(cu), "-o", out], check=True)
    return ctypes.CDLL(out)


def seconds(job, device, least):
    """Of one run, over as many as take the least time."""
    def wait():
        if device.type == "cuda":
            torch.cuda.synchronize()

    job()
    wait()
    begin, runs = time.perf_counter(), 0
    while time.perf_counter() - begin < least or runs < 3:
        for _ in range(5):
            job()
        runs += 5
        wait()
    return (time.perf_counter() - begin) / runs


def time_model(model, batch, trains, options, library, device):
    image = SIZES[model][0]
    random = torch.Generator().manual_seed(1)
    images = torch.randn(batch, 3, image, image, generator=random).to(device)
    labels = torch.randint(0, 1000, (batch,), generator=random).to(device)
    module = reference(model).to(device)
    with torch.no_grad():
        expected = module(images)
        loss = torch.nn.functional.cross_entropy(expected, labels).item()
    del module
    ready = []
    for kind in options.contenders:
        try:
            one = (Tessera(library, options.build, model, images, labels, trains, device) if kind == "tessera"
                   else Torch(kind, model, images, labels, trains, device))
        except (peers.Cannot, torch.cuda.OutOfMemoryError) as reason:
            print(f"{model}, batch {batch}: {kind} {reason}")
            continue
        difference = ((one.outputs - expected).abs().max() / expected.abs().max()).item()
        if not difference <= 0.05 or (trains and not abs(one.loss - loss) <= 0.05 * abs(loss)):
            raise SystemExit(f"{kind} does not agree on {model}: outputs by {difference:.2g}, loss {one.loss} and not {loss}")
        ready.append(one)
    times = {one.kind: [] for one in ready}
    for _ in range(options.rounds):
        for one in ready:
            times[one.kind].append(seconds(one.run, device, options.seconds))
    flops = peers.macro(options.build, emitted(model), "TRAIN_FLOPS" if trains else "FORWARD_FLOPS", batch)
    parameters = peers.macro(options.build, emitted(model), "PARAMETER_BYTES")
    roofline = max(flops / (1e12 * options.tflops), parameters * (8 if trains else 1) / (1e9 * options.bandwidth))
    cells = []
    for kind in options.contenders:
        if kind not in times:
            cells.append("-")
            continue
        t = statistics.median(times[kind])
        cells.append(f"{1e3 * t:.2f} ms, {batch / t:.0f} images/s, MFU {100 * flops / t / 1e12 / options.tflops:.0f} %, "
                     f"{100 * roofline / t:.0f} % of it")
    mine = statistics.median(times["tessera"]) if "tessera" in times else None
    others = [statistics.median(t) for kind, t in times.items() if kind != "tessera"]
    lead = f"{min(others) / mine:.2f} x" if mine and others else "-"
    what = "training step" if trains else "forward"
    print(f"| {model} {what}, batch {batch} | " + " | ".join(cells) + f" | {1e3 * roofline:.2f} ms | {lead} |", flush=True)


def time_gemms(options, device):
    print("\n| linear map | rows | cuBLASLt, bf16 |\n|---|---|---|")
    for model in options.models:
        d = SIZES[model][1]
        for k, n in ((d, 3 * d), (d, d), (d, 4 * d), (4 * d, d)):
            for batch in options.batches:
                rows = ((SIZES[model][0] // 16) ** 2 + 1) * batch
                x = torch.randn(rows, k, device=device, dtype=torch.bfloat16)
                linear = torch.nn.Linear(k, n, device=device, dtype=torch.bfloat16)
                with torch.no_grad():
                    t = seconds(lambda: linear(x), device, options.seconds)
                print(f"| {model} {k} to {n} | {rows} | {1e6 * t:.1f} us, {2 * rows * k * n / t / 1e12:.0f} TFLOP/s, "
                      f"{2 * (rows * (k + n) + k * n) / t / 1e9:.0f} GB/s |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="where generated/ is, with the emitted models")
    parser.add_argument("--models", nargs="+", choices=SIZES)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32, 256])
    parser.add_argument("--works", nargs="+", choices=["forward", "training"], default=["forward", "training"])
    parser.add_argument("--contenders", nargs="+", choices=["tessera", "eager", "sdpa", "compiled"],
                        default=["tessera", "eager", "sdpa", "compiled"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--gemms", action="store_true", help="time the linear maps alone as well")
    parser.add_argument("--tflops", type=float, default=790, help="of dense bf16; the default was measured on an H200")
    parser.add_argument("--bandwidth", type=float, default=4300, help="of the GPU's memory, GB/s; the same")
    parser.add_argument("--nvcc", default="/usr/local/cuda/bin/nvcc")
    parser.add_argument("--architecture", help="for nvcc: sm_80, sm_90a, native; default: what the GPU is")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("gpu.py: PyTorch finds no GPU here")
    options.models = options.models or [m for m in SIZES if (m == "vit_toy") == (options.device == "cpu")]
    device = torch.device(options.device)
    options.architecture = options.architecture or architecture_of(device)
    torch.backends.cuda.matmul.allow_tf32 = False
    name = torch.cuda.get_device_name() if options.device == "cuda" else "the CPU, by the stand-in for a GPU"
    print(f"PyTorch {torch.__version__} on {name}; medians of {options.rounds} rounds in turns\n")
    with tempfile.TemporaryDirectory() as folder:
        libraries = {model: compiled(model, options, folder) for model in options.models}
        print("| work | " + " | ".join(options.contenders) + " | roofline | ours against the best peer |")
        print("|---" * (len(options.contenders) + 3) + "|")
        for model, library in libraries.items():
            for trains in (work == "training" for work in options.works):
                for batch in options.batches:
                    time_model(model, batch, trains, options, library, device)
    if options.gemms:
        time_gemms(options, device)


if __name__ == "__main__":
    main()
