"""Runs one GEMM back to back for seconds after idling: how a power limit changes its time.

Rows with `us` are GEMMs, in order; rows with `sm_mhz` and `watts` are readings of nvidia-smi. The
first hundred GEMMs are all there, later ones thinned.
"""

import argparse
import math
import subprocess
import sys
import time
from datetime import datetime

import torch

from rival_timing import Budget, CsvSink, default_budget, log, log_failure, use_side_stream

COLUMNS = ["m", "n", "k", "index", "t_ms", "us", "sm_mhz", "watts"]
POWER_GEMMS = [(8192, 8192, 8192), (2048, 12288, 4096)]


def start_sampling():
    """nvidia-smi reading clock and power every 20 ms, or None."""
    try:
        return subprocess.Popen(
            ["nvidia-smi", "--query-gpu=timestamp,clocks.sm,power.draw.instant",
             "--format=csv,noheader,nounits", "-lms", "20"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return None


def stop_sampling(process):
    """(seconds since the epoch, MHz, W) of every sample taken."""
    if process is None:
        return []
    process.terminate()
    try:
        text, _ = process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        return []
    samples = []
    for line in text.splitlines():
        try:
            stamp, clock, power = (part.strip() for part in line.split(","))
            moment = datetime.strptime(stamp, "%Y/%m/%d %H:%M:%S.%f").timestamp()
            samples.append((moment, float(clock), float(power)))
        except ValueError:
            continue
    return samples


def trace_power(shape, seconds, sink):
    """One row per GEMM (us) and per sample (sm_mhz, watts); t_ms counts from the first GEMM."""
    m, n, k = shape
    x = torch.randn(m, k, dtype=torch.bfloat16, device="cuda")
    w = torch.randn(n, k, dtype=torch.bfloat16, device="cuda") / math.sqrt(k)
    y = torch.empty(m, n, dtype=torch.bfloat16, device="cuda")
    torch.mm(x, w.t(), out=y)
    count = int(seconds * 1e6 / (2.0 * m * n * k / 700e6))
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    torch.cuda.synchronize()
    sampler = start_sampling()
    time.sleep(1.0)
    began = time.time()
    events[0].record()
    for event in events[1:]:
        torch.mm(x, w.t(), out=y)
        event.record()
    torch.cuda.synchronize()
    time.sleep(0.2)
    samples = stop_sampling(sampler)
    name = {"m": m, "n": n, "k": k}
    step = max(1, count // 400)
    for index in range(count):
        if index < 100 or index % step == 0:
            sink.add(**name, index=index, t_ms=f"{events[0].elapsed_time(events[index]):.3f}",
                     us=f"{events[index].elapsed_time(events[index + 1]) * 1e3:.2f}")
    for moment, clock, power in samples:
        sink.add(**name, t_ms=f"{(moment - began) * 1e3:.1f}", sm_mhz=f"{clock:.0f}",
                 watts=f"{power:.1f}")


def run_power(options, budget):
    sink = CsvSink(options.out, COLUMNS)
    with torch.no_grad():
        for shape in POWER_GEMMS:
            if budget.spent(4.5):
                log("no time left for the power trace")
                break
            try:
                trace_power(shape, 2.0, sink)
            except Exception:
                log_failure(f"power trace {shape}")
    return bool(sink.rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="CSV file to write")
    parser.add_argument("--timeout-budget", type=float, default=default_budget(), metavar="SECONDS")
    options = parser.parse_args()
    budget = Budget(options.timeout_budget)
    use_side_stream()
    done = run_power(options, budget)
    log("done")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
