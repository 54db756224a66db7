"""Writes picture files and what Pillow decodes them to.  Usage: make_decoded.py OUT_DIR   (needs numpy and Pillow 11)

OUT_DIR/decoded.safetensors: for each case NAME/file, the file's bytes, and NAME/rgb [3, height, width] and NAME/grey
[1, height, width], bytes: PIL.ImageOps.exif_transpose(image).convert("RGB" and "L").
"""
import io
import json
import struct
import sys

import numpy as np
from PIL import Image, ImageOps

HEIGHT, WIDTH = 17, 23  # neither a multiple of a JPEG block nor of a BMP row


def saved(image, **how):
    out = io.BytesIO()
    image.save(out, **how)
    return out.getvalue()


def cases():
    random = np.random.default_rng(7)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    smooth = np.stack([8 * y + 4 * x, 255 - 11 * x, (13 * y + 5 * x) % 256], axis=-1)
    pixels = np.clip(smooth + random.integers(-20, 21, smooth.shape), 0, 255).astype(np.uint8)
    rgb = Image.fromarray(pixels)
    grey = rgb.convert("L")
    jpeg = dict(format="JPEG", quality=85)
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        yield f"jpeg_{name}", saved(rgb, subsampling=subsampling, **jpeg)
        yield f"jpeg_{name}_progressive", saved(rgb, subsampling=subsampling, progressive=True, **jpeg)
    yield "jpeg_quality_20", saved(rgb, format="JPEG", quality=20)
    yield "jpeg_restarts", saved(rgb, restart_marker_blocks=1, **jpeg)
    yield "jpeg_without_ycc", saved(rgb, keep_rgb=True, **jpeg)
    yield "jpeg_grey", saved(grey, **jpeg)
    yield "jpeg_cmyk", saved(Image.fromarray(np.dstack([pixels, pixels[::-1, :, 0]]), "CMYK"), **jpeg)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        yield f"jpeg_orientation_{orientation}", saved(grey, exif=exif, **jpeg)
    exif = Image.Exif()
    exif[0x0112] = 6
    yield "png_orientation_6", saved(rgb, format="PNG", exif=exif)
    palette = rgb.quantize(11)
    for kind in ("PNG", "BMP"):
        name = kind.lower()
        yield f"{name}_rgb", saved(rgb, format=kind)
        yield f"{name}_grey", saved(grey, format=kind)
        yield f"{name}_black_and_white", saved(grey.convert("1"), format=kind)
        yield f"{name}_palette", saved(palette, format=kind)
    yield "bmp_masks", bitmap_of_masks(pixels)
    yield "ppm", saved(rgb, format="PPM")
    yield "pgm", saved(grey, format="PPM")


def bitmap_of_masks(pixels):
    """16 bits a pixel, 5 red, 6 green and 5 blue, the first row first."""
    red, green, blue = (pixels[..., c].astype(np.uint16) >> (2 if c == 1 else 3) for c in range(3))
    packed = np.pad(red << 11 | green << 5 | blue, ((0, 0), (0, WIDTH % 2)))
    data = packed.astype("<u2").tobytes()
    header = struct.pack("<IiiHHIIiiII3I", 40, WIDTH, -HEIGHT, 1, 16, 3, len(data), 0, 0, 0, 0, 0xf800, 0x07e0, 0x001f)
    return struct.pack("<2sIHHI", b"BM", 14 + len(header) + len(data), 0, 0, 14 + len(header)) + header + data


def main(out):
    tensors = {}
    for name, content in cases():
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
        tensors[f"{name}/file"] = np.frombuffer(content, np.uint8)
        tensors[f"{name}/rgb"] = np.ascontiguousarray(np.asarray(image.convert("RGB")).transpose(2, 0, 1))
        tensors[f"{name}/grey"] = np.asarray(image.convert("L"))[None]
    header, at = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "U8", "shape": list(array.shape), "data_offsets": [at, at + array.size]}
        at += array.size
    text = json.dumps(header, separators=(",", ":")).encode()
    with open(f"{out}/decoded.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in tensors.values()))


if __name__ == "__main__":
    main(sys.argv[1])
