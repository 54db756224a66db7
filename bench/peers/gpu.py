#!/usr/bin/env python3
"""Times Vision Transformers on a GPU: Tessera's CUDA kernels beside PyTorch, in one process, each alone in memory.

Needs torch with CUDA, numpy and nvcc, and the emitted sources in --build (target bench_gpu_sources): its folders
generated/vit_*_gpu can be carried to the machine with the GPU together with this tree. Nothing else is built there.

PyTorch trains under bf16 autocast with its fused AdamW, and infers with parameters and images of bf16: eager, with
attention as one operation, and under torch.compile with mode max-autotune, for each size anew. Tessera's products are of
bf16 too, and a forward pass or a training step is one CUDA graph. Outputs are first compared with those of PyTorch in
single precision, by 0.05 of the largest, and the loss with that loss. Then each round takes at least --seconds; the table
shows medians over rounds. A row is printed as soon as it is known, the table of all at the end. torch.compile, which takes
minutes to begin, comes last.

MFU is the declared FLOPs, from the emitted header, over the time and the GPU's speed, which follows from its name (A100,
H100, H200; else say --tflops and --bandwidth). GB/s, of Tessera alone, are the bytes that its plan moves over the time: its
kernels' bytes are known, those of the others are not. "predicted" is what the plan should take on a GPU of that name; both
are there for batches whose prediction the build has written (1, 32 and 256). The roofline of a work is the longer of its
FLOPs at that speed and of one reading of its parameters (in training also of what the optimiser reads and writes, seven
times that) at the memory's; "of it" is that over the time.

--gemms times the linear maps of the models alone as well, forward and both gradients, as PyTorch runs them by cuBLASLt:
what a product can reach on this machine; beside them, in turns, Tessera's kernels for them, as the profiler times them
within a training step, epilogues included; what one emitted kernel takes for several of them is divided among them as
predicted. --kernels writes each kernel's launches and time in a step beside what is predicted of them.

A contender that does not agree, or fails, takes no other's times with it: the exit status is 1 at the end. What CUDA refuses
to go on after ends it at once, with the table so far. With --deadline no work is begun that would take longer than there is
time, by the contender's longest one so far; what was left out is named, and the exit status is 3. --libraries keeps what
nvcc makes, --compile-only does nothing else.

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
# By what stands in a GPU's name: TFLOP/s of dense bf16, GB/s of its memory. Measured, but for the A100's TFLOP/s, NVIDIA's.
GPUS = {"A100": (312, 1900), "H100": (790, 3000), "H200": (790, 4300)}
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
            from torch._inductor import select_algorithm
            select_algorithm.PRINT_AUTOTUNE = False  # a line for each tile that it tries
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


def known_gpu(name):
    """Which of GPUS a device's name tells of, if any: "NVIDIA H100 80GB HBM3"."""
    return next((gpu for gpu in GPUS if gpu in name), None)


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
    subprocess.run([nvcc, "-std=c++20", "-O3", "-shared", "--threads", "3", *target, "-Xcompiler", "-fPIC,-O1", *include,
                    *host, str(cu), "-o", str(out)], check=True)
    return out


Row = collections.namedtuple("Row", "name launches microseconds kernel")  # of a plan; of one launch; as it is emitted


class Predicted:
    """What --predict says of a model and a batch, as the build wrote it down; nothing where it did not."""

    def __init__(self, model, batch, options):
        name = emitted(model)
        file = pathlib.Path(options.build) / "generated" / name / f"{name}_predicted_{options.gpu}_{batch}.txt"
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


Work = collections.namedtuple("Work", "model batch trains")


def name_of(work):
    return f"{work.model} {'training step' if work.trains else 'forward'}, batch {work.batch}"


class Times:
    """Seconds by work and contender, one of which is in memory at a time."""

    def __init__(self, options, libraries, device):
        self.options, self.libraries, self.device = options, libraries, device
        self.wanted, self.seconds, self.failed = {}, collections.defaultdict(dict), False

    def images_of(self, work):
        random = torch.Generator().manual_seed(1)
        image = SIZES[work.model][0]
        images = torch.randn(work.batch, 3, image, image, generator=random).to(self.device)
        return images, torch.randint(0, 1000, (work.batch,), generator=random).to(self.device)

    def check(self, work, one, images, labels):
        """Against PyTorch in single precision, once for each work."""
        if work not in self.wanted:
            module = reference(work.model).to(self.device)
            with torch.no_grad():
                outputs = module(images)
                self.wanted[work] = outputs.cpu(), torch.nn.functional.cross_entropy(outputs, labels).item()
        outputs, loss = self.wanted[work]
        difference = ((one.outputs.cpu() - outputs).abs().max() / outputs.abs().max()).item()
        if not difference <= 0.05 or (work.trains and not abs(one.loss - loss) <= 0.05 * abs(loss)):
            raise RuntimeError(f"it does not agree: outputs by {difference:.2g}, loss {one.loss} and not {loss}")

    def take(self, work, kind):
        images, labels = self.images_of(work)
        try:
            one = (Tessera(self.libraries[work.model], self.options.build, work.model, images, labels, work.trains, self.device)
                   if kind == "tessera" else Torch(kind, work.model, images, labels, work.trains, self.device))
            self.check(work, one, images, labels)
            t = statistics.median(seconds(one.run, self.device, self.options.seconds) for _ in range(self.options.rounds))
        except (peers.Cannot, torch.cuda.OutOfMemoryError) as reason:
            print(f"{name_of(work)}: {kind} {reason}", flush=True)
            return
        except Exception as reason:
            self.failed = True
            print(f"{name_of(work)}: {kind} FAILED: {type(reason).__name__}: {reason}", flush=True)
            if self.device.type == "cuda":
                torch.cuda.synchronize()  # raises where nothing can run on the GPU any more
            return
        self.seconds[work][kind] = t
        print(f"| {kind} | {name_of(work)} | {self.cell(work, kind)} |", flush=True)

    def flops(self, work):
        return peers.macro(self.options.build, emitted(work.model), "TRAIN_FLOPS" if work.trains else "FORWARD_FLOPS", work.batch)

    def roofline(self, work):
        parameters = peers.macro(self.options.build, emitted(work.model), "PARAMETER_BYTES")
        return max(self.flops(work) / (1e12 * self.options.tflops),
                   parameters * (8 if work.trains else 1) / (1e9 * self.options.bandwidth))

    def cell(self, work, kind):
        t, predicted = self.seconds[work].get(kind), Predicted(work.model, work.batch, self.options).of(work.trains)
        if t is None:
            return "-"
        moved = f"{predicted[0] / t / 1e9:.0f} GB/s, " if kind == "tessera" and predicted else ""
        return (f"{1e3 * t:.2f} ms, {work.batch / t:.0f} images/s, MFU {100 * self.flops(work) / t / 1e12 / self.options.tflops:.0f} %, "
                f"{moved}{100 * self.roofline(work) / t:.0f} % of it")

    def table(self):
        kinds = self.options.contenders
        print("\n| work | " + " | ".join(kinds) + " | predicted | roofline | ours against the best peer |")
        print("|---" * (len(kinds) + 4) + "|")
        for work, times in self.seconds.items():
            predicted = Predicted(work.model, work.batch, self.options).of(work.trains)
            others = [t for kind, t in times.items() if kind != "tessera"]
            lead = f"{min(others) / times['tessera']:.2f} x" if "tessera" in times and others else "-"
            guess = f"{1e3 * predicted[1]:.2f} ms" if predicted else "-"
            print(f"| {name_of(work)} | " + " | ".join(self.cell(work, kind) for kind in kinds) +
                  f" | {guess} | {1e3 * self.roofline(work):.2f} ms | {lead} |", flush=True)


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
    if ours and not mine:
        print(f"\nthe profiler tells of no kernels in a training step of {model}, batch {batch}")
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
    """Whether there is time for more of a kind, by the longest work of that kind so far: one that takes minutes, as
    compiling does, cuts off no others."""
    FIRST = {"compiled": 240}  # seconds that one is taken to need before there was any: ViT-Base's step took more than 200 on an H200

    def __init__(self, deadline):
        self.begin, self.deadline, self.longest, self.cut = time.monotonic(), deadline, dict(self.FIRST), []

    def do(self, kind, name, work):
        started = time.monotonic()
        if self.deadline and self.begin + self.deadline - started < self.longest.get(kind, 5):
            self.cut.append(f"{kind}: {name}")
            return
        work()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.longest[kind] = max(self.longest.get(kind, 5), time.monotonic() - started)


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
    parser.add_argument("--tflops", type=float, help="of dense bf16; default: by the GPU's name")
    parser.add_argument("--bandwidth", type=float, help="of the GPU's memory, GB/s; the same")
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
    options.gpu = known_gpu(name) if options.device == "cuda" else "H200"
    if options.gpu is None and not (options.tflops and options.bandwidth):
        raise SystemExit(f"gpu.py: the speed of {name} is not known: say --tflops and --bandwidth")
    tflops, bandwidth = GPUS.get(options.gpu, (None, None))
    options.tflops, options.bandwidth = options.tflops or tflops, options.bandwidth or bandwidth
    print(f"PyTorch {torch.__version__} on {name}, for {options.architecture}; medians of {options.rounds} rounds\n")
    print("| contender | work | time |\n|---|---|---|", flush=True)
    works = [Work(model, batch, work == "training")
             for model in options.models for batch in options.batches for work in options.works]
    times = Times(options, libraries, device)
    options.contenders.sort(key=lambda kind: kind == "compiled")  # the last one

    def take(kinds):
        for kind in kinds:
            for work in works:
                clock.do(kind, name_of(work), lambda: times.take(work, kind))

    try:
        take([kind for kind in options.contenders if kind != "compiled"])
        for model, batch in dict.fromkeys(work[:2] for work in works) if options.gemms or options.kernels else []:
            clock.do("kernels", f"{model}, batch {batch}", lambda: time_kernels(model, batch, options, libraries[model], device))
        if "compiled" in options.contenders:
            times.table()  # what is known, whatever becomes of the rest
            print("\n| contender | work | time |\n|---|---|---|", flush=True)
        take([kind for kind in options.contenders if kind == "compiled"])
    finally:
        times.table()
    if clock.cut:
        print(f"\nthere was no time for: {'; '.join(clock.cut)}")
    return 1 if times.failed else 3 if clock.cut else 0


if __name__ == "__main__":
    sys.exit(main())
