"""Compiles the kernels of a model and holds every function's stack frame to a bound. Of a thread's stack little else is
used: kernels call no kernels, and what they call in turn takes a few lines.
Usage: frames.py COMPILER BYTES GENERATOR MODEL PRECISION/ISA..."""
import os
import shutil
import subprocess
import sys
import tempfile


def frames(compiler, source):
    """(bytes, function) of every function."""
    folder, name = os.path.split(source)
    ccache = [path for path in [shutil.which("ccache")] if path]
    subprocess.run([*ccache, compiler, "-std=gnu++20", "-O1", "-fopenmp", "-fstack-usage", "-c", name, "-o", "object.o"],
                   cwd=folder, check=True)
    with open(os.path.join(folder, "object.su"), encoding="utf-8") as file:
        for line in file:
            function, size, kind = line.rstrip("\n").split("\t")
            if kind == "dynamic":  # without a bound
                sys.exit(f"{function} takes as much of the stack as it likes")
            yield int(size), function


def main(compiler, most, generator, model, kinds):
    failed = 0
    for kind in kinds:
        precision, isa = kind.split("/")
        with tempfile.TemporaryDirectory() as folder:
            isas = isa if isa == "scalar" else f"scalar,{isa}"
            subprocess.run([generator, model, "model", "--out", folder, "--precision", precision, "--isa", isas],
                           check=True)
            size, function = max(frames(compiler, os.path.join(folder, f"model_{isa}.cpp")))
        print(f"{kind}: at most {size} bytes in {function}")
        failed |= size > most
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:5], sys.argv[5:]))
