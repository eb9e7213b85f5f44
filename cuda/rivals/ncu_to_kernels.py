"""Turns a raw Nsight Compute CSV of profiled blocks into rows of kernels.csv.

The CSV comes from
  ncu --profile-from-start off --nvtx --csv --page raw --print-units base --log-file RAW.csv
      --metrics gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum
      python3 pytorch_blocks.py --profile --out BLOCKS.json ...
in which every block begins with a marker kernel. BLOCKS.json names the blocks in order; without it
the NVTX range `cfg=...` does. Operators come from NVTX ranges `op=...` and stay empty in backward
passes and compiled blocks.

  ncu_to_kernels.py RAW.csv --blocks BLOCKS.json --out kernels.csv [--append]
"""

import argparse
import csv
import json
import os
import re
import sys

from kernel_names import MARKER_KERNEL, tidy_kernel_name

COLUMNS = ["model", "execution", "phase", "batch", "seq", "context", "order", "operator", "kernel",
           "grid", "block", "us", "dram_read_bytes", "dram_write_bytes", "l2_bytes"]
CASE_COLUMNS = COLUMNS[:6]
METRICS = {"us": "gpu__time_duration.sum", "dram_read_bytes": "dram__bytes_read.sum",
           "dram_write_bytes": "dram__bytes_write.sum", "l2_bytes": "lts__t_bytes.sum"}

PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
MICROSECONDS = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3,
                "s": 1e6, "second": 1e6}


def scale_of(column, unit):
    """What a value in `unit` is multiplied by to give microseconds or bytes."""
    unit = unit.strip().lower()
    if column == "us":
        if unit in MICROSECONDS:
            return MICROSECONDS[unit]
    elif unit.endswith("byte") and unit[:-4] in PREFIXES:
        return PREFIXES[unit[:-4]]
    raise ValueError(f"{METRICS[column]}: unknown unit '{unit}'")


def number(text):
    """A value as Nsight Compute prints it, with commas between thousands; None if there is none."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def tidy_triple(text):
    """"(2,66,1)" or "(2, 66, 1)" -> "(2, 66, 1)"."""
    parts = re.findall(r"\d+", text)
    return "(" + ", ".join(parts) + ")" if parts else ""


def read_raw(lines):
    """(header, units, rows) of the raw page inside the tool's log lines."""
    table = [line for line in lines if line.startswith('"')]
    rows = list(csv.reader(table))
    begin = next((i for i, row in enumerate(rows) if row and row[0] == "ID"), None)
    if begin is None or begin + 1 >= len(rows):
        raise ValueError("no table of kernels in the file")
    header, units = rows[begin], rows[begin + 1]
    if units[0].strip():
        raise ValueError("no row of units below the header: use --page raw")
    return header, units, [row for row in rows[begin + 2:] if len(row) == len(header)]


def convert(lines, blocks):
    """Rows of kernels.csv. `blocks` is a list of dictionaries with model .. context, or None."""
    header, units, rows = read_raw(lines)
    index = {name: i for i, name in enumerate(header)}
    for name in ("Kernel Name", "Grid Size", "Block Size", *METRICS.values()):
        if name not in index:
            raise ValueError(f"column '{name}' is missing")
    scales = {column: scale_of(column, units[index[metric]]) for column, metric in METRICS.items()}
    name_at = index["Kernel Name"]

    found, case, order, position = [], None, 0, -1
    for row in rows:
        name = row[name_at]
        ranges = " ".join(cell for i, cell in enumerate(row) if i != name_at and "=" in cell)
        label = re.search(r"cfg=([\w.~-]+)", ranges)
        if MARKER_KERNEL in name:
            position, order = position + 1, 0
            case = blocks[position] if blocks and position < len(blocks) else None
            continue
        if label:
            named = dict(zip(CASE_COLUMNS, label.group(1).split("~")))
            if case is None or [str(case[c]) for c in CASE_COLUMNS] != list(named.values()):
                case, order = named, order if case == named else 0
        if case is None:
            continue
        operators = re.findall(r"op=([\w-]+)", ranges)
        values = {column: number(row[index[metric]]) for column, metric in METRICS.items()}
        out = {**{column: case[column] for column in CASE_COLUMNS}, "order": order,
               "operator": operators[-1] if operators else "", "kernel": tidy_kernel_name(name),
               "grid": tidy_triple(row[index["Grid Size"]]),
               "block": tidy_triple(row[index["Block Size"]])}
        for column, value in values.items():
            if value is None:
                out[column] = ""
            elif column == "us":
                out[column] = f"{value * scales[column]:.3f}"
            else:
                out[column] = round(value * scales[column])
        found.append(out)
        order += 1
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("raw", metavar="RAW.csv")
    parser.add_argument("--blocks", metavar="BLOCKS.json", help="the blocks in profiled order")
    parser.add_argument("--out", required=True, metavar="kernels.csv")
    parser.add_argument("--append", action="store_true")
    options = parser.parse_args()

    blocks = None
    if options.blocks and os.path.exists(options.blocks):
        with open(options.blocks, encoding="utf-8") as file:
            blocks = json.load(file)
    try:
        with open(options.raw, newline="", encoding="utf-8", errors="replace") as file:
            rows = convert(file.read().splitlines(), blocks)
    except (OSError, ValueError) as problem:
        print(f"{options.raw}: {problem}", file=sys.stderr)
        return 2
    append = options.append and os.path.exists(options.out) and os.path.getsize(options.out) > 0
    with open(options.out, "a" if append else "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not append:
            writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} kernels of {len({tuple(r[c] for c in CASE_COLUMNS) for r in rows})} blocks")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
