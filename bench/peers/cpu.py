"""The same models, weights and batches in Tessera and in what else there is, timed in turns on one machine.

Usage: cpu.py [--build build/release] [--threads 1 2] [--rounds 5] [--works NAME ...] [--peers NAME ...] [--compiler g++]
              [--record FILE --processor NAME]

Needs torch and numpy, a C++ compiler, and the models built in --build (target bench_peers). Works and peers are all those
below but those of other libraries' models unless some are named; a peer that is not installed is a line under the table. --works and --peers take
the start of names as well: "vit_base" are its two works, "timm" all of timm's names, which need timm and the target
tessera_codegen; "depth" is Depth Anything, which needs transformers and that target. What contenders export or convert stays in BUILD/peers for the next run; --rounds 0 does that and compares
outputs. --record puts each work into a JSON file as soon as it is measured, in the place of what stood there of this work and
number of threads; pages.py makes pages and pictures of it.

Every contender is a process of its own that waits while the others work. First all outputs are compared with those of
PyTorch in single precision, and where nothing is dropped at random the first training losses too: by 1e-4 of the largest for
single precision, 0.05 for bf16, 0.3 for int8. Then each round times every contender once, in turn (the fastest run of a
turn, which after one to warm up lasts 0.1 s and three runs, or 1 s); the table shows the median over rounds, and the share
of the FMA ceiling, which is the fastest of those measured after each round: 2 FLOPs a multiply-add of the model as declared,
from the emitted header; of the products, of their multiply-adds. For the AVX2 kernels it is the share of AVX2's FMAs, for all
others of the widest there are. In brackets stands the share of the FMAs that the contender's process makes right after its
turn, at the clock that the turn has left, which processors lower under products (not of ONNX Runtime, whose threads run on for
a while). "gemm" are the four linear maps of a block, one after the other. The last columns compare the best of ours with the
best peer, in single precision, in bf16 and in int8. "Tessera bf16" and "Tessera int8" use the widest instructions there are:
AMX's tiles, else AVX-512, else AVX2. A machine that does anything else gives other numbers.
"""
import argparse
import concurrent.futures
import ctypes
import functools
import gc
import importlib.util
import json
import logging
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
import typing
import warnings

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RATE = 1e-3


class Work(typing.NamedTuple):
    model: str
    batch: int
    trains: bool = False


WORKS = {
    "vit_tiny forward 1": Work("vit_tiny", 1),
    "vit_tiny forward 8": Work("vit_tiny", 8),
    "vit_base forward 1": Work("vit_base", 1),
    "vit_base forward 8": Work("vit_base", 8),
    "vit_tiny training step 8": Work("vit_tiny", 8, True),
    "vit_cifar training step 64": Work("vit_cifar", 64, True),
    "vit_mnist forward 128": Work("vit_mnist", 128),
    "vit_mnist training step 128": Work("vit_mnist", 128, True),
    "gemm of vit_tiny, 197 rows": Work("tiny_gemms", 1),
    "gemm of vit_tiny, 1576 rows": Work("tiny_gemms", 8),
    "gemm of vit_base, 197 rows": Work("base_gemms", 1),
    "gemm of vit_base, 1576 rows": Work("base_gemms", 8),
}
# Of timm's names, as `tessera declare` declares them: thirteen whose blocks, positions or pooling differ.
TIMM = ("vit_tiny_patch16_224", "deit3_small_patch16_224", "vit_base_patch16_clip_224", "vit_base_patch16_siglip_224",
        "vit_small_patch14_reg4_dinov2", "vit_small_patch16_dinov3", "eva02_small_patch14_224", "beit_base_patch16_224",
        "vit_relpos_small_patch16_224", "cait_xxs24_224", "swin_tiny_patch4_window7_224", "swinv2_tiny_window8_256",
        "samvit_base_patch16_224")
WORKS |= {f"timm {name}": Work(f"timm_{name}", 1) for name in TIMM}
DEPTH = "depth_anything_small"  # of Hugging Face's transformers
WORKS |= {f"{DEPTH} forward 1": Work(DEPTH, 1)}
OF_LIBRARIES = ("timm ", DEPTH)  # works that need more than torch, and are measured where they are named
IMAGES = {"vit_cifar": (3, 32, 32), "vit_mnist": (1, 28, 28), DEPTH: (3, 518, 518)}  # all others are of 3 channels, see image_shape
# In and out of the four linear maps of a block: queries, keys and values; attention's output; the MLP.
GEMMS = {f"{name}_gemms": [(d, 3 * d), (d, d), (d, 4 * d), (4 * d, d)] for name, d in (("tiny", 192), ("base", 768))}
ROWS = 197  # of an image

# What stands over a column; whether it is in single precision, else how far its outputs may be from that.
CONTENDERS = {
    "avx2": ("Tessera AVX2", None),
    "avx512": ("Tessera AVX-512", None),
    "bf16": ("Tessera bf16", 0.05),
    "int8": ("Tessera int8", 0.3),
    "int8-vnni": ("Tessera int8, VNNI", 0.3),
    "eager": ("PyTorch eager", None),
    "sdpa": ("PyTorch eager, fused attention", None),
    "compiled": ("torch.compile", None),
    "mkldnn": ("PyTorch's oneDNN", None),
    "ort": ("ONNX Runtime", None),
    "ort-fused": ("ONNX Runtime, fused attention", None),
    "openvino": ("OpenVINO", None),
    "jax": ("JAX", None),
    "onednn": ("oneDNN of the system", None),
    "eager-bf16": ("PyTorch bf16", 0.05),
    "compiled-bf16": ("torch.compile bf16", 0.05),
    "openvino-bf16": ("OpenVINO bf16", 0.05),
    "ort-int8": ("ONNX Runtime int8", 0.3),
    "openvino-int8": ("OpenVINO int8", 0.3),
}
SINGLE = ("avx2", "avx512")
OURS = (*SINGLE, "bf16", "int8", "int8-vnni")
FLAGS = {"avx2": "avx2", "avx512": "avx512f", "int8-vnni": "avx512_vnni"}  # of /proc/cpuinfo, without which it cannot run
PRECISIONS = (lambda kind: not CONTENDERS[kind][1], lambda kind: "bf16" in kind, lambda kind: "int8" in kind)
EMITTED = {"bf16": ("vit_tiny", "vit_base", "vit_cifar", DEPTH), "int8": ("vit_tiny", "vit_base", DEPTH)}  # models in other precisions


def work_of(name):
    """A work by its name: of WORKS, or of a plain ViT of other sizes, as growth.py names them: "vit_224_16_192_12 forward 1", by
    pixels, pixels of a patch, width and depth."""
    if name in WORKS:
        return WORKS[name]
    model, what, batch = re.fullmatch(r"(vit_\d+_\d+_\d+_\d+) (forward|training step) (\d+)", name).groups()
    return Work(model, int(batch), what == "training step")


class Cannot(Exception):
    """Why a contender does not take part, in general or in one work."""


def reference(model):
    """The model in PyTorch with its starting weights, the same ones in every process."""
    import torch
    sys.path.insert(0, str(ROOT / "tests" / "golden"))
    import reference_models as R
    torch.manual_seed(1)
    if model in GEMMS:
        return torch.nn.ModuleList(torch.nn.Linear(k, n) for k, n in GEMMS[model])
    if model.startswith("timm_"):
        return timm_model(model.removeprefix("timm_"))
    if model == DEPTH:
        return depth_model()
    if model in ("vit_cifar", "vit_mnist"):
        return R.CifarVit() if model == "vit_cifar" else R.MnistVit()
    image, patch, width, depth = sizes(model)
    return R.TimmVit(image=image, patch=patch, d=width, heads=width // 64, depth=depth, classes=1000)


def sizes(model):
    """Pixels, pixels of a patch, width and depth: those of vit_tiny and vit_base, or as growth.py's names say them."""
    named = re.fullmatch(r"vit_(\d+)_(\d+)_(\d+)_(\d+)", model)
    return tuple(map(int, named.groups())) if named else (224, 16, {"vit_tiny": 192, "vit_base": 768}[model], 12)


def timm_model(name):
    """With noise on all parameters: as timm starts them, whole blocks hardly count in the outputs."""
    import timm
    import torch
    model = timm.create_model(name)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.02 * torch.randn_like(parameter)
    return model


def depth_model():
    """Depth Anything with random weights: convolutions of the size that keeps what they sum, noise on all others."""
    import torch
    import transformers
    encoder = transformers.Dinov2Config(hidden_size=384, num_attention_heads=6, image_size=518, patch_size=14,
                                        out_indices=[3, 6, 9, 12], reshape_hidden_states=False)
    model = transformers.DepthAnythingForDepthEstimation(transformers.DepthAnythingConfig(backbone_config=encoder))

    class Depths(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, images):
            return self.model(images).predicted_depth

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 4 and not name.startswith("backbone"):
                parameter.normal_(std=parameter[0].numel() ** -0.5)
            else:
                parameter += 0.02 * torch.randn_like(parameter)
        model.head.conv3.bias += 1
    return Depths()


def state_of(name, model):
    """PyTorch's parameters by the emitted model's keys."""
    import torch
    state = model.state_dict()
    if name != DEPTH:
        return state
    renamed = {}
    for key, value in state.items():
        key = key.removeprefix("model.")
        for theirs, ours in (("backbone.embeddings.patch_embeddings.projection", "patch_embed.proj"), ("backbone.layernorm", "norm"),
                             ("backbone.embeddings.position_embeddings", "pos_embed"), ("backbone.embeddings.", ""),
                             ("backbone.encoder.layer.", "blocks."), ("layer_scale1.lambda1", "ls1.gamma"),
                             ("layer_scale2.lambda1", "ls2.gamma"), ("attention.q_proj", "attn.q"), ("attention.k_proj", "attn.k"),
                             ("attention.v_proj", "attn.v"), ("attention.o_proj", "attn.proj")):
            key = key.replace(theirs, ours)
        renamed[key] = value
    for key in [key for key in renamed if ".attn.q." in key]:
        renamed[key.replace(".q.", ".qkv.")] = torch.cat([renamed[key.replace(".q.", f".{part}.")] for part in "qkv"])
    return renamed


def image_shape(model):
    if model.startswith("timm_"):
        import timm
        return timm.get_pretrained_cfg(model.removeprefix("timm_")).input_size
    return IMAGES.get(model) or (3, sizes(model)[0], sizes(model)[0])


def data(model, batch):
    """Invented images and labels; for the products, one input each and no labels."""
    import numpy as np
    random = np.random.default_rng(1)
    if model in GEMMS:
        return [random.standard_normal((batch * ROWS, k), dtype=np.float32) for k, _ in GEMMS[model]], None
    return random.standard_normal((batch, *image_shape(model)), dtype=np.float32), random.integers(0, 10, batch)


def drops(model):
    return model == "vit_cifar"


def joined(outputs):
    import numpy as np
    return np.concatenate([np.asarray(o).ravel() for o in outputs])


class Torch:
    """PyTorch; with bf16, under autocast; compiled, its weights frozen where it does not train."""

    def __init__(self, kind, setting):
        import torch
        self.torch, self.kind = torch, kind
        torch.set_num_threads(setting.threads)
        self.autocast = lambda: torch.autocast("cpu", torch.bfloat16, enabled=kind.endswith("bf16"))

    def prepare(self, work):
        torch = self.torch
        if self.kind == "sdpa" and work.model.startswith(("timm_", DEPTH)):
            raise Cannot("is what other libraries' models call anyway")
        model = reference(work.model)
        if work.model in GEMMS:
            return self.prepare_gemms(work, model)
        if self.kind == "mkldnn":
            raise Cannot("is measured by its products alone")
        if self.kind != "eager":
            fuse_attention(model)
        images, labels = (torch.from_numpy(a) for a in data(work.model, work.batch))
        model.eval()
        compiled = self.kind.startswith("compiled")
        if compiled:
            import torch._inductor.config
            torch._inductor.config.freezing = not work.trains
        run = torch.compile(model) if compiled else model

        def forward():
            with torch.no_grad(), self.autocast():
                return run(images)

        outputs = forward().float().numpy()
        if not work.trains:
            return forward, outputs, None
        model.train()
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)

        def step():
            with self.autocast():
                loss = torch.nn.functional.cross_entropy(run(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return step, outputs, step().item()

    def prepare_gemms(self, work, model):
        torch = self.torch
        inputs = [torch.from_numpy(a) for a in data(work.model, work.batch)[0]]
        if self.kind == "mkldnn":
            product = torch.ops.mkldnn._linear_pointwise
            with torch.no_grad():
                weights = [torch.ops.mkldnn._reorder_linear_weight(m.weight.detach(), len(x)) for x, m in zip(inputs, model)]

            def run():
                with torch.no_grad():
                    return [product(x, w, m.bias, "none", [], "") for x, w, m in zip(inputs, weights, model)]
        elif self.kind in ("eager", "eager-bf16"):
            def run():
                with torch.no_grad(), self.autocast():
                    return [m(x) for x, m in zip(inputs, model)]
        else:
            raise Cannot("is measured by whole models alone")
        return run, joined([y.float() for y in run()]), None


def fuse_attention(model):
    """scaled_dot_product_attention where the reference spells attention out; what CifarVit calls does so by itself."""
    import torch
    import reference_models as R

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return self.proj(mixed.transpose(1, 2).reshape(b, n, d)), None

    for module in model.modules():
        if isinstance(module, R.FusedAttention):
            module.forward = forward.__get__(module)


class OnnxRuntime:
    """The reference exported by PyTorch: as it is, with attention as one operation of ONNX Runtime's own and what its optimiser
    for transformers fuses, or with the weights of its linear maps in int8, a scale each channel."""

    def __init__(self, kind, setting):
        for module in ("onnxruntime", "onnx"):
            if not importlib.util.find_spec(module):
                raise Cannot(f"{module} is not installed")
        import onnxruntime
        import torch
        torch.set_num_threads(1)
        onnxruntime.set_default_logger_severity(3)
        self.kind, self.folder, self.runtime = kind, setting.folder, onnxruntime
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = setting.threads
        self.options.inter_op_num_threads = 1

    def prepare(self, work):
        if work.trains:
            raise Cannot("does not train")
        models = reference(work.model).eval()
        inputs = data(work.model, work.batch)[0]
        if work.model not in GEMMS:
            models, inputs = [models], [inputs]
        sessions = [self.session(f"{work.model}-{i}", model, x) for i, (model, x) in enumerate(zip(models, inputs))]

        def run():
            return [session.run(None, {"x": x})[0] for session, x in zip(sessions, inputs)]

        return run, joined(run()), None

    def session(self, name, model, x):
        import torch
        path = f"{self.folder}/{self.kind}-{name}-{len(x)}-{self.runtime.__version__}.onnx"
        if os.path.exists(path):
            return self.runtime.InferenceSession(path, self.options, providers=["CPUExecutionProvider"])
        changed = self.kind == "ort-fused" and self.fuse(model)
        if self.kind == "ort-fused" and not changed:
            raise Cannot("knows no attention of this form")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(model, (torch.from_numpy(x),), path, dynamo=False, input_names=["x"], opset_version=17,
                              custom_opsets={"com.microsoft": 1} if changed else None)
        if changed:
            from onnxruntime.transformers import optimizer
            fused = optimizer.optimize_model(path, model_type="vit", num_heads=changed.h,
                                             hidden_size=changed.qkv.in_features, opt_level=0)
            fused.save_model_to_file(path)
        if self.kind == "ort-int8":
            from onnxruntime.quantization import QuantType, quantize_dynamic
            logging.disable(logging.WARNING)  # it advises preprocessing that changes nothing here
            quantize_dynamic(path, path, per_channel=True, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gemm"])
        return self.runtime.InferenceSession(path, self.options, providers=["CPUExecutionProvider"])

    @staticmethod
    def fuse(model):
        """Makes every attention of the model one operation when it is exported; the last of them."""
        import torch
        import reference_models as R

        class Operation(torch.autograd.Function):
            @staticmethod
            def forward(context, q, k, v, heads):
                return q.clone()

            @staticmethod
            def symbolic(graph, q, k, v, heads):
                return graph.op("com.microsoft::MultiHeadAttention", q, k, v, num_heads_i=heads).setType(q.type())

        def forward(self, x):
            return self.proj(Operation.apply(*self.qkv(x).chunk(3, -1), self.h)), None

        found = None
        for module in model.modules():
            if isinstance(module, R.FusedAttention):
                module.forward = forward.__get__(module)
                found = module
        return found


class OpenVino:
    """The reference as OpenVINO converts it from PyTorch; in int8, quantised by NNCF as it does transformers, with scales from
    eight batches like the one that is measured."""

    def __init__(self, kind, setting):
        needed = ("openvino", "nncf") if kind.endswith("int8") else ("openvino",)
        for module in needed:
            if not importlib.util.find_spec(module):
                raise Cannot(f"{module} is not installed")
        import openvino
        import torch
        torch.set_num_threads(1)
        self.kind, self.folder, self.openvino = kind, setting.folder, openvino
        # int8 as well: what is not quantised stays in single precision.
        self.options = {"INFERENCE_NUM_THREADS": setting.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                        "INFERENCE_PRECISION_HINT": "bf16" if kind.endswith("bf16") else "f32"}

    def prepare(self, work):
        if work.trains:
            raise Cannot("does not train")
        models = reference(work.model).eval()
        inputs = data(work.model, work.batch)[0]
        if work.model not in GEMMS:
            models, inputs = [models], [inputs]
        requests = [self.compiled(f"{work.model}-{i}", model, x).create_infer_request()
                    for i, (model, x) in enumerate(zip(models, inputs))]

        def run():
            for request, x in zip(requests, inputs):
                request.infer([x], share_inputs=True, share_outputs=True)
            return [request.get_output_tensor(0).data for request in requests]

        return run, joined(run()), None

    def compiled(self, name, model, x):
        import numpy as np
        import torch
        converter = "nncf" if self.kind.endswith("int8") else "openvino"  # bf16 is how it is compiled
        path = f"{self.folder}/{converter}-{name}-{len(x)}-{self.openvino.__version__}.xml"
        if os.path.exists(path):
            return self.openvino.Core().compile_model(path, "CPU", self.options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            converted = self.openvino.convert_model(model, example_input=torch.from_numpy(x), input=list(x.shape))
        if self.kind.endswith("int8"):
            import nncf
            logging.getLogger("nncf").setLevel(logging.ERROR)
            random = np.random.default_rng(2)
            batches = [random.standard_normal(x.shape, dtype=np.float32) for _ in range(8)]
            converted = nncf.quantize(converted, nncf.Dataset(batches), model_type=nncf.ModelType.TRANSFORMER, subset_size=8)
        self.openvino.save_model(converted, path, compress_to_fp16=False)
        return self.openvino.Core().compile_model(converted, "CPU", self.options)


class Jax:
    """XLA: the forward pass of jax_models.py, and its step with JAX's gradients and Adam, each compiled as a whole."""

    def __init__(self, kind, setting):
        if not importlib.util.find_spec("jax"):
            raise Cannot("is not installed")
        os.environ.update(NPROC=str(setting.threads), JAX_PLATFORMS="cpu",  # NPROC: threads of XLA's pool
                          JAX_COMPILATION_CACHE_DIR=f"{setting.folder}/jax")
        import torch
        torch.set_num_threads(1)

    def prepare(self, work):
        if work.model in GEMMS or work.model.startswith(("timm_", DEPTH)):
            raise Cannot("is measured by whole models alone")
        import jax
        import jax_models
        model = reference(work.model)
        parameters = {key: jax.numpy.asarray(value.numpy()) for key, value in model.state_dict().items()}
        images, labels = data(work.model, work.batch)
        images = jax.numpy.asarray(images)
        apply = jax_models.model(model)
        run = jax.jit(lambda p, x: apply(p, x, None))

        def forward():
            return run(parameters, images).block_until_ready()

        import numpy as np
        outputs = np.asarray(forward())
        if not work.trains:
            return forward, outputs, None
        train, labels = jax_models.training_step(apply, RATE), jax.numpy.asarray(labels)
        state = [jax_models.start(parameters)]

        def step():
            state[0], loss = train(state[0], images, labels)
            return loss.block_until_ready()

        return step, outputs, float(step())


class OneDnn:
    """onednn_gemm.cpp."""

    def __init__(self, kind, setting):
        path = pathlib.Path(setting.folder) / "libonednn_gemm.so"
        if not path.exists():
            raise Cannot("is not installed (package libdnnl-dev)")
        self.library = ctypes.CDLL(str(path))
        self.library.onednn_linear.restype = ctypes.c_void_p

    def prepare(self, work):
        import numpy as np
        if work.model not in GEMMS:
            raise Cannot("is measured by its products alone")
        outputs, linears, keep = [], [], []
        for x, linear in zip(data(work.model, work.batch)[0], reference(work.model)):
            w, b = linear.weight.detach().numpy(), linear.bias.detach().numpy()
            y = np.zeros((len(x), len(b)), np.float32)
            sizes = [ctypes.c_int64(n) for n in (len(x), *reversed(w.shape))]
            linears.append(ctypes.c_void_p(self.library.onednn_linear(*sizes, *(pointer(a) for a in (x, w, b, y)))))
            outputs.append(y)
            keep.append((x, w, b, y))

        def run():
            for linear in linears:
                self.library.onednn_run(linear)

        run.keep = keep
        run()
        return run, joined(outputs), None


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def check(code, what):
    if code:
        raise RuntimeError(f"{what} answered error {code}")


class Tessera:
    """The emitted sources of the build, as shared libraries."""

    class Parameter(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("rank", ctypes.c_int32), ("decay", ctypes.c_int32),
                    ("shape", ctypes.c_int64 * 8), ("offset", ctypes.c_int64), ("named_shape", ctypes.c_char_p)]

    def __init__(self, kind, setting):
        if FLAGS.get(kind, "") not in pathlib.Path("/proc/cpuinfo").read_text():
            raise Cannot(f"this processor has no {FLAGS[kind]}")
        self.kind, self.folder, self.build = kind, setting.folder, pathlib.Path(setting.build)

    def macro(self, name, what, batch=0):
        return macro(self.build, name, what, batch)

    @staticmethod
    def aligned(floats):
        import numpy as np
        raw = np.zeros(floats + 16, np.float32)
        return raw[(-raw.ctypes.data // 4) % 16:][:floats]

    def prepare(self, work):
        precision = self.kind.split("-")[0]
        if self.kind not in SINGLE and work.model not in EMITTED[precision]:
            raise Cannot("is measured by whole models with products worth rounding")
        if precision == "int8" and work.trains:
            raise Cannot("is for inference")
        if work.model not in GEMMS:
            model = reference(work.model)
            images, labels = data(work.model, work.batch)
            name = work.model + ("" if self.kind in SINGLE else f"_{precision}")
            return self.model(name, state_of(work.model, model), images, labels, work.batch, work.trains)
        parts = []
        for x, linear in zip(data(work.model, work.batch)[0], reference(work.model)):
            state = {f"linear.{key}": value for key, value in linear.state_dict().items()}
            parts.append(self.model(f"gemm_{linear.in_features}x{linear.out_features}", state, x, None, work.batch, False))

        def run():
            for one, _, _ in parts:
                one()

        return run, joined([outputs for _, outputs, _ in parts]), None

    def model(self, name, state, images, labels, batch, trains):
        """A job of one emitted model, with PyTorch's parameters or with its own."""
        import numpy as np
        library = ctypes.CDLL(str(pathlib.Path(self.folder) / f"lib{name}.so"))
        rows = (self.Parameter * self.macro(name, "PARAMETERS")).in_dll(library, f"{name}_parameters")
        parameters = self.aligned(self.macro(name, "PARAMETER_FLOATS"))
        if state is None:
            check(getattr(library, f"{name}_init")(pointer(parameters), ctypes.c_uint64(1)), f"{name}_init")
        else:
            fill(parameters, rows, state)
        pack, floats = ("pack", "PACKED_FLOATS") if trains else ("pack_forward", "PACKED_FORWARD_FLOATS")
        packed = self.aligned(self.macro(name, floats))
        check(getattr(library, f"{name}_{pack}")(pointer(parameters), pointer(packed)), f"{name}_{pack}")
        if not trains and packed.size:
            parameters = None  # all that is read is packed
        weights = [pointer(parameters) if parameters is not None else None, pointer(packed)]
        outputs = self.aligned(batch * self.macro(name, "OUTPUT_FLOATS"))
        scratch = self.aligned(self.macro(name, "FORWARD_SCRATCH_BYTES", batch) // 4)
        function = getattr(library, f"{name}_forward")
        arguments = [*weights, pointer(images), ctypes.c_int64(batch), pointer(outputs), pointer(scratch)]

        def forward():
            check(function(*arguments), f"{name}_forward")

        forward.keep = (parameters, packed, images, outputs, scratch)
        forward()
        if not trains:
            return forward, outputs, None
        answers = outputs.copy()
        labels = labels.astype(np.int32)
        gradients, optimizer = self.aligned(parameters.size), self.aligned(self.macro(name, "OPTIMIZER_FLOATS"))
        images_at_once = getattr(library, f"{name}_images_at_once")
        images_at_once.restype = ctypes.c_int64
        at_once = images_at_once(ctypes.c_int64(batch))
        train = self.aligned(self.macro(name, "TRAIN_SCRATCH_BYTES", at_once) // 4)
        loss = np.zeros(1, np.float32)
        train_step = getattr(library, f"{name}_train_step")
        steps = iter(range(1, 1 << 30))

        def step():
            check(train_step(*weights, pointer(gradients), pointer(optimizer), pointer(images), pointer(labels),
                             ctypes.c_int64(batch), ctypes.c_int64(at_once), ctypes.c_uint64(1), ctypes.c_int64(next(steps)), ctypes.c_float(RATE),
                             pointer(outputs), pointer(loss), pointer(train)), f"{name}_train_step")

        step.keep = forward.keep[:-1]  # not the forward pass's scratch memory, which training has no use for
        step()
        return step, answers, float(loss[0])


def macro(build, name, what, batch=0):
    """The value of NAME_what in the emitted headers: a number, or one and so much for each image."""
    folder = pathlib.Path(build) / "generated" / name
    headers = "".join(f.read_text() for f in (folder / f"{name}.h", folder / f"{name}_cuda.h") if f.exists())
    text = re.search(rf"#define {name.upper()}_{what}(\((?:batch|at_once)\))? (.*)", headers).group(2)
    numbers = [int(n) for n in re.findall(r"INT64_C\((\d+)\)", text)] or [int(text.split()[0])]
    return numbers[0] + (numbers[1] * batch if len(numbers) > 1 else 0)


def fill(parameters, rows, state):
    """Puts PyTorch's parameters where the table of an emitted model says."""
    for row in rows:
        flat = state[row.name.decode()].numpy().ravel()
        parameters[row.offset:row.offset + flat.size] = flat


def flops(build, work):
    """Of one run, as the emitted header says; of products, 2 a multiply-add."""
    if work.model in GEMMS:
        return sum(2 * ROWS * work.batch * k * n for k, n in GEMMS[work.model])
    return macro(build, work.model, "TRAIN_FLOPS" if work.trains else "FORWARD_FLOPS", work.batch)


def load_ceiling(folder):
    library = ctypes.CDLL(f"{folder}/libceiling.so")
    library.ceiling_gflops.restype = library.ceiling_after_work_gflops.restype = ctypes.c_double
    return library


def make(kind, setting):
    """The contender of this name, in a process of its own."""
    if kind in OURS:
        if kind in SINGLE or kind == "int8-vnni":
            os.environ["TESSERA_ISA"] = kind.replace("int8-", "avx512_")
        return Tessera(kind, setting)
    if kind == "onednn":
        return OneDnn(kind, setting)
    if kind == "jax":
        return Jax(kind, setting)
    return (OnnxRuntime if kind.startswith("ort") else OpenVino if kind.startswith("openvino") else Torch)(kind, setting)


def answers(kind, setting):
    """What the process of a contender does: reads a command a line, writes an answer a line."""
    import numpy as np
    contender, jobs = make(kind, setting), {}
    ceiling = load_ceiling(setting.folder)
    wide = int(kind != "avx2" and ceiling.ceiling_gflops(1, 1) > 0)
    yield None
    for line in sys.stdin:
        command, name = json.loads(line)
        if command == "prepare":
            try:
                jobs.clear()  # what was prepared before makes room
                jobs[name], outputs, loss = contender.prepare(work_of(name))
                np.save(f"{setting.folder}/{kind}.npy", outputs)
                gc.collect()  # a dozen processes share the memory: what preparing took goes back
                ctypes.CDLL(None).malloc_trim(0)
                yield {"loss": loss}
            except Cannot as reason:
                yield {"cannot": str(reason)}
            except Exception as error:  # a peer's own trouble must not end the others
                if kind in OURS:
                    raise
                yield {"cannot": f"fails: {type(error).__name__}: {' '.join(str(error).split())[:200]}"}
        elif command == "memory":
            yield memory(contender, work_of(name), jobs)
        elif command == "ceiling":
            yield ceiling.ceiling_gflops(int(kind == "avx512"), setting.threads)
        else:
            jobs[name]()
            times = []
            while sum(times) < (0.1 if len(times) >= 3 else 1):
                begin = time.perf_counter()
                jobs[name]()
                times.append(time.perf_counter() - begin)
            # ONNX Runtime's threads wait for work by running, beside the multiply-adds.
            after = 0 if kind.startswith("ort") else ceiling.ceiling_after_work_gflops(wide, setting.threads)
            yield min(times), after


def resident(what):
    """VmRSS, or VmHWM, the most there ever was: in bytes."""
    return 1024 * int(re.search(rf"{what}:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1])


def memory(contender, work, jobs):
    """The most memory that a work takes, beyond what its libraries take once they have done it and forgotten it."""
    def forget():
        jobs.clear()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)

    try:
        jobs[work] = contender.prepare(work)[0]
        jobs[work]()
        forget()
        before = resident("VmRSS")
        jobs[work] = contender.prepare(work)[0]
    except Cannot as reason:
        return {"cannot": str(reason)}
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the most there was is what there is now
    for _ in range(3):
        jobs[work]()
    most = resident("VmHWM")
    forget()
    return {"bytes": most - before, "process": most}


def worker(kind, setting):
    talk = os.fdopen(os.dup(1), "w")  # libraries that print do not get between
    os.dup2(2, 1)
    try:
        for answer in answers(kind, setting):
            print(json.dumps(answer), file=talk, flush=True)
    except Cannot as reason:
        print(json.dumps({"cannot": str(reason)}), file=talk, flush=True)


class Process:
    def __init__(self, kind, folder, threads, build):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
        self.kind = kind
        self.process = subprocess.Popen([sys.executable, "-B", __file__, "--worker", kind, folder, str(threads), build],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def trouble(self):
        """Why it does not take part, or None; once, before it is asked anything."""
        return (self.answer() or {}).get("cannot")

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.kind} ended; its message stands above")
        return json.loads(line)

    def ask(self, command, work=""):
        self.process.stdin.write(json.dumps([command, work]) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def build_libraries(folder, options, models):
    """Each emitted model, the ceiling and oneDNN's products as shared libraries; ccache helps where there is one."""
    compiler = [*([shutil.which("ccache")] if shutil.which("ccache") else []), options.compiler]
    flags = ["-fPIC", "-O3", "-std=c++20", "-fopenmp", f"-I{ROOT}"]
    jobs = [("ceiling", HERE.parent / "ceiling.cpp", [])]
    for name in models:
        sources = sorted((pathlib.Path(options.build) / "generated" / name).glob("*.cpp"))
        jobs += [(name, source, ["-ffp-contract=off"]) for source in sources if "_program" not in source.name]
        if not sources:
            raise SystemExit(f"{options.build} has no {name}: cmake --build {options.build} --target bench_peers")

    def compile(job):
        library, source, extra = job
        subprocess.run([*compiler, *flags, *extra, "-c", str(source), "-o", f"{folder}/{library}-{source.stem}.o"], check=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile, jobs))
    for library in {job[0] for job in jobs}:
        objects = [str(o) for o in pathlib.Path(folder).glob(f"{library}-*.o")]
        subprocess.run([options.compiler, "-shared", "-fopenmp", *objects, "-o", f"{folder}/lib{library}.so"], check=True)
    subprocess.run(["g++", "-shared", *flags, str(HERE / "onednn_gemm.cpp"), "-o", f"{folder}/libonednn_gemm.so", "-ldnnl"],
                   stderr=subprocess.DEVNULL)  # where it fails there is no oneDNN


def declare(options, name):
    """Emits one of timm's names as tests/declare/timm.txt declares it, or Depth Anything."""
    sys.path.insert(0, str(HERE.parent))
    import emit
    if name.startswith(DEPTH):
        precision = name.removeprefix(DEPTH).removeprefix("_") or "fp32"
        emit.emit(options.build, name, "", "DepthAnythingSmall", options.compiler, precision)
        return
    timm_name = name.removeprefix("timm_")
    declaration = next(row[2] for row in emit.full_size.table() if row[0] == timm_name)
    emit.emit(options.build, name, declaration, emit.full_size.camel(timm_name), options.compiler)


def selected(wanted, known):
    """Those of known that are wanted: by their name, or all that start with it."""
    chosen = set(known if wanted is None else [])
    for name in wanted or []:
        found = [k for k in known if k == name] or [k for k in known if k.startswith(name)]
        if not found:
            raise SystemExit(f"there is no {name}: choose from {', '.join(known)}")
        chosen.update(found)
    return [k for k in known if k in chosen]


@functools.lru_cache(maxsize=1)
def expected(work):
    """PyTorch's outputs in single precision, and the loss."""
    import torch
    model = reference(work.model).eval()
    inputs, labels = data(work.model, work.batch)
    with torch.no_grad():
        if work.model in GEMMS:
            return joined([m(torch.from_numpy(x)) for m, x in zip(model, inputs)]), None
        outputs = model(torch.from_numpy(inputs))
        loss = torch.nn.functional.cross_entropy(outputs, torch.from_numpy(labels)).item() if work.trains else None
        return outputs.numpy().ravel(), loss


class Wrong(SystemExit):
    """Outputs that are too far from the expected ones."""


def compare(kind, name, folder, loss):
    """How far the outputs are from the expected ones, relative to the largest; throws Wrong where that is too much."""
    import numpy as np
    work, limit = work_of(name), CONTENDERS[kind][1] or 1e-4
    outputs, right_loss = expected(work)
    theirs = np.load(f"{folder}/{kind}.npy").ravel()
    difference = float(np.abs(outputs - theirs).max() / np.abs(outputs).max())
    if not difference < limit:
        raise Wrong(f"{name}: the outputs of {kind} differ by {difference:.1e} of the largest")
    if loss is not None and not drops(work.model) and not abs(loss - right_loss) < limit * abs(right_loss):
        raise Wrong(f"{name}: the loss of {kind} is {loss}, not {right_loss}")
    return difference


def lead(median, belongs):
    """The time of the best peer over that of the best of ours."""
    ours = min((t for k, t in median.items() if k in OURS and belongs(k)), default=None)
    peers = min((t for k, t in median.items() if k not in OURS and belongs(k)), default=None)
    return peers / ours if ours and peers else None


def processor():
    """What /proc/cpuinfo calls it; family and model tell generations apart that share a name."""
    fields = dict(re.findall(r"^(\w[\w ]*\w)\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0], re.M))
    return f"{fields.get('model name', platform.machine())}, family {fields.get('cpu family')}, model {fields.get('model')}"


def versions():
    from importlib.metadata import PackageNotFoundError, version
    found = {}
    for package in ("torch", "onnxruntime", "openvino", "nncf", "jax", "timm"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            pass
    return found


def record(path, names, keys, value):
    """Puts a value under the keys of a JSON file that is for one processor, and writes the file anew, whole or not at all."""
    path = pathlib.Path(path)
    content = json.loads(path.read_text()) if path.exists() else {"processor": names, "works": {}}
    if content["processor"]["cpuinfo"] != names["cpuinfo"]:
        raise SystemExit(f"{path} is of {content['processor']['cpuinfo']}, and this is {names['cpuinfo']}")
    place = content["works"]
    for key in keys[:-1]:
        place = place.setdefault(key, {})
    place[keys[-1]] = value
    beside = path.with_suffix(".new")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    beside.replace(path)


def run_work(name, contenders, options, folder, notes, threads):
    """A row of the table: the cell of each contender, and how the best of ours compares."""
    work, ready, differences = work_of(name), [], {}
    for kind, contender in contenders.items():
        answer = contender.ask("prepare", name)
        if "cannot" in answer:
            if answer["cannot"].startswith("fails"):
                notes.append(f"{name}: {CONTENDERS[kind][0]} {answer['cannot']}")
            continue
        try:
            difference = differences[kind] = compare(kind, name, folder, answer["loss"])
        except Wrong as wrong:
            if kind in OURS:
                raise
            notes.append(f"{wrong}; it was left out")
            continue
        if CONTENDERS[kind][1]:
            notes.append(f"{name}: outputs of {CONTENDERS[kind][0]} differ by {difference:.1e} of the largest")
        ready.append(kind)
    if not options.rounds:
        return [f"{differences[k]:.0e} off" if k in differences else "-" for k in contenders]
    load = [os.getloadavg()[0]]
    times, shares = {kind: [] for kind in ready}, {kind: [] for kind in ready}
    amount, ceilings = flops(options.build, work), {kind: [] for kind in SINGLE if kind in contenders}
    for _ in range(options.rounds):
        for kind in ready:
            seconds, after = contenders[kind].ask("time", name)
            times[kind].append(seconds)
            if after:
                shares[kind].append(100 * amount / seconds / 1e9 / after)
        for kind in ceilings:
            ceilings[kind].append(contenders[kind].ask("ceiling"))
    load.append(os.getloadavg()[0])
    median = {kind: statistics.median(t) for kind, t in times.items()}
    if options.record:
        names = {"cpuinfo": processor(), "name": options.processor}
        record(options.record, names, [name, str(threads)], {
            "date": time.strftime("%Y-%m-%d"), "rounds": options.rounds, "versions": versions(), "note": options.note, "load": load, "flops": amount,
            "ceilings": {kind: [min(c), max(c)] for kind, c in ceilings.items()}, "differences": differences,
            "seconds": median, "shares_after": {kind: statistics.median(s) for kind, s in shares.items() if s}})
    ceilings = {kind: max(c) for kind, c in ceilings.items()}
    cells = [f"{1e3 * median[k]:.2f} ms, {100 * amount / median[k] / 1e9 / ceilings.get(k, max(ceilings.values())):.0f} %" +
             (f" ({statistics.median(shares[k]):.0f} %)" if shares[k] else "") if k in median else "-" for k in contenders]

    found = [lead(median, belongs) for belongs in PRECISIONS]
    leads = [f"{x:.2f} x" if x else "-" for x in found]
    return cells + leads + [", ".join(f"{CONTENDERS[kind][0].removeprefix('Tessera ')} {ceiling:.0f}" for kind, ceiling in ceilings.items())]


def memory_cells(name, contenders):
    """What a peer's libraries take is part of what it takes; ours are called from a Python that needs more than they do."""
    def cell(kind, answer):
        if "bytes" not in answer:
            return "-"
        return f"{answer['bytes'] / 1e6:.0f} MB" + ("" if kind in OURS else f" ({answer['process'] / 1e6:.0f} MB)")

    return [cell(kind, contender.ask("memory", name)) for kind, contender in contenders.items()]


def main():
    import torch
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", nargs="+", metavar="NAME", help="of " + ", ".join(WORKS))
    parser.add_argument("--peers", nargs="+", metavar="NAME", help="of " + ", ".join(k for k in CONTENDERS if k not in OURS))
    parser.add_argument("--record", metavar="FILE", help="of this processor alone, which --processor names")
    parser.add_argument("--processor", help="as pages call it, such as \"AMD Zen 5\"")
    parser.add_argument("--note", default="", help="recorded as well: what else the machine did")
    parser.add_argument("--memory", action="store_true", help="the most memory that each work takes beyond its libraries, in brackets with them, and no times")
    parser.add_argument("--compiler", default="g++", help="for the emitted sources: g++, clang++-19")
    options = parser.parse_args()
    if options.record and not options.processor:
        parser.error("--record needs --processor")
    works = selected(options.works, WORKS) if options.works else [work for work in WORKS if not work.startswith(OF_LIBRARIES)]
    peers = selected(options.peers, [k for k in CONTENDERS if k not in OURS])
    folder = f"{options.build}/peers"
    os.makedirs(folder, exist_ok=True)
    models = {name for work in works for name in
              ([f"gemm_{k}x{n}" for k, n in GEMMS[WORKS[work].model]] if WORKS[work].model in GEMMS else [WORKS[work].model])}
    models |= {f"{name}_{precision}" for name in models for precision, those in EMITTED.items() if name in those}
    for name in models:
        if name.startswith(("timm_", DEPTH)):
            declare(options, name)
    build_libraries(folder, options, models)
    print(f"PyTorch {torch.__version__}; {options.compiler}; medians of {options.rounds} rounds in turns")
    for threads in options.threads:
        started = {kind: Process(kind, folder, threads, options.build) for kind in (*OURS, *peers)}
        troubles = {kind: contender.trouble() for kind, contender in started.items()}
        notes = [f"{CONTENDERS[kind][0]}: {trouble}" for kind, trouble in troubles.items() if trouble]
        contenders = {kind: contender for kind, contender in started.items() if not troubles[kind]}
        print(f"\n{threads} thread{'s' if threads > 1 else ''}\n")
        leads = [] if options.memory else ["ours against the best peer", "in bf16", "in int8", "FMA ceiling, GFLOP/s"]
        columns = ["work", *(CONTENDERS[k][0] for k in contenders), *leads]
        print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
        for name in works:
            if options.memory:
                print(f"| {name} | " + " | ".join(memory_cells(name, contenders)) + " |", flush=True)
                continue
            row = run_work(name, contenders, options, folder, notes, threads)
            print(f"| {name} | " + " | ".join(row) + " |", flush=True)
        for contender in contenders.values():
            contender.end()
        print("\n" + "\n".join(notes), flush=True)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], argparse.Namespace(folder=sys.argv[3], threads=int(sys.argv[4]), build=sys.argv[5]))
    elif not (importlib.util.find_spec("torch") and importlib.util.find_spec("numpy")):
        sys.exit("cpu.py needs torch and numpy")
    else:
        main()
