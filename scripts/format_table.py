#!/usr/bin/env python3
"""Searches blocks in several number formats and prints a table: the best one beside the best policy without.

    scripts/format_table.py build/release/bin/fuseline [--formats F,F] [--error-budget E] [--gpu NAME]

The blocks are those of search_table.py that do not train. A block counts as better when the upper end of the
found plan's band is below the lower end of the best policy's.
"""
import argparse
import json
import subprocess

from search_table import cases, may_be_found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fuseline")
    parser.add_argument("--formats", default="bf16,int8,int4:128")
    parser.add_argument("--error-budget", default="0.05")
    parser.add_argument("--gpu", default="h200")
    args = parser.parse_args()

    def run(*words):
        done = subprocess.run([args.fuseline, *words, "--format", "json"], capture_output=True, text=True)
        return (json.loads(done.stdout), "") if done.returncode == 0 else (None, done.stderr.strip())

    blocks = better = 0
    for model, phase, batch, seq, context in cases():
        if phase == "train":
            continue
        where = ["--model", model, "--gpu", args.gpu, "--phase", phase, "--batch", str(batch), "--seq", str(seq)]
        if context:
            where += ["--context", str(context)]
        plain, wrong = run("search", *where, "--budget", "5")
        found, refused = run("search", *where, "--budget", "5", "--policy", "coda", "--formats", args.formats,
                             "--error-budget", args.error_budget) if plain else (None, wrong)
        name = f"{model} {phase} {batch} x {seq} of {context or '-'}"
        if found is None:
            print(f"{name:44} {refused.splitlines()[-1] if refused else 'failed'}", flush=True)
            continue
        blocks += 1
        policy = min((p for p in plain["policies"] if may_be_found(p)), key=lambda p: p["time_us"])
        of_policy, wrong = run("predict", *where, "--policy", policy["policy"])
        low = of_policy["predictions"][0]["time_us_low"]
        errors = {f["weights"]: f["error"] for f in found["formats"]}
        clear = found["time_us_high"] < low
        better += clear
        chosen = min((f for f in found["formats"] if f["within"]), key=lambda f: f["time_us"])
        print(f"{name:44} {policy['policy']:14} {policy['time_us']:9.1f}  {chosen['weights']:8} {found['time_us']:9.1f}"
              f"  error {errors[chosen['weights']]:.4f}  {'better' if clear else '-'}", flush=True)
    print(f"{better} of {blocks} better by more than both bands")


if __name__ == "__main__":
    main()
