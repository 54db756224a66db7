"""Reads safetensors files: the other half of make_golden.save."""
import json
import struct

import torch

TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}


def load(path):
    """The tensors of a file, by name."""
    with open(path, "rb") as file:
        raw = bytearray(file.read())
    start = 8 + struct.unpack("<Q", raw[:8])[0]
    header = json.loads(bytes(raw[8:start]))
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        tensors[name] = torch.frombuffer(raw[begin:end], dtype=TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors
