"""Writes pictures and what Pillow makes of them.  Usage: make_resize.py OUT_DIR   (needs torch, numpy and Pillow 11)

OUT_DIR/resize.safetensors: for each case NAME/in and NAME/out, bytes as floats [channels, height, width]. Three cases prepare
a picture as timm does: NAME/out is then the middle of the resized picture. OUT_DIR/*.jpg: a grey ramp, 16 x 16, in one
scan and in several.
"""
import sys

import numpy as np
import torch
from PIL import Image

from make_golden import save

# name: (channels, from (height, width), to (height, width))
LINEAR = {
    "linear_smaller": (3, (29, 37), (13, 16)),
    "linear_larger": (1, (7, 5), (19, 23)),
    "linear_narrower": (1, (11, 20), (11, 9)),
}
CASES = {
    "smaller": (3, (29, 37), (13, 16)),
    "larger": (1, (7, 5), (19, 23)),
    "much_smaller": (1, (64, 48), (3, 2)),
    "one_pixel": (3, (1, 1), (4, 3)),
    "flatter": (1, (20, 11), (9, 11)),
    "narrower": (1, (11, 20), (11, 9)),
    "down_and_up": (3, (31, 9), (12, 25)),
}


def picture(random, channels, size):
    """Noise, flat black and white, and edges: the sums leave 0 to 255 on both sides."""
    pixels = random.integers(0, 256, (*size, channels), dtype=np.uint8)
    pixels[: size[0] // 3] = (pixels[: size[0] // 3] > 127) * 255
    return pixels


def resized(pixels, size, how=Image.BICUBIC):
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    out = np.asarray(image.resize((size[1], size[0]), how))
    return out.reshape(*size, pixels.shape[2])


def planes(pixels):
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)).astype(np.float32))


def main(out):
    random = np.random.default_rng(7)
    tensors = {}
    for name, (channels, before, after) in CASES.items():
        pixels = picture(random, channels, before)
        tensors[f"{name}/in"], tensors[f"{name}/out"] = planes(pixels), planes(resized(pixels, after))

    # timm's transform for 28 x 28 at crop_pct 0.9: shorter side to 31, then the middle.
    pixels = picture(random, 3, (36, 49))
    scaled = resized(pixels, (31, 31 * 49 // 36))
    top, left = (round((side - 28) / 2.0) for side in scaled.shape[:2])
    tensors["prepared/in"], tensors["prepared/out"] = planes(pixels), planes(scaled[top:top + 28, left:left + 28])

    for name, (channels, before, after) in LINEAR.items():
        pixels = picture(random, channels, before)
        tensors[f"{name}/in"], tensors[f"{name}/out"] = planes(pixels), planes(resized(pixels, after, Image.BILINEAR))
    # timm's crop_mode squash, bilinear: both sides to 31, then the middle.
    pixels = picture(random, 3, (36, 49))
    scaled = resized(pixels, (31, 31), Image.BILINEAR)
    tensors["squashed/in"], tensors["squashed/out"] = planes(pixels), planes(scaled[2:30, 2:30])
    # timm's transform for 28 x 20 at crop_pct 0.9: at least 31 x 22, here 31 x 43.9, rounded, then the middle.
    pixels = picture(random, 3, (36, 51))
    scaled = resized(pixels, (31, round(51 / (36 / 31))))
    tensors["oblong/in"], tensors["oblong/out"] = planes(pixels), planes(scaled[2:30, 12:32])
    save(f"{out}/resize.safetensors", tensors)

    ramp = Image.fromarray(np.arange(0, 256, dtype=np.uint8).reshape(16, 16))
    ramp.save(f"{out}/ramp.jpg", quality=95, optimize=True)
    ramp.save(f"{out}/ramp_progressive.jpg", quality=95, progressive=True)


if __name__ == "__main__":
    main(sys.argv[1])
