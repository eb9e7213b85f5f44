#!/usr/bin/env python3
"""Runs random blocks on a GPU and compares every tensor that they store with fp64, to find kernels that are wrong.

    scripts/check_random_blocks.py OUT [--count 100] [--seed 1] [--jobs 4] [--fuseline PROGRAM]
    scripts/check_random_blocks.py --list [--count 100] [--seed 1] [--fuseline PROGRAM]

A block is one of a shipped model with other widths, heads, experts and tokens, mostly odd ones, in a phase, a type, a
number format and policies that are random too. Models are small, so that the CPU checks them at full size in seconds.
OUT gets the models, a log of each block that did not pass, and blocks.csv with a line for each: what it was, its
status, and how long it took. Blocks run beside each other: their times on the GPU mean nothing.

    passed      every output's error is below twice that of unfused execution
    refused     there is no kernel for it on a real GPU yet (exit status 3)
    wrong       an output is not right, or not the same twice (exit status 1)
    broken      anything else: a kernel that does not compile, a fault, no end after --limit seconds

The exit status is 1 if a block was wrong or broken. --list needs no GPU and says what would run.
"""
import argparse
import concurrent.futures
import csv
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ROOT / "scenarios" / "models"
# Families with more kinds of kernels come more often.
BASES = ["mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v2-lite", "jamba", "mamba2-2.7b", "mamba-2.8b", "sd3-medium",
         "t5-large", "gemma2-9b", "gemma3", "glm4", "qwen3-8b", "phi3", "bert-large", "vit-l", "gpt-j-6b",
         "falcon-7b"] + 2 * ["gpt2-xl", "llama2-7b", "llama3-8b", "mistral-7b", "tinyllama"]
OWN_KEYS = ["gpt2-xl", "bert-large", "phi3", "vit-l", "sd3-medium", "llama2-7b"]  # a key for each query, H · d = D
FORMATS = ["int8", "fp8", "int4", "int4:64", "nvfp4", "mxfp4"]
STATUS = {0: "passed", 1: "wrong", 3: "refused"}


def shrunk(base, name, dice):
    """The text of a shipped model with random small sizes."""
    text = (MODELS / f"{base}.toml").read_text()

    def put(key, value, every=True):
        nonlocal text
        text = re.sub(rf"(?m)^{key} = [^\n#]*", f"{key} = {value} ", text, count=0 if every else 1)

    head = dice.choice([64, 64, 80, 96, 128, 128])
    keys = dice.choice([1, 2, 3, 4, 6])
    queries = keys * dice.choice([1, 2, 3, 4])
    width = 8 * dice.randrange(60, 200)
    if base in OWN_KEYS:
        keys = queries = dice.choice([6, 8, 10, 12, 16])
        width = queries * head
    for key, value in {"D": width, "H": queries, "Hkv": keys, "d": head, "F": 8 * dice.randrange(80, 400), "V": 1024,
                       "E": dice.choice([4, 8, 16]), "k": dice.choice([1, 2, 3])}.items():
        put(key, value)
    put("name", f'"{name}"', every=False)
    return text


def block_of(base, dice):
    """Options of one block, and its policies."""
    phase = dice.choice(["forward", "train", "train", "decode"])
    policies = dice.choice(["coda,per-operator", "coda,per-operator", "coda", "torch-compile", "flash-attention"])
    if phase == "decode" and base in ("llama2-7b", "llama3-8b", "tinyllama") and dice.random() < 0.5:
        policies = "whole-block"
    if phase == "decode":
        sequences = [1, 2, 3, 5, 8] if policies == "whole-block" else [1, 2, 3, 5, 8, 13, 17, 40, 100]
        options = ["--batch", dice.choice(sequences), "--context", dice.randrange(30, 3000)]
    else:
        options = ["--batch", dice.choice([1, 1, 2, 3]), "--seq", dice.randrange(20, 900)]
    chance = dice.random()
    if phase != "train" and chance < 0.3:
        options += ["--weights", dice.choice(FORMATS)]
    elif phase == "forward" and chance < 0.45:
        options += ["--weights", "fp8", "--activations", "fp8"]
    elif chance > 0.85:
        options += ["--dtype", "fp16"]
    if phase == "decode" and dice.random() < 0.25:
        options += ["--kv", dice.choice(["fp8", "int8"])]
    return ["--phase", phase, *map(str, options), "--policy", policies]


def blocks(arguments, folder):
    """`count` blocks that predict accepts: number, shipped model, selection. Models go into the folder."""
    dice = random.Random(arguments.seed)
    made = tried = 0
    while made < arguments.count and tried < 10 * arguments.count:
        tried += 1
        base = dice.choice(BASES)
        model = folder / f"block{made}.toml"
        model.write_text(shrunk(base, model.stem, dice))
        selection = ["--model", str(model), *block_of(base, dice)]
        predicted = subprocess.run([arguments.fuseline, "predict", *selection], capture_output=True, check=False)
        if predicted.returncode == 0:
            yield made, base, selection
            made += 1
    (folder / f"block{made}.toml").unlink(missing_ok=True)


def run(arguments, folder, number, base, selection):
    """One line of blocks.csv."""
    output = folder / f"measured{number}"
    command = [arguments.fuseline, "measure", *selection, "--check", "full", "--no-counters", "--rounds", "1",
               "--replays", "5", "--threads", "4", "--output", str(output), "--replace"]
    begin = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.limit, check=False)
        status, text = STATUS.get(done.returncode, "broken"), done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        status, text = "broken", f"no end after {arguments.limit} s\n"
    shutil.rmtree(output, ignore_errors=True)
    if status != "passed":
        (folder / f"block{number}.log").write_text(" ".join(command) + "\n" + text)
    return [number, base, " ".join(selection), status, f"{time.monotonic() - begin:.1f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=pathlib.Path, help="the folder for results")
    parser.add_argument("--count", type=int, default=100, help="blocks (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the random choices (1)")
    parser.add_argument("--jobs", type=int, default=4, help="blocks beside each other (4)")
    parser.add_argument("--limit", type=int, default=120, help="seconds for a block (120)")
    parser.add_argument("--fuseline", default=str(ROOT / "build" / "release" / "bin" / "fuseline"))
    parser.add_argument("--list", action="store_true", help="only say what would run")
    arguments = parser.parse_args()
    if arguments.out is None and not arguments.list:
        parser.error("OUT is missing: the folder for results")
    if arguments.count < 1 or arguments.jobs < 1:
        parser.error("--count and --jobs are at least 1")
    if arguments.list:
        with tempfile.TemporaryDirectory() as folder:
            for number, base, selection in blocks(arguments, pathlib.Path(folder)):
                print(number, base, *selection[2:])
        return 0
    arguments.out.mkdir(parents=True, exist_ok=True)
    seen = {}
    with open(arguments.out / "blocks.csv", "w", newline="") as file, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        table = csv.writer(file)
        table.writerow(["block", "of", "selection", "status", "seconds"])
        waiting = [pool.submit(run, arguments, arguments.out, *block) for block in blocks(arguments, arguments.out)]
        for done in concurrent.futures.as_completed(waiting):
            line = done.result()
            table.writerow(line)
            file.flush()
            seen[line[3]] = seen.get(line[3], 0) + 1
            if line[3] in ("wrong", "broken"):
                print(line[3], line[1], line[2], flush=True)
    print(", ".join(f"{count} {status}" for status, count in sorted(seen.items())))
    return 1 if "wrong" in seen or "broken" in seen else 0


if __name__ == "__main__":
    sys.exit(main())
