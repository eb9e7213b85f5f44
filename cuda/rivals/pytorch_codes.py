"""Times products of 8-bit codes by 8-bit codes as PyTorch calls them, and kernels that make codes.

A product is y[m, n] = x[m, k] w[n, k]^T of bf16, by `mode`:

  fp8_rows    e4m3, a scale for each row of x and of w          torch._scaled_mm
  fp8_tensor  e4m3, one scale for each of the two               torch._scaled_mm
  fp8_block   e4m3, x by 1 x 128 and w by 128 x 128             torch._scaled_mm
  int8        int8 to int32, without scales                     torch._int_mm

A kernel that makes codes works on m rows of n columns (k is 0), compiled by torch.compile:

  quantise            codes and the scale of each row
  quantise_groups     the same of each 128 columns
  norm_quantise       RMSNorm before it
  swiglu_quantise     SwiGLU of 2n columns before it

Buffers and times as in pytorch_gemm.py.
"""

import argparse
import math
import statistics
import sys
import time

import torch

from pytorch_gemm import WEIGHTS, rough_us
from rival_timing import (ROTATION_BYTES, Budget, Capture, CsvSink, default_budget, log,
                          log_failure, median_min_max, replay_times_ms, trace_in_chunks,
                          use_side_stream, warm_up)

COLUMNS = ["m", "n", "k", "mode", "us_median", "us_min", "us_max", "tflops", "kernel", "grid",
           "others", "us_short"]
PRODUCTS = ("fp8_rows", "fp8_tensor", "fp8_block", "int8")
TOKENS = (1, 16, 128, 512, 2048, 8192)
MODELS = ("llama2-7b", "llama3-8b")
LARGEST = 448.0


def codes(rows, columns, mode, index):
    """Random codes [rows, columns]; `index` keeps buffers apart."""
    torch.manual_seed(1000 + index)
    values = torch.randn(rows, columns, device="cuda")
    if mode == "int8":
        return (values * 32).round().clamp(-127, 127).to(torch.int8)
    return (values * 64).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)


def scales(rows, columns):
    return torch.rand(rows, columns, device="cuda", dtype=torch.float32) * 0.01 + 1e-3


def product(case, index):
    m, n, k, mode = case
    x, w = codes(m, k, mode, index), codes(n, k, mode, index + 500)
    if mode == "int8":
        return lambda: torch._int_mm(x, w.t())
    if mode == "fp8_tensor":
        a, b = scales(1, 1).view(()), scales(1, 1).view(())
        return lambda: torch._scaled_mm(x, w.t(), a, b, out_dtype=torch.bfloat16)
    if mode == "fp8_rows":
        a, b = scales(m, 1), scales(1, n)
        return lambda: torch._scaled_mm(x, w.t(), a, b, out_dtype=torch.bfloat16)
    # The library takes x's scales column by column, and rows of w's that are multiples of 4 long.
    blocks = k // 128
    a = scales(blocks, m).t()
    b = scales(n // 128, (blocks + 3) // 4 * 4)[:, :blocks].t()
    return lambda: torch._scaled_mm(x, w.t(), a, b, out_dtype=torch.bfloat16)


def by_largest(x, groups):
    """Codes and scales of rows, or of each 128 columns."""
    shape = x.shape
    parts = x.view(shape[0], -1, 128) if groups else x.view(shape[0], 1, -1)
    parts = parts.float()
    scale = (parts.abs().amax(dim=-1, keepdim=True) / LARGEST).clamp(min=1e-30)
    return (parts / scale).to(torch.float8_e4m3fn).view(shape), scale.squeeze(-1)


def quantise(x):
    return by_largest(x, False)


def quantise_groups(x):
    return by_largest(x, True)


def norm_quantise(x, weight):
    wide = x.float()
    r = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
    return by_largest((wide * r * weight).to(torch.bfloat16), False)


def swiglu_quantise(x):
    gate, up = x.chunk(2, dim=-1)
    return by_largest(torch.nn.functional.silu(gate) * up, False)


STREAMS = {f.__name__: torch.compile(f, dynamic=False)
           for f in (quantise, quantise_groups, norm_quantise, swiglu_quantise)}


def stream(case, index):
    m, n, _, mode = case
    torch.manual_seed(2000 + index)
    wide = 2 * n if mode == "swiglu_quantise" else n
    x = torch.randn(m, wide, device="cuda", dtype=torch.bfloat16)
    if mode == "norm_quantise":
        weight = torch.randn(n, device="cuda", dtype=torch.bfloat16)
        return lambda: STREAMS[mode](x, weight)
    return lambda: STREAMS[mode](x)


def call(case, index):
    return product(case, index) if case[3] in PRODUCTS else stream(case, index)


def default_sweep():
    cases = []
    for name in MODELS:
        for n, k in WEIGHTS[name]:
            for m in TOKENS:
                # _int_mm takes more than 16 rows only.
                cases += [(m, n, k, mode) for mode in PRODUCTS if mode != "int8" or m > 16]
    cases += [(size, size, size, mode) for size in (4096, 8192) for mode in PRODUCTS]
    for n in (4096, 11008):
        cases += [(m, n, 0, mode) for mode in STREAMS for m in (16, 512, 2048, 8192)]
    return list(dict.fromkeys(cases))


def measure(case, capture):
    m, n, k, mode = case
    of_product = mode in PRODUCTS
    size = m * k + n * k + 2.0 * m * n if of_product else 5.0 * m * n
    estimate, compute_bound = rough_us(m, n, k) if of_product else (3.0 + size / 3.5e6, False)
    sets = min(32, max(1, math.ceil(ROTATION_BYTES / size)))
    calls = min(160, max(sets, math.ceil((600.0 if compute_bound else 200.0) / estimate)))
    functions = [call(case, index) for index in range(sets)]
    for function in functions[:2]:
        function()

    def body():
        for index in range(calls):
            functions[index % sets]()

    graph = capture.graph(body)
    graph.replay()
    torch.cuda.synchronize()
    if compute_bound and estimate > 20.0:
        time.sleep(0.05)
    short = statistics.median(replay_times_ms(graph.replay, 3)) * 1e3 / calls
    warm_up(graph.replay, 20.0 if compute_bound else 3.0)
    median, least, most = median_min_max(
        [ms * 1e3 / calls for ms in replay_times_ms(graph.replay)])
    return {"us_median": f"{median:.3f}", "us_min": f"{least:.3f}", "us_max": f"{most:.3f}",
            "tflops": f"{2.0 * m * n * k / median / 1e6:.1f}", "us_short": f"{short:.3f}"}


def add_kernel_names(sink, budget):
    cases = [(row["m"], row["n"], row["k"], row["mode"]) for row in sink.rows]
    for begin in range(0, len(cases), 16):
        if budget.spent(2.0):
            break
        found = trace_in_chunks([call(case, 0) for case in cases[begin:begin + 16]], budget)
        for row, kernels in zip(sink.rows[begin:begin + 16], found):
            if kernels:
                row |= {"kernel": kernels[0][0], "grid": kernels[0][1],
                        "others": " + ".join(entry[0] for entry in kernels[1:])}
    sink.rewrite()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="CSV file to write")
    parser.add_argument("--timeout-budget", type=float, default=default_budget(), metavar="SECONDS")
    parser.add_argument("--no-names", action="store_true", help="do not trace kernel names")
    options = parser.parse_args()
    budget = Budget(options.timeout_budget)
    sink = CsvSink(options.out, COLUMNS)
    use_side_stream()
    capture = Capture()
    refused = {}
    with torch.no_grad():
        for case in default_sweep():
            if budget.spent(20.0):
                log(f"time is up after {len(sink.rows)} cases")
                break
            if refused.get(case[3], 0) >= 3:
                continue
            try:
                timing = measure(case, capture)
                sink.add(**dict(zip(("m", "n", "k", "mode"), case)), **timing)
            except Exception:
                log_failure(f"case {case}")
                refused[case[3]] = refused.get(case[3], 0) + 1
        log(f"{len(sink.rows)} cases timed, failures: {refused}")
        if not options.no_names:
            try:
                add_kernel_names(sink, budget)
            except Exception:
                log_failure("kernel names")
    log("done")
    return 0 if sink.rows else 1


if __name__ == "__main__":
    sys.exit(main())
