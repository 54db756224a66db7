#!/usr/bin/env python3
"""How well vqgan_digits and taming_digits learn MNIST's digits: both are trained with several seeds on the first 16,000
images, by their own recipes, and a classifier that PyTorch trains on the real images judges what they make.

Usage: digits_vq.py MNIST [--build build/release] [--seeds 1 2 3] [--work FOLDER]
MNIST is a folder with its four files. Needs torch and numpy. What is trained stays in --work for the next call.

Prints a table in Markdown: of each seed and in the mean, PSNR and perplexity on the 10,000 test images, the next token's
loss in nats, and the share of right classes that the classifier sees in the test images, in their reconstructions, and in
100 drawn digits of each class: plainly, with top_k 10 and with top_p 0.9."""
import argparse
import concurrent.futures
import gzip
import os
import pathlib
import re
import statistics
import struct
import subprocess
import tempfile
import zlib

import numpy as np
import torch
from torch import nn

SIDE = 28
COLUMNS = ("PSNR, dB", "perplexity", "next token, nats", "test images", "reconstructions", "plain", "top_k 10", "top_p 0.9")


def idx(path):
    with gzip.open(path) as file:
        raw = file.read()
    dims = struct.unpack(f">{raw[3]}I", raw[4:4 + 4 * raw[3]])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(dims)


def write_png(path, pixels):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    height, width = pixels.shape
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels))) + chunk(b"IEND", b""))


def read_sheet(path, count, border):
    """The digits of a sheet as the programs write it, grey and of 8 bits, each row of its file with a filter of its own."""
    raw = path.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", raw[16:26])
    assert (depth, kind) == (8, 0), (depth, kind)
    at, data = 8, b""
    while at < len(raw):
        size, name = struct.unpack(">I4s", raw[at:at + 8])
        data += raw[at + 8:at + 8 + size] if name == b"IDAT" else b""
        at += 12 + size
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, width + 1)
    pixels = np.zeros((height + 1, width + 1), np.int64)  # a row and a column of zeros before the first
    for y in range(height):
        line = rows[y, 1:].astype(np.int64)
        for x in range(width):
            left, up, corner = pixels[y + 1, x], pixels[y, x + 1], pixels[y, x]
            nearest = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))
            pixels[y + 1, x + 1] = (line[x] + (0, left, up, (left + up) // 2, nearest[2])[rows[y, 0]]) % 256
    columns = (width + border) // (SIDE + border)
    step = SIDE + border
    return np.stack([pixels[1 + i // columns * step:, 1 + i % columns * step:][:SIDE, :SIDE] for i in range(count)])


def classifier(images, labels):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                          nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 64), nn.ReLU(), nn.Linear(64, 10))
    adam = torch.optim.Adam(model.parameters(), 1e-3)
    x, y = numbers(images), torch.from_numpy(labels.astype(np.int64))
    for _ in range(900):
        at = torch.randint(0, len(x), (64,))
        loss = nn.functional.cross_entropy(model(x[at]), y[at])
        adam.zero_grad()
        loss.backward()
        adam.step()
    return model.eval()


def numbers(pixels):
    return torch.from_numpy(pixels.astype(np.float32))[:, None] / 127.5 - 1


def share_right(model, images, labels):
    with torch.no_grad():
        answers = model(numbers(images)).argmax(1).numpy()
    return 100 * float((answers == labels).mean())


def said(pattern, text):
    return float(re.search(pattern, text)[1])


def learned(options, seed, model, test, labels):
    """One row of the table."""
    folder = options.work / f"seed{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, OMP_NUM_THREADS="1")

    def run(program, *arguments):
        command = [str(options.build / program), *map(str, arguments)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout

    vqgan, gpt, data = folder / "vqgan", folder / "gpt", ("--data", options.mnist)
    if not gpt.exists():
        if not vqgan.exists():
            run("vqgan_digits", "train", *data, "--limit", 16000, "--seed", seed, "--out", vqgan)
        run("taming_digits", "train", *data, "--images", 16000, "--vqgan", vqgan, "--seed", seed, "--out", gpt)
    tested = run("vqgan_digits", "eval", *data, "--out", vqgan)
    row = [said(r"PSNR ([0-9.]+)", tested), said(r"perplexity ([0-9.]+)", tested),
           said(r"([0-9.]+) nats", run("taming_digits", "eval", *data, "--out", gpt)), share_right(model, test, labels)]
    sheet, tokens = folder / "sheet.png", folder / "tokens.safetensors"
    tokens.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as pictures:
        names = [pathlib.Path(pictures) / f"{i:05}.png" for i in range(len(test))]
        for name, image in zip(names, test):
            write_png(name, image)
        run("vqgan_digits", "encode", "--out", vqgan, *names, "-o", tokens)
    run("vqgan_digits", "decode", "--out", vqgan, tokens, "-o", sheet)
    row.append(share_right(model, read_sheet(sheet, len(test), 2), labels))
    for how in ((), ("--topk", 10), ("--topp", 0.9)):
        drawn = []
        for digit in range(10):
            run("taming_digits", "sample", "--out", gpt, "--class", digit, "--count", 100, "--seed", 10 * seed + digit, *how,
                "-o", sheet)
            drawn.append(read_sheet(sheet, 100, 0))
        row.append(share_right(model, np.concatenate(drawn), np.repeat(np.arange(10), 100)))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mnist", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/digits_vq"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = {name: idx(options.mnist / f"{name}-ubyte.gz") for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3",
                                                                        "t10k-labels-idx1")}
    model = classifier(data["train-images-idx3"][:16000], data["train-labels-idx1"][:16000])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(lambda seed: learned(options, seed, model, data["t10k-images-idx3"], data["t10k-labels-idx1"]),
                             options.seeds))
    print("| seed | " + " | ".join(COLUMNS) + " |\n" + "|---" * (1 + len(COLUMNS)) + "|")
    for seed, row in [*zip(options.seeds, rows), ("mean", [statistics.fmean(column) for column in zip(*rows)])]:
        print(f"| {seed} | " + " | ".join(f"{number:.{2 if column < 3 else 1}f}" for column, number in enumerate(row)) + " |")


if __name__ == "__main__":
    main()
