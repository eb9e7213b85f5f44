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
With --serve the blocks stay on the GPU and are timed when another program asks, in turns with its
own: `fuseline measure --rivals eager,torch-compile` does.

  pytorch_blocks.py --models llama3-8b --executions eager,torch-compile --phases forward,decode
                    --shapes 1x2048 --decode-shapes 16@2048 --out block.csv
"""

import gc
import json
import math
import statistics
import sys

import torch
import torch.nn.functional as F
from torch import nn

from block_cases import (MODELS, bytes_of_a_layer, checked_cases, layers_beyond,
                         options_parser)
from rival_serve import own_output, serve
from rival_timing import (Budget, CsvSink, default_budget, log, log_failure, mark,
                          median_min_max, replay_times_ms, use_cudnn_attention, use_side_stream,
                          warm_up)

COLUMNS = ["model", "execution", "phase", "batch", "seq", "context", "ms_median", "ms_min",
           "ms_max", "timer"]
EPSILON = 1e-5


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


def normal(*shape):
    return torch.randn(*shape, dtype=torch.bfloat16, device="cuda")


def make_inputs(case):
    """x [B, T, D], cos and sin [T, d], and in training the gradient of the block's output."""
    model = MODELS[case.model]
    x = normal(case.batch, case.seq, model.width)
    position = torch.arange(max(case.context, case.seq), device="cuda", dtype=torch.float32)
    speed = 10000.0 ** (-torch.arange(0, model.head_width, 2, device="cuda") / model.head_width)
    angle = torch.outer(position[-case.seq:], speed).repeat(1, 2)
    cos, sin = angle.cos().to(torch.bfloat16), angle.sin().to(torch.bfloat16)
    if case.phase != "train":
        return x, cos, sin, None
    return x.requires_grad_(True), cos, sin, normal(*x.shape)


def make_step(case, inputs=None, annotate=False):
    """A function that runs the block of the case once, with weights and caches of its own, on
    `inputs` or on some of its own."""
    model = MODELS[case.model]
    compiled = case.execution == "torch-compile"
    block = Block(model, composed=case.execution == "composed", annotate=annotate and not compiled)
    run = torch.compile(block, fullgraph=True, dynamic=False) if compiled else block
    x, cos, sin, dy = make_inputs(case) if inputs is None else inputs

    if case.phase == "train":
        wanted = [x, *block.parameters()]

        def step():
            return torch.autograd.grad(run(x, cos, sin), wanted, dy)
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


class Replays:
    """A block in a graph of its own that is replayed when asked. Where the weights and caches of
    one block would stay in L2, so many layers with their own follow each other in the graph that
    they do not; short ones follow several times, so that the pause between two graphs does not
    count. fuseline's own blocks are run in the same way."""

    REPLAY_MS = 1.0
    MOST_ROUNDS = 32

    def __init__(self, case):
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.layers = layers_beyond(l2, bytes_of_a_layer(case, MODELS[case.model]))
        # Compiling a layer finds the code of the layer before: modules of one structure share it,
        # as their parameters are inputs of what is compiled.
        inputs = make_inputs(case)
        self.steps = [make_step(case, inputs) for _ in range(self.layers)]
        self.get_ready(case)

    def get_ready(self, case):
        for step in self.steps:
            check(case, step)
            step()
        self.capture(1)
        once = statistics.median(replay_times_ms(self.graph.replay, 3))
        rounds = min(self.MOST_ROUNDS, max(1, math.ceil(self.REPLAY_MS / max(once, 1e-6))))
        if rounds > 1:
            self.capture(rounds)
        self.blocks = rounds * self.layers
        warm_up(self.graph.replay, 30.0, most=50)
        torch.cuda.synchronize()
        log(case.label(), f"ready: {self.layers} layers, {rounds} times in a graph")
        gc.collect()
        torch.cuda.empty_cache()

    def capture(self, rounds):
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=torch.cuda.current_stream()):
            for _ in range(rounds):
                for step in self.steps:
                    step()

    def run(self, warm_ups, replays):
        """Milliseconds of one block in each of `replays` replays without a pause."""
        for _ in range(warm_ups):
            self.graph.replay()
        return [ms / self.blocks for ms in replay_times_ms(self.graph.replay, replays)]


def serve_cases(cases):
    """Gets all cases ready, which stay on the GPU, and times them when asked (rival_serve.py)."""
    import torch._dynamo

    answers = own_output()
    torch._dynamo.config.recompile_limit = 64  # one Block.forward has the code of all cases
    use_side_stream()
    use_cudnn_attention()
    framework = f"PyTorch {torch.__version__}"
    return 0 if serve(cases, Replays, framework, sys.stdin, answers) else 1


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


def main():
    parser = options_parser(__doc__.splitlines()[0], default_budget())
    options = parser.parse_args()
    cases = checked_cases(parser, options)
    if options.serve:
        return serve_cases(cases)

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
