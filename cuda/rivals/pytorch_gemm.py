"""Times library GEMMs as PyTorch calls them, and names the kernels that the library picks.

A row describes the product as it is computed: y[m, n] with an inner dimension k, and `layout`:

  NT  forward             y[m, n] = x[m, k] w[n, k]^T (+ bias[n])
  NN  input gradient      y[m, n] = dy[m, k] w[k, n]
  TN  weight gradient     y[m, n] = dy[k, m]^T x[k, n]

Operands rotate over enough buffers that more than 200 MB pass between two uses of one, so they come
from HBM. `us_median`, `us_min`, `us_max`: 20 back-to-back replays after a warm-up, the sustained
state in which long GEMMs are limited by power. `us_short`: median of the first three replays after
50 ms of idleness, before the power limit acts. Both are microseconds per product.
"""

import argparse
import math
import statistics
import sys
import time

import torch

from rival_timing import (ROTATION_BYTES, Budget, Capture, CsvSink, default_budget, log,
                          log_failure, median_min_max, replay_times_ms, trace_in_chunks,
                          use_side_stream, warm_up)

COLUMNS = ["m", "n", "k", "bias", "layout", "us_median", "us_min", "us_max", "tflops", "kernel",
           "grid", "splitk_kernel", "us_short"]

# (n, k) of QKV, output, gate-and-up and down projections.
WEIGHTS = {
    "llama2-7b": [(12288, 4096), (4096, 4096), (22016, 4096), (4096, 11008)],
    "llama3-8b": [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)],
    "llama2-13b": [(15360, 5120), (5120, 5120), (27648, 5120), (5120, 13824)],
    "tinyllama": [(2560, 2048), (2048, 2048), (11264, 2048), (2048, 5632)],
    "gpt2-xl": [(4800, 1600), (1600, 1600), (6400, 1600), (1600, 6400)],
    "gpt2-large": [(3840, 1280), (1280, 1280), (5120, 1280), (1280, 5120)],
    "qwen2-7b": [(4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944)],
    "llama2-70b": [(10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672)],
}
WITH_BIAS = ("gpt2-xl", "gpt2-large")
GRADIENTS_OF = ("llama2-7b", "llama3-8b", "tinyllama", "gpt2-xl")
HEADS = [(32000, 4096), (128256, 4096), (50257, 1600)]
TOKENS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192]
COARSE_TOKENS = (1, 16, 64, 128, 512, 2048, 8192)

POOL_ELEMENTS = 1 << 30


def default_sweep():
    """(m, n, k, bias, layout) of every case once, the most useful first."""
    forward = [(m, n, k, 0, "NT") for pairs in WEIGHTS.values() for n, k in pairs for m in TOKENS]
    forward += [(m, n, k, 1, "NT") for name in WITH_BIAS for n, k in WEIGHTS[name] for m in TOKENS]
    heads = [(m, n, k, 0, "NT") for n, k in HEADS for m in (1, 16, 2048)]
    gradients = []
    for name in GRADIENTS_OF:
        for out_features, in_features in WEIGHTS[name]:
            for tokens in (2048, 8192):
                gradients.append((tokens, in_features, out_features, 0, "NN"))
                gradients.append((out_features, in_features, tokens, 0, "TN"))
    # Calibration points at which the power limit and the launch cost show.
    cubes = [(size, size, size, 0, "NT") for size in (512, 1024, 2048, 4096, 8192)]
    coarse = [case for case in forward if case[0] in COARSE_TOKENS]
    fine = [case for case in forward if case[0] not in COARSE_TOKENS]
    return list(dict.fromkeys(coarse + cubes + gradients + heads + fine))


def parse_cases(text):
    """Cases from "MxNxK[:LAYOUT][+bias],...", e.g. "2048x12288x4096:NT,1x4800x1600+bias"."""
    cases = []
    for item in text.split(","):
        word = item.strip()
        bias = word.endswith("+bias")
        sizes, _, layout = word.removesuffix("+bias").partition(":")
        layout = layout or "NT"
        parts = sizes.split("x")
        if len(parts) != 3 or layout not in ("NT", "NN", "TN") or (bias and layout != "NT"):
            raise argparse.ArgumentTypeError(f"'{word}': expected MxNxK[:NT|NN|TN][+bias]")
        cases.append((int(parts[0]), int(parts[1]), int(parts[2]), int(bias), layout))
    return cases


class Buffers:
    """Three large random pools from which operands and results are cut."""

    def __init__(self):
        def pool(scale):
            values = torch.empty(POOL_ELEMENTS, dtype=torch.bfloat16, device="cuda")
            step = 1 << 26
            for begin in range(0, POOL_ELEMENTS, step):
                values[begin:begin + step].normal_(0.0, scale)
            return values

        self.left, self.right = pool(1.0), pool(0.02)
        self.out = torch.empty(POOL_ELEMENTS, dtype=torch.bfloat16, device="cuda")

    @staticmethod
    def cut(pool, rows, columns, index):
        """Matrix number `index` [rows, columns] of a pool, starting at a multiple of 256 bytes."""
        size = rows * columns
        stride = (size + 127) // 128 * 128
        places = max(1, (pool.numel() - size) // stride + 1)
        begin = (index % places) * stride
        return pool[begin:begin + size].view(rows, columns)

    def call(self, case, index):
        """A function that computes the case on buffer set `index`."""
        m, n, k, bias, layout = case
        out = self.cut(self.out, m, n, index)
        if layout == "NT":
            x, w = self.cut(self.left, m, k, index), self.cut(self.right, n, k, index)
            if bias:
                b = self.cut(self.left, 1, n, index).view(n)
                return lambda: torch.addmm(b, x, w.t(), out=out)
            return lambda: torch.mm(x, w.t(), out=out)
        if layout == "NN":
            dy, w = self.cut(self.left, m, k, index), self.cut(self.right, k, n, index)
            return lambda: torch.mm(dy, w, out=out)
        # Weight gradient: both operands are activations.
        dy, x = self.cut(self.left, k, m, index), self.cut(self.right, k, n, index)
        return lambda: torch.mm(dy.t(), x, out=out)


def rough_us(m, n, k):
    """Microseconds to within a factor of about two, to choose repetitions."""
    flops, size = 2.0 * m * n * k, 2.0 * (m * k + n * k + m * n)
    return 3.0 + max(flops / 650e6, size / 3.5e6), flops / 650e6 > size / 3.5e6


def measure(case, buffers, capture):
    """The timing columns of one case."""
    m, n, k, _, _ = case
    estimate, compute_bound = rough_us(m, n, k)
    sets = max(1, math.ceil(ROTATION_BYTES / (2.0 * (m * k + n * k + m * n))))
    calls = min(160, max(sets, math.ceil((600.0 if compute_bound else 200.0) / estimate)))
    functions = [buffers.call(case, index % sets) for index in range(calls)]
    functions[0]()

    def body():
        for function in functions:
            function()

    graph = capture.graph(body)
    graph.replay()
    torch.cuda.synchronize()
    if compute_bound and estimate > 20.0:
        time.sleep(0.05)
    short = statistics.median(replay_times_ms(graph.replay, 3)) * 1e3 / calls
    warm_up(graph.replay, 20.0 if compute_bound else 3.0)
    times = [ms * 1e3 / calls for ms in replay_times_ms(graph.replay)]
    median, least, most = median_min_max(times)
    return {"us_median": f"{median:.3f}", "us_min": f"{least:.3f}", "us_max": f"{most:.3f}",
            "tflops": f"{2.0 * m * n * k / median / 1e6:.1f}", "us_short": f"{short:.3f}"}


def add_kernel_names(sink, buffers, budget):
    """Fills kernel, grid and splitk_kernel of the measured rows: the GEMM is the first kernel that
    is not a split-K reduction; whatever else is launched goes to splitk_kernel."""
    cases = [(row["m"], row["n"], row["k"], row["bias"], row["layout"]) for row in sink.rows]
    found = trace_in_chunks([buffers.call(case, 0) for case in cases], budget)
    for row, kernels in zip(sink.rows, found):
        main = next((entry for entry in kernels if "splitKreduce" not in entry[0]), None)
        if main is None:
            continue
        rest = [entry[0] for entry in kernels if entry is not main]
        row |= {"kernel": main[0], "grid": main[1], "splitk_kernel": " + ".join(rest)}
    sink.rewrite()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="CSV file to write")
    parser.add_argument("--cases", type=parse_cases, default=None,
                        help="MxNxK[:NT|NN|TN][+bias],... (default: the standard sweep)")
    parser.add_argument("--timeout-budget", type=float, default=default_budget(), metavar="SECONDS")
    parser.add_argument("--no-names", action="store_true", help="do not trace kernel names")
    options = parser.parse_args()

    budget = Budget(options.timeout_budget)
    cases = options.cases or default_sweep()
    sink = CsvSink(options.out, COLUMNS)
    use_side_stream()
    buffers, capture = Buffers(), Capture()
    torch.cuda.synchronize()
    log(f"{len(cases)} GEMMs")
    reserve = 0.0 if options.no_names else min(25.0, 0.2 * options.timeout_budget)
    failures = 0
    with torch.no_grad():
        for case in cases:
            if budget.spent(reserve + 1.0):
                log(f"time is up after {len(sink.rows)} GEMMs")
                break
            try:
                timing = measure(case, buffers, capture)
                sink.add(**dict(zip(("m", "n", "k", "bias", "layout"), case)), **timing)
            except Exception:
                log_failure(f"GEMM {case}")
                failures += 1
                if failures > 30:
                    break
        log(f"{len(sink.rows)} GEMMs timed, {failures} failed")
        if not options.no_names:
            try:
                add_kernel_names(sink, buffers, budget)
            except Exception:
                log_failure("kernel names")
    log("done")
    return 0 if sink.rows else 1


if __name__ == "__main__":
    sys.exit(main())
