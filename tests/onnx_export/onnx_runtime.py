"""onnx_runtime.py WRITE_ONNX [TYPE...]: runs WRITE_ONNX, and every file that it exports with ONNX Runtime; the outputs
must be the interpreter's. Differences are shares of the largest output, where that is more than one. Prints
"skipped: ..." where ONNX Runtime is not installed."""
import json
import os
import subprocess
import sys
import tempfile

OUTPUT = 1e-5


def read(path, numpy):
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    arrays = {}
    for name, about in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            first, last = (8 + size + offset for offset in about["data_offsets"])
            arrays[name] = numpy.frombuffer(data[first:last], numpy.float64).reshape(about["shape"])
    return arrays


def main(program, *types):
    try:
        import numpy
        import onnxruntime
    except ImportError:
        print("skipped: ONNX Runtime is not installed for this Python")
        return 0
    try:
        import onnx
        check = lambda path: onnx.checker.check_model(path, full_check=True)
    except ImportError:
        check = lambda path: None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    worst, count, good = 0, 0, True
    with tempfile.TemporaryDirectory() as folder:
        written = subprocess.run([program, folder, *types], check=True, stdout=subprocess.PIPE, text=True).stdout
        for line in written.splitlines():
            if " is left out: " in line:
                print(line)
                continue
            number, name = line.split()[:2]
            path = os.path.join(folder, number + ".onnx")
            wanted = read(os.path.join(folder, number + ".safetensors"), numpy)
            check(path)
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            types = {"tensor(float)": numpy.float32, "tensor(int32)": numpy.int32}
            given = {i.name: wanted[i.name].astype(types[i.type]) for i in session.get_inputs() if i.name in wanted}
            (outputs,) = session.run(None, given)
            answer = wanted["outputs"]
            assert outputs.shape == answer.shape, (outputs.shape, answer.shape)
            scale = max(1.0, abs(answer).max())
            difference = abs(outputs - answer).max() / scale
            if name.startswith(("tessera::", "downstream::")):  # images do not look at each other
                (first,) = session.run(None, {key: array[:1] for key, array in given.items()})
                difference = max(difference, abs(first - answer[:1]).max() / scale)
            fits = difference <= OUTPUT  # which what is no number does not
            worst, count, good = max(worst, difference), count + 1, good and fits
            print(f"{name}: {difference:.1e}{'' if fits else '  WRONG'}", flush=True)
    print(f"ONNX Runtime's outputs of {count} models are the interpreter's but for {worst:.1e}")
    return 0 if count and good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
