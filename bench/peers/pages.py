#!/usr/bin/env python3
"""Makes of each record of cpu.py (bench/records/NAME.json, one processor) the page docs/performance/NAME.md and the picture
docs/pictures/speed-NAME.svg, and of all of them the table of docs/performance/README.md between the comments there.
Usage: pages.py [--check]     with --check nothing is written; exit status 1 where a file is another"""
import json
import os
import pathlib
import re
import sys
import textwrap

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
import cpu  # noqa: E402

BEGIN, END = "<!-- a script writes what follows -->", "<!-- up to here -->"
NOT_QUIET = 0.95  # of a row's fastest ceiling: where the slowest is below it, others were at work


def records():
    """{name: record}"""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "bench/records").glob("*.json"))}


def table(columns, rows):
    return ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|", *("| " + " | ".join(row) + " |" for row in rows), ""]


def milliseconds(seconds):
    return f"{1e3 * seconds:.{2 if seconds < 0.01 else 1 if seconds < 0.1 else 0}f}"


def title(work):
    """"vit_tiny forward 1" as a reader takes it."""
    return re.sub(r" (\d+)$", r", batch \1", work) + (", dropout" if cpu.drops(cpu.WORKS[work].model) and cpu.WORKS[work].trains else "")


def measured(record, threads):
    """[(work, row)] of so many threads, in the order of cpu.py."""
    rows = record["works"]
    return [(work, rows[work][str(threads)]) for work in cpu.WORKS if str(threads) in rows.get(work, {})]


def ceiling(row, kind):
    ceilings = {k: c[1] for k, c in row["ceilings"].items()}
    return ceilings.get(kind, max(ceilings.values()))


def lead(row, belongs):
    found = cpu.lead(row["seconds"], belongs)
    return f"{found:.2f} x" if found else "-"


def cell(row, kind):
    if kind not in row["seconds"]:
        return "-"
    seconds = row["seconds"][kind]
    return f"{milliseconds(seconds)}, {100 * row['flops'] / seconds / 1e9 / ceiling(row, kind):.0f} %"


def contenders(rows, belongs):
    """The kinds that take part in any of the rows."""
    return [k for k in cpu.CONTENDERS if belongs(k) and any(k in row["seconds"] for _, row in rows)]


def section(heading, rows, belongs):
    kinds = contenders(rows, belongs)
    rows = [(work, row) for work, row in rows if any(k in row["seconds"] for k in kinds if k in cpu.OURS)]
    if not rows or len(kinds) < 2:
        return []
    return [f"## {heading}", "", *table(["work", *(cpu.CONTENDERS[k][0] for k in kinds), "lead over the best peer"],
                                        [[title(work), *(cell(row, k) for k in kinds), lead(row, belongs)] for work, row in rows])]


def wrapped(text):
    return textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False).splitlines()


def page(name, record):
    lines = [f"# {record['processor']['name']}", ""]
    everything = [(work, row) for threads in (1, 2) for work, row in measured(record, threads)]
    dates = sorted({row["date"] for _, row in everything})
    versions = dict(item for _, row in everything for item in row["versions"].items())
    rounds = sorted({row["rounds"] for _, row in everything})
    lines += wrapped(f"{record['processor']['cpuinfo']}; {' to '.join(dict.fromkeys((dates[0], dates[-1])))}; "
                     f"{', '.join(f'{k} {v}' for k, v in sorted(versions.items()))}. `bench/peers/pages.py` writes this page from "
                     f"[the record](../../bench/records/{name}.json) of")
    lines += ["", f"    python3 bench/peers/cpu.py --record bench/records/{name}.json --processor \"{record['processor']['name']}\"", ""]
    lines += wrapped(f"Milliseconds, medians of {' or '.join(map(str, rounds))} rounds in turns, and the share of the FMA "
                     "[ceiling](method.md#ceilings) at rest; a dash: the contender does not do it, or was not timed. "
                     "Outputs were compared before.")
    lines += [""]
    is_gemm = {work: cpu.WORKS[work].model in cpu.GEMMS for work in cpu.WORKS}
    for threads, said in ((1, "one thread"), (2, "two threads")):
        rows = [(w, r) for w, r in measured(record, threads) if not w.startswith("timm ")]
        models = [(w, r) for w, r in rows if not is_gemm[w]]
        for what, belongs in zip(("Models, fp32", "bf16", "int8"), cpu.PRECISIONS):
            lines += section(f"{what}, {said}", models, belongs)
        lines += section(f"Linear maps, {said}", [(w, r) for w, r in rows if is_gemm[w]], cpu.PRECISIONS[0])
    lines += ["## Was it quiet", ""]
    spread = [(min(c[0] / c[1] for c in row["ceilings"].values()), work) for work, row in everything]
    loads = [load for _, row in everything for load in row["load"]]
    noisy = [what for share, what in spread if share < NOT_QUIET]
    ceilings = {t: [ceiling(row, None) for _, row in measured(record, t)] for t in (1, 2)}
    lines += wrapped(" ".join([f"The ceiling of the widest instructions, measured after each round, was {min(c):.0f} to {max(c):.0f} GFLOP/s on {t} "
                              f"thread{'s' if t > 1 else ''}." for t, c in ceilings.items() if c] +
                             [f"Load averages before and after each work were {min(loads):.1f} to {max(loads):.1f}, the contenders counted."] +
                             sorted({row["note"] for _, row in everything if row.get("note")})))
    lines += ["", *wrapped(f"Works during which a ceiling fell by more than {100 * (1 - NOT_QUIET):.0f} %, so that they say less: "
                           f"{', '.join(sorted({f'`{work}`' for work in noisy})) or 'none'}.")]
    return "\n".join(lines) + "\n"


GROUPS = {"Tessera": ("avx2", "avx512"), "OpenVINO": ("openvino",), "ONNX Runtime": ("ort", "ort-fused"),
          "PyTorch": ("eager", "sdpa"), "torch.compile": ("compiled",), "JAX": ("jax",)}
COLOURS = ("#2e62a6", "#d1603d", "#7a9a3b", "#8a8f98", "#b9a13a", "#7d5ba6")


def best(row, group):
    return min((row["seconds"][k] for k in GROUPS[group] if k in row["seconds"]), default=None)


def overview(record):
    """[(work, row)] of the README's table: whole models in single precision, one thread."""
    return [(w, r) for w, r in measured(record, 1) if cpu.WORKS[w].model in ("vit_tiny", "vit_base", "vit_cifar", "vit_mnist")]


def readme(all_records):
    lines = []
    for name, record in all_records.items():
        lines += [f"### {record['processor']['name']}", ""]
        lines += table(["work, fp32", *GROUPS, "lead over the best peer"],
                       [[title(work), *(milliseconds(s) if (s := best(row, group)) else "-" for group in GROUPS),
                         lead(row, cpu.PRECISIONS[0])] for work, row in overview(record)])
        lines += [f"![speed beside the peers, {record['processor']['name']}](../pictures/speed-{name}.svg)", ""]
        lines += [f"[All of it]({name}.md): every table of that run, lower precisions, how quiet it was.", ""]
    return "\n".join(lines)


DARK = """<style>@media (prefers-color-scheme: dark) { rect[fill="#fff"] { fill: #16181c; } [fill="#333"] { fill: #d8dadf; } }</style>"""


def text(x, y, content, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{content}</text>'


def svg(width, height, body):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
                      'style="max-width:100%;height:auto" font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif" '
                      'font-size="13" fill="#333">', DARK, '<rect width="100%" height="100%" fill="#fff"/>', *body, "</svg>", ""])


def chart(record):
    """Speeds as shares of Tessera's, a bar for each group and work."""
    left, bar, width = 216, 12, 760
    body = [text(16, 26, f"Speed beside Tessera's on {record['processor']['name']} (fp32, one thread; longer is faster)", ' font-weight="600"')]
    y = 44
    rows = overview(record)
    most = max((best(row, "Tessera") / best(row, g) for _, row in rows for g in GROUPS if best(row, g)), default=1)
    scale = (width - left - 190) / most
    for work, row in rows:
        ours = best(row, "Tessera")
        name, _, what = title(work).partition(" ")
        body += [text(16, y + 12, name, ' font-weight="600"'), text(16, y + 28, what, ' font-size="12"')]
        for group, colour in zip(GROUPS, COLOURS):
            if seconds := best(row, group):
                body += [f'<rect x="{left}" y="{y}" width="{scale * ours / seconds:.1f}" height="{bar}" fill="{colour}"/>',
                         text(left + scale * ours / seconds + 8, y + 10.5, f"{group}, {milliseconds(seconds)} ms", ' font-size="11"')]
                y += bar + 2
        y += 14
    return svg(width, y, body)


def put_between(page_text, content):
    """The page with the content between the two comments."""
    head, rest = page_text.split(BEGIN, 1)
    return f"{head}{BEGIN}\n\n{content}{END}{rest.split(END, 1)[1]}"


def files():
    """{path: what it should be}"""
    found, all_records = {}, records()
    for name, record in all_records.items():
        found[f"docs/performance/{name}.md"] = page(name, record)
        found[f"docs/pictures/speed-{name}.svg"] = chart(record)
    index = "docs/performance/README.md"
    found[index] = put_between((ROOT / index).read_text(encoding="utf-8"), readme(all_records))
    return found


def write(found, check):
    """Writes the files; or ends with a sentence where one is another."""
    for path, content in found.items():
        path = ROOT / path
        if not check:
            path.write_text(content, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != content:
            sys.exit(f"{os.path.relpath(path, ROOT)}: not what {os.path.relpath(sys.argv[0], ROOT)} writes")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    write(files(), bool(sys.argv[1:]))
