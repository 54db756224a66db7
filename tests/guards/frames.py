"""Compiles the kernels of a model and holds what they keep on a thread's stack to a bound: every function's frame, and
that of attention with the largest of the functions of a block that it calls ("NAME_block"). What others call in turn
takes a few lines.
Usage: frames.py COMPILER BYTES GENERATOR MODEL PRECISION/ISA... [MODEL PRECISION/ISA...]"""
import os
import re
import shutil
import subprocess
import sys
import tempfile


def frames(compiler, source):
    """The bytes of every function."""
    folder, name = os.path.split(source)
    ccache = [path for path in [shutil.which("ccache")] if path]
    subprocess.run([*ccache, compiler, "-std=gnu++20", "-O1", "-fopenmp", "-fstack-usage", "-c", name, "-o", "object.o"],
                   cwd=folder, check=True)
    sizes = {}
    with open(os.path.join(folder, "object.su"), encoding="utf-8") as file:
        for line in file:
            function, size, kind = line.rstrip("\n").split("\t")
            if kind == "dynamic":  # without a bound
                sys.exit(f"{function} takes as much of the stack as it likes")
            sizes[function] = max(int(size), sizes.get(function, 0))
    return sizes


def with_blocks(source, sizes):
    """To the frame of a function that calls some of a block the largest of theirs is added."""
    with open(source, encoding="utf-8") as file:
        text = file.read()
    calls = {}  # of a function: those of a block
    for name, body in re.findall(r"^(?:\[\[gnu::noinline\]\] )?static void (\w+)\(.*?\) \{\n(.*?)^\}", text, re.M | re.S):
        calls[name] = set(re.findall(r"\b(\w+_block\w*)\(", body))
    named = {re.search(r"(\w+)\(", function).group(1): function for function in sizes if re.search(r"(\w+)\(", function)}
    for name, blocks in calls.items():
        called = [sizes[named[block]] for block in blocks if block in named]
        if name in named and called:
            sizes[named[name]] += max(called)
    return sizes


def main(compiler, most, generator, words):
    failed = 0
    for word in words:
        if "/" not in word:
            model = word
            continue
        precision, isa = word.split("/")
        with tempfile.TemporaryDirectory() as folder:
            isas = isa if isa == "scalar" else f"scalar,{isa}"
            subprocess.run([generator, model, "model", "--out", folder, "--precision", precision, "--isa", isas],
                           check=True)
            source = os.path.join(folder, f"model_{isa}.cpp")
            sizes = with_blocks(source, frames(compiler, source))
        function = max(sizes, key=sizes.get)
        print(f"{model} {word}: at most {sizes[function]} bytes in {function}")
        failed |= sizes[function] > most
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]))
