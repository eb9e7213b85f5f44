#!/usr/bin/env python3
"""Searches 40 blocks and prints a table: the found plan beside the best policy.

    scripts/search_table.py build/release/bin/fuseline [--kernels own|any] [--budget SECONDS] [--gpu NAME]

A policy counts when its plan may be found: with own kernels those of one launch, and those whose attention
rotates Q and K, are left out. The exit status is 1 when a found plan is slower than a policy that counts.
"""
import argparse
import json
import subprocess
import sys


def cases():
    for model in ("llama2-7b", "llama3-8b", "qwen3-8b", "gemma2-9b", "gpt2-xl", "mixtral-8x7b"):
        short = model == "gpt2-xl"  # 1,024 positions
        yield model, "forward", 1, 512, None
        yield model, "forward", 1, 1024 if short else 2048, None
        yield model, "decode", 1, 1, 1024 if short else 4096
        yield model, "decode", 16, 1, 1024 if short else 2048
        yield model, "train", 1, 1024, None
    yield "sd3-medium", "forward", 2, 1024, None
    yield "sd3-medium", "forward", 2, 4096, None
    yield "bert-large", "forward", 8, 512, None
    yield "vit-l", "forward", 16, 197, None
    yield "t5-large", "forward", 4, 512, None
    yield "llama3-70b", "decode", 8, 1, 4096
    yield "llama3-70b", "forward", 1, 4096, None
    yield "deepseek-v2-lite", "decode", 8, 1, 4096
    yield "mamba2-2.7b", "forward", 1, 2048, None
    yield "jamba", "forward", 1, 2048, None


def may_be_found(policy):
    return not policy["outside"].startswith(("one launch", "its attention rotates"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fuseline")
    parser.add_argument("--kernels", default="own")
    parser.add_argument("--budget", default="10")
    parser.add_argument("--gpu", default="h200")
    o = parser.parse_args()
    print("| model | phase, batch x tokens | found µs | best policy | its µs | gain | 90 % band | found is | proof |")
    print("|---|---|---|---|---|---|---|---|---|")
    worse = beyond = optimal = count = 0
    for model, phase, batch, seq, context in cases():
        command = [o.fuseline, "search", "--model", model, "--gpu", o.gpu, "--phase", phase, "--batch", str(batch),
                   "--seq", str(seq), "--budget", o.budget, "--kernels", o.kernels, "--format", "json"]
        size = f"{batch} x {seq}"
        if context:
            command += ["--context", str(context)]
            size += f" of {context}"
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{run.stderr}")
        found = json.loads(run.stdout)
        best = min(filter(may_be_found, found["policies"]), key=lambda p: p["time_us"])
        count += 1
        worse += found["time_us"] > best["time_us"] * (1 + 1e-9)
        beyond += best["verdict"] == "faster"
        optimal += found["optimal"]
        proof = "optimal" if found["optimal"] else f"gap {100 * found['gap']:.1f} %"
        print(f"| {model} | {phase} {size} | {found['time_us']:.1f} | {best['policy']} | {best['time_us']:.1f} "
              f"| {best['gain']:.3f} | {best['gain_low']:.3f} to {best['gain_high']:.3f} | {best['verdict']} | {proof} |",
              flush=True)
    print(f"\n{count} blocks: {worse} slower than the best policy, {beyond} faster by more than the band, "
          f"{optimal} shown to be optimal.")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
