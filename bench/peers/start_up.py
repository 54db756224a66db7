"""start_up.py PROGRAM WEIGHTS PICTURE [--runs N]: how large ViT-Tiny's program is and how long it takes from its start
to its first answer, beside ONNX Runtime and OpenVINO on what `PROGRAM export --onnx` writes. Of the program all of the
process is timed, with reading and decoding PICTURE; of the others, each in a Python of its own, from the import on to
the outputs of one image of zeros, without the start of Python itself. The program's first answer packs the parameters,
later ones map what it leaves beside its checkpoint; with --checkpoint each packs them. Sizes: the program as it is
linked and stripped; the shared libraries of the Python packages. Medians of N runs in turns, one thread each."""
import argparse
import importlib.util
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PEERS = {
    "onnxruntime": """
import onnxruntime
o = onnxruntime.SessionOptions()
o.intra_op_num_threads = 1
s = onnxruntime.InferenceSession(path, o, providers=["CPUExecutionProvider"])
s.run(None, {"images": images})
""",
    "openvino": """
import openvino
m = openvino.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": 1})
m({"images": images})
""",
}


def libraries(package):
    """MiB of the package's shared libraries."""
    folder = pathlib.Path(importlib.util.find_spec(package).origin).parent
    return sum(f.stat().st_size for f in folder.rglob("*.so*") if not f.is_symlink()) / 2**20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("weights")
    parser.add_argument("picture")
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        run, onnx = os.path.join(folder, "run"), os.path.join(folder, "model.onnx")
        stripped = os.path.join(folder, "stripped")
        shutil.copy(options.program, stripped)
        subprocess.run(["strip", stripped], check=True)
        quiet = dict(check=True, stdout=subprocess.DEVNULL, env=environment)
        subprocess.run([options.program, "import", options.weights, "--out", run], **quiet)
        subprocess.run([options.program, "export", "--out", run, "--onnx", onnx], **quiet)

        time.sleep(4)  # what has changed less than three seconds ago leaves no packed parameters

        def ours(*of_run):
            start = time.perf_counter()
            subprocess.run([options.program, "predict", *of_run, options.picture], **quiet)
            return time.perf_counter() - start

        def of(code):
            text = ("import time, numpy\nimages = numpy.zeros((1, 3, 224, 224), numpy.float32)\n"
                    f"path = {onnx!r}\nstart = time.perf_counter(){code}print(time.perf_counter() - start)\n")
            out = subprocess.run([sys.executable, "-c", text], check=True, stdout=subprocess.PIPE, env=environment, text=True)
            return float(out.stdout)

        works = {"the program": lambda: ours("--out", run),
                 "it, packing": lambda: ours("--checkpoint", os.path.join(run, "checkpoint.safetensors"))}
        works.update({peer: (lambda c=code: of(c)) for peer, code in PEERS.items() if importlib.util.find_spec(peer)})
        times = {name: [] for name in works}
        for _ in range(options.runs + 1):
            for name, work in works.items():
                times[name].append(work())
        print(platform.processor() or platform.machine(), f"median of {options.runs} runs after one to warm up")
        for name, taken in times.items():
            size = os.path.getsize(stripped) / 2**20 if name not in PEERS else libraries(name)
            print(f"{name:12} {size:8.1f} MiB {1000 * statistics.median(taken[1:]):8.0f} ms")
        print(f"weights      {os.path.getsize(onnx) / 2**20:8.1f} MiB as an ONNX file")


if __name__ == "__main__":
    main()
