#!/usr/bin/env python3
"""Draws the table "Against the best peer", which cpu.py's runs are recorded in, as an SVG that needs no other file.
Usage: chart.py PAGE >PICTURE (docs/performance/README.md, docs/pictures/speed.svg; a test holds them together)"""
import re
import sys

WIDTH, LEFT, ROW, BAR, TOP = 760, 260, 46, 13, 64
SCALE = WIDTH - LEFT - 150  # pixels of the peer's time
COLOURS = {"Zen 4": "#2e62a6", "Xeon": "#d1603d"}
DARK = """<style>@media (prefers-color-scheme: dark) { rect[fill="#fff"] { fill: #16181c; } [fill="#333"] { fill: #d8dadf; }
[fill="#e4e4e4"] { fill: #33373d; } }</style>"""


def rows(page):
    """[(work, {machine: (Tessera's ms, peer's ms)})] of the first table below the heading."""
    table = page.split("## Against the best peer", 1)[1].split("\n## ", 1)[0]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 7 and re.fullmatch(r"[\d.]+", cells[1]):
            ours_zen, peer_zen, _, ours_xeon, peer_xeon, _ = cells[1:]
            yield cells[0], {"Zen 4": (float(ours_zen), float(peer_zen)), "Xeon": (float(ours_xeon), float(peer_xeon))}


def text(x, y, content, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{content}</text>'


def chart(table):
    height = TOP + ROW * len(table) + 20
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" style="max-width:100%;height:auto" '
           'font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif" font-size="13" fill="#333">', DARK,
           '<rect width="100%" height="100%" fill="#fff"/>',
           text(16, 26, "Time beside the fastest of PyTorch and ONNX Runtime (fp32, one thread; shorter is faster)",
                ' font-weight="600"'),
           f'<rect x="{LEFT}" y="38" width="12" height="12" fill="#e4e4e4"/>', text(LEFT + 18, 48, "fastest peer")]
    for i, (machine, colour) in enumerate(COLOURS.items()):
        x = LEFT + 130 + 140 * i
        out += [f'<rect x="{x}" y="38" width="12" height="12" fill="{colour}"/>', text(x + 18, 48, f"Tessera, {machine}")]
    for i, (work, machines) in enumerate(table):
        y = TOP + ROW * i
        name, _, what = work.partition(" ")
        out += [text(16, y + 15, name, ' font-weight="600"'), text(16, y + 31, what, ' font-size="12"'),
                f'<rect x="{LEFT}" y="{y}" width="{SCALE}" height="{2 * BAR + 8}" fill="#e4e4e4"/>']
        for k, (machine, (ours, peer)) in enumerate(machines.items()):
            top, length = y + 3 + k * (BAR + 2), SCALE * ours / peer
            out += [f'<rect x="{LEFT}" y="{top}" width="{length:.1f}" height="{BAR}" fill="{COLOURS[machine]}"/>',
                    text(LEFT + SCALE + 10, top + 11, f"{peer / ours:.2f} x, {ours:g} ms", ' font-size="12"')]
    return "\n".join(out + ["</svg>", ""])


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        table = list(rows(file.read()))
    if not table:
        sys.exit(f"{sys.argv[1]}: there is no table of times below 'Against the best peer'")
    sys.stdout.write(chart(table))
