#!/usr/bin/env python3
"""Measures what the other scripts leave out of the comparison with other systems, one row after the other.

    scripts/measure_table.py OUT [--minutes 8] [--fuseline PROGRAM] [--rows NAME,...]
    scripts/measure_table.py --list
    scripts/measure_table.py --check [--gpu h200]

Rows are experts, a diffusion transformer and Mamba-2 beside PyTorch, weights and activations in codes beside our own
bf16, and two pairs of training beside cuBLAS with torch.compile. OUT/table.csv has a line for each: ours, the rival's,
their ratio, what is asked for at least, whether the outputs were right, and the device, driver and date. After the
minutes no further row is begun; a second call with the same OUT goes on where the first one ended. Every call first
measures one block (OUT/call-N), so that calls can be compared. What a row failed with is in OUT/ROW-N.log.

--check needs no GPU: it reads every command, and compiles the kernels of every block for the GPU.
"""
import argparse
import csv
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[1]
RIVALS = ROOT / "cuda" / "rivals"
SHARED = "--model llama2-7b --seq 1304"
DECODE = "--model llama2-7b --phase decode --context 2048"
FORWARD = "--model llama2-7b --seq 2048"
PAIR = {"width": 4096, "feed_forward": 11008, "rows": 8192}
TRAIN = "--model llama2-7b --phase train --batch 4 --seq 2048"
COLUMNS = ["row", "what", "ours_us", "rival", "rival_us", "ratio", "asked", "checked", "device", "driver", "toolkit",
           "framework", "date", "call"]


@dataclass(frozen=True)
class Row:
    name: str
    what: str
    asked: float          # the rival's time over ours, at least
    block: str            # the selection
    rivals: str = ""      # PyTorch's executions, in turns with ours; the fastest counts
    against: str = ""     # or another block of ours
    pair: str = ""        # or a pair of pytorch_pairs.py, beside these kernels of the block
    kernels: tuple = field(default_factory=tuple)


ROWS = [
    Row("mixtral-decode-1", "Mixtral 8x7B, decode, 1 sequence of 2,048", 1.4,
        "--model mixtral-8x7b --phase decode --context 2048", rivals="torch-compile"),
    Row("qwen3-moe-decode-16", "Qwen3-30B-A3B, decode, 16 sequences of 2,048", 1.4,
        "--model qwen3-30b-a3b --phase decode --batch 16 --context 2048", rivals="torch-compile"),
    Row("mmdit-512", "Stable Diffusion 3 medium, 2 images of 512 x 512", 1.1, "--model sd3-medium --batch 2 --seq 1024",
        rivals="torch-compile"),
    Row("mamba2-2048", "Mamba-2 2.7B, 2,048 tokens", 2.5, "--model mamba2-2.7b --seq 2048",
        rivals="eager,torch-compile"),
    Row("int4-decode-1", "LLaMA-2-7B, decode, weights in int4, against our bf16", 2.2, DECODE + " --weights int4:128",
        against=DECODE),
    Row("fp8-forward", "LLaMA-2-7B, 2,048 tokens, fp8 by fp8, against our bf16", 1.35,
        FORWARD + " --weights fp8 --activations fp8", against=FORWARD),
    Row("norm-backward", "CODA's claim: a product and RMSNorm's gradient", 1.4, TRAIN, pair="norm-backward",
        kernels=("finish_dot_norm2", "d_gate_up")),
    Row("swiglu-backward", "CODA's claim: a product and SwiGLU's gradient", 1.3, TRAIN, pair="swiglu-backward",
        kernels=("d_down",)),
]


class Failed(Exception):
    pass


def measured(o, block, folder, *more):
    """Runs `coda`; the folder of what was measured."""
    words = [o.fuseline, "measure", "--policy", "coda", *block.split(), "--output", str(folder), "--replace", *more]
    run(words, folder.with_suffix(".log"))
    return folder


def run(words, log):
    with open(log, "w", encoding="utf-8") as f:
        ended = subprocess.run([str(w) for w in words], stdout=f, stderr=subprocess.STDOUT, check=False).returncode
    if ended != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise Failed(f"exit status {ended}: {lines[-1] if lines else 'it says nothing'}")


def lines_of(file):
    if not file.exists():
        return []
    with open(file, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def block_us(folder):
    line, = (line for line in lines_of(folder / "block.csv") if line["execution"] == "coda")
    return 1e3 * float(line["ms_median"]), line.get("checked", "")


def meta_of(folder):
    with open(folder / "meta.toml", "rb") as f:
        meta = tomllib.load(f)
    notes = [note for note in meta.get("notes", []) if "rivals.csv" in note]
    return {"device": meta["device"], "driver": meta["driver"], "toolkit": meta["toolkit"], "date": meta["date"],
            "framework": notes[0].split(": ", 1)[1].split(",")[0] if notes else ""}


def beside_pytorch(o, row, at):
    more = ["--rivals", row.rivals, "--rounds", "4", "--check", o.size, "--no-counters"]
    if o.rival_command:
        more += ["--rival-command", o.rival_command]
    folder = measured(o, row.block, at, *more)
    ours, checked = block_us(folder)
    rivals = {line["execution"]: 1e3 * float(line["ms_median"]) for line in lines_of(folder / "rivals.csv")}
    missing = [name for name in row.rivals.split(",") if name not in rivals]
    if missing:
        raise Failed(f"no times of {', '.join(missing)}: see {folder.name}.log")
    best = min(rivals, key=rivals.get)
    return folder, ours, best, rivals[best], checked


def beside_our_own(o, row, at):
    """In turns: the other, this, this, the other."""
    times, checked = {row.block: [], row.against: []}, ""
    for turn, block in enumerate((row.against, row.block, row.block, row.against)):
        folder = measured(o, block, at.with_name(f"{at.name}-{turn}"), "--no-counters", "--check",
                          o.size if turn in (1, 3) else "none")
        us, said = block_us(folder)
        times[block].append(us)
        checked = said if turn == 1 else checked
    return folder, statistics.mean(times[row.block]), "coda in bf16", statistics.mean(times[row.against]), checked


def beside_pairs(o, row, at):
    """Our kernels as they run in the block; the pair alone, on operands that L2 does not hold."""
    shared = at.with_name("trained")
    if not (shared / "kernels.csv").exists():
        measured(o, row.block, shared, "--check", "small", "--kernels")
        sizes = [word for name, size in PAIR.items() for word in ("--" + name.replace("_", "-"), size)]
        run([*o.pairs_command.split(), *sizes, "--out", at.with_name("pairs.csv")], at.with_name("pairs.log"))
    kernels = {}  # a kernel may be several launches
    for line in lines_of(shared / "kernels.csv"):
        if line["us_graph"]:
            kernels[line["operator"]] = kernels.get(line["operator"], 0.0) + float(line["us_graph"])
    absent = [name for name in row.kernels if name not in kernels]
    if absent:
        raise Failed(f"no kernel {', '.join(absent)} in {shared.name}/kernels.csv")
    pairs = {line["pair"]: line for line in lines_of(at.with_name("pairs.csv"))}
    if row.pair not in pairs:
        raise Failed(f"no times of {row.pair}: see pairs.log")
    _, checked = block_us(shared)
    return (shared, sum(kernels[name] for name in row.kernels), "cuBLAS and torch.compile",
            float(pairs[row.pair]["us_median"]), checked)


def how(row):
    return beside_pytorch if row.rivals else beside_our_own if row.against else beside_pairs


def measure_rows(o):
    end = time.monotonic() + 60 * o.minutes
    wanted = chosen(o)
    o.out.mkdir(parents=True, exist_ok=True)
    table = o.out / "table.csv"
    rows = lines_of(table)
    call = 1 + len(list(o.out.glob("call-*.log")))
    measured(o, SHARED, o.out / f"call-{call}", "--no-counters", "--check", "none")
    shared_us, _ = block_us(o.out / f"call-{call}")
    device = meta_of(o.out / f"call-{call}")["device"]
    print(f"call {call}: {SHARED} {shared_us:.1f} us on {device}", flush=True)
    if any(row["device"] != device for row in rows):
        raise Failed(f"{table} was begun on {rows[0]['device']}: another OUT for this one")
    left, failed = [], 0
    for row in wanted:
        if any(line["row"] == row.name for line in rows):
            continue
        if time.monotonic() > end:
            left.append(row.name)
            continue
        try:
            folder, ours, rival, theirs, checked = how(row)(o, row, o.out / f"{row.name}-{call}")
        except Failed as problem:
            failed += 1
            print(f"{row.name}: {problem}", flush=True)
            continue
        rows.append(dict(row=row.name, what=row.what, ours_us=f"{ours:.2f}", rival=rival, rival_us=f"{theirs:.2f}",
                         ratio=f"{theirs / ours:.3f}", asked=row.asked, checked=checked, call=call, **meta_of(folder)))
        print(f"{row.name}: {ours:.1f} us, {rival} {theirs:.1f}: {theirs / ours:.3f} (at least {row.asked})",
              flush=True)
        part = table.with_suffix(".part")
        with open(part, "w", newline="", encoding="utf-8") as f:
            writer = csv.DictWriter(f, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        part.replace(table)
    missed = [line["row"] for line in rows if float(line["ratio"]) < float(line["asked"])]
    print(f"{len(rows)} of {len(ROWS)} rows measured, {len(rows) - len(missed)} reach what is asked"
          + (f"; not yet begun: {', '.join(left)}" if left else ""))
    return 1 if failed or left else 0


def chosen(o):
    if not o.rows:
        return ROWS
    names = o.rows.split(",")
    unknown = [name for name in names if name not in {row.name for row in ROWS}]
    if unknown:
        raise Failed(f"--rows: '{unknown[0]}' is none of {', '.join(row.name for row in ROWS)}")
    return [row for row in ROWS if row.name in names]


def blocks_of(rows):
    return dict.fromkeys([SHARED, *(b for row in rows for b in (row.block, row.against) if b)])


def check(o):
    """Every block's plan has kernels of these names, all of which compile; every script is read."""
    failed = 0
    for script in ("pytorch_open.py", "open_cases.py", "pytorch_pairs.py", "pytorch_blocks.py"):
        compile((RIVALS / script).read_text(encoding="utf-8"), script, "exec")
    for row in chosen(o):
        if not row.pair:
            continue
        done = subprocess.run([o.fuseline, "explain", "--gpu", o.gpu, "--policy", "coda", *row.block.split()],
                              capture_output=True, text=True, check=False)
        absent = [name for name in row.kernels if name not in done.stdout.split()]
        if done.returncode != 0 or absent:
            failed += 1
            print(f"{row.name}: {done.stderr.strip() or 'no kernel ' + ', '.join(absent)}", flush=True)
    for block in blocks_of(chosen(o)):
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run([o.fuseline, "export", "--gpu", o.gpu, "--policy", "coda", "--layers", "1",
                                   *block.split(), "--to", f"{scratch}/block"],
                                  capture_output=True, text=True, check=False)
        why = done.stderr.strip().splitlines()
        print(f"{'ok' if done.returncode == 0 else 'FAILED'} {block} ({time.monotonic() - start:.0f} s)"
              + (f": {why[-1]}" if done.returncode and why else ""), flush=True)
        failed += done.returncode != 0
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", type=pathlib.Path, metavar="OUT")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--fuseline", default=str(ROOT / "build" / "fuseline"))
    parser.add_argument("--rows", help="these alone, with commas between them")
    parser.add_argument("--list", action="store_true", help="say the rows and their blocks")
    parser.add_argument("--check", action="store_true", help="compile everything; no GPU")
    parser.add_argument("--gpu", default="h200", help="of --check")
    parser.add_argument("--size", default="auto", help="of the check of outputs: auto, full or small")
    parser.add_argument("--rival-command", help="what runs the blocks in PyTorch")
    parser.add_argument("--pairs-command", default=f"python3 {RIVALS / 'pytorch_pairs.py'}")
    o = parser.parse_args()
    try:
        if o.list:
            for row in chosen(o):
                print(f"{row.name}\n  {row.what}; at least {row.asked}\n  {row.block}\n  against "
                      + (row.rivals or row.against or "pytorch_pairs.py " + row.pair))
            return 0
        if o.check:
            return check(o)
        if o.out is None:
            parser.error("OUT is not said")
        return measure_rows(o)
    except Failed as problem:
        print(f"measure_table.py: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
