"""What compiling a declaration costs: seconds and peak memory of each model in models/, with GCC and Clang.

Usage: compile_time.py [--runs N] [--compilers g++ clang++-19] [--models VitBase VitLarge ...]

A model is compiled alone, without optimisation: its header, and trace<Model> where it is a classifier (its forward where it
is not). "check" stops after the compiler has judged it (-fsyntax-only), which is what a wrong declaration costs; "compile"
goes on to object code. Each number is the median of N runs (default 5), taken in turns so that a busy minute touches all.
Seconds are those of the wall clock, in brackets those of the processor, which a busy machine changes less.
Template instantiations, which do not depend on the machine, are gated by tests/compile_time.
"""
import argparse, os, statistics, subprocess, sys, tempfile, time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
# name: header, type, whether it is a classifier that trace takes
MODELS = {
    "VitTiny": ("vit.hpp", "VitTiny", True),
    "VitSmall": ("vit.hpp", "VitSmall", True),
    "VitBase": ("vit.hpp", "VitBase", True),
    "VitLarge": ("vit.hpp", "VitLarge", True),
    "VitMnist": ("vit_mnist.hpp", "vit_mnist::VitMnist", True),
    "CifarVit": ("vit_cifar.hpp", "CifarVit<{}>", True),
    "NotebookVit": ("vit_notebook.hpp", "NotebookVit<{}>", True),
    "SelfAttention2d": ("self_attention_2d.hpp", "SelfAttention2d<{}>", False),
    "SentenceAttention": ("sentence_attention.hpp", "SentenceAttention", False),
    "ScalarGraph": ("scalar_graph.hpp", "ScalarGraph", False),
}


def source(name):
    header, model, traced = MODELS[name]
    model = f"tessera::models::{model}"
    use = f"template tessera::graph::Graph tessera::trace<{model}>(std::string);" if traced \
        else f"auto forward = &{model}::forward;"
    return f'#include <string>\n#include "dsl/trace.hpp"\n#include "models/{header}"\n{use}\n'


def cost(command):
    """Seconds by the clock and of the processor, and peak megabytes, of one run."""
    start = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}\n{errors}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--compilers", nargs="+", default=["g++", "clang++-19"])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        jobs = {}
        for name in options.models:
            path = os.path.join(folder, name + ".cpp")
            with open(path, "w") as f:
                f.write(source(name))
            for compiler in options.compilers:
                common = [compiler, "-std=c++20", "-I" + ROOT, path]
                jobs[name, compiler, "check"] = common + ["-fsyntax-only"]
                jobs[name, compiler, "compile"] = common + ["-c", "-o", os.path.join(folder, "model.o")]
        costs = {job: [] for job in jobs}
        for _ in range(options.runs):
            for job, command in jobs.items():
                costs[job].append(cost(command))

    print(f"{'model':18} {'compiler':12} {'check':>16} {'compile':>16} {'memory':>8}   (median of {options.runs})")
    for name in options.models:
        for compiler in options.compilers:
            line = f"{name:18} {compiler:12}"
            for what in ("check", "compile"):
                wall, processor, memory = (statistics.median(c) for c in zip(*costs[name, compiler, what]))
                line += f" {wall:6.2f} s ({processor:.2f} s)"
            print(f"{line} {memory:5.0f} MB")


if __name__ == "__main__":
    main()
