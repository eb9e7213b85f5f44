"""Times element-wise, norm and reduction kernels over 1 KiB to 512 MiB.

Operands have the strides that they have in a Transformer block. `us_median` is over rotated
buffers, which come from HBM once they are more than 200 MB together; `us_hot` is over one buffer,
as for a kernel that follows its producer.
"""

import argparse
import math
import sys

import torch
import torch.nn.functional as F

from rival_timing import (Budget, Capture, CsvSink, default_budget, log, log_failure, rotated,
                          timed_us, use_side_stream)

COLUMNS = ["op", "rows", "cols", "bytes", "us_median", "us_hot"]
WIDTH, HEAD = 4096, 128


class Source:
    """Random tensors cut from two pools, bf16 and fp32."""

    def __init__(self):
        self.half = torch.empty(1 << 30, dtype=torch.bfloat16, device="cuda")
        for begin in range(0, self.half.numel(), 1 << 26):
            self.half[begin:begin + (1 << 26)].normal_()
        self.single = torch.randn(1 << 29, dtype=torch.float32, device="cuda")
        self.positions = {torch.bfloat16: 0, torch.float32: 0}

    def take(self, *shape, dtype=torch.bfloat16):
        pool = self.half if dtype == torch.bfloat16 else self.single
        size = math.prod(shape)
        begin = self.positions[dtype]
        if begin + size > pool.numel():
            begin = 0
        self.positions[dtype] = (begin + size + 127) // 128 * 128
        return pool[begin:begin + size].view(*shape)


def streaming_operators(source):
    """name -> (bytes per element of [rows, cols], function of (rows, cols) that gives a call).

    Bytes are the compulsory reads and writes of the [rows, cols] tensors. "half" operators work on
    one half of rows twice as wide; "rope" ones on [tokens, heads, 128] slices of a wider row."""
    take, single = source.take, torch.float32
    weights = {}

    def weight(cols):
        if cols not in weights:
            weights[cols] = torch.randn(cols, dtype=torch.bfloat16, device="cuda")
        return weights[cols]

    def heads_of(rows, cols):
        """A query tensor [1, heads, rows, width] as a slice of a fused QKV result."""
        width = min(HEAD, cols)
        qkv = take(1, rows, 3 * cols)
        return qkv[..., :cols].view(1, rows, cols // width, width).transpose(1, 2)

    def tables(rows, cols):
        return take(rows, min(HEAD, cols))

    def unary(function):
        return lambda r, c: (lambda x: lambda: function(x))(take(r, c))

    def binary(function):
        return lambda r, c: (lambda x, y: lambda: function(x, y))(take(r, c), take(r, c))

    def halves(function):
        def make(r, c):
            wide = take(r, 2 * c)
            first, second = wide[:, :c], wide[:, c:]
            return lambda: function(first, second)
        return make

    def on_single(function):
        return lambda r, c: (lambda x: lambda: function(x))(take(r, c, dtype=single))

    def copy(r, c):
        x, y = take(r, c), take(r, c)
        return lambda: y.copy_(x)

    def half_times_dense(r, c):
        x, wide = take(r, c), take(r, 2 * c)
        return lambda: x * wide[:, c:]

    def rope_mul(r, c):
        q, cos = heads_of(r, c), tables(r, c)
        return lambda: q * cos

    def rope_neg(r, c):
        q = heads_of(r, c)
        return lambda: -q[..., q.shape[-1] // 2:]

    def rope_cat(r, c):
        q = heads_of(r, c)
        half = q.shape[-1] // 2
        second = take(1, r, c // 2).view(1, r, q.shape[1], half).transpose(1, 2)
        return lambda: torch.cat((second, q[..., :half]), dim=-1)

    def rope_mul_turned(r, c):
        width = min(HEAD, c)
        turned, sin = take(1, c // width, r, width), tables(r, c)
        return lambda: turned * sin

    def rope_add(r, c):
        width = min(HEAD, c)
        first = take(1, r, c // width, width).transpose(1, 2)
        second = take(1, c // width, r, width)
        return lambda: first + second

    def norm_scale(r, c):
        x, scale = take(r, c, dtype=single), take(r, 1, dtype=single)
        return lambda: x * scale

    def norm_weight(r, c):
        x, w = take(r, c), weight(c)
        return lambda: x * w

    def kv_write(r, c):
        """New keys of `r` sequences, `c` wide, into one slot of each sequence's cache."""
        width, slots = min(HEAD, c), min(8, max(1, (1 << 29) // (r * c)))
        cache = take(r, c // width, slots, width)
        new = take(r, 1, c // width, width).transpose(1, 2)
        return lambda: cache[:, :, -1:].copy_(new)

    return {
        "add": (6, binary(lambda x, y: x + y)),
        "copy": (4, copy),
        "mul": (6, binary(lambda x, y: x * y)),
        "gelu_tanh": (4, unary(lambda x: F.gelu(x, approximate="tanh"))),
        "silu": (4, unary(F.silu)),
        "silu_half": (4, halves(lambda first, second: F.silu(first))),
        "mul_half": (6, half_times_dense),
        "mul_halves": (6, halves(lambda first, second: first * second)),
        "neg_half": (4, halves(lambda first, second: -second)),
        "cat_halves": (8, binary(lambda x, y: torch.cat((x, y), dim=-1))),
        "rms_norm": (4, lambda r, c: (lambda x, w: lambda: F.rms_norm(x, (c,), w, 1e-5))(
            take(r, c), weight(c))),
        "layer_norm": (4, lambda r, c: (lambda x, w: lambda: F.layer_norm(x, (c,), w, w, 1e-5))(
            take(r, c), weight(c))),
        "rope_mul": (4, rope_mul),
        "rope_neg": (2, rope_neg),
        "rope_cat": (4, rope_cat),
        "rope_mul_turned": (4, rope_mul_turned),
        "rope_add": (6, rope_add),
        "to_float": (6, unary(lambda x: x.float())),
        "pow2_float": (8, on_single(lambda x: x.pow(2))),
        "mean_float": (4, on_single(lambda x: x.mean(-1, keepdim=True))),
        "mul_row_float": (8, norm_scale),
        "to_bf16": (6, on_single(lambda x: x.to(torch.bfloat16))),
        "mul_weight": (4, norm_weight),
        "kv_write": (4, kv_write),
        "softmax": (4, unary(lambda x: torch.softmax(x, dim=-1))),
        "softmax_float": (8, on_single(lambda x: torch.softmax(x, dim=-1))),
    }


def run_streaming(options, budget):
    sink = CsvSink(options.out, COLUMNS)
    source, capture = Source(), Capture()
    operators = streaming_operators(source)
    exponents = list(range(10, 30))
    # Sizes inside and outside L2 first, then the sizes between.
    order = exponents[4::4] + [e for e in exponents if e % 2 == 1] + exponents
    for exponent in dict.fromkeys(order):
        elements = (1 << exponent) // 2
        cols = min(WIDTH, elements)
        rows = elements // cols
        for name, (element_bytes, make) in operators.items():
            if budget.spent(1.5):
                log(f"time is up after {len(sink.rows)} streaming cases")
                return bool(sink.rows)
            calls = None
            try:
                size = element_bytes * rows * cols
                calls = rotated(lambda _: make(rows, cols), size, most=100)
                median = timed_us(capture, calls)[0]
                repeats = min(40, max(2, int(100.0 / (1.5 + size / 4e6))))
                hot = timed_us(capture, calls[:1] * repeats)[0]
                sink.add(op=name, rows=rows, cols=cols, bytes=size, us_median=f"{median:.3f}",
                         us_hot=f"{hot:.3f}")
            except Exception:
                log_failure(f"streaming {name} {rows}x{cols}")
    log(f"{len(sink.rows)} streaming cases timed")
    return bool(sink.rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="CSV file to write")
    parser.add_argument("--timeout-budget", type=float, default=default_budget(), metavar="SECONDS")
    options = parser.parse_args()
    budget = Budget(options.timeout_budget)
    use_side_stream()
    with torch.no_grad():
        done = run_streaming(options, budget)
    log("done")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
