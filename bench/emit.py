"""Sources of models that no target has: compiles a declaration together with the generator and runs it, as tessera_add_model
does. For peers/cpu.py (timm's names) and growth.py. Needs the build's libtessera_codegen.a (target tessera_codegen)."""
import os
import pathlib
import subprocess
from importlib.machinery import SourceFileLoader

ROOT = pathlib.Path(__file__).resolve().parent.parent
full_size = SourceFileLoader("full_size", str(ROOT / "tests/declare/full_size")).load_module()


def cost(command):
    """Seconds of the processor and peak megabytes of one command, which has to succeed."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(str(word) for word in command)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def emit(build, name, declaration, model, compiler="g++", precision="fp32"):
    """Writes BUILD/generated/NAME from the declaration, where it does not stand there yet; what compiling the declaration with
    the generator cost, and what running it: two pairs of seconds and megabytes."""
    folder = pathlib.Path(build) / "generated" / name
    folder.mkdir(parents=True, exist_ok=True)
    headers = "".join(f'#include "models/{header}.hpp"\n' for header in full_size.HEADERS)
    (folder / "generator.cc").write_text(
        f'{headers}#include "codegen/driver.hpp"\n#include "dsl/trace.hpp"\nnamespace tessera::models {{\n{declaration}\n}}\n'
        f'int main(int argc, char** argv) {{\n  using namespace tessera::models;\n'
        f'  return tessera::codegen::generator_main(tessera::trace<{model}>("{name}"), argc, argv);\n}}\n')
    compiled = cost([compiler, "-std=c++20", "-O0", "-I", ROOT, folder / "generator.cc", "-o", folder / "generator",
                     pathlib.Path(build) / "libtessera_codegen.a", "-lfmt"])
    generated = cost([folder / "generator", "--out", folder, "--precision", precision])
    return compiled, generated
