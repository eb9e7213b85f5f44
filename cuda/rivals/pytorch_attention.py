"""Times scaled_dot_product_attention on cuDNN: causal prefill, and decode against a cache.

Prefill reads Q and K as RoPE leaves them and V as a slice of the fused QKV result. Decode rotates
its caches so that they come from HBM. `pass` says whether the backward pass is included.
"""

import argparse
import sys

import torch
import torch.nn.functional as F

from rival_timing import (Budget, Capture, CsvSink, default_budget, log, log_failure, rotated,
                          timed_us, trace_in_chunks, use_cudnn_attention, use_side_stream)

COLUMNS = ["batch", "heads", "kv_heads", "head_dim", "q_len", "kv_len", "causal", "us_median",
           "kernel", "pass", "us_min", "us_max", "grid"]
HEADS = [(32, 32, 128), (32, 8, 128), (25, 25, 64), (64, 8, 128), (32, 4, 64), (40, 40, 128),
         (20, 20, 64), (28, 4, 128)]


def attention_cases():
    """(batch, heads, kv_heads, head_dim, q_len, kv_len, pass), the most useful first."""
    prefill = [(b, *heads, t, t, "forward") for b, t in
               ((1, 2048), (4, 2048), (1, 512), (1, 8192), (1, 4096), (1, 1024), (4, 512))
               for heads in HEADS]
    decode = [(b, *heads, 1, s, "forward") for b, s in
              ((1, 2048), (16, 2048), (64, 2048), (8, 512), (4, 8192), (1, 8192), (1, 512),
               (16, 8192))
              for heads in HEADS]
    train = [(b, *heads, t, t, "forward+backward") for b, t in ((1, 2048), (4, 2048), (1, 8192))
             for heads in HEADS[:5]]
    rest = [(b, *heads, t, t, "forward") for b, t in
            ((1, 128), (1, 256), (16, 512), (4, 1024), (4, 4096), (8, 2048), (1, 16384))
            for heads in HEADS]
    rest += [(b, *heads, 1, s, "forward") for b, s in
             ((2, 2048), (4, 2048), (8, 2048), (32, 2048), (64, 512), (16, 512), (1, 32768),
              (1, 128), (128, 1024))
             for heads in HEADS]
    return list(dict.fromkeys(prefill[:16] + decode[:24] + prefill[16:] + train + decode[24:] +
                              rest))


def attention_calls(case, rotate=True):
    """Calls that compute the case; in decode over rotated caches, unless one call is enough."""
    b, h, g, d, t, s, passes = case
    grouped = h != g

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.bfloat16, device="cuda")

    if t == 1:
        def make(_):
            q, k, v = normal(b, h, 1, d), normal(b, g, s, d), normal(b, g, s, d)
            return lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=grouped)
        return rotated(make, 4.0 * b * g * s * d, most=100 if rotate else 1)

    q = normal(b, t, h, d).transpose(1, 2)
    k = normal(b, t, g, d).transpose(1, 2)
    qkv = normal(b, t, (h + 2 * g) * d)
    v = qkv[..., (h + g) * d:].view(b, t, g, d).transpose(1, 2)

    def forward():
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)

    flops = 2.0 * b * h * t * t * d
    repeats = min(20, max(1, int(100.0 / (2.0 + flops / 400e6))))
    if passes == "forward":
        return [forward] * repeats
    v = v.detach()
    inputs = [q, k, v]
    for tensor in inputs:
        tensor.requires_grad_(True)
    dy = normal(b, t, h, d).transpose(1, 2)

    def train():
        return torch.autograd.grad(forward(), inputs, dy)

    return [train] * max(1, repeats // 4)


def run_attention(options, budget):
    use_cudnn_attention()
    sink = CsvSink(options.out, COLUMNS)
    capture = Capture()
    reserve = min(15.0, 0.25 * options.timeout_budget)
    measured = []
    for case in attention_cases():
        if budget.spent(reserve + 1.0):
            log(f"time is up after {len(sink.rows)} attention cases")
            break
        try:
            with torch.set_grad_enabled(case[6] != "forward"):
                calls = attention_calls(case)
                median, least, most = timed_us(capture, calls, warm_ms=5.0)
            b, h, g, d, t, s, passes = case
            sink.add(batch=b, heads=h, kv_heads=g, head_dim=d, q_len=t, kv_len=s,
                     causal=int(t > 1), us_median=f"{median:.3f}", us_min=f"{least:.3f}",
                     us_max=f"{most:.3f}", **{"pass": passes})
            measured.append(case)
        except Exception:
            log_failure(f"attention {case}")
        calls = None
    log(f"{len(sink.rows)} attention cases timed")
    try:
        def traced(case):
            def call():
                with torch.set_grad_enabled(case[6] != "forward"):
                    attention_calls(case, rotate=False)[0]()
            return call
        # Inputs are made by fill and random kernels inside the traced call: only kernels of the
        # attention itself are kept.
        found = trace_in_chunks([traced(case) for case in measured], budget, chunk=32)
        for row, kernels in zip(sink.rows, found):
            own = [entry for entry in kernels if "distribution" not in entry[0]]
            row["kernel"] = " + ".join(entry[0] for entry in own)
            row["grid"] = " + ".join(entry[1] for entry in own)
    except Exception:
        log_failure("attention kernel names")
    sink.rewrite()
    return bool(sink.rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="CSV file to write")
    parser.add_argument("--timeout-budget", type=float, default=default_budget(), metavar="SECONDS")
    options = parser.parse_args()
    budget = Budget(options.timeout_budget)
    use_side_stream()
    done = run_attention(options, budget)
    log("done")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
