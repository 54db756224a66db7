#!/usr/bin/env python3
"""VQGAN, what it is made of and the transformer over its tokens, in Tessera and in PyTorch, timed in turns on one thread.

Usage: vqgan.py [--build build/release] [--rounds 3] [--works NAME ...] [--memory] [--record FILE --processor NAME]
       vqgan.py --draw [--check]

Needs torch, numpy and the target bench_vqgan_peers. The models in PyTorch are those of tests/golden/vq/reference_vq.py, eager,
once with maps as they are and once channels last. Each contender is a process of its own. First all outputs are compared, on
equal parameters; then each round times every contender once, in turn (the fastest run of a turn), and the table shows the
median over rounds. A gradient of ours is what NAME_input_gradient and NAME_loss_and_gradients take beyond NAME_evaluate. The
share is that of the FMA ceiling, the fastest of those measured after each round, and counts the FLOPs of the declaration.
--works takes the start of names as well, --rounds 0 compiles and compares, --memory measures the most memory beyond libraries in
the place of times. --record keeps what was measured; --draw makes docs/performance/vqgan.md of all records."""
import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import typing

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests/golden/vq")]
import cpu  # noqa: E402
import pages  # noqa: E402

RECORDS, PAGE = ROOT / "bench/records/vqgan", ROOT / "docs/performance/vqgan.md"
KINDS = {"tessera": "Tessera", "torch": "PyTorch", "torch-nhwc": "PyTorch, channels last"}


APART = {"fp32": 1e-4, "bf16": 0.03, "int8": 0.1, "int4": 0.1}  # of results, at most, by precision


class Work(typing.NamedTuple):
    """What a method `kind` of Tessera and of Torch prepares."""
    kind: str
    models: tuple  # as emitted
    batch: int
    share: bool = True  # of the FMA ceiling
    tokens: int = 0  # of a run: its time is that of one

    @property
    def precision(self):
        """Of the factors of matrix products, in all contenders."""
        return next((p for p in APART if self.models[0].endswith(p)), "fp32")


CONV, PHASES, GPT = ("conv_128x32",), ("vqgan_digits_generator", "vqgan_digits_discriminator"), ("gpt_8x512",)
WORKS = {
    "3x3 convolution, batch 1": Work("convolution", CONV, 1),
    "3x3 convolution, batch 8": Work("convolution", CONV, 8),
    "its input gradient, batch 8": Work("input_gradient", CONV, 8),
    "its weight gradient, batch 8": Work("weight_gradient", CONV, 8),
    "two of them with SiLU: gradients, batch 8": Work("two", ("two_convs_128x32",), 8),
    "VQGAN of digits: step, batch 32": Work("step", PHASES, 32),
    "GPT of digits: step, batch 64": Work("gpt_step", ("digits_gpt",), 64),
    "GPT of digits: token, batch 1": Work("token", ("digits_gpt",), 1, False, 49),
    "GPT of 8 layers of 512: token, batch 1": Work("token", GPT, 1, False, 256),
    "GPT of 8 layers of 512: token, batch 16": Work("token", GPT, 16, False, 256),
    **{f"GPT of 8 layers of 512: token, batch {batch}, {precision}": Work("token", (f"{GPT[0]}_{precision}",), batch, False, 256)
       for precision in ("bf16", "int8", "int4") for batch in (1, 16)},
    "published VQGAN, 256 pixels: encode": Work("encode", ("vqgan_256_encode",), 1),
    "published VQGAN, 256 pixels: decode": Work("decode", ("vqgan_256_decode",), 1),
}
GENERATOR, DISCRIMINATOR = ({"lr": rate, "betas": (0.5, 0.9)} for rate in (1e-3, 5e-4))


def reference(work):
    """The model in PyTorch, with the same starting weights in every process."""
    import reference_vq as R
    import torch
    torch.manual_seed(1)
    convolution = lambda: torch.nn.Conv2d(128, 128, 3, padding=1)
    if work.kind in ("convolution", "input_gradient", "weight_gradient"):
        return torch.nn.ModuleDict({"conv": convolution()})
    if work.kind == "two":
        return torch.nn.ModuleDict({"first": convolution(), "second": convolution(), "head": torch.nn.Linear(128, 10)})
    if work.kind in ("encode", "decode"):
        return R.Vqgan(ndf=64, disc_layers=3, norm="batch", vgg=None, perceptual_weight=0.0).eval()
    if work.kind == "step":
        return R.Vqgan(1, 16, (1, 2, 2), 1, (2,), 16, 16, 64, 8, ndf=16, disc_layers=2, norm="batch", vgg=None,
                       perceptual_weight=0.0, disc_weight=0.2)
    model = R.Gpt(64, 49, 3, 4, 64) if work.models[0] == "digits_gpt" else R.Gpt(1024, 256, 8, 8, 512)
    R.initialise_gpt(model)
    return model


def data(work):
    """Invented inputs, and what they are compared with."""
    import numpy as np
    random = np.random.default_rng(1)
    batch, normal = work.batch, lambda *shape: random.standard_normal(shape, dtype=np.float32)
    if work.kind == "two":
        return normal(batch, 128, 32, 32), np.arange(batch, dtype=np.int32)
    if work.kind == "encode":
        return np.tanh(normal(batch, 3, 256, 256)), None
    if work.kind == "decode":
        return random.integers(0, 1024, (batch, 256)).astype(np.float32), None
    if work.kind == "step":
        return np.tanh(normal(batch, 1, 28, 28)), None
    if work.kind == "gpt_step":
        tokens = random.integers(0, 64, (batch, 50)).astype(np.int32)
        return np.ascontiguousarray(tokens[:, :-1]), np.ascontiguousarray(tokens[:, 1:])
    if work.kind == "token":
        return random.integers(0, 64, (work.tokens, batch)).astype(np.int32), None
    return normal(batch, 128, 32, 32), normal(batch, 128, 32, 32)


def flops(build, work):
    """Of one run, as the emitted header says; a gradient of a convolution has as many as the convolution."""
    what = "TRAIN_FLOPS" if work.kind in ("two", "step", "gpt_step") else "FORWARD_FLOPS"
    return sum(cpu.macro(build, model, what, work.batch) for model in work.models)


class Tessera(cpu.Tessera):
    """prepare: the run, its results, and what is taken from its time."""

    def prepare(self, work):
        self.work, self.inputs, self.targets = work, *data(work)
        self.state = reference(work).state_dict()
        return getattr(self, work.kind)()

    def load(self, name, forward=False):
        """Calls of a model's functions, with PyTorch's parameters: its parameters, its packed ones, and call(function, ...)."""
        library = ctypes.CDLL(str(pathlib.Path(self.folder) / f"lib{name}.so"))
        self.rows = (self.Parameter * self.macro(name, "PARAMETERS")).in_dll(library, f"{name}_parameters")
        parameters = self.aligned(self.macro(name, "PARAMETER_FLOATS"))
        cpu.fill(parameters, self.rows, self.state)
        packed = self.aligned(self.macro(name, "PACKED_FORWARD_FLOATS" if forward else "PACKED_FLOATS"))

        def converted(argument):
            if isinstance(argument, (int, float)):
                return (ctypes.c_int64 if isinstance(argument, int) else ctypes.c_float)(argument)
            return cpu.pointer(argument)

        def call(function, *arguments):
            cpu.check(getattr(library, f"{name}_{function}")(*map(converted, arguments)), f"{name}_{function}")

        call("pack_forward" if forward else "pack", parameters, packed)
        return parameters, packed, call

    def scratch(self, name, what):
        return self.aligned(self.macro(name, f"{what}_SCRATCH_BYTES", self.work.batch) // 4 + 1)

    def gradient(self, gradients, key):
        import numpy as np
        row = next(r for r in self.rows if r.name.decode() == key)
        return gradients[row.offset:row.offset + int(np.prod(row.shape[:row.rank]))]

    def convolution(self):
        run, outputs, _ = self.model(self.work.models[0], self.state, self.inputs, None, self.work.batch, False)
        return run, outputs, None

    encode = decode = convolution

    def trained(self):
        """A function that calls loss_and_gradients, one that evaluates, and arrays."""
        name, batch = self.work.models[0], self.work.batch
        parameters, packed, call = self.load(name)
        outputs, loss = self.aligned(batch * self.macro(name, "OUTPUT_FLOATS")), self.aligned(1)
        gradients, scratch = self.aligned(parameters.size), self.scratch(name, "TRAIN")
        inputs, targets = self.inputs, self.targets
        return (lambda: call("loss_and_gradients", parameters, packed, inputs, targets, batch, batch, 0, 1, outputs, loss, gradients,
                             scratch),
                lambda: call("evaluate", parameters, packed, inputs, targets, batch, outputs, loss, scratch),
                lambda to: call("input_gradient", parameters, packed, inputs, targets, batch, outputs, loss, to, scratch), gradients)

    def weight_gradient(self):
        train, evaluate, _, gradients = self.trained()
        train()
        return train, self.gradient(gradients, "conv.weight"), evaluate

    def input_gradient(self):
        _, evaluate, backward, _ = self.trained()
        gradient = self.aligned(self.inputs.size)
        run = lambda: backward(gradient)
        run()
        return run, gradient, evaluate

    def two(self):
        train, _, _, gradients = self.trained()
        train()
        return train, self.gradient(gradients, "first.weight"), None

    def step(self):
        """Both phases, as runtime/phases.cpp runs them."""
        import numpy as np
        images, batch = self.inputs, self.work.batch
        models = [self.load(name) for name in self.work.models]
        parameters = models[0][0]
        gradients, factor, losses = self.aligned(parameters.size), np.ones(1, np.float32), self.aligned(16)
        outputs = self.aligned(batch * max(self.macro(name, "OUTPUT_FLOATS") for name in self.work.models))
        scratch = self.aligned(max(self.macro(name, "TRAIN_SCRATCH_BYTES", batch) for name in self.work.models) // 4)
        phases = [(packed, call, self.aligned(self.macro(name, "OPTIMIZER_FLOATS")), loss, rate) for (_, packed, call), name, loss, rate
                  in zip(models, self.work.models, (self.aligned(1), self.aligned(1)), (GENERATOR["lr"], DISCRIMINATOR["lr"]))]
        count = [0]

        def run():
            count[0] += 1
            for packed, call, optimizer, loss, rate in phases:
                call("pack", parameters, packed)
                call("loss_and_gradients", parameters, packed, images, factor, batch, batch, 0, count[0], outputs, losses, loss,
                     gradients, scratch)
                call("update", parameters, packed, gradients, optimizer, count[0], rate)

        run()
        return run, np.array([float(loss[0]) for _, _, _, loss, _ in phases]), None

    def gpt_step(self):
        import numpy as np
        name, batch = self.work.models[0], self.work.batch
        parameters, packed, call = self.load(name)
        outputs, loss = self.aligned(batch * self.macro(name, "OUTPUT_FLOATS")), self.aligned(1)
        gradients, optimizer = self.aligned(parameters.size), self.aligned(self.macro(name, "OPTIMIZER_FLOATS"))
        scratch, inputs, targets, count = self.scratch(name, "TRAIN"), self.inputs, self.targets, [0]

        def run():
            count[0] += 1
            call("train_step", parameters, packed, gradients, optimizer, inputs, targets, batch, batch, 0, count[0], 1e-3, outputs,
                 loss, scratch)

        run()
        return run, np.array([float(loss[0])]), None

    def token(self):
        name, batch = self.work.models[0], self.work.batch
        parameters, packed, call = self.load(name, forward=True)
        cache = self.aligned(self.macro(name, "CACHE_BYTES", batch) // 4)
        logits = self.aligned(batch * self.macro(name, "OUTPUT_FLOATS") // self.work.tokens)
        scratch, tokens = self.scratch(name, "STEP"), self.inputs

        def run():
            for position, of_position in enumerate(tokens):
                call("step", parameters, packed, cache, position, of_position, batch, logits, scratch)

        run()
        return run, logits, None


class Torch:
    def __init__(self, kind, setting):
        import torch
        self.torch, self.last = torch, kind == "torch-nhwc"
        torch.set_num_threads(setting.threads)

    def maps(self, x):
        """A tensor or a model, in the order of this contender."""
        return x.to(memory_format=self.torch.channels_last) if self.last else x

    def prepare(self, work):
        if self.last and work.kind in ("gpt_step", "token"):
            raise cpu.Cannot("has no maps")
        self.work, self.model = work, reference(work)
        self.inputs, self.targets = (a if a is None else self.torch.from_numpy(a) for a in data(work))
        return getattr(self, work.kind)()

    def inference(self, function, *arguments):
        def run():
            with self.torch.inference_mode():
                return function(*arguments)

        return run, run().float().numpy().ravel(), None

    def convolution(self):
        return self.inference(self.maps(self.model)["conv"], self.maps(self.inputs))

    def backward(self, wanted):
        x, y, weight = (self.maps(t) for t in (self.inputs, self.targets, self.model["conv"].weight.detach()))
        ones, zeros = [1, 1], [0, 0]
        run = lambda: self.torch.ops.aten.convolution_backward(y, x, weight, [128], ones, ones, ones, False, zeros, 1, wanted)
        found = next(g for g in run() if g is not None)
        return run, found.contiguous().numpy().ravel(), None

    def input_gradient(self):
        return self.backward([True, False, False])

    def weight_gradient(self):
        return self.backward([False, True, True])

    def two(self):
        F = self.torch.nn.functional
        m, x, labels = self.maps(self.model), self.maps(self.inputs), self.targets.long()

        def run():
            m.zero_grad()
            F.cross_entropy(m["head"](F.silu(m["second"](F.silu(m["first"](x)))).mean((2, 3))), labels).backward()

        run()
        return run, m["first"].weight.grad.contiguous().numpy().ravel(), None

    def step(self):
        import numpy as np
        import reference_vq as R
        m, x = self.maps(self.model), self.maps(self.inputs)
        adam = lambda parameters, options: self.torch.optim.Adam(parameters.values(), **options)
        generator, discriminator = adam(m.generator_parameters(), GENERATOR), adam(m.discriminator_parameters(), DISCRIMINATOR)

        def run():
            return (R.step_generator(m, generator, x, 0)["total_loss"].item(), R.step_discriminator(m, discriminator, x, 0)["disc_loss"].item())

        return run, np.array(run()), None

    def encode(self):
        m, x = self.maps(self.model), self.maps(self.inputs)
        return self.inference(lambda: m.encode(x)[2])

    def decode(self):
        m, grid = self.maps(self.model), (self.work.batch, 16, 16)
        return self.inference(lambda: m.decode(self.maps(m.quantize.embedding(self.inputs.long()).reshape(*grid, 256).permute(0, 3, 1, 2))))

    def gpt_step(self):
        import numpy as np
        import reference_vq as R
        m, x, y = self.model, self.inputs.long(), self.targets.long()
        adam = self.torch.optim.AdamW(R.decay_groups(m), 1e-3, betas=(0.9, 0.95))

        def run():
            adam.zero_grad()
            loss = self.torch.nn.functional.cross_entropy(m(x)[0].flatten(0, 1), y.flatten())
            loss.backward()
            adam.step()
            return loss.item()

        return run, np.array([run()]), None

    def token(self):
        m, tokens = self.model.eval(), self.inputs.long()[:, :, None]
        if self.work.precision == "bf16":
            m = m.bfloat16()
        if self.work.precision == "int4":
            m = with_weights_of_int4(m)
        if self.work.precision == "int8":
            m = self.torch.ao.quantization.quantize_dynamic(m, {self.torch.nn.Linear}, self.torch.qint8)

        def run():
            past = None
            for of_position in tokens:
                logits, past = m(of_position, past)
            return logits

        return self.inference(run)


def with_weights_of_int4(model):
    """Its linear maps with weights of four bits in groups of 32, whose number farthest from zero is -8 times a scale, as
    Tessera's; the rest of it in bf16, for which PyTorch's product is made."""
    import torch

    class Int4(torch.nn.Module):
        def __init__(self, linear):
            super().__init__()
            groups = linear.weight.detach().unflatten(1, (-1, 32))
            scale = (groups.gather(2, groups.abs().argmax(2, keepdim=True)) / -8).bfloat16()
            numbers = (groups / scale.float()).round().clamp(-8, 7).to(torch.int32).flatten(1) + 8
            self.weight = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 1)
            self.scales = torch.cat((scale, torch.zeros_like(scale)), 2).transpose(0, 1).contiguous()  # and middles
            self.bias = None if linear.bias is None else linear.bias.detach().bfloat16()

        def forward(self, x):
            y = torch.ops.aten._weight_int4pack_mm_for_cpu(x.flatten(0, -2), self.weight, 32, self.scales)
            return y.view(*x.shape[:-1], -1) if self.bias is None else y.view(*x.shape[:-1], -1) + self.bias

    def replace(module):
        for name, child in module.named_children():
            if isinstance(child, torch.nn.Linear):
                setattr(module, name, Int4(child))
            else:
                replace(child)

    replace(model)
    return model.bfloat16()


def fastest(run):
    """Seconds, after one run to warm up: of at least three runs and 0.1 s, or 1 s."""
    run()
    times = []
    while sum(times) < (0.1 if len(times) >= 3 else 1):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def answers(kind, setting):
    import numpy as np
    contender, jobs = (Tessera if kind == "tessera" else Torch)(kind, setting), {}
    ceiling = cpu.load_ceiling(setting.folder)
    for line in sys.stdin:
        command, name = json.loads(line)
        try:
            if command == "prepare":
                jobs.clear()
                run, results, base = contender.prepare(WORKS[name])
                jobs[name] = run, base
                np.save(f"{setting.folder}/vqgan-{kind}.npy", results)
                yield {}
            elif command == "memory":
                yield cpu.memory(contender, WORKS[name], jobs)
            else:
                run, base = jobs[name]
                yield {"seconds": fastest(run) - (fastest(base) if base else 0), "ceiling": ceiling.ceiling_gflops(1, 1) or ceiling.ceiling_gflops(0, 1)}
        except cpu.Cannot as reason:
            yield {"cannot": str(reason)}


class Process:
    def __init__(self, kind, folder, build):
        environment = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
        self.kind = kind
        self.process = subprocess.Popen([sys.executable, "-B", __file__, "--worker", kind, folder, build], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)

    ask, answer, end = cpu.Process.ask, cpu.Process.answer, cpu.Process.end


def compare(name, ready, folder):
    """Against PyTorch's: by the largest; of indices of codes all but one in a hundred, which lie between two codes, are equal."""
    import numpy as np
    found = {kind: np.load(f"{folder}/vqgan-{kind}.npy").ravel() for kind in ready}
    theirs = found["torch"]
    for kind, ours in found.items():
        apart = np.mean(ours != theirs) if WORKS[name].kind == "encode" else np.abs(ours - theirs).max() / np.abs(theirs).max()
        print(f"  {KINDS[kind]}: {apart:.1e} apart", file=sys.stderr)
        if not apart < (0.01 if WORKS[name].kind == "encode" else APART[WORKS[name].precision]):
            raise SystemExit(f"{name}: the results of {KINDS[kind]} are {apart:.1e} apart from PyTorch's")


def run_work(name, contenders, options, folder):
    ready = [kind for kind, contender in contenders.items() if "cannot" not in contender.ask("prepare", name)]
    compare(name, ready, folder)
    if not options.rounds:
        return
    names, work = {"cpuinfo": cpu.processor(), "name": options.processor}, WORKS[name]
    if options.memory:
        value = {kind: contenders[kind].ask("memory", name)["bytes"] for kind in ready}
    else:
        turns = {kind: [] for kind in ready}
        for _ in range(options.rounds):
            for kind in ready:
                turns[kind].append(contenders[kind].ask("time", name))
        value = {"date": time.strftime("%Y-%m-%d"), "rounds": options.rounds, "torch": cpu.versions()["torch"],
                 "flops": flops(options.build, work), "ceiling": max(t["ceiling"] for turn in turns.values() for t in turn),
                 "seconds": {kind: statistics.median(t["seconds"] for t in turn) / (work.tokens or 1) for kind, turn in turns.items()}}
    print(name, json.dumps(value), flush=True)
    if options.record:
        cpu.record(options.record, names, [name, "memory" if options.memory else "time"], value)


def cell(name, measured, kind):
    if kind not in measured["seconds"]:
        return "-"
    seconds, work = measured["seconds"][kind], WORKS[name]
    said = f"{1e3 * seconds:.3f}" if seconds < 1e-3 else pages.milliseconds(seconds)
    return said + (f", {100 * measured['flops'] / seconds / 1e9 / measured['ceiling']:.0f} %" if work.share else "")


def page():
    lines = ["# VQGAN and its transformer", "",
             *pages.wrapped("Milliseconds, one thread, fp32 where nothing else is said, beside PyTorch (eager; maps as they are, or channels last; "
                            "of int8 its dynamic quantization, of int4 its product of bf16 with weights in groups of 32), medians of rounds in "
                            "turns, and the share of the FMA [ceiling](method.md#ceilings), which counts the declaration's FLOPs. "
                            "Convolutions are of 128 channels and maps of 32 x 32; a token's time is the mean over all positions. Outputs were "
                            "compared before. [bench/peers/vqgan.py](../../bench/peers/README.md) measures, and writes this page."), ""]
    for path in sorted(RECORDS.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        works = {name: record["works"][name] for name in WORKS if name in record["works"]}
        timed = {name: w["time"] for name, w in works.items() if "time" in w}
        dates, torch = ({t[key] for t in timed.values()} for key in ("date", "torch"))
        lines += [f"## {record['processor']['name']}", "",
                  *pages.wrapped(f"{record['processor']['cpuinfo']}; {', '.join(sorted(dates))}; PyTorch {', '.join(sorted(torch))}; rounds: "
                                 f"{' or '.join(map(str, sorted({t['rounds'] for t in timed.values()})))}. "
                                 + record["processor"].get("note", "")), ""]
        rows = []
        for name, measured in timed.items():
            peers = [s for kind, s in measured["seconds"].items() if kind != "tessera"]
            rows.append([name, *(cell(name, measured, kind) for kind in KINDS), f"{min(peers) / measured['seconds']['tessera']:.2f} x"])
        lines += pages.table(["work", *KINDS.values(), "lead"], rows)
        memory = [[name, *(f"{w['memory'][kind] / 1e6:.0f} MB" for kind in ("tessera", "torch"))] for name, w in works.items() if "memory" in w]
        if memory:
            lines += ["The most memory that a run takes beyond its libraries, weights included:", "",
                      *pages.table(["work", KINDS["tessera"], KINDS["torch"]], memory)]
    return "\n".join(lines).rstrip("\n") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--works", nargs="+", metavar="NAME", help="of " + "; ".join(WORKS))
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--compiler", default="g++", help="for the emitted sources")
    parser.add_argument("--record", metavar="FILE", help="of this processor alone, which --processor names")
    parser.add_argument("--processor", help="as the page calls it, such as \"AMD Zen 5\"")
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--check", action="store_true", help="with --draw: nothing is written")
    options = parser.parse_args()
    if options.record and not options.processor:
        parser.error("--record needs --processor")
    if options.draw:
        return pages.write({PAGE: page()}, options.check)
    folder = f"{options.build}/peers"
    os.makedirs(folder, exist_ok=True)
    works = cpu.selected(options.works, WORKS)
    cpu.build_libraries(folder, options, {model for name in works for model in WORKS[name].models})
    contenders = {kind: Process(kind, folder, options.build) for kind in KINDS}
    for name in works:
        run_work(name, contenders, options, folder)
    for contender in contenders.values():
        contender.end()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        talk = os.fdopen(os.dup(1), "w")  # libraries that print do not get between
        os.dup2(2, 1)
        for answer in answers(sys.argv[2], argparse.Namespace(folder=sys.argv[3], threads=1, build=sys.argv[4])):
            print(json.dumps(answer), file=talk, flush=True)
    else:
        main()
