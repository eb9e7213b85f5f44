"""One block of a mixture of experts, of a diffusion transformer or of Mamba-2 in PyTorch.

The blocks are those of scenarios/blocks/moe.block, mmdit.block and mamba2.block, in bf16, without
autograd. Before one is timed, its result is compared with the same block written plainly in fp32:
every expert in turn, every token of the scan in turn.

  eager          framework operators; experts are torch._grouped_mm over sorted rows
  torch-compile  torch.compile of the same, one graph. Its running sums in the scan are products with
                 a triangle of ones, since PyTorch 2.11 does not compile cumsum there

With --serve the blocks are timed in turns with another program's (rival_serve.py):
`fuseline measure --rivals torch-compile` does. Without it, one line a block is printed.

  pytorch_open.py --open moe:D=4096:F=14336:H=32:Hkv=8:d=128:E=8:k=2 --phases decode
                  --decode-shapes 1@2048
"""

import math
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from block_cases import layers_beyond
from open_cases import bytes_of_open_layer, options_of
from pytorch_blocks import Replays, normal, rotate_half
from rival_serve import own_output, serve
from rival_timing import log, use_cudnn_attention, use_side_stream

EPSILON = 1e-5
FAR = 0.03  # relative distance to fp32 that is no rounding: bf16 keeps 8 bits


def matrix(*shape):
    return (torch.randn(*shape, device="cuda") / math.sqrt(shape[-1])).to(torch.bfloat16)


def around(mean, size):
    return (mean + 0.1 * torch.randn(size, device="cuda")).to(torch.bfloat16)


def rms(x, gain):
    return F.rms_norm(x, (x.shape[-1],), gain, EPSILON)


def in_heads(x, count, width):
    return x.view(x.shape[0], x.shape[1], count, width).transpose(1, 2)


def from_heads(x):
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


# ---- mixture of experts ----

def moe_weights(s):
    inner = s["H"] * s["d"]
    w = {"norm1": around(1, s["D"]), "norm2": around(1, s["D"]),
         "qkv": matrix(inner + 2 * s["Hkv"] * s["d"], s["D"]), "out": matrix(s["D"], inner),
         "router": matrix(s["E"], s["D"]), "gate_up": matrix(s["E"], 2 * s["F"], s["D"]),
         "down": matrix(s["E"], s["D"], s["F"])}
    if s["qk_norm"]:
        w |= {"norm_q": around(1, s["d"]), "norm_k": around(1, s["d"])}
    return w


def attended(w, s, x, cos, sin, cache_k=None, cache_v=None):
    inner, kv = s["H"] * s["d"], s["Hkv"] * s["d"]
    q, k, v = F.linear(rms(x, w["norm1"]), w["qkv"]).split((inner, kv, kv), -1)
    q, k, v = (in_heads(part, part.shape[-1] // s["d"], s["d"]) for part in (q, k, v))
    if s["qk_norm"]:
        q, k = rms(q, w["norm_q"]), rms(k, w["norm_k"])
    q, k = (part * cos + rotate_half(part) * sin for part in (q, k))
    if cache_k is not None:
        cache_k[:, :, -1:].copy_(k)
        cache_v[:, :, -1:].copy_(v)
        k, v = cache_k, cache_v
    a = F.scaled_dot_product_attention(q, k, v, is_causal=cache_k is None,
                                       enable_gqa=s["H"] != s["Hkv"])
    return x + F.linear(from_heads(a), w["out"])


def chosen_experts(w, s, rows):
    """Gates and numbers of the experts of every row."""
    scores = F.linear(rows, w["router"]).float()
    if s["all_scores"]:
        return torch.topk(scores.softmax(-1), s["k"], -1)
    best, experts = torch.topk(scores, s["k"], -1)
    return best.softmax(-1), experts


def moe(w, s, x, *tables_and_caches):
    h = attended(w, s, x, *tables_and_caches)
    rows = rms(h, w["norm2"]).reshape(-1, s["D"])
    gates, experts = chosen_experts(w, s, rows)
    order = experts.reshape(-1).argsort(stable=True)
    ends = F.one_hot(experts.reshape(-1), s["E"]).sum(0).cumsum(0).to(torch.int32)
    sources = order // s["k"]
    gate, up = torch._grouped_mm(rows[sources], w["gate_up"].transpose(1, 2),
                                 offs=ends).chunk(2, -1)
    answers = torch._grouped_mm((F.silu(gate) * up).contiguous(), w["down"].transpose(1, 2),
                                offs=ends)
    weighed = answers * gates.reshape(-1)[order, None].to(answers.dtype)
    return h + torch.zeros_like(rows).index_add_(0, sources, weighed).view_as(h)


def moe_plainly(w, s, x, *tables_and_caches):
    """Every expert in turn, in fp32; attention as it is."""
    h = attended(w, s, x, *tables_and_caches)
    rows = rms(h, w["norm2"]).reshape(-1, s["D"])
    gates, experts = chosen_experts(w, s, rows)
    total = torch.zeros(rows.shape, device="cuda")
    for e in range(s["E"]):
        mine = (gates * (experts == e)).sum(-1, keepdim=True)
        if not mine.any():
            continue
        gate, up = (rows.float() @ w["gate_up"][e].float().T).chunk(2, -1)
        total += mine * ((F.silu(gate) * up) @ w["down"][e].float().T)
    return h.float() + total.view_as(h)


def moe_inputs(case, s):
    position = torch.arange(max(case.context, case.seq), device="cuda", dtype=torch.float32)
    speed = 10000.0 ** (-torch.arange(0, s["d"], 2, device="cuda") / s["d"])
    angle = torch.outer(position[-case.seq:], speed).repeat(1, 2)
    return (normal(case.batch, case.seq, s["D"]), angle.cos().to(torch.bfloat16),
            angle.sin().to(torch.bfloat16))


def moe_caches(case, s):
    if case.phase != "decode":
        return ()
    shape = (case.batch, s["Hkv"], case.context, s["d"])
    return normal(*shape), normal(*shape)


# ---- joint block of a diffusion transformer ----

def mmdit_weights(s):
    inner, w = s["H"] * s["d"], {}
    for stream in ("image", "text"):
        w |= {f"{stream}.{name}": weight for name, weight in {
            "ada": matrix(6 * s["D"], s["D"]), "ada_bias": around(0, 6 * s["D"]),
            "qkv": matrix(3 * inner, s["D"]), "qkv_bias": around(0, 3 * inner),
            "out": matrix(s["D"], inner), "out_bias": around(0, s["D"]),
            "up": matrix(s["F"], s["D"]), "up_bias": around(0, s["F"]),
            "down": matrix(s["D"], s["F"]), "down_bias": around(0, s["D"])}.items()}
        if s["qk_norm"]:
            w |= {f"{stream}.norm_q": around(1, s["d"]), f"{stream}.norm_k": around(1, s["d"])}
    return w


def mmdit(w, s, image, text, condition):
    streams = {"image": image, "text": text}
    said, parts = {}, []
    for name, x in streams.items():
        of = {key.split(".")[1]: value for key, value in w.items() if key.startswith(name)}
        vectors = F.linear(F.silu(condition), of["ada"], of["ada_bias"])[:, None].chunk(6, -1)
        said[name] = of, vectors
        shift, scale = vectors[:2]
        modulated = F.layer_norm(x, (s["D"],)) * (1 + scale) + shift
        q, k, v = (in_heads(part, s["H"], s["d"])
                   for part in F.linear(modulated, of["qkv"], of["qkv_bias"]).chunk(3, -1))
        if s["qk_norm"]:
            q, k = rms(q, of["norm_q"]), rms(k, of["norm_k"])
        parts.append((q, k, v))
    q, k, v = (torch.cat(pair, 2) for pair in zip(*parts))
    both = from_heads(F.scaled_dot_product_attention(q, k, v))
    answers = {"image": both[:, :image.shape[1]], "text": both[:, image.shape[1]:]}
    results = []
    for name, x in streams.items():
        of, (_, _, gate1, shift, scale, gate2) = said[name]
        h = x + gate1 * F.linear(answers[name], of["out"], of["out_bias"])
        modulated = F.layer_norm(h, (s["D"],)) * (1 + scale) + shift
        up = F.gelu(F.linear(modulated, of["up"], of["up_bias"]), approximate="tanh")
        results.append(h + gate2 * F.linear(up, of["down"], of["down_bias"]))
    return torch.cat(results, 1)


def mmdit_plainly(w, s, image, text, condition):
    wide = {name: weight.float() for name, weight in w.items()}
    return mmdit(wide, s, image.float(), text.float(), condition.float())


def mmdit_inputs(case, s):
    return (normal(case.batch, case.seq, s["D"]), normal(case.batch, s["text_tokens"], s["D"]),
            normal(case.batch, s["D"]))


# ---- Mamba-2 ----

def mamba2_weights(s):
    inner = 2 * s["D"]
    convolved, heads = inner + 2 * s["N"], inner // s["P"]
    return {"norm1": around(1, s["D"]), "norm2": around(1, inner),
            "in": matrix(2 * inner + 2 * s["N"] + heads, s["D"]), "out": matrix(s["D"], inner),
            "taps": matrix(convolved, 1, 4), "taps_bias": around(0, convolved),
            "step_bias": around(0, heads).float(), "skip": around(1, inner),
            "rates": -torch.rand(heads, device="cuda") - 0.5}


def projected(w, s, x):
    inner, heads = 2 * s["D"], 2 * s["D"] // s["P"]
    z, xkq, step = F.linear(rms(x, w["norm1"]), w["in"]).split(
        (inner, inner + 2 * s["N"], heads), -1)
    padded = F.pad(xkq.transpose(1, 2), (3, 0))
    active = F.silu(F.conv1d(padded, w["taps"], w["taps_bias"], groups=padded.shape[1]))
    xs, k, q = active.transpose(1, 2).split((inner, s["N"], s["N"]), -1)
    return z, xs, k, q, F.softplus(step.float() + w["step_bias"])


def finished(w, s, x, scanned, z, xs):
    y = (scanned + xs * w["skip"]) * F.silu(z)
    return x + F.linear(rms(y, w["norm2"]), w["out"])


def running_sums(x, as_product):
    """Of the last dimension."""
    if not as_product:
        return x.cumsum(-1)
    return x @ torch.ones(x.shape[-1], x.shape[-1], device=x.device, dtype=x.dtype).triu()


def scanned_in_chunks(s, xs, k, q, steps, rates, as_product):
    """Within a chunk, products; from chunk to chunk, one product of decays with all states."""
    batch, tokens, inner = xs.shape
    length, heads = s["chunk"], inner // s["P"]
    chunks = tokens // length
    decay = (steps * rates).view(batch, chunks, length, heads).permute(0, 3, 1, 2)  # b h c l
    sums = running_sums(decay, as_product)
    x = (xs.view(batch, chunks, length, heads, s["P"])
         * steps.view(batch, chunks, length, heads, 1).to(xs.dtype)).permute(0, 3, 1, 2, 4)
    k, q = (part.view(batch, 1, chunks, length, s["N"]) for part in (k, q))

    later = torch.ones(length, length, device=xs.device, dtype=torch.bool).tril()
    between = (sums[..., :, None] - sums[..., None, :]).masked_fill(~later, -math.inf)
    within = ((q @ k.transpose(-1, -2)) * between.exp().to(xs.dtype)) @ x

    to_end = (sums[..., -1:] - sums).exp().to(xs.dtype)
    states = (x * to_end[..., None]).transpose(-1, -2) @ k  # b h c P N
    ends = running_sums(sums[..., -1], as_product)          # b h c
    before = torch.ones(chunks, chunks, device=xs.device, dtype=torch.bool).tril(-1)
    carried = (ends - sums[..., -1])[..., :, None] - ends[..., None, :]
    carried = carried.masked_fill(~before, -math.inf).exp().to(xs.dtype)
    entering = (carried @ states.flatten(-2)).view_as(states)
    across = (q * sums[..., None].exp().to(xs.dtype)) @ entering.transpose(-1, -2)
    return (within + across).permute(0, 2, 3, 1, 4).reshape(batch, tokens, inner)


def mamba2(w, s, x, as_product=False):
    z, xs, k, q, steps = projected(w, s, x)
    return finished(w, s, x, scanned_in_chunks(s, xs, k, q, steps, w["rates"], as_product), z, xs)


def mamba2_of_products(w, s, x):
    return mamba2(w, s, x, as_product=True)


def mamba2_plainly(w, s, x):
    """Token after token, in fp32."""
    z, xs, k, q, steps = projected(w, s, x)
    batch, tokens, inner = xs.shape
    heads = inner // s["P"]
    state = torch.zeros(batch, heads, s["P"], s["N"], device="cuda")
    rows = []
    for t in range(tokens):
        step = steps[:, t, :, None]
        held = (steps[:, t] * w["rates"]).exp()[..., None, None]
        column = xs[:, t].float().view(batch, heads, s["P"]) * step
        state = held * state + column[..., None] * k[:, t].float()[:, None, None]
        rows.append((state * q[:, t].float()[:, None, None]).sum(-1).reshape(batch, inner))
    return finished(w, s, x, torch.stack(rows, 1).to(xs.dtype), z, xs)


def mamba2_inputs(case, s):
    return (normal(case.batch, case.seq, s["D"]),)


BLOCKS = {
    "moe": (moe, moe, moe_plainly, moe_weights, moe_inputs, moe_caches),
    "mmdit": (mmdit, mmdit, mmdit_plainly, mmdit_weights, mmdit_inputs, lambda *_: ()),
    "mamba2": (mamba2, mamba2_of_products, mamba2_plainly, mamba2_weights, mamba2_inputs,
               lambda *_: ()),
}


class OpenReplays(Replays):
    """The block in a graph, with weights of its own for every layer. `model` and `mode` are the
    same for all cases of a call."""

    model, mode = None, None

    def __init__(self, case):
        eager, for_compiler, plainly, make_weights, make_inputs, make_caches = \
            BLOCKS[self.model.block]
        s = self.model.sizes
        run = eager
        if case.execution == "torch-compile":
            run = torch.compile(lambda w, *inputs: for_compiler(w, s, *inputs), fullgraph=True,
                                dynamic=False, mode=self.mode)
        else:
            run = lambda w, *inputs: eager(w, s, *inputs)  # noqa: E731
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.layers = layers_beyond(l2, bytes_of_open_layer(case, self.model))
        inputs = make_inputs(case, s)
        self.steps = []
        for layer in range(self.layers):
            w, caches = make_weights(s), make_caches(case, s)

            def step(w=w, caches=caches):
                with torch.no_grad():
                    return run(w, *inputs, *caches)
            self.steps.append(step)
            if layer == 0:
                # cuDNN's attention has no fp32.
                with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
                    want = plainly(w, s, *inputs, *caches)
                self.compare(step(), want)
        self.get_ready(case)

    @staticmethod
    def compare(got, want):
        distance = ((got.float() - want.float()).norm() / want.float().norm()).item()
        if not distance < FAR or got.float().std().item() == 0.0:
            raise RuntimeError(f"the block is {distance:.3g} from what it is in fp32")


def main():
    options = options_of()
    OpenReplays.model = options.open
    OpenReplays.mode = "max-autotune-no-cudagraphs" if options.max_autotune else None
    torch.manual_seed(1)
    answers = own_output() if options.serve else None
    use_side_stream()
    use_cudnn_attention()
    if options.serve:
        framework = f"PyTorch {torch.__version__}"
        return 0 if serve(options.cases, OpenReplays, framework, sys.stdin, answers) else 1
    for case in options.cases:
        times = OpenReplays(case).run(3, 20)
        log(case.label(), f"{statistics.median(times):.5f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
