#!/usr/bin/env python3
"""How what a plain ViT costs grows with tokens, batch, width and depth, on one thread and two, beside PyTorch's (eager, fused
attention): time of a forward pass and of a training step, memory, scratch memory, generation, emitted lines, compiling.

Usage: growth.py --processor NAME [--record bench/records/growth/NAME.json] [--build build/release] [--rounds 2] [--costs]
       growth.py --draw [--check]

Needs torch, numpy and the target tessera_codegen. One size after the other changes, from ViT-Tiny at 224 pixels and batch 1 on.
What the record has is not done again, so that a run that was ended goes on where it was. --costs leaves times out: compiling and
memory, most of the run, do not need a quiet machine. Seconds of generating and compiling are the processor's, summed over the
emitted files; megabytes are the most of one compiler. Both frameworks' outputs are compared before times are taken, in turns, by
peers/cpu.py. --draw makes of all records the pictures and the tables of docs/performance/growth.md."""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(HERE / "peers")]
import cpu  # noqa: E402
import emit  # noqa: E402
import pages  # noqa: E402

BASE = {"image": 224, "width": 192, "depth": 12, "batch": 1}  # patches of 16 pixels
SWEEPS = {"tokens": ("image", (112, 224, 384, 512, 592, 768, 1024)), "batch": ("batch", (1, 8, 32, 128, 256)),
          "width": ("width", (64, 192, 384, 768, 1536)), "depth": ("depth", (1, 3, 12, 24, 48))}
STEP_LIMIT = 4e9  # bytes that PyTorch takes for a step, by the estimate below: where it would be more no step is made
KINDS = ("avx512", "sdpa")  # Tessera, PyTorch; avx2 where there is no AVX-512
NAMES = {"tessera": "Tessera", "torch": "PyTorch"}
LINEAR = 20e6  # FLOPs from which on time should be a straight line in FLOPs


def points(sweep):
    """[(x, sizes)]"""
    field, values = SWEEPS[sweep]
    for value in values:
        yield (value // 16) ** 2 + 1 if sweep == "tokens" else value, {**BASE, field: value}


def model_of(sizes):
    return f"vit_{sizes['image']}_16_{sizes['width']}_{sizes['depth']}"


def works_of(sizes):
    """Names of the works of a point: a step where PyTorch's activations, about 30 times width times tokens in each layer and the
    attention, and four times the parameters fit."""
    tokens = (sizes["image"] // 16) ** 2 + 1
    activations = sizes["batch"] * sizes["depth"] * tokens * 30 * sizes["width"]
    parameters = 12 * sizes["depth"] * sizes["width"] ** 2
    yield f"{model_of(sizes)} forward {sizes['batch']}"
    if 4 * (activations + 4 * parameters) < STEP_LIMIT:
        yield f"{model_of(sizes)} training step {sizes['batch']}"


def all_sizes():
    found = [sizes for sweep in SWEEPS for _, sizes in points(sweep)]
    return [sizes for i, sizes in enumerate(found) if sizes not in found[:i]]


def make(options, folder, sizes):
    """Emits and compiles a model into FOLDER/libMODEL.so; what that cost."""
    name = model_of(sizes)
    spec = ".image = {image}, .width = {width}, .heads = {width} / 64, .depth = {depth}".format(**sizes)
    declared, generated = emit.emit(options.build, name, f"using Grown = Vit<{{{spec}}}>;", "Grown")
    sources = sorted((pathlib.Path(options.build) / "generated" / name).glob("*.cpp"))
    objects = [f"{folder}/{name}-{source.stem}.o" for source in sources]
    flags = ["-fPIC", "-O3", "-std=c++20", "-fopenmp", f"-I{ROOT}", "-ffp-contract=off"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        costs = list(pool.map(lambda pair: emit.cost(["g++", *flags, "-c", pair[0], "-o", pair[1]]), zip(sources, objects)))
    subprocess.run(["g++", "-shared", "-fopenmp", *objects, "-o", f"{folder}/lib{name}.so"], check=True)
    return {"declaration_seconds": declared[0], "declaration_megabytes": declared[1], "generation_seconds": generated[0],
            "lines": sum(len(source.read_text().splitlines()) for source in sources),
            "compile_seconds": sum(seconds for seconds, _ in costs), "compile_megabytes": max(most for _, most in costs)}


def started(options, folder, threads, *kinds):
    processes = {kind: cpu.Process(kind, folder, threads, options.build) for kind in kinds}
    for kind, process in processes.items():
        if trouble := process.trouble():
            raise SystemExit(f"{kind}: {trouble}")
    return processes


def compared(name, processes, folder):
    for kind, process in processes.items():
        answer = process.ask("prepare", name)
        if "cannot" in answer:
            raise SystemExit(f"{name}: {kind} {answer['cannot']}")
        cpu.compare(kind, name, folder, answer["loss"])


def memory_of(options, name, processes):
    """Bytes that each takes beyond its libraries, weights included, and of ours those of scratch memory, by the macro."""
    work = cpu.work_of(name)
    what, count = ("TRAIN", 1) if work.trains else ("FORWARD", work.batch)  # one thread: one image at once
    return {who: process.ask("memory", name)["bytes"] for who, process in zip(NAMES, processes.values())} | {
        "scratch": cpu.macro(options.build, work.model, f"{what}_SCRATCH_BYTES", count)}


def times_of(options, folder, name, processes):
    compared(name, processes, folder)
    seconds, ceilings = {kind: [] for kind in processes}, []
    for _ in range(options.rounds):
        for kind, process in processes.items():
            seconds[kind].append(process.ask("time", name)[0])
        ceilings.append(next(iter(processes.values())).ask("ceiling"))
    return {who: statistics.median(those) for who, those in zip(NAMES, seconds.values())} | {
        "flops": cpu.flops(options.build, cpu.work_of(name)), "ceilings": [min(ceilings), max(ceilings)],
        "date": time.strftime("%Y-%m-%d"), "rounds": options.rounds}


def measure(options):
    folder = f"{options.build}/peers"
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    cpu.build_libraries(folder, argparse.Namespace(compiler="g++", build=options.build), [])
    ours = KINDS[0] if cpu.load_ceiling(folder).ceiling_gflops(1, 1) > 0 else "avx2"
    names = {"cpuinfo": cpu.processor(), "name": options.processor, "versions": cpu.versions()}

    def have(*keys):
        place = json.loads(options.record.read_text())["works"] if options.record.exists() else {}
        for key in keys:
            place = place.get(key, {})
        return bool(place)

    def once(keys, action):
        if have(*keys):
            return
        start = time.perf_counter()
        cpu.record(options.record, names, keys, action())
        print(f"{' '.join(keys)}: {time.perf_counter() - start:.0f} s", flush=True)

    @functools.cache
    def processes(threads):
        return started(options, folder, threads, ours, KINDS[1])

    for sizes in all_sizes():
        model = model_of(sizes)
        if not (pathlib.Path(folder) / f"lib{model}.so").exists() or not have("costs", model):
            cpu.record(options.record, names, ("costs", model), make(options, folder, sizes))
            print(model, "is made", flush=True)
    works = [name for sizes in all_sizes() for name in works_of(sizes)]
    for name in works:
        once(("memory", name), lambda: memory_of(options, name, processes(1)))
    for threads in () if options.costs else (1, 2):
        for name in works:
            once(("times", name, str(threads)), lambda: times_of(options, folder, name, processes(threads)))


# What is drawn.
COLOURS = {"tessera": "#2e62a6", "torch": "#d1603d"}
WIDTH, PANEL, HEIGHT, LEFT = 980, 310, 190, 46


def value(record, sizes, what):
    """A number of a point, or None: "forward 1 tessera" are picoseconds a FLOP on 1 thread, and so on."""
    works = {name.split(" ", 1)[1].rsplit(" ", 1)[0]: name for name in works_of(sizes)}
    kind, *more = what.split()
    if kind in ("forward", "step"):
        name = works.get("forward" if kind == "forward" else "training step")
        found = record["works"].get("times", {}).get(name, {}).get(more[0])
        return 1e12 * found[more[1]] / found["flops"] if found else None
    if kind in ("memory", "scratch"):
        name = works.get("forward" if more[0] == "forward" else "training step")
        found = record["works"]["memory"].get(name)
        return found["scratch" if kind == "scratch" else more[1]] / 1e6 if found else None
    return record["works"]["costs"].get(model_of(sizes), {}).get(what)


PANELS = [("forward pass, ps a FLOP", False, [("forward 1 tessera", "Tessera", "tessera", ""), ("forward 2 tessera", "2 threads", "tessera", "4 3"),
                                             ("forward 1 torch", "PyTorch", "torch", ""), ("forward 2 torch", "2 threads", "torch", "4 3")]),
          ("training step, ps a FLOP", False, [("step 1 tessera", "Tessera", "tessera", ""), ("step 2 tessera", "2 threads", "tessera", "4 3"),
                                              ("step 1 torch", "PyTorch", "torch", ""), ("step 2 torch", "2 threads", "torch", "4 3")]),
          ("memory, MB", True, [("memory forward tessera", "forward", "tessera", ""), ("memory step tessera", "step", "tessera", "4 3"),
                                ("memory forward torch", "PyTorch, forward", "torch", ""), ("memory step torch", "step", "torch", "4 3")]),
          ("scratch memory of it, MB", True, [("scratch forward", "forward", "tessera", ""), ("scratch step", "step", "tessera", "4 3")]),
          ("seconds", False, [("generation_seconds", "generating", "tessera", "4 3"), ("compile_seconds", "compiling what is emitted", "tessera", "")]),
          ("emitted lines", False, [("lines", "", "tessera", "")])]


def number(x):
    return f"{x:.3g}" if x < 1e3 else f"{x / 1e3:.3g}k"


def panel(record, sweep, x0, y0, title, logarithmic, series):
    import math
    rows = list(points(sweep))
    lines = [(label, COLOURS[colour], dash, [(x, v) for x, sizes in rows if (v := value(record, sizes, what))]) for what, label, colour, dash in series]
    values = [v for *_, those in lines for _, v in those]
    low, high = (min(values) / 1.3, max(values) * 1.3) if logarithmic else (0, max(values) * 1.15)
    inner, tall = PANEL - LEFT - 24, HEIGHT - 60

    def at(x, v):
        first, last = rows[0][0], rows[-1][0]
        up = math.log(v / low) / math.log(high / low) if logarithmic else v / high
        return x0 + LEFT + inner * math.log(x / first) / math.log(last / first), y0 + 26 + tall * (1 - up)

    out = [pages.text(x0 + 8, y0 + 14, title, ' font-weight="600" font-size="12"')]
    for v in ([low * 1.3, (low * high) ** 0.5, high / 1.3] if logarithmic else [0, high / 2.3, high / 1.15]):
        _, y = at(rows[0][0], v or 1e-30) if v or not logarithmic else (0, 0)
        out += [f'<line x1="{x0 + LEFT}" y1="{y:.1f}" x2="{x0 + LEFT + inner}" y2="{y:.1f}" stroke="#8a8f98" stroke-opacity="0.3"/>',
                pages.text(x0 + LEFT - 4, y + 4, number(v), ' font-size="10" text-anchor="end"')]
    last = 0
    for x, _ in rows:
        if at(x, high)[0] - last > 26:  # else it would be written over the one before
            last = at(x, high)[0]
            out.append(pages.text(last, y0 + 26 + tall + 14, x, ' font-size="10" text-anchor="middle"'))
    legend = x0 + LEFT
    for label, colour, dash, those in lines:
        drawn = [at(x, v) for x, v in those]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)
        style = f'stroke="{colour}" stroke-width="1.6"' + (f' stroke-dasharray="{dash}"' if dash else "")
        out += [f'<polyline points="{path}" fill="none" {style}/>'] + [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{colour}"/>' for x, y in drawn]
        if label:
            out += [f'<line x1="{legend}" y1="{y0 + HEIGHT - 8}" x2="{legend + 16}" y2="{y0 + HEIGHT - 8}" {style}/>',
                    pages.text(legend + 19, y0 + HEIGHT - 4, label, ' font-size="10"')]
            legend += 26 + 5.2 * len(label)
    return out


def growing(record, sweep):
    """The panels with those of their series of which the record has two points or more: one point shows no growth."""
    for title, logarithmic, series in PANELS[:4] if sweep == "batch" else PANELS:  # what is emitted is for any batch
        if shown := [one for one in series if sum(bool(value(record, sizes, one[0])) for _, sizes in points(sweep)) > 1]:
            yield title, logarithmic, shown


def picture(record, sweep):
    panels = list(growing(record, sweep))
    body = [pages.text(16, 24, f"{sweep}: {record['processor']['name']}", ' font-weight="600"')]
    for i, (title, logarithmic, series) in enumerate(panels):
        body += panel(record, sweep, 12 + (i % 3) * (PANEL + 10), 34 + (i // 3) * (HEIGHT + 14), title, logarithmic, series)
    return pages.svg(WIDTH, 34 + -(-len(panels) // 3) * (HEIGHT + 14), body)


def both(record, sizes, what, threads):
    """"ms (share of the ceiling) / PyTorch's ms" of a work."""
    name = next((name for name in works_of(sizes) if what in name), None)
    found = record["works"].get("times", {}).get(name, {}).get(threads)
    if not found:
        return "-"
    share = 100 * found["flops"] / found["tessera"] / 1e9 / found["ceilings"][1]
    return f"{pages.milliseconds(found['tessera'])} ({share:.0f} %) / {pages.milliseconds(found['torch'])}"


def table(record, sweep):
    def said(sizes, what, form):
        found = value(record, sizes, what)
        return form.format(found) if found else "-"

    columns = [sweep, "forward, ms", "two threads", "step, ms", "two threads", "scratch MB: forward, step", "memory MB: forward, step",
               "PyTorch's", "lines", "generating, compiling, s", "compiler, MB"]
    return pages.table(columns, [[
        str(x), both(record, sizes, "forward", "1"), both(record, sizes, "forward", "2"), both(record, sizes, "step", "1"),
        both(record, sizes, "step", "2"), *(", ".join(said(sizes, f"{what} {pass_}{whose}", "{:.1f}" if what == "scratch" else "{:.0f}")
                                              for pass_ in ("forward", "step"))
                                    for what, whose in (("scratch", ""), ("memory", " tessera"), ("memory", " torch"))),
        said(sizes, "lines", "{:,}"), f"{said(sizes, 'generation_seconds', '{:.2f}')}, {said(sizes, 'compile_seconds', '{:.1f}')}",
        said(sizes, "compile_megabytes", "{:.0f}")] for x, sizes in points(sweep)])


def straight(record, what):
    """How far the time of a FLOP is from the median of all points above LINEAR, on one thread: the least and the most."""
    found = {}
    for sizes in all_sizes():
        for name in works_of(sizes):
            row = record["works"].get("times", {}).get(name, {}).get("1")
            if what in name and row and row["flops"] > LINEAR:
                found[name] = {who: row[who] / row["flops"] for who in ("tessera", "torch")}
    for who in ("tessera", "torch"):
        middle = statistics.median(row[who] for row in found.values())
        least, most = (pick(found, key=lambda name: found[name][who]) for pick in (min, max))
        yield (f"{NAMES[who]}: {100 * (found[least][who] / middle - 1):+.0f} % (`{least}`) to {100 * (found[most][who] / middle - 1):+.0f} % "
               f"(`{most}`)")


def files():
    content, found = [], {}
    for path in sorted((ROOT / "bench/records/growth").glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        content += [f"## {record['processor']['name']}", ""]
        content += pages.wrapped(f"{record['processor']['cpuinfo']}, PyTorch {record['processor']['versions']['torch']}; "
                                 f"`python3 bench/growth.py --processor \"{record['processor']['name']}\"`") + [""]
        for what in ("forward", "step"):
            if not any(what in name for name in record["works"].get("times", {})):
                continue
            content += [f"Time of a FLOP against the median of all, {'forward passes' if what == 'forward' else 'training steps'} of more than "
                        f"{LINEAR / 1e6:.0f} MFLOP:", "", *(f"* {line}" for line in straight(record, what)), ""]
        for sweep in SWEEPS:
            drawn = f"docs/pictures/growth-{sweep}-{path.stem}.svg"
            found[drawn] = picture(record, sweep)
            content += [f"### {sweep}", "", f"![growth with {sweep}](../pictures/growth-{sweep}-{path.stem}.svg)", "", *table(record, sweep)]
    page = "docs/performance/growth.md"
    found[page] = pages.put_between((ROOT / page).read_text(encoding="utf-8"), "\n".join(content) + "\n")
    return found


def slug(processor):
    """"AMD Zen 5" as files are named: "amd-zen5"."""
    return re.sub(r" (?=\d)", "", processor).lower().replace(" ", "-")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processor")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--costs", action="store_true")
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.draw:
        return pages.write(files(), options.check)
    if not options.processor:
        parser.error("--processor says what pages call this processor")
    options.record = options.record or ROOT / "bench/records/growth" / f"{slug(options.processor)}.json"
    measure(options)


if __name__ == "__main__":
    main()
