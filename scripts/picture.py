#!/usr/bin/env python3
"""Draws docs/predicted-beside-measured.svg from `fuseline compare --format csv`.

usage: scripts/picture.py FUSELINE OUTPUT.svg
"""

import csv
import math
import subprocess
import sys
from html import escape

FOLDERS = [
    ("scenarios/measurements/h200-pytorch", "calibrated on"),
    ("scenarios/measurements/h200-pytorch-wide", "other models and shapes"),
]
COLOURS = {"eager": "#2166ac", "composed": "#7b3294", "torch-compile": "#d6604d"}
WIDTH, HEIGHT, MARGIN = 860, 478, 62
LOW, HIGH = 1, 5  # decades of microseconds: 10 µs to 100 ms


def block_times(fuseline, folder):
    """(execution, measured µs, predicted µs) of every judged block."""
    text = subprocess.run([fuseline, "compare", folder, "--format", "csv"],
                          check=True, capture_output=True, text=True).stdout
    for row in csv.DictReader(text.splitlines()):
        if row["quantity"] == "block_time":
            yield row["case"].split()[1], float(row["measured"]), float(row["hierarchy"])


def panel(points, left, title):
    """One log-log scatter, `left` px from the left."""
    size = 340
    top = 70

    def x(us):
        return left + size * (math.log10(us) - LOW) / (HIGH - LOW)

    def y(us):
        return top + size * (1 - (math.log10(us) - LOW) / (HIGH - LOW))

    errors = [abs(p - m) / m for _, m, p in points]
    mape = 100 * sum(errors) / len(errors)
    out = [f'<text x="{left}" y="{top - 32}" class="title">{escape(title)}</text>',
           f'<text x="{left}" y="{top - 13}">{len(points)} blocks, mean error {mape:.1f} %, '
           f'worst {100 * max(errors):.0f} %</text>']
    low, high = 10**LOW, 10**HIGH
    band = [(low, low * 1.1), (high / 1.1, high), (high, high), (high, high / 1.1),
            (low * 1.1, low), (low, low)]
    out.append('<polygon class="band" points="%s"/>' %
               " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in band))
    for decade in range(LOW, HIGH + 1):
        us = 10**decade
        label = f"{us} µs" if us < 1000 else f"{us // 1000} ms"
        out.append(f'<line class="grid" x1="{x(us):.1f}" y1="{y(low)}" x2="{x(us):.1f}" y2="{y(high)}"/>')
        out.append(f'<line class="grid" x1="{x(low)}" y1="{y(us):.1f}" x2="{x(high)}" y2="{y(us):.1f}"/>')
        out.append(f'<text x="{x(us):.1f}" y="{y(low) + 18}" text-anchor="middle">{label}</text>')
        out.append(f'<text x="{x(low) - 6}" y="{y(us) + 4:.1f}" text-anchor="end">{label}</text>')
    out.append(f'<line class="equal" x1="{x(low)}" y1="{y(low)}" x2="{x(high)}" y2="{y(high)}"/>')
    for execution, measured, predicted in points:
        out.append(f'<circle cx="{x(measured):.1f}" cy="{y(predicted):.1f}" r="3.2" '
                   f'fill="{COLOURS.get(execution, "#555")}"/>')
    out.append(f'<text x="{left + size / 2}" y="{y(low) + 38}" text-anchor="middle">measured</text>')
    return out


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    fuseline, output = sys.argv[1:]
    body = []
    for i, (folder, what) in enumerate(FOLDERS):
        points = list(block_times(fuseline, folder))
        body += panel(points, MARGIN + i * 420, f"H200, PyTorch: {what}")
    for i, (execution, colour) in enumerate(COLOURS.items()):
        x = MARGIN + 20 + i * 120
        body.append(f'<circle cx="{x}" cy="{HEIGHT - 14}" r="4" fill="{colour}"/>')
        body.append(f'<text x="{x + 9}" y="{HEIGHT - 10}">{execution}</text>')
    body.append(f'<text x="{WIDTH - 30}" y="{HEIGHT - 10}" text-anchor="end">'
                "predicted (up) against measured (right) block time; band: ±10 %</text>")
    svg = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'font-family="sans-serif" font-size="12">\n'
           "<!-- made by scripts/picture.py -->\n"
           "<style>.title{font-size:15px;font-weight:bold}.grid{stroke:#ddd}"
           ".equal{stroke:#888}.band{fill:#cfe8cf}circle{fill-opacity:.75}</style>\n"
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n")
    with open(output, "w", encoding="utf-8") as file:
        file.write(svg)


if __name__ == "__main__":
    main()
