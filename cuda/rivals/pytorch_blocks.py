"""One Transformer block in PyTorch, three ways, timed as CUDA-graph replays: the rival baseline.

  eager          one kernel per PyTorch operator, with the library's fused norm kernel
  composed       eager, with the norms written from primitives too
  torch-compile  torch.compile of the eager block, one graph, default mode

Phases: `forward` is causal inference; `train` is forward and backward of the activation and of all
weights; `decode` computes one new token per sequence, writes its key and value into the cache and
attends to the whole cache of `context` tokens. QKV is one GEMM, gate and up are one GEMM, attention
is scaled_dot_product_attention on cuDNN. Everything is bf16.

One row per block: model, execution, phase, batch, seq, context, milliseconds. With --profile each
block runs once between cudaProfilerStart and cudaProfilerStop instead, for a profiler outside: every
block begins with a marker kernel, operators are NVTX ranges, and --out lists the blocks as JSON.

  pytorch_blocks.py --models llama3-8b --executions eager,torch-compile --phases forward,decode
                    --shapes 1x2048 --decode-shapes 16@2048 --out block.csv
"""

import argparse
import gc
import json
import sys
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from rival_timing import (Budget, CsvSink, default_budget, log, log_failure, mark,
                          median_min_max, replay_times_ms, use_cudnn_attention, use_side_stream,
                          warm_up)

COLUMNS = ["model", "execution", "phase", "batch", "seq", "context", "ms_median", "ms_min",
           "ms_max", "timer"]
EXECUTIONS = ("eager", "composed", "torch-compile")
PHASES = ("forward", "decode", "train")
EPSILON = 1e-5


@dataclass(frozen=True)
class Model:
    """A block's shape. `llama`: RMSNorm, RoPE, SwiGLU. `gpt`: LayerNorm, GELU (tanh), biases."""

    family: str
    width: int         # D
    feed_forward: int  # F
    heads: int         # H
    kv_heads: int      # Hkv
    head_width: int    # d
    qkv_bias: bool = False


MODELS = {
    "llama2-7b": Model("llama", 4096, 11008, 32, 32, 128),
    "llama2-13b": Model("llama", 5120, 13824, 40, 40, 128),
    "llama2-70b": Model("llama", 8192, 28672, 64, 8, 128),
    "llama3-8b": Model("llama", 4096, 14336, 32, 8, 128),
    "mistral-7b": Model("llama", 4096, 14336, 32, 8, 128),
    "tinyllama": Model("llama", 2048, 5632, 32, 4, 64),
    "qwen2-7b": Model("llama", 3584, 18944, 28, 4, 128, qkv_bias=True),
    "gpt2-large": Model("gpt", 1280, 5120, 20, 20, 64, qkv_bias=True),
    "gpt2-xl": Model("gpt", 1600, 6400, 25, 25, 64, qkv_bias=True),
    "gpt3-13b": Model("gpt", 5120, 20480, 40, 40, 128, qkv_bias=True),
}


@dataclass(frozen=True)
class Case:
    """One block to measure. In decode `seq` is 1 and `context` counts the new token."""

    model: str
    execution: str
    phase: str
    batch: int
    seq: int
    context: int

    def columns(self):
        return {"model": self.model, "execution": self.execution, "phase": self.phase,
                "batch": self.batch, "seq": self.seq, "context": self.context}

    def label(self):
        return "~".join(str(value) for value in self.columns().values())


def rotate_half(x):
    """(x1, x2) -> (-x2, x1) over the halves of the last dimension."""
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class Block(nn.Module):
    """x [B, T, D] -> [B, T, D]. Weights are [out, in]."""

    def __init__(self, model, composed=False, annotate=False):
        super().__init__()
        self.model, self.composed, self.annotate = model, composed, annotate
        self.range_open = False
        gpt = model.family == "gpt"
        d_model, inner = model.width, model.heads * model.head_width
        qkv_out = (model.heads + 2 * model.kv_heads) * model.head_width
        first_out = model.feed_forward * (1 if gpt else 2)

        def matrix(rows, columns):
            weight = torch.randn(rows, columns, device="cuda") / columns**0.5
            return nn.Parameter(weight.to(torch.bfloat16))

        def vector(size, mean, wanted=True):
            if not wanted:
                return None
            return nn.Parameter((mean + 0.1 * torch.randn(size, device="cuda")).to(torch.bfloat16))

        self.norm1_weight, self.norm1_bias = vector(d_model, 1.0), vector(d_model, 0.0, gpt)
        self.qkv_weight = matrix(qkv_out, d_model)
        self.qkv_bias = vector(qkv_out, 0.0, model.qkv_bias)
        self.out_weight, self.out_bias = matrix(d_model, inner), vector(d_model, 0.0, gpt)
        self.norm2_weight, self.norm2_bias = vector(d_model, 1.0), vector(d_model, 0.0, gpt)
        self.first_weight = matrix(first_out, d_model)  # gate and up, or up alone
        self.first_bias = vector(first_out, 0.0, gpt)
        self.down_weight = matrix(d_model, model.feed_forward)
        self.down_bias = vector(d_model, 0.0, gpt)

    def begin(self, operator):
        """Marks what follows as `operator` for a profiler; None ends the last one."""
        if self.annotate:
            if self.range_open:
                torch.cuda.nvtx.range_pop()
            self.range_open = operator is not None
            if self.range_open:
                torch.cuda.nvtx.range_push("op=" + operator)

    def norm(self, x, weight, bias):
        if self.composed:
            wide = x.float()
            if self.model.family == "gpt":
                wide = wide - wide.mean(-1, keepdim=True)
            scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)
            y = (wide * scale).to(x.dtype) * weight
            return y if bias is None else y + bias
        if self.model.family == "gpt":
            return F.layer_norm(x, (self.model.width,), weight, bias, EPSILON)
        return F.rms_norm(x, (self.model.width,), weight, EPSILON)

    def forward(self, x, cos, sin, cache_k=None, cache_v=None):
        """cos, sin: [T, d]; caches: [B, Hkv, S, d], whose last slot receives the new token."""
        model = self.model
        batch, tokens, _ = x.shape
        inner, kv_inner = model.heads * model.head_width, model.kv_heads * model.head_width

        self.begin("norm1")
        h = self.norm(x, self.norm1_weight, self.norm1_bias)
        self.begin("qkv")
        qkv = F.linear(h, self.qkv_weight, self.qkv_bias)
        q, k, v = qkv.split([inner, kv_inner, kv_inner], dim=-1)
        q = q.view(batch, tokens, model.heads, model.head_width).transpose(1, 2)
        k = k.view(batch, tokens, model.kv_heads, model.head_width).transpose(1, 2)
        v = v.view(batch, tokens, model.kv_heads, model.head_width).transpose(1, 2)
        if model.family == "llama":
            self.begin("rope")
            q = q * cos + rotate_half(q) * sin
            k = k * cos + rotate_half(k) * sin
        if cache_k is not None:
            self.begin("kvcache")
            cache_k[:, :, -1:].copy_(k)
            cache_v[:, :, -1:].copy_(v)
            k, v = cache_k, cache_v
        self.begin("attention")
        a = F.scaled_dot_product_attention(q, k, v, is_causal=cache_k is None,
                                           enable_gqa=model.heads != model.kv_heads)
        a = a.transpose(1, 2).reshape(batch, tokens, inner)
        self.begin("oproj")
        o = F.linear(a, self.out_weight, self.out_bias)
        self.begin("residual1")
        x = x + o
        self.begin("norm2")
        h = self.norm(x, self.norm2_weight, self.norm2_bias)
        self.begin("gateup")
        h = F.linear(h, self.first_weight, self.first_bias)
        self.begin("act")
        if model.family == "llama":
            gate, up = h.chunk(2, dim=-1)
            h = F.silu(gate) * up
        else:
            h = F.gelu(h, approximate="tanh")
        self.begin("down")
        h = F.linear(h, self.down_weight, self.down_bias)
        self.begin("residual2")
        x = x + h
        self.begin(None)
        return x


def make_step(case, annotate=False):
    """A function that runs the block of the case once, on inputs of its own."""
    model = MODELS[case.model]
    compiled = case.execution == "torch-compile"
    block = Block(model, composed=case.execution == "composed", annotate=annotate and not compiled)
    run = torch.compile(block, fullgraph=True, dynamic=False) if compiled else block

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.bfloat16, device="cuda")

    x = normal(case.batch, case.seq, model.width)
    position = torch.arange(max(case.context, case.seq), device="cuda", dtype=torch.float32)
    speed = 10000.0 ** (-torch.arange(0, model.head_width, 2, device="cuda") / model.head_width)
    angle = torch.outer(position[-case.seq:], speed).repeat(1, 2)
    cos, sin = angle.cos().to(torch.bfloat16), angle.sin().to(torch.bfloat16)

    if case.phase == "train":
        x.requires_grad_(True)
        inputs = [x, *block.parameters()]
        dy = normal(*x.shape)

        def step():
            return torch.autograd.grad(run(x, cos, sin), inputs, dy)
        return step

    caches = ()
    if case.phase == "decode":
        shape = (case.batch, model.kv_heads, case.context, model.head_width)
        caches = (normal(*shape), normal(*shape))

    def step():
        with torch.no_grad():
            return run(x, cos, sin, *caches)
    return step


def check(case, step):
    """Refuses to time a block whose result is not finite or is constant."""
    out = step()
    out = out[0] if isinstance(out, tuple) else out
    spread = out.float().std().item()
    if not 0.0 < spread < 1e6:  # also false for NaN
        raise RuntimeError(f"the block gives a standard deviation of {spread}")


def time_case(case):
    """The time columns of one block. Without a graph, on a stream, if it cannot be captured."""
    step = make_step(case)
    check(case, step)
    for _ in range(2):
        step()
    torch.cuda.synchronize()
    timer, replay, graph = "graph", None, torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            step()
        replay = graph.replay
    except Exception:
        log_failure(f"capture of {case.label()}: timed without a graph")
        timer, replay = "stream", step
    warm_up(replay, 30.0, most=50)
    median, least, most = median_min_max(replay_times_ms(replay))
    return {"ms_median": f"{median:.5f}", "ms_min": f"{least:.5f}", "ms_max": f"{most:.5f}",
            "timer": timer}


def profile_case(case, cell, list_file, listed):
    """Runs the block once under an outside profiler, after two runs that it does not see."""
    step = make_step(case, annotate=True)
    check(case, step)
    step()
    torch.cuda.synchronize()
    # Listed just before its marker is launched, so that list and markers agree whatever fails.
    listed.append(case.columns())
    with open(list_file, "w", encoding="utf-8") as file:
        json.dump(listed, file, indent=1)
    torch.cuda.profiler.start()
    try:
        mark(cell)
        torch.cuda.nvtx.range_push("cfg=" + case.label())
        step()
        torch.cuda.nvtx.range_pop()
        torch.cuda.synchronize()
    finally:
        torch.cuda.profiler.stop()


def release():
    """Gives the last block's memory back and forgets its compiled code."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()


def parse_shape(text, phase):
    """(batch, seq, context) of "4x2048", or of "16@2048" in decode."""
    separator = "@" if phase == "decode" else "x"
    parts = text.strip().split(separator)
    if len(parts) != 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
        form = "BATCH@CONTEXT" if phase == "decode" else "BATCHxTOKENS"
        raise argparse.ArgumentTypeError(f"'{text}': expected {form}")
    first, second = int(parts[0]), int(parts[1])
    return (first, 1, second) if phase == "decode" else (first, second, 0)


def names_from(allowed):
    def parse(text):
        names = [name.strip() for name in text.split(",") if name.strip()]
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"'{name}': choose from {', '.join(allowed)}")
        return names
    return parse


def parse_blocks(text):
    """Cases of "llama3-8b:eager:decode:16@2048,..."."""
    found = []
    for item in text.split(","):
        parts = item.strip().split(":")
        if (len(parts) != 4 or parts[0] not in MODELS or parts[1] not in EXECUTIONS
                or parts[2] not in PHASES):
            raise argparse.ArgumentTypeError(f"'{item}': expected MODEL:EXECUTION:PHASE:SHAPE")
        found.append(Case(*parts[:3], *parse_shape(parts[3], parts[2])))
    return found


def cases_of(options):
    """The cases asked for: single blocks first, then the grid, executions outermost so that what
    compiles comes last."""
    cases = list(options.blocks)
    if cases and not options.models:
        return cases
    for execution in options.executions:
        for model in options.models or ["llama2-7b"]:
            for phase in options.phases:
                shapes = options.decode_shapes if phase == "decode" else options.shapes
                cases += [Case(model, execution, phase, *parse_shape(shape, phase))
                          for shape in shapes.split(",") if shape.strip()]
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=names_from(tuple(MODELS)),
                        help=", ".join(MODELS) + " (default: llama2-7b)")
    parser.add_argument("--executions", type=names_from(EXECUTIONS), default=list(EXECUTIONS))
    parser.add_argument("--phases", type=names_from(PHASES), default=["forward", "decode"])
    parser.add_argument("--shapes", default="1x2048", metavar="BxT,...",
                        help="of forward and train")
    parser.add_argument("--decode-shapes", default="1@2048", metavar="B@S,...")
    parser.add_argument("--blocks", type=parse_blocks, default=[],
                        metavar="MODEL:EXECUTION:PHASE:SHAPE,...",
                        help="these blocks first; alone, unless --models is given too")
    parser.add_argument("--profile", action="store_true",
                        help="run each block once for an outside profiler; --out is JSON")
    parser.add_argument("--out", required=True, metavar="FILE")
    parser.add_argument("--timeout-budget", type=float, default=default_budget(), metavar="SECONDS",
                        help="start no block that would not end within this time")
    options = parser.parse_args()
    try:
        cases = cases_of(options)
    except argparse.ArgumentTypeError as problem:
        parser.error(str(problem))

    budget = Budget(options.timeout_budget)
    use_side_stream()
    use_cudnn_attention()
    cell = torch.ones(1, dtype=torch.int32, device="cuda")
    mark(cell)
    sink = None if options.profile else CsvSink(options.out, COLUMNS)
    done, profiled = 0, []
    for case in cases:
        needed = 3.0
        if case.execution == "torch-compile":
            needed = 25.0 if case.phase == "train" else 14.0
        if budget.spent(needed):
            log(f"no time left for {case.label()}")
            continue
        try:
            if options.profile:
                profile_case(case, cell, options.out, profiled)
                log(case.label(), "profiled")
            else:
                times = time_case(case)
                sink.add(**case.columns(), **times)
                log(case.label(), times["ms_median"], "ms")
            done += 1
        except Exception:
            log_failure(case.label())
        release()
    log(f"{done} of {len(cases)} blocks done")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
