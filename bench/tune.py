"""Looks for tiles of matrix products that make a model's whole step faster than those that the sizes suggest.

Usage: tune.py MODEL [--isa avx512] [--work forward|training] [--batch 1] [--threads 1] [--rounds 7] [--write]

Needs numpy, a C++ compiler and the model's generator in --build (cmake --build build/release --target MODEL_generator).

The generator's plan names the products. One choice after the other is changed: how many vectors wide the panels of so many
columns are, then how many rows the tiles of so many rows have. Each time the model is generated, compiled, and whole steps of
the old and the new one are timed in turns. What is at least one per cent faster, and is so again when it is timed once more,
stays. --write puts what stays into codegen/plan/tiles.txt, which the generator reads; lines on other sizes remain.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE.parent / "codegen" / "plan" / "tiles.txt"
sys.path.insert(0, str(HERE / "peers"))
import cpu  # noqa: E402


class Candidate:
    """A model generated with one table of tiles: its products, and a whole step to time."""

    def __init__(self, options, generator, table, folder):
        import numpy as np
        sources = folder / "generated" / options.model
        folder.mkdir(parents=True)
        (folder / "tiles.txt").write_text("".join(line + "\n" for line in table))
        subprocess.run([generator, "--out", sources, "--isa", f"scalar,{options.isa}", "--tiles", folder / "tiles.txt",
                        "--dump", folder / "dump"], check=True, stdout=subprocess.DEVNULL)
        cpu.build_libraries(folder, argparse.Namespace(compiler=options.compiler, build=folder), [options.model])
        program = "forward" if options.work == "forward" else "loss_and_gradients"
        text = next((folder / "dump").glob(f"*_{program}_plan.txt")).read_text()
        plan = re.search(rf"^{options.isa}\n((?:  .*\n)*)", text, re.MULTILINE).group(1)
        self.products = [tuple(map(int, found)) for found in
                         re.findall(r" threads \w+ product of (\d+) x \d+ x (\d+) .*?tile \w+ (\d+) tile \w+ (\d+)", plan)]
        model = cpu.Tessera(options.isa, argparse.Namespace(folder=folder, build=folder))
        random = np.random.default_rng(1)
        images = random.standard_normal(options.batch * model.macro(options.model, "IMAGE_FLOATS"), np.float32)
        labels = np.zeros(options.batch, np.int32)
        self.step = model.model(options.model, None, images, labels, options.batch, options.work == "training")[0]

    def seconds(self):
        start = time.perf_counter()
        self.step()
        return time.perf_counter() - start


def ratio(old, new, rounds):
    """Median of the new one's times over that of the old one's, in turns."""
    times = [[], []]
    for one in (old, new):
        one.seconds()
    for _ in range(rounds):
        for one, into in zip((old, new), times):
            until = time.perf_counter() + 0.3
            while True:
                into.append(one.seconds())
                if time.perf_counter() > until:
                    break
    return statistics.median(times[1]) / statistics.median(times[0])


def choices(products, isa, sums):
    """Lines that each change one choice, the products that come first in the model first."""
    for columns in dict.fromkeys(n for _, n, _, _ in products):
        now = {v for _, n, _, v in products if n == columns}
        for vectors in (1, 2, 3, 4):
            if vectors not in now:
                yield f"{isa} columns {columns} vectors {vectors}"
    for rows, vectors in dict.fromkeys((m, v) for m, _, _, v in products):
        now = {r for m, _, r, v in products if (m, v) == (rows, vectors)}
        for height in range(4, sums // vectors + 1):
            if height not in now and height <= rows:
                yield f"{isa} rows {rows} vectors {vectors} tile {height}"


def merged(table, line):
    """The table with the line in the place of the one that it contradicts."""
    key = line.rsplit(" ", 1)[0]
    return sorted([other for other in table if other.rsplit(" ", 1)[0] != key] + [line])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--isa", default="avx512", choices=list(cpu.SINGLE))
    parser.add_argument("--work", default="forward", choices=["forward", "training"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    generator = next((f for f in sorted(pathlib.Path(options.build).rglob(f"{options.model}_generator")) if f.is_file()), None)
    if not generator:
        raise SystemExit(f"{options.build} has no {options.model}_generator: cmake --build {options.build} --target "
                         f"{options.model}_generator")
    os.environ.update(OMP_NUM_THREADS=str(options.threads), TESSERA_ISA=options.isa)
    written = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    table, tried = written, set()
    with tempfile.TemporaryDirectory() as folder:
        made = iter(range(1 << 30))

        def make(lines):
            return Candidate(options, generator, lines, pathlib.Path(folder) / str(next(made)))

        best = make(table)
        print(f"{options.model} {options.work}, batch {options.batch}, {options.isa}, {options.threads} threads: "
              f"{1e3 * min(best.seconds() for _ in range(5)):.2f} ms", flush=True)
        while line := next((c for c in choices(best.products, options.isa, 27 if options.isa == "avx512" else 12)
                            if c not in tried), None):
            tried.add(line)
            new = make(merged(table, line))
            took = ratio(best, new, options.rounds)
            stays = took < 0.99 and ratio(best, new, options.rounds) < 0.99
            print(f"  {line}: {took:.3f} of the time{', stays' if stays else ''}", flush=True)
            if stays:
                best, table = new, merged(table, line)
    print("\n".join(["what was found:", *(line for line in table if line not in written)]) if table != written else
          "the tiles that the sizes suggest, or the table names, are the best")
    if options.write and table != written:
        comments = [line for line in TABLE.read_text().splitlines() if line.startswith("#")]
        draft = TABLE.with_suffix(".tmp")
        with draft.open("w") as file:
            file.write("".join(line + "\n" for line in comments + table))
            file.flush()
            os.fsync(file.fileno())
        draft.rename(TABLE)


if __name__ == "__main__":
    main()
