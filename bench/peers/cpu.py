"""The same models, weights and batches in Tessera and in PyTorch, timed in turns on one machine.

Usage: cpu.py [--build build/release] [--threads 1 2] [--rounds 5] [--works NAME ...] [--compile]

Needs torch and numpy, g++, and the models built in --build. Every contender is a process of its own that waits while the
others work. First all outputs (and training losses) are compared with PyTorch's, 1e-4 of the largest; then each round
times every contender once, in turn (the fastest of three runs after one to warm up); the table shows the median over rounds, and
the share of the FMA ceiling that is measured in the same session: 2 FLOPs a multiply-add of the model as declared, from the
emitted header. A machine that does anything else gives other numbers. --compile adds torch.compile, which takes minutes.
"""
import argparse
import ctypes
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent.parent / "tests" / "golden"

# name: model, batch, whether it trains
WORKS = {
    "vit_tiny forward 1": ("vit_tiny", 1, False),
    "vit_tiny forward 8": ("vit_tiny", 8, False),
    "vit_tiny training step 8": ("vit_tiny", 8, True),
    "vit_cifar training step 64": ("vit_cifar", 64, True),
    "vit_mnist forward 128": ("vit_mnist", 128, False),
    "vit_mnist training step 128": ("vit_mnist", 128, True),
}
IMAGES = {"vit_tiny": (3, 224, 224), "vit_cifar": (3, 32, 32), "vit_mnist": (1, 28, 28)}
RATE = 1e-3


def reference(model):
    sys.path.insert(0, str(GOLDEN))
    sys.dont_write_bytecode = True
    import reference_models as R
    if model == "vit_tiny":
        return R.TimmVit(image=224, patch=16, d=192, heads=3, depth=12, classes=1000)
    return R.CifarVit() if model == "vit_cifar" else R.MnistVit()


def data(model, batch):
    import numpy as np
    random = np.random.default_rng(1)
    images = random.standard_normal((batch, *IMAGES[model]), dtype=np.float32)
    return images, random.integers(0, 10, batch)


class Torch:
    def __init__(self, folder, threads, compiled):
        import torch
        torch.set_num_threads(threads)
        self.torch, self.folder, self.compiled = torch, folder, compiled
        self.jobs = {}

    def prepare(self, work):
        torch = self.torch
        name, batch, trains = WORKS[work]
        torch.manual_seed(1)
        model = reference(name)
        model.load_state_dict(torch.load(f"{self.folder}/{name}.pt"), strict=True)
        images, labels = (torch.from_numpy(a) for a in data(name, batch))
        model.eval()
        with torch.no_grad():
            outputs = model(images)
        import numpy as np
        np.save(f"{self.folder}/torch.npy", outputs.numpy())
        model.train(trains)
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        run = torch.compile(model) if self.compiled else model

        def forward():
            with torch.inference_mode():
                run(images)

        def step():
            loss = torch.nn.functional.cross_entropy(run(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        self.jobs[work] = step if trains else forward
        self.jobs[work]()
        return {}


class Ours:
    """The emitted sources of the build, as shared libraries."""

    class Parameter(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("rank", ctypes.c_int32), ("decay", ctypes.c_int32),
                    ("shape", ctypes.c_int64 * 8), ("offset", ctypes.c_int64), ("named_shape", ctypes.c_char_p)]

    def __init__(self, folder, threads, build, isa):
        self.folder, self.build = folder, pathlib.Path(build)
        os.environ["TESSERA_ISA"] = isa
        self.libraries, self.jobs = {}, {}
        self.threads = threads

    def library(self, name):
        if name not in self.libraries:
            self.libraries[name] = ctypes.CDLL(str(pathlib.Path(self.folder) / f"lib{name}.so"))
        return self.libraries[name]

    def header(self, name):
        return (self.build / "generated" / name / f"{name}.h").read_text()

    def macro(self, name, what, batch=0):
        text = re.search(rf"#define {name.upper()}_{what}(\(batch\))? (.*)", self.header(name)).group(2)
        numbers = [int(n) for n in re.findall(r"INT64_C\((\d+)\)", text)] or [int(text.split()[0])]
        return numbers[0] + (numbers[1] * batch if len(numbers) > 1 else 0)

    @staticmethod
    def aligned(floats):
        import numpy as np
        raw = np.zeros(floats + 16, np.float32)
        return raw[(-raw.ctypes.data // 4) % 16:][:floats]

    def prepare(self, work):
        import numpy as np
        import torch
        name, batch, trains = WORKS[work]
        library = self.library(name)
        state = torch.load(f"{self.folder}/{name}.pt")
        rows = (self.Parameter * self.macro(name, "PARAMETERS")).in_dll(library, f"{name}_parameters")
        parameters = self.aligned(self.macro(name, "PARAMETER_FLOATS"))
        for row in rows:
            flat = state[row.name.decode()].numpy().ravel()
            parameters[row.offset:row.offset + flat.size] = flat
        images, labels = data(name, batch)
        labels = labels.astype(np.int32)
        classes = self.macro(name, "OUTPUT_FLOATS")
        outputs, loss = np.zeros((batch, classes), np.float32), np.zeros(1, np.float32)
        pointer = lambda a: ctypes.c_void_p(a.ctypes.data)
        scratch = self.aligned(self.macro(name, "FORWARD_SCRATCH_BYTES", batch) // 4)
        forward = getattr(library, f"{name}_forward")
        arguments = [pointer(parameters), pointer(images), ctypes.c_int64(batch), pointer(outputs), pointer(scratch)]
        check(forward(*arguments), f"{name}_forward")
        np.save(f"{self.folder}/ours.npy", outputs)
        keep = (parameters, images, labels, outputs, loss, scratch)
        if trains:
            gradients = self.aligned(parameters.size)
            optimizer = self.aligned(self.macro(name, "OPTIMIZER_FLOATS"))
            train = self.aligned(self.macro(name, "TRAIN_SCRATCH_BYTES", batch) // 4)
            keep += (gradients, optimizer, train)
            function = getattr(library, f"{name}_train_step")
            step = iter(range(1, 1 << 30))

            def job():
                check(function(pointer(parameters), pointer(gradients), pointer(optimizer), pointer(images),
                               pointer(labels), ctypes.c_int64(batch), ctypes.c_uint64(1), ctypes.c_int64(next(step)),
                               ctypes.c_float(RATE), pointer(outputs), pointer(loss), pointer(train)), name)
        else:
            def job():
                check(forward(*arguments), name)
        self.jobs[work] = job
        self.jobs[work].keep = keep
        job()
        return {"flops": self.macro(name, "TRAIN_FLOPS" if trains else "FORWARD_FLOPS", batch)}

    def ceiling(self, wide):
        library = ctypes.CDLL(str(pathlib.Path(self.folder) / "libceiling.so"))
        library.ceiling_gflops.restype = ctypes.c_double
        return library.ceiling_gflops(wide, self.threads)


def check(code, what):
    if code:
        raise RuntimeError(f"{what} answered error {code}")


def worker(kind, folder, threads, build):
    os.environ["OMP_NUM_THREADS"] = str(threads)
    contender = Torch(folder, threads, kind == "compiled") if kind in ("eager", "compiled") else Ours(folder, threads, build, kind)
    for line in sys.stdin:
        command, argument = json.loads(line)
        if command == "prepare":
            answer = contender.prepare(argument)
        elif command == "ceiling":
            answer = contender.ceiling(argument)
        else:
            job = contender.jobs[argument]
            times = []
            for _ in range(4):
                begin = time.perf_counter()
                job()
                times.append(time.perf_counter() - begin)
            answer = min(times[1:])
        print(json.dumps(answer), flush=True)


class Process:
    def __init__(self, kind, folder, threads, build):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        self.process = subprocess.Popen([sys.executable, "-B", __file__, "--worker", kind, folder, str(threads), build],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, command, argument):
        self.process.stdin.write(json.dumps([command, argument]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a contender ended; its message stands above")
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def build_libraries(folder, build, models):
    flags = ["-shared", "-fPIC", "-O3", "-std=c++20", "-fopenmp"]
    subprocess.run(["g++", *flags, str(HERE.parent / "ceiling.cpp"), "-o", f"{folder}/libceiling.so"], check=True)
    for name in models:
        sources = [str(p) for p in sorted((pathlib.Path(build) / "generated" / name).glob("*.cpp")) if "_program" not in p.name]
        subprocess.run(["g++", *flags, "-ffp-contract=off", *sources, "-o", f"{folder}/lib{name}.so"], check=True)


def main():
    import numpy as np
    import torch
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", nargs="+", default=list(WORKS), choices=list(WORKS), metavar="NAME")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = {WORKS[w][0] for w in options.works}
        for name in models:
            torch.manual_seed(1)
            torch.save(reference(name).state_dict(), f"{folder}/{name}.pt")
        build_libraries(folder, options.build, models)
        wide = ctypes.CDLL(f"{folder}/libceiling.so")
        wide.ceiling_gflops.restype = ctypes.c_double
        kinds = ["avx2"] + (["avx512"] if wide.ceiling_gflops(1, 1) > 0 else [])
        kinds += ["eager"] + (["compiled"] if options.compile else [])
        title = {"avx2": "Tessera AVX2", "avx512": "Tessera AVX-512", "eager": f"PyTorch {torch.__version__} eager",
                 "compiled": "torch.compile"}
        for threads in options.threads:
            contenders = {kind: Process(kind, folder, threads, options.build) for kind in kinds}
            ceilings = {kind: contenders[kind].ask("ceiling", int(kind == "avx512")) for kind in kinds if kind.startswith("avx")}
            best = max(ceilings.values())
            print(f"\n{threads} thread{'s' if threads > 1 else ''}; FMA ceiling " +
                  ", ".join(f"{title[k].split()[-1]} {c:.0f} GFLOP/s" for k, c in ceilings.items()))
            print("| work | " + " | ".join(title[k] for k in kinds) + " | best of ours |")
            print("|---|" + "---|" * (len(kinds) + 1))
            for work in options.works:
                flops = 0
                for kind in kinds:
                    flops = contenders[kind].ask("prepare", work).get("flops", flops)
                    if kind.startswith("avx"):
                        ours = np.load(f"{folder}/ours.npy")
                    else:
                        theirs = np.load(f"{folder}/torch.npy")
                        difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
                        if not difference < 1e-4:
                            raise SystemExit(f"{work}: outputs differ by {difference:.1e} of the largest")
                times = {kind: [] for kind in kinds}
                for _ in range(options.rounds):
                    for kind in kinds:
                        times[kind].append(contenders[kind].ask("time", work))
                median = {kind: statistics.median(t) for kind, t in times.items()}
                cells = [f"{1e3 * median[k]:.2f} ms, {100 * flops / median[k] / 1e9 / best:.0f} %" for k in kinds]
                mine = min(median[k] for k in kinds if k.startswith("avx"))
                peer = min(median[k] for k in kinds if not k.startswith("avx"))
                print(f"| {work} | " + " | ".join(cells) + f" | {peer / mine:.2f} x the best peer |", flush=True)
            for contender in contenders.values():
                contender.end()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
    else:
        main()
