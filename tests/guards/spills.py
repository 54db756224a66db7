"""spills.py [--least N] FILE ...: the inner loops of compiled products keep their sums in registers.

Disassembles each FILE (an object or an archive, x86-64; a name that ends in .s is read as what objdump prints) and looks at
every innermost loop, a jump back over no other such jump, that is a product's: N (8) fused multiply-adds or more, two of
five instructions, into half as many registers or more (a polynomial's go into few). One where a vector goes to or comes from a fixed place on the stack has run out of registers: that is
printed, and fails. Not meant are a counter on the stack, which costs nothing beside them; a place chosen by an index, which is
an array; and polynomials, whose constants may lie where they like. A FILE without any such loop fails as well: then the way
they are found has changed, or the kernels have. Prints "skipped: ..." where there is no objdump."""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(?:(?:bnd|notrack) )?(\S+)\s*(.*)$")
JUMP = re.compile(r"^([0-9a-f]+) <")
MULTIPLY_ADD = re.compile(r"vfn?m(add|sub)\d{3}[ps]s$")
FRAME_POINTER = re.compile(r"%rsp,%rbp$")


def functions(text):
    """Of each function its name and its instructions: address, operation, operands."""
    name, body = None, []
    for line in text.splitlines():
        if begin := FUNCTION.match(line):
            if body:
                yield name, body
            name, body = begin.group(1), []
        elif part := INSTRUCTION.match(line):
            body.append((int(part.group(1), 16), part.group(2), part.group(3).split("#")[0].strip()))
    if body:
        yield name, body


def inner_loops(body):
    """The instructions of each loop within which there is no other."""
    index = {address: i for i, (address, _, _) in enumerate(body)}
    spans = []
    for i, (address, operation, operands) in enumerate(body):
        target = JUMP.match(operands) if operation.startswith("j") else None
        begin = index.get(int(target.group(1), 16)) if target else None
        if begin is not None and begin <= i:
            spans.append((begin, i))
    for begin, end in spans:
        if not any((b, e) != (begin, end) and begin <= b and e <= end for b, e in spans):
            yield body[begin:end + 1]


def check(text, least):
    """How many loops there were, and a sentence about each that spills."""
    loops, wrong = 0, []
    for name, body in functions(text):
        has_frame = any(operation == "mov" and FRAME_POINTER.search(operands) for _, operation, operands in body)
        place = re.compile(r"-?(0x[0-9a-f]+)?\(%(rsp|rbp)\)" if has_frame else r"-?(0x[0-9a-f]+)?\(%rsp\)")
        for loop in inner_loops(body):
            adds = sum(bool(MULTIPLY_ADD.match(operation)) for _, operation, _ in loop)
            spills = [i for i in loop if i[1].startswith("v") and place.search(i[2])]
            others = sum(not MULTIPLY_ADD.match(operation) for _, operation, _ in loop) - len(spills)
            sums = {operands.rsplit(",", 1)[-1] for _, operation, operands in loop if MULTIPLY_ADD.match(operation)}
            if adds < least or 2 * others > 3 * adds or 2 * len(sums) < adds:
                continue
            loops += 1
            if spills:
                _, operation, operands = spills[0]
                wrong.append(f"{name}: the loop at {loop[0][0]:x}, with {adds} multiply-adds, goes to the stack "
                             f"{len(spills)} times: {operation} {operands}")
    return loops, wrong


def main(files, least):
    if not shutil.which("objdump"):
        print("skipped: there is no objdump")
        return 0
    failed = 0
    for file in files:
        if file.endswith(".s"):
            text = pathlib.Path(file).read_text()
        else:
            text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", file], check=True, capture_output=True,
                                  text=True).stdout
        loops, wrong = check(text, least)
        for sentence in wrong:
            print(f"{pathlib.Path(file).name}: {sentence}")
        if not loops:
            print(f"{file}: there is no loop with {least} multiply-adds to look at")
        print(f"{pathlib.Path(file).name}: {loops} inner loops, {len(wrong)} spill")
        failed |= bool(wrong) or not loops
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--least", type=int, default=8)
    parser.add_argument("files", nargs="+")
    given = parser.parse_args()
    sys.exit(main(given.files, given.least))
