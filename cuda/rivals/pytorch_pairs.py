"""Two pairs of training as cuBLAS and torch.compile run them: a product, and the gradient behind it.

  norm-backward    g = dgu[M, 2F] W[2F, D], then RMSNorm's gradients of its input, with the residual's
                   gradient added, and of its gain
  swiglu-backward  g = dy[M, D] W[D, F], then SwiGLU's gradients of gate and up

The product is torch.mm; what comes behind it is one function that torch.compile compiles, as it does
in a whole block. Both are compared with autograd in fp32 at 256 rows before they are timed. A time is
a graph replay over as many copies as exceed L2, in bf16.

  pytorch_pairs.py --width 4096 --feed-forward 11008 --rows 8192 --out pairs.csv
"""

import argparse
import sys

import torch
import torch.nn.functional as F

from rival_timing import (Capture, CsvSink, log, log_failure, rotated, timed_us, use_side_stream)

COLUMNS = ["pair", "width", "feed_forward", "rows", "us_median", "us_min", "us_max",
           "product_us", "behind_us", "device", "framework"]
EPSILON = 1e-5
FAR = 0.03
CHECKED_ROWS = 256
COPIES = 4


def normal(*shape):
    return torch.randn(*shape, dtype=torch.bfloat16, device="cuda")


def matrix(rows, columns, contracted):
    return (torch.randn(rows, columns, device="cuda") / contracted**0.5).to(torch.bfloat16)


def norm_gradients(g, x, gain, residual):
    """Of x and of the gain, for g the gradient of the norm's output."""
    wide, scaled = x.float(), g.float() * gain.float()
    r = torch.rsqrt(wide.square().mean(1, keepdim=True) + EPSILON)
    dot = (scaled * wide).mean(1, keepdim=True)
    dx = residual.float() + r * scaled - wide * dot * r**3
    return dx.to(g.dtype), (g.float() * wide * r).sum(0).to(g.dtype)


def swiglu_gradients(g, gate_up):
    gate, up = (part.float() for part in gate_up.chunk(2, 1))
    s = torch.sigmoid(gate)
    d_gate = g.float() * up * s * (1 + gate * (1 - s))
    return (torch.cat((d_gate, g.float() * gate * s), 1).to(g.dtype),)


def autograd_of(pair, g, tensors):
    """The same gradients by PyTorch's autograd, in fp32."""
    wide = [t.float().requires_grad_(True) for t in tensors]
    if pair == "norm-backward":
        x, gain, residual = wide
        dx, d_gain = torch.autograd.grad(F.rms_norm(x, (x.shape[1],), gain, EPSILON), (x, gain),
                                         g.float())
        return dx + residual, d_gain
    gate, up = wide[0].chunk(2, 1)
    return torch.autograd.grad(F.silu(gate) * up, wide, g.float())


PAIRS = {"norm-backward": norm_gradients, "swiglu-backward": swiglu_gradients}


def tensors_of(pair, rows, width, feed_forward):
    """The product's operands, then what the gradients need beside its result."""
    if pair == "norm-backward":
        return ((normal(rows, 2 * feed_forward), matrix(2 * feed_forward, width, 2 * feed_forward)),
                (normal(rows, width), 1 + 0.1 * normal(width), normal(rows, width)))
    return ((normal(rows, width), matrix(width, feed_forward, width)),
            (normal(rows, 2 * feed_forward),))


def check(pair, behind, width, feed_forward):
    operands, beside = tensors_of(pair, CHECKED_ROWS, width, feed_forward)
    g = torch.mm(*operands)
    for got, want in zip(behind(g, *beside), autograd_of(pair, g, beside)):
        distance = ((got.float() - want).norm() / want.norm()).item()
        if not distance < FAR:
            raise RuntimeError(f"{pair}: {distance:.3g} from autograd in fp32")


def time_pair(pair, rows, width, feed_forward):
    behind = torch.compile(PAIRS[pair], fullgraph=True, dynamic=False)
    check(pair, behind, width, feed_forward)
    sets = rotated(lambda _: tensors_of(pair, rows, width, feed_forward), 1, COPIES)
    products = [torch.mm(*operands) for operands, _ in sets]
    capture = Capture()
    whole = timed_us(capture, [lambda o=o, b=b: behind(torch.mm(*o), *b) for o, b in sets])
    product = timed_us(capture, [lambda o=o: torch.mm(*o) for o, _ in sets])
    alone = timed_us(capture, [lambda g=g, b=b: behind(g, *b) for g, (_, b) in zip(products, sets)])
    return whole, product[0], alone[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--feed-forward", type=int, default=11008)
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    torch.manual_seed(1)
    use_side_stream()
    sink = CsvSink(options.out, COLUMNS)
    failed = 0
    for pair in PAIRS:
        try:
            (median, least, most), product, behind = time_pair(
                pair, options.rows, options.width, options.feed_forward)
            sink.add(pair=pair, width=options.width, feed_forward=options.feed_forward,
                     rows=options.rows, us_median=f"{median:.2f}", us_min=f"{least:.2f}",
                     us_max=f"{most:.2f}", product_us=f"{product:.2f}", behind_us=f"{behind:.2f}",
                     device=torch.cuda.get_device_name(0), framework=f"PyTorch {torch.__version__}")
            log(pair, f"{median:.1f} us")
        except Exception:
            failed = 1
            log_failure(pair)
    return failed


if __name__ == "__main__":
    sys.exit(main())
