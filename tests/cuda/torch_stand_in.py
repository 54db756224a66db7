"""A PyTorch without CUDA as if it found an H100, for scripts of bench/peers: what it is asked to do there it does on the CPU,
and its profiler tells the kernels that an emitted file launches. Where it is run: bench/peers/gpu.py with its arguments,
for models that are as small as tests/cuda/toy_models.hpp has TimedVit. Usage: torch_stand_in.py SCRIPT ARGUMENTS..."""
import collections
import contextlib
import math
import pathlib
import re
import sys
import types

import torch


class Profile:
    """Of three runs: `kernels` has launches and microseconds of all of them by name."""
    kernels = {}

    def __init__(self, activities):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def events(self):
        for name, (launches, us) in self.kernels.items():
            for _ in range(3 * launches):
                yield types.SimpleNamespace(name=f"(anonymous namespace)::{name}(int, float*)",
                                            device_type=torch.autograd.DeviceType.CUDA,
                                            time_range=types.SimpleNamespace(elapsed_us=lambda: us / launches))


def launches_of(text, function):
    """What a function of an emitted file launches on sm_90a, and how often: loops of layers multiply."""
    body = text[text.index(f"\nvoid {function}("):]
    body = body[body.index(") {\n") + 3:body.index("\n}\n")]
    found, around = collections.Counter(), []  # a number for each open brace
    pieces = re.findall(r"for \([^;]*; \w+ < (\d+); [^{]*\{|(if \(warpgroups\)|if \(!\(warpgroups\)\)|else) \{|(\{)|(\})|"
                        r"\blaunch(?:_clusters)?\((\w+)", body)
    before = None
    for count, branch, opens, closes, kernel in pieces:
        if count:
            around.append(int(count))
        elif branch:
            assert branch != "else" or before == "if (warpgroups)", before
            around.append(int(branch == "if (warpgroups)"))
            before = branch
        elif opens:
            around.append(1)
        elif closes:
            around.pop()
        elif math.prod(around):
            found[kernel] += math.prod(around)
    assert not around, (function, around)
    return found


class Device(str):
    """To PyTorch the CPU, to who asks for its type a GPU."""
    type = "cuda"


class Graph:
    """Runs again what ran while it was captured: the function `job` of who captures."""
    replay = None


@contextlib.contextmanager
def capturing(graph):
    graph.replay = sys._getframe(2).f_locals["job"]
    yield


class Instead:
    """A module, but for what it is given of its own."""

    def __init__(self, module, **own):
        self.__dict__ = own | {"module": module}

    def __getattr__(self, name):
        return getattr(self.module, name)


def stand_in():
    """What a script has as its `torch`."""
    cuda = Instead(torch.cuda, is_available=lambda: True, CUDAGraph=Graph, graph=capturing,
                   get_device_name=lambda: "NVIDIA H100 80GB HBM3, a stand-in", get_device_capability=lambda _: (9, 0),
                   synchronize=lambda: None, empty_cache=lambda: None,
                   current_stream=lambda: types.SimpleNamespace(cuda_stream=0))
    of_backends = Instead(torch.backends.cuda, preferred_blas_library=lambda _: None)
    return Instead(torch, cuda=cuda, backends=Instead(torch.backends, cuda=of_backends),
                   profiler=Instead(torch.profiler, profile=Profile), device=lambda _: Device("cpu"),
                   compile=lambda module, **_: module)


def main():
    script = pathlib.Path(sys.argv[1]).resolve()
    sys.argv = [*sys.argv[1:], "--seconds", "0.02"]
    sys.path.insert(0, str(script.parent))
    import gpu
    gpu.torch = stand_in()
    for model in ("vit_tiny", "vit_base"):
        gpu.SIZES[model] = (32, 64, 2, 3)
    folder = pathlib.Path(sys.argv[sys.argv.index("--build") + 1], "generated", "vit_base_gpu")
    text = (folder / "vit_base_gpu_cuda.cu").read_text()
    launches = launches_of(text, "run_loss_and_gradients") + launches_of(text, "run_update")
    Profile.kernels = {name: (count, 10.0 * count) for name, count in launches.items()} | {"count_on": (1, 1.0)}
    return gpu.main()


if __name__ == "__main__":
    sys.exit(main())
