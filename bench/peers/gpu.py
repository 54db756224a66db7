#!/usr/bin/env python3
"""Times Vision Transformers on a GPU: Tessera's CUDA kernels beside PyTorch, in turns, in one process.

Needs torch with CUDA, numpy and nvcc, and the emitted sources in --build (target bench_gpu_sources): its folders
generated/vit_*_gpu can be carried to the machine with the GPU together with this tree. Nothing else is built there.

PyTorch trains under bf16 autocast with its fused AdamW, and infers with parameters and images of bf16: eager, with
attention as one operation, and under torch.compile with mode max-autotune, for each size anew. Tessera's products are of
bf16 too, and a forward pass or a training step is one CUDA graph. Outputs are first compared with those of PyTorch in
single precision, by 0.05 of the largest, and the loss with that loss. Then each round times every contender once, in turn,
for at least --seconds; the table shows medians over rounds.

MFU is the declared FLOPs, from the emitted header, over the time and --tflops. GB/s, of Tessera alone, are the bytes that
its plan moves over the time: its kernels' bytes are known, those of the others are not. "predicted" is what the plan should
take on an H200; both are there for batches whose prediction the build has written (1, 32 and 256). The roofline of a work
is the longer of its FLOPs at --tflops and of one reading of its parameters (in training also of what the optimiser reads
and writes, seven times that) at --bandwidth; "of it" is that over the time.

--gemms times the linear maps of the models alone as well, forward and both gradients, as PyTorch runs them by cuBLASLt:
what a product can reach on this machine; beside them, in turns, Tessera's kernels for them, as the profiler times them
within a training step, epilogues included; what one emitted kernel takes for several of them is divided among them as
predicted. --kernels writes each kernel's launches and time in a step beside what is predicted of them.

With --deadline no work is begun that would take longer than there is time, by the longest one so far; what was left out is
named, and the exit status is 3. --libraries keeps what nvcc makes, --compile-only does nothing else.

--device cpu runs everything on the CPU, Tessera's kernels by the tests' stand-in: for the model vit_toy alone, to see that
this script works. Its times say nothing.
"""
import argparse
import collections
import concurrent.futures
import ctypes
import gc
import os
import pathlib
import re
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
        if not trains:  # nothing has to be rounded again for each pass
            module, images = module.to(torch.bfloat16), images.to(torch.bfloat16)
        run = module
        if kind == "compiled":
            torch._dynamo.reset()  # else it gives up after some sizes, and runs eagerly without a word
            run = torch.compile(module, mode="max-autotune", dynamic=False)
        with torch.no_grad(), self.autocast(device, trains):
            self.outputs = module(images).float()
        if not trains:
            def job():
                with torch.no_grad():
                    run(images)
        else:
            optimizer = torch.optim.AdamW(module.parameters(), lr=RATE, fused=True)

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
    def autocast(device, enabled=True):
        return torch.autocast(device.type, torch.bfloat16, enabled=enabled)


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


def emitted(model):
    """Under which name the build emits it."""
    return f"{model}_gpu"


def architecture_of(device):
    """For nvcc. Warpgroups and tensor maps are of sm_90a alone, which native does not mean."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) == (9, 0):
        return "sm_90a"
    return "native"


def compiled(model, options, folder):
    """The emitted sources of a model as one library's file; `folder` may hold it already."""
    name = emitted(model)
    sources = pathlib.Path(options.build) / "generated" / name
    cu, out, include = sources / f"{name}_cuda.cu", pathlib.Path(folder) / f"lib{name}.so", [f"-I{sources}", f"-I{ROOT}"]
    if not cu.exists():
        raise SystemExit(f"{sources} holds no emitted model: cmake --build {options.build} --target bench_gpu_sources")
    if out.exists() and out.stat().st_mtime > cu.stat().st_mtime:
        return out
    host = [str(sources / f"{name}.cpp"), str(sources / f"{name}_scalar.cpp")]
    if options.device == "cpu":
        stand_in = [str(ROOT / "tests/cuda/host" / f) for f in ("run.cpp", "warpgroups.cpp", "cuda_runtime.cpp")]
        subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", *include,
                        '-DTESSERA_DEVICE_HEADER="tests/cuda/host/device.hpp"', *host, *stand_in, "-x", "c++", str(cu),
                        "-o", str(out)], check=True)
        return out
    nvcc = options.nvcc if os.path.exists(options.nvcc) else "nvcc"
    target = ["-gencode", "arch=compute_90a,code=sm_90a"] if options.architecture == "sm_90a" else [
        f"-arch={options.architecture}"]
    subprocess.run([nvcc, "-std=c++20", "-O3", "-shared", "-threads", "3", *target, "-Xcompiler", "-fPIC,-O1", *include,
                    *host, str(cu), "-o", str(out)], check=True)
    return out


Row = collections.namedtuple("Row", "name launches microseconds kernel")  # of a plan; of one launch; as it is emitted


class Predicted:
    """What --predict says of a model and a batch, as the build wrote it down; nothing where it did not."""

    def __init__(self, model, batch, options):
        name = emitted(model)
        file = pathlib.Path(options.build) / "generated" / name / f"{name}_predicted_{batch}.txt"
        self.step, self.all = [], {}  # rows of a training step; megabytes and microseconds of a program
        program = None
        for row in (line.split() for line in (file.read_text().splitlines() if file.exists() else [])):
            if row[1:2] == ["launches"]:
                program = row[0]
            elif row[:2] == ["in", "all"]:
                self.all[program] = float(row[3]), float(row[4])
            elif len(row) >= 7 and program not in (None, "forward"):
                self.step.append(Row(row[0], int(row[1]), float(row[6]), row[-1] if row[-2] == "as" else row[0]))

    def of(self, trains):
        """Bytes and seconds of a run."""
        parts = [self.all.get(p) for p in (("loss_and_gradients", "update") if trains else ("forward",))]
        return (sum(p[0] for p in parts) * 1e6, sum(p[1] for p in parts) / 1e6) if all(parts) else None

    def kernels(self):
        """Launches and microseconds in a training step by the emitted kernel, which may stand for several rows."""
        found = {}
        for row in self.step:
            launches, us = found.get(row.kernel, (0, 0))
            found[row.kernel] = launches + row.launches, us + row.launches * row.microseconds
        return found

    def of_rows(self, kernels):
        """Microseconds of one launch by row of the plan, of measured ones by emitted kernel: those of a kernel that
        stands for several rows are theirs as the prediction divides them."""
        all_of_it = self.kernels()
        return {row.name: kernels[row.kernel] * row.microseconds / all_of_it[row.kernel][1]
                for row in self.step if row.kernel in kernels}


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
        for one in list(ready):
            try:
                times[one.kind].append(seconds(one.run, device, options.seconds))
            except torch.cuda.OutOfMemoryError as reason:  # beside the others
                print(f"{model}, batch {batch}: {one.kind} {reason}")
                del times[one.kind]
                ready.remove(one)
    flops = peers.macro(options.build, emitted(model), "TRAIN_FLOPS" if trains else "FORWARD_FLOPS", batch)
    parameters = peers.macro(options.build, emitted(model), "PARAMETER_BYTES")
    roofline = max(flops / (1e12 * options.tflops), parameters * (8 if trains else 1) / (1e9 * options.bandwidth))
    predicted = Predicted(model, batch, options).of(trains)
    cells = []
    for kind in options.contenders:
        if kind not in times:
            cells.append("-")
            continue
        t = statistics.median(times[kind])
        moved = f"{predicted[0] / t / 1e9:.0f} GB/s, " if kind == "tessera" and predicted else ""
        cells.append(f"{1e3 * t:.2f} ms, {batch / t:.0f} images/s, MFU {100 * flops / t / 1e12 / options.tflops:.0f} %, "
                     f"{moved}{100 * roofline / t:.0f} % of it")
    mine = statistics.median(times["tessera"]) if "tessera" in times else None
    others = [statistics.median(t) for kind, t in times.items() if kind != "tessera"]
    lead = f"{min(others) / mine:.2f} x" if mine and others else "-"
    guess = f"{1e3 * predicted[1]:.2f} ms" if predicted else "-"
    what = "training step" if trains else "forward"
    print(f"| {model} {what}, batch {batch} | " + " | ".join(cells) +
          f" | {guess} | {1e3 * roofline:.2f} ms | {lead} |", flush=True)


def kernel_times(job):
    """Launches and microseconds of each kernel of a run, all its launches together, by the profiler."""
    runs, times, launches = 3, collections.Counter(), collections.Counter()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(runs):
            job()
        torch.cuda.synchronize()
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            times[kernel_name(event.name)] += event.time_range.elapsed_us() / runs
            launches[kernel_name(event.name)] += 1
    return {name: (launches[name] / runs, us) for name, us in times.items()}


def kernel_name(name):
    """Of "void (anonymous namespace)::NAME<...>(...)"."""
    return re.match(r"\w*", re.sub(r"^void |\(anonymous namespace\)::|<unnamed>::", "", name)).group()


def linear_map_of(row):
    """Which linear map of a block a row of our plan is, and what of it; or nothing. The last block, whose rows have
    names of their own, computes less than the others."""
    found = re.fullmatch(r"blocks_(attn_qkv|attn_proj|mlp_fc1|mlp_fc2)_(forward|backward|weight_gradient)"
                         r"(?:_partial|_sum)?(?:_wgmma)?", row)
    return found and (found.group(1), found.group(2))


def products_of(model, batch, device):
    """A function for each product of the linear maps of a block, and its rows, columns and depth."""
    d, image = SIZES[model][1], SIZES[model][0]
    rows = ((image // 16) ** 2 + 1) * batch
    products = {}
    for name, k, n in (("attn_qkv", d, 3 * d), ("attn_proj", d, d), ("mlp_fc1", d, 4 * d), ("mlp_fc2", 4 * d, d)):
        x, y = (torch.randn(rows, c, device=device, dtype=torch.bfloat16) for c in (k, n))
        w, b = torch.randn(n, k, device=device, dtype=torch.bfloat16), torch.randn(n, device=device, dtype=torch.bfloat16)
        products[name, "forward"] = (lambda x=x, w=w, b=b: torch.nn.functional.linear(x, w, b)), (rows, n, k)
        products[name, "backward"] = (lambda y=y, w=w: y @ w), (rows, k, n)
        products[name, "weight_gradient"] = (lambda x=x, y=y: y.T @ x), (n, k, rows)
    return products


def time_kernels(model, batch, options, library, device):
    """The table of linear maps, or that of kernels, or both."""
    image = SIZES[model][0]
    ours = None
    if device.type == "cuda" and "tessera" in options.contenders:
        images, labels = torch.randn(batch, 3, image, image, device=device), torch.zeros(batch, dtype=int, device=device)
        ours = Tessera(library, options.build, model, images, labels, True, device)
        kernel_times(ours.run)  # the profiler itself begins slowly
    products = products_of(model, batch, device) if options.gemms else {}
    library_times, kernels, launches = collections.defaultdict(list), collections.defaultdict(list), {}
    with torch.no_grad():
        for _ in range(options.rounds):
            for name, (launches[name], us) in (kernel_times(ours.run) if ours else {}).items():
                kernels[name].append(us)
            for name, (product, _) in products.items():
                library_times[name].append(seconds(product, device, options.seconds / 10))
    mine = {name: statistics.median(us) for name, us in kernels.items()}
    predicted = Predicted(model, batch, options)
    guesses = predicted.kernels()
    if options.gemms:
        of_rows = predicted.of_rows(mine)
        print(f"\n| linear map of {model}, batch {batch} | rows, columns, depth | cuBLASLt, bf16 | tessera | |\n" + "|---" * 5 + "|")
        for name, (_, (m, n, k)) in products.items():
            def cell(t):
                return f"{1e6 * t:.1f} us, {2 * m * n * k / t / 1e12:.0f} TFLOP/s, {2 * (m * k + n * k + m * n) / t / 1e9:.0f} GB/s"
            theirs = statistics.median(library_times[name])
            parts = [us for row, us in of_rows.items() if linear_map_of(row) == name]
            t = sum(parts) / 1e6
            print(f"| {' '.join(name)} | {m}, {n}, {k} | {cell(theirs)} | " +
                  (f"{cell(t)} | {theirs / t:.2f} x |" if parts else "- | - |"), flush=True)
    if options.kernels and mine:
        print(f"\n| kernel of a training step of {model}, batch {batch} | launches | us, all launches | predicted |\n" + "|---" * 4 + "|")
        for name, us in sorted(mine.items(), key=lambda row: -row[1]):
            starts, guess = f"{launches[name]:g}", "-"  # beside the plan's kernels there are the next step's number and the like
            if name in guesses:
                starts += "" if guesses[name][0] == launches[name] else f", planned are {guesses[name][0]}"
                guess = f"{guesses[name][1]:.1f}"
            print(f"| {name} | {starts} | {us:.1f} | {guess} |", flush=True)
        for name in guesses.keys() - mine.keys():
            print(f"| {name} | 0, planned are {guesses[name][0]} | - | {guesses[name][1]:.1f} |", flush=True)


class Clock:
    """Whether there is time for more, by the longest work so far."""

    def __init__(self, deadline):
        self.begin, self.deadline, self.longest, self.cut = time.monotonic(), deadline, 5, []

    def do(self, name, work):
        started = time.monotonic()
        if self.deadline and self.begin + self.deadline - started < self.longest:
            self.cut.append(name)
            return
        work()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.longest = max(self.longest, time.monotonic() - started)


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
    parser.add_argument("--kernels", action="store_true", help="time each of Tessera's kernels as well")
    parser.add_argument("--deadline", type=float, help="seconds that all may take")
    parser.add_argument("--libraries", help="folder that keeps the compiled models")
    parser.add_argument("--compile-only", action="store_true", help="fill --libraries")
    parser.add_argument("--tflops", type=float, default=790, help="of dense bf16; the default was measured on an H200")
    parser.add_argument("--bandwidth", type=float, default=4300, help="of the GPU's memory, GB/s; the same")
    parser.add_argument("--nvcc", default="/usr/local/cuda/bin/nvcc")
    parser.add_argument("--architecture", help="for nvcc: sm_80, sm_90a, native; default: what the GPU is")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options = parser.parse_args()
    clock = Clock(options.deadline)
    if options.device == "cuda" and not torch.cuda.is_available() and not (options.compile_only and options.architecture):
        raise SystemExit("gpu.py: PyTorch finds no GPU here")
    options.models = options.models or [m for m in SIZES if (m == "vit_toy") == (options.device == "cpu")]
    device = torch.device(options.device)
    options.architecture = options.architecture or architecture_of(device)
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor() as pool:
        if options.libraries:
            os.makedirs(options.libraries, exist_ok=True)
        files = dict(zip(options.models, pool.map(lambda model: compiled(model, options, options.libraries or temporary),
                                                  options.models)))
        if options.compile_only:
            return 0
        libraries = {model: ctypes.CDLL(str(file)) for model, file in files.items()}
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if options.device == "cuda":
        torch.backends.cuda.preferred_blas_library("cublaslt")
    name = torch.cuda.get_device_name() if options.device == "cuda" else "the CPU, by the stand-in for a GPU"
    print(f"PyTorch {torch.__version__} on {name}, for {options.architecture}; medians of {options.rounds} rounds in turns\n")
    print("| work | " + " | ".join(options.contenders) + " | predicted | roofline | ours against the best peer |")
    print("|---" * (len(options.contenders) + 4) + "|", flush=True)
    works = [(model, batch) for model in options.models for batch in options.batches]
    for model, batch in works:
        for work in options.works:
            clock.do(f"{model} {work}, batch {batch}",
                     lambda: time_model(model, batch, work == "training", options, libraries[model], device))
    clock.longest = 20  # these take less
    for model, batch in works if options.gemms or options.kernels else []:
        clock.do(f"kernels of {model}, batch {batch}", lambda: time_kernels(model, batch, options, libraries[model], device))
    if clock.cut:
        print(f"\nthere was no time for: {'; '.join(clock.cut)}")
    return 3 if clock.cut else 0


if __name__ == "__main__":
    sys.exit(main())
