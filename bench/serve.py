#!/usr/bin/env python3
"""How fast a model is served, beside a direct call through its shared library: one picture again and again, as REQUESTS requests
of CONNECTIONS connections on loopback and as calls of one thread.
Usage: serve.py BUILD NAME WEIGHTS [REQUESTS [CONNECTIONS]]     BUILD: the build tree of tessera_add_model(NAME ... TRAIN SHARED
SERVE), such as that of bench/serve; WEIGHTS: what `NAME export` writes, or a checkpoint. Prints a table in Markdown. Both sides
use as many threads as OMP_NUM_THREADS says, which sleep while they wait, as those of a program do."""
import ctypes
import json
import math
import os
import re
import selectors
import socket
import struct
import subprocess
import sys
import time
import zlib

SIDE = 256  # pixels of the picture


def png(rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width = len(rows), len(rows[0]) // 3
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))


def picture():
    return [bytes(int(127 + 120 * math.sin(x / (9 + c) + y / 17)) for x in range(SIDE) for c in range(3)) for y in range(SIDE)]


def quantile(times, share):
    times = sorted(times)
    return times[min(len(times) - 1, math.ceil(share * len(times)) - 1)]


class Connection:
    """A connection that asks again as soon as it is answered."""

    def __init__(self, port, request):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request, self.buffer, self.begun = request, b"", 0

    def ask(self):
        self.begun, self.buffer = time.perf_counter(), b""
        self.socket.sendall(self.request)

    def answer(self):
        """The body, once it is whole."""
        self.buffer += self.socket.recv(1 << 16)
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        if not end:
            return None
        if not head.startswith(b"HTTP/1.1 200"):
            sys.exit(f"the server says {self.buffer}")
        length = int(re.search(rb"Content-Length: (\d+)", head)[1])
        return body if len(body) == length else None


def served(port, body, requests, connections):
    """Seconds of each request and of all, and the answer, which is one."""
    request = b"POST /classify?top=1 HTTP/1.1\r\nHost: bench\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    open_ones = [Connection(port, request) for _ in range(connections)]
    times, asked, answers = [], 0, set()
    with selectors.DefaultSelector() as ready:
        begun = time.perf_counter()
        for one in open_ones:
            ready.register(one.socket, selectors.EVENT_READ, one)
            one.ask()
            asked += 1
        while len(times) < requests:
            for key, _ in ready.select():
                one = key.data
                said = one.answer()
                if said is None:
                    continue
                times.append(time.perf_counter() - one.begun)
                answers.add(said)
                if asked < requests:
                    one.ask()
                    asked += 1
        seconds = time.perf_counter() - begun
    if len(answers) != 1:
        sys.exit(f"one picture has several answers: {answers}")
    return times, seconds, answers.pop()


class Model:
    """The shared library, called by ctypes alone: pixels in memory, no file to decode."""

    def __init__(self, build, name, weights):
        def macro(file, word):
            with open(f"{build}/generated/{name}/{file}", encoding="utf-8") as header:
                return int(re.search(rf"#define {name.upper()}_{word} (?:UINT64_C\()?(\w+)", header.read())[1], 0)
        self.library = ctypes.CDLL(f"{build}/lib{name}.so")
        self.call = getattr(self.library, f"{name}_model_classify")
        self.call.argtypes = [ctypes.c_void_p, ctypes.c_char_p] + [ctypes.c_int64] * 5 + [ctypes.c_void_p] * 2
        self.error = getattr(self.library, f"{name}_model_error")
        self.error.restype = ctypes.c_char_p
        self.model = ctypes.c_void_p()
        version = ctypes.c_int32(macro(f"{name}_model.h", "MODEL_VERSION"))
        declaration = ctypes.c_uint64(macro(f"{name}.h", "DECLARATION_HASH"))
        self.check(getattr(self.library, f"{name}_model_open_for")(version, declaration, weights.encode(),
                                                                    ctypes.byref(self.model)))

    def check(self, code):
        if code:
            sys.exit(self.error().decode())

    def classify(self, pixels, count):
        label, probability = (ctypes.c_int32 * count)(), (ctypes.c_float * count)()
        self.check(self.call(self.model, pixels, count, SIDE, SIDE, 3 * SIDE, 1, label, probability))
        return label[0], probability[0]


def direct(model, pixels, count, calls):
    """Seconds of each call with so many pictures, and of all."""
    model.classify(pixels * count, count)
    times, all_pixels, begun = [], pixels * count, time.perf_counter()
    for _ in range(calls):
        start = time.perf_counter()
        model.classify(all_pixels, count)
        times.append(time.perf_counter() - start)
    return times, time.perf_counter() - begun


def row(what, times, seconds, pictures):
    print(f"| {what} | {1e3 * quantile(times, 0.5):.2f} | {1e3 * quantile(times, 0.99):.2f} | {pictures / seconds:.0f} |",
          flush=True)


def main(build, name, weights, requests=1000, connections=32):
    requests, connections = int(requests), int(connections)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before OpenMP is loaded
    rows = picture()
    pixels, body = b"".join(rows), png(rows)
    model = Model(build, name, weights)
    print(f"| {name}, a picture of {SIDE}x{SIDE} | p50, ms | p99, ms | pictures a second |\n|---|---|---|---|")
    row("direct call", *direct(model, pixels, 1, requests), requests)
    calls = math.ceil(requests / 16)
    row("direct call of 16 pictures", *direct(model, pixels, 16, calls), 16 * calls)
    server = subprocess.Popen([f"{build}/{name}", "serve", "--checkpoint", weights, "--port", "0"],
                              stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+)/", server.stdout.readline())[1])
        label, probability = model.classify(pixels, 1)
        served(port, body, 100, 4)  # to warm up
        for number in (1, connections):
            times, seconds, answer = served(port, body, requests, number)
            told = json.loads(answer)["classes"][0]
            if told["class"] != label or ctypes.c_float(told["probability"]).value != probability:
                sys.exit(f"the server says {told}, a direct call {label}, {probability}")
            row(f"{requests} requests at {number} connection{'s' if number > 1 else ''}", times, seconds, requests)
    finally:
        server.terminate()
        print("\n" + server.communicate()[0].strip())


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5, 6):
        sys.exit(__doc__)
    main(*sys.argv[1:])
