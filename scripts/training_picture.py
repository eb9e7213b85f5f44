#!/usr/bin/env python3
"""Draws docs/training.svg from the loss curves that `fuseline train --output` wrote.

usage: scripts/training_picture.py CURVES.csv OUTPUT.svg
"""

import csv
import math
import sys
from html import escape

COLOURS = {"unfused": "#2166ac", "coda": "#d6604d", "fp64": "#222", "fp64-nudged": "#999"}
WIDTH, HEIGHT, LEFT, SIZE, TOP = 860, 400, 62, 330, 56


def read(path):
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(r[name]) for r in rows if r[name]] for name in rows[0] if name != "step"}


def smoothed(values, window):
    return [sum(values[i - window:i]) / window for i in range(window, len(values) + 1)]


def panel(left, title, curves, steps, low, high, ticks, label):
    """Lines against steps; a curve is (name, first step, values)."""
    bottom = TOP + SIZE - 60

    def x(step):
        return left + SIZE * step / steps

    def y(value):
        return bottom - (bottom - TOP) * (value - low) / (high - low)

    out = [f'<text x="{left}" y="{TOP - 24}" class="title">{escape(title)}</text>']
    for tick in ticks:
        out.append(f'<line class="grid" x1="{left}" y1="{y(tick):.1f}" x2="{left + SIZE}" y2="{y(tick):.1f}"/>')
        out.append(f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{label(tick)}</text>')
    for i in range(4):
        step = steps * i // 3
        out.append(f'<text x="{x(step):.1f}" y="{bottom + 18}" text-anchor="middle">{step}</text>')
    out.append(f'<text x="{left + SIZE / 2}" y="{bottom + 36}" text-anchor="middle">step</text>')
    for name, first, values in curves:
        points = " ".join(f"{x(first + i):.1f},{y(v):.1f}" for i, v in enumerate(values))
        dash = ' stroke-dasharray="4 3"' if name == "fp64-nudged" else ""
        out.append(f'<polyline points="{points}" stroke="{COLOURS.get(name, "#4d9221")}"{dash}/>')
    return out


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    curves = read(sys.argv[1])
    steps = len(curves["fp64"])
    window = max(1, steps // 10)
    top = math.ceil(max(c[0] for c in curves.values()))
    body = panel(LEFT, "loss", [(n, 1, c) for n, c in curves.items()], steps, 0, top,
                 range(top + 1), str)
    gaps = {n: smoothed([a - b for a, b in zip(c, curves["fp64"])], window)
            for n, c in curves.items() if n != "fp64"}
    largest = max(abs(v) for g in gaps.values() for v in g)
    unit = 10 ** math.floor(math.log10(largest))
    edge = unit * math.ceil(largest / unit)
    body += panel(LEFT + 430, f"gap to fp64, mean of {window} steps",
                  [(n, window, g) for n, g in gaps.items()], steps, -edge, edge,
                  [-edge, -edge / 2, 0, edge / 2, edge], lambda v: f"{v:.4g}")
    for i, name in enumerate(curves):
        x = LEFT + i * 150
        body.append(f'<rect x="{x}" y="{HEIGHT - 20}" width="18" height="3" '
                    f'fill="{COLOURS.get(name, "#4d9221")}"/>')
        body.append(f'<text x="{x + 24}" y="{HEIGHT - 14}">{escape(name)}</text>')
    svg = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'font-family="sans-serif" font-size="12">\n'
           "<!-- made by scripts/training_picture.py -->\n"
           "<style>.title{font-size:15px;font-weight:bold}.grid{stroke:#ddd}"
           "polyline{fill:none;stroke-width:1.3}</style>\n"
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(svg)


if __name__ == "__main__":
    main()
