#!/usr/bin/env python3
"""What two products in one kernel could save, and what they would cost: is such a kernel worth writing?

    scripts/chain_table.py build/release/bin/fuseline [--gpu NAME]

A chain y = g(a B) C keeps a tile of h = g(a B) on the chip. There are two ways to make it. Either every thread block
that makes columns of y computes all of h again, and so loads B again; or every thread block makes some columns of h and
multiplies them with its part of C, and the partial sums of y add up. The table has both, for one thread block an SM.

  saved HBM   what the simulator says that the two kernels move through HBM, less the least of the chain
  at most     what one kernel in the place of two could save: the smaller of what each takes beyond the time of its own
              bytes and operations (launch, ramp, tail), and the time of the saved bytes
  again       B from L2 once more for every SM beyond the first, and its products, at the L2's and tensor cores' rates
  sums        the partial sums of y in fp32, stored and loaded once for every SM, at the L2's bandwidth
  net         at most, less the cheaper of both ways
"""
import argparse
import json
import re
import subprocess

CASES = [
    ("gpt2-xl", "decode", 1, 1, 1024), ("gpt2-xl", "decode", 8, 1, 1024), ("gpt2-xl", "forward", 1, 64, None),
    ("tinyllama", "decode", 1, 1, 2048), ("tinyllama", "decode", 8, 1, 2048), ("llama3-8b", "decode", 1, 1, 4096),
    ("llama3-8b", "decode", 4, 1, 4096), ("llama3-8b", "decode", 16, 1, 4096), ("llama3-8b", "forward", 1, 512, None),
    ("llama2-7b", "forward", 1, 2048, None), ("deepseek-v3", "decode", 1, 1, 4096),
    ("deepseek-v3", "decode", 8, 1, 4096),
]


def ask(fuseline, *words):
    run = subprocess.run([fuseline, *words, "--format", "json"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fuseline")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--sms", type=int, default=132)
    parser.add_argument("--hbm", type=float, default=4.5, help="TB/s that it sustains")
    parser.add_argument("--l2", type=float, default=9.7, help="TB/s")
    parser.add_argument("--tensor", type=float, default=800, help="TFLOP/s that products reach")
    o = parser.parse_args()
    print("| model | phase, batch x tokens | chain | saved HBM MB | both µs | at most saved µs | again µs | sums µs | net µs |")
    print("|---|---|---|---|---|---|---|---|---|")
    for model, phase, batch, seq, context in CASES:
        words = ["--model", model, "--gpu", o.gpu, "--phase", phase, "--batch", str(batch), "--seq", str(seq)]
        if context:
            words += ["--context", str(context)]
        limits = ask(o.fuseline, "limits", *words)
        times = {k["name"]: k["time_us"] for k in ask(o.fuseline, "predict", *words, "--policy", "coda")["predictions"][0]["kernels"]}
        for chain in limits["chains"]:
            first, second = chain["name"].split(" + ")
            if first == "oproj":
                continue  # a norm lies between: it needs whole rows
            m, f, k, n = (int(x) for x in re.match(r"m (\d+), f (\d+), k (\d+), n (\d+)", chain["loops"]).groups())
            both = times[first] + times[second]
            kernels = {t["name"]: t["hbm"]["predicted_bytes"] for t in limits["kernels"]}
            flops = {first: 2 * m * f * k, second: 2 * m * f * n}
            beyond = min(times[x] - max(kernels[x] / o.hbm, flops[x] / o.tensor) * 1e-6 for x in (first, second))
            least = chain["hbm"]["least_bytes"]
            moved = kernels[first] + kernels[second]
            at_most = max(0.0, beyond) + max(0.0, moved - least) / o.hbm * 1e-6
            again = (o.sms - 1) * max(2 * f * k / o.l2, flops[first] / o.tensor) * 1e-6
            sums = 2 * o.sms * 4 * m * n / o.l2 * 1e-6
            net = at_most - min(again, sums)
            saved = (moved - least) * 1e-6
            print(f"| {model} | {phase} {batch} x {seq} | {chain['name']} | {saved:.2f} | {both:.1f} | {at_most:.1f} "
                  f"| {again:.1f} | {sums:.1f} | {net:+.1f} |", flush=True)


if __name__ == "__main__":
    main()
