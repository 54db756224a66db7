"""Writes OUT/params, OUT/batch and OUT/adam: a VQGAN of other sizes and kinds than vqgan_small, by make_golden_vq.py, of
whose parameters after step 3 those of some layers alone.  Usage: make_paper.py OUT_DIR

A picture that is higher than wide, one channel, two levels, attention on the first, ActNorm, the vanilla loss, beta as both
papers print it, no perceptual loss; the adversarial part counts from step 1 on.
"""
import json, os, shutil, struct, subprocess, sys, tempfile

KINDS = ["--name", "paper", "--image", "12,8", "--channels", "1", "--ch", "4", "--mult", "1,2", "--attn-levels", "0", "--z", "4",
         "--dim", "3", "--codes", "16", "--groups", "2", "--beta-of-papers", "--ndf", "4", "--disc-layers", "1", "--norm", "act",
         "--gan", "vanilla", "--disc-start", "1", "--codebook-weight", "0.5", "--perceptual-weight", "0", "--lr", "1e-3"]
LAYERS = ("losses.", "loss.", "quantize.", "quant_conv.", "post_quant_conv.", "encoder.conv_in.", "decoder.conv_out.")


def some(path, wanted, to):
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    kept, blobs, at = {}, [], 0
    for name in sorted(n for n in head if n.startswith(wanted)):
        begin, end = head[name]["data_offsets"]
        kept[name] = {**head[name], "data_offsets": [at, at + end - begin]}
        at += end - begin
        blobs.append(data[begin:end])
    text = json.dumps(kept, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(to, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


if __name__ == "__main__":
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "make_golden_vq.py")
    with tempfile.TemporaryDirectory() as all_of_it:
        subprocess.run([sys.executable, script, all_of_it, *KINDS], check=True, stdout=subprocess.DEVNULL)
        made = os.path.join(all_of_it, "vqgan_paper")
        for name in ("params", "batch"):
            shutil.copy(os.path.join(made, name + ".safetensors"), out)
        some(os.path.join(made, "adam.safetensors"), LAYERS, os.path.join(out, "adam.safetensors"))
