#!/usr/bin/env python3
"""Where the search takes a chain of two products, and what it is predicted to save (docs/search.md).

    scripts/chain_search.py build/release/bin/fuseline [--gpu NAME]

Every case is searched twice, without chains and with them (--kernels chains). "saved" is the difference of the two found
plans. The band of the gain is wide, because nobody has measured a chain.
"""
import argparse
import json
import subprocess

CASES = [
    ("gpt2-large", 1, 1024), ("gpt2-xl", 1, 1024), ("gpt2-xl", 4, 1024), ("gpt2-xl", 8, 1024),
    ("tinyllama", 1, 2048), ("tinyllama", 4, 2048), ("tinyllama", 8, 2048),
    ("llama2-7b", 1, 2048), ("llama3-8b", 1, 4096), ("llama3-8b", 4, 4096), ("llama3-8b", 8, 4096),
    ("gpt-j-6b", 1, 1024), ("deepseek-v3", 1, 4096), ("deepseek-v3", 4, 4096),
]


def search(fuseline, words, kernels):
    run = subprocess.run([fuseline, "search", *words, "--kernels", kernels, "--format", "json"],
                         capture_output=True, text=True)
    return json.loads(run.stdout) if run.returncode == 0 else None


def chains_of(found):
    """Kernels that hold two products: their plan says so."""
    return [line.split()[1].rstrip(":") for line in found["plan"].splitlines()
            if line.startswith("kernel ") and "chained_products" in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fuseline")
    parser.add_argument("--gpu", default="h200")
    o = parser.parse_args()
    print("| model | batch, context | found µs | with chains µs | saved µs | gain | chains |")
    print("|---|---|---|---|---|---|---|")
    for model, batch, context in CASES:
        words = ["--model", model, "--gpu", o.gpu, "--phase", "decode", "--batch", str(batch), "--context", str(context)]
        own, chained = search(o.fuseline, words, "own"), search(o.fuseline, words, "chains")
        if own is None or chained is None:
            continue
        before, after = own["time_us"], chained["time_us"]
        print(f"| {model} | {batch}, {context:,} | {before:.1f} | {after:.1f} | {before - after:.1f} | {before / after:.3f} "
              f"| {', '.join(chains_of(chained)) or 'none'} |", flush=True)


if __name__ == "__main__":
    main()
