"""instructions.py PROGRAM FUNCTION COMPILER COUNTS [--update]: what FUNCTION of PROGRAM executes on the AVX2 kernels, in
instructions on one thread, is within 5 % of the number in the file COUNTS for this compiler.

Callgrind counts them, so that the machine's mood does not matter; it knows no AVX-512. COUNTS has lines "COMPILER NUMBER",
COMPILER being one word (GNU-12: another version emits other instructions); --update writes this compiler's. A number that has
become smaller fails as well: it is the one to compare with from then on. Exits with 77 where there is no valgrind, or no
number for this compiler."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

MARGIN = 0.05


def count(program, function):
    environment = dict(os.environ, TESSERA_ISA="avx2", OMP_NUM_THREADS="1")
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--toggle-collect={function}", program]
    said = subprocess.run(command, env=environment, capture_output=True, text=True)
    number = re.search(r"Collected : (\d+)", said.stderr)
    if said.returncode or not number or number.group(1) == "0":
        sys.exit(f"callgrind did not count {function} of {program}:\n{said.stderr}")
    return int(number.group(1))


def main(program, function, compiler, counts, update):
    if not shutil.which("valgrind"):
        print("skipped: there is no valgrind")
        return 77
    path = pathlib.Path(counts)
    known = dict(line.split() for line in path.read_text().splitlines())
    if compiler not in known and not update:
        print(f"skipped: {path.name} has no number for {compiler}")
        return 77
    counted = count(program, function)
    if update:
        known[compiler] = counted
        path.write_text("".join(f"{name} {number}\n" for name, number in sorted(known.items())))
    expected = int(known[compiler])
    print(f"{function}: {counted} instructions, {100 * (counted / expected - 1):+.2f} % of the {expected} of {path.name}")
    if abs(counted - expected) <= MARGIN * expected:
        return 0
    print(f"where this is meant: python3 {os.path.relpath(__file__)} {program} {function} {compiler} {counts} --update")
    return 1


if __name__ == "__main__":
    words = [a for a in sys.argv[1:] if a != "--update"]
    if len(words) != 4:
        sys.exit("usage: instructions.py PROGRAM FUNCTION COMPILER COUNTS [--update]")
    sys.exit(main(*words, "--update" in sys.argv))
