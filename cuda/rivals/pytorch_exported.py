#!/usr/bin/env python3
"""The exported kernels of a block inside PyTorch, beside PyTorch's own.

    python3 pytorch_exported.py FOLDER --out RESULT.json [--steps 200] [--seeds 3]

FOLDER is what `fuseline export --model M --policy coda` made, forward or --phase train, of a block
of the family llama or gpt. Both run the same layers with the same weights: the results are compared with
PyTorch's in fp32, and whole stacks are timed in turns, as replays of CUDA graphs, with eager and
torch.compile. With --phase train also: gradients, and with --steps a small model trained with both
(the folder's own shape), from --seeds seeds.
"""

import argparse
import json
import os
import statistics
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pytorch_blocks import Block  # noqa: E402
from rival_timing import replay_times_ms, use_cudnn_attention, warm_up  # noqa: E402

OWN = {"w_norm1": "norm1_weight", "b_norm1": "norm1_bias", "w_qkv": "qkv_weight",
       "b_qkv": "qkv_bias", "w_o": "out_weight", "b_o": "out_bias", "w_norm2": "norm2_weight",
       "b_norm2": "norm2_bias", "w_gate_up": "first_weight", "w_up": "first_weight",
       "b_up": "first_bias", "w_down": "down_weight", "b_down": "down_bias"}


def own_weights(block):
    """A block's parameters by fuseline's names, as matrices."""
    other = "w_up" if block.model.family == "llama" else "w_gate_up"
    found = {name: getattr(block, of) for name, of in OWN.items() if name != other}
    return {name: p if p.dim() == 2 else p.reshape(1, -1)
            for name, p in found.items() if p is not None}


class Shape:
    """What Block asks of a model, from the folder's tensors."""

    def __init__(self, kernels, head_width):
        tensors = {t["name"]: t for t in kernels.tensors}
        self.family = "llama" if "cos" in tensors else "gpt"
        self.qkv_bias = self.family == "gpt"
        self.tokens, self.width = tensors["x"]["rows"], tensors["x"]["cols"]
        self.head_width = tensors["cos"]["cols"] if "cos" in tensors else head_width
        self.feed_forward = tensors["w_down_0"]["cols"]
        self.heads = tensors["w_o_0"]["cols"] // self.head_width
        qkv = tensors.get("w_qkv_folded_0") or tensors["w_qkv_0"]
        self.kv_heads = (qkv["rows"] // self.head_width - self.heads) // 2
        self.batch = self.tokens // tensors["cos"]["rows"] if "cos" in tensors else 1


def tables(shape):
    tokens = shape.tokens // shape.batch
    position = torch.arange(tokens, device="cuda", dtype=torch.float32)
    speed = 10000.0 ** (-torch.arange(0, shape.head_width, 2, device="cuda") / shape.head_width)
    angle = torch.outer(position, speed).repeat(1, 2)
    return angle.cos().to(torch.bfloat16), angle.sin().to(torch.bfloat16)


def exported_weights(kernels, blocks, cos, sin):
    """What the kernels take, by name, from PyTorch's blocks."""
    given = {}
    for layer, block in enumerate(blocks):
        own = {name: weight.detach() for name, weight in own_weights(block).items()}
        own.update(cos=cos, sin=sin)
        made = kernels.prepare(own)
        given.update(cos=made.pop("cos"), sin=made.pop("sin"))
        given.update({f"{name}_{layer}": weight.contiguous() for name, weight in made.items()})
    width = blocks[0].model.width
    given["w_norm1_next"] = torch.ones(1, width, dtype=torch.bfloat16, device="cuda")
    return given


def stack(blocks, x, cos, sin):
    for block in blocks:
        x = block(x, cos, sin)
    return x


def wide_copy(blocks, model):
    made = []
    for block in blocks:
        copy = Block(model)
        copy.load_state_dict(block.state_dict())
        made.append(copy.float())
    return made


def relative(got, want):
    got, want = got.double().flatten(), want.double().flatten()
    return ((got - want).norm() / want.norm()).item()


def captured(step):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def in_turns(steps, rounds=6, replays=20):
    """Milliseconds of each by name: bursts in turns, every other round backwards."""
    graphs = {name: captured(step) for name, step in steps.items()}
    times = {name: [] for name in graphs}
    for graph in graphs.values():
        warm_up(graph.replay, 30.0, most=50)
    for turn in range(rounds):
        names = list(graphs) if turn % 2 == 0 else list(graphs)[::-1]
        for name in names:
            torch.cuda._sleep(200_000_000)
            torch.cuda.synchronize()
            times[name] += replay_times_ms(graphs[name].replay, replays)
    return {name: {"median": statistics.median(t), "least": min(t), "most": max(t)}
            for name, t in times.items()}


class Exported:
    """A stack of layers by the folder's operator, for weights that are its own or an optimiser's."""

    def __init__(self, kernels, weights):
        self.kernels, self.weights = kernels, weights
        self.operator = kernels.forward
        self.wanted = self.operator.inputs + self.operator.changed

    def __call__(self, x):
        given = dict(self.weights, x=x)
        out = self.operator(**{name: given[name] for name in self.wanted})
        return out[0] if isinstance(out, tuple) else out


def compare_forward(kernels, shape, result):
    blocks = [Block(shape) for _ in range(kernels.manifest["layers"])]
    cos, sin = tables(shape)
    x = torch.randn(shape.tokens, shape.width, device="cuda").to(torch.bfloat16)
    batched = x.view(shape.batch, -1, shape.width)
    exported = Exported(kernels, exported_weights(kernels, blocks, cos, sin))
    with torch.no_grad():
        with sdpa_kernel([SDPBackend.MATH]):
            want = stack(wide_copy(blocks, shape), batched.float(), cos.float(), sin.float())
        eager = stack(blocks, batched, cos, sin)
        ours = exported(x)
        result["relative_error_of_ours"] = relative(ours, want)
        result["relative_error_of_eager"] = relative(eager, want)
        compiled = [torch.compile(b, fullgraph=True, dynamic=False) for b in blocks]
        result["milliseconds"] = in_turns({
            "exported": lambda: exported(x),
            "torch.compile": lambda: stack(compiled, batched, cos, sin),
            "eager": lambda: stack(blocks, batched, cos, sin),
        })
    times = result["milliseconds"]
    result["speed_over_torch_compile"] = (times["torch.compile"]["median"] /
                                          times["exported"]["median"])


def compare_training(kernels, shape, result):
    layers = kernels.manifest["layers"]
    blocks = [Block(shape) for _ in range(layers)]
    cos, sin = tables(shape)
    x = torch.randn(shape.tokens, shape.width, device="cuda").to(torch.bfloat16)
    dy = torch.randn(shape.tokens, shape.width, device="cuda").to(torch.bfloat16)
    batched, d_batched = (t.view(shape.batch, -1, shape.width) for t in (x, dy))
    weights = exported_weights(kernels, blocks, cos, sin)
    trained = [n for n in weights if n not in ("cos", "sin", "w_norm1_next")]
    for name in trained:
        weights[name] = weights[name].clone().requires_grad_(True)
    exported = Exported(kernels, weights)
    given = x.clone().requires_grad_(True)

    def ours():
        return torch.autograd.grad(exported(given), [given] + [weights[n] for n in trained], dy)

    def gradients(run, where, of, gradient):
        return torch.autograd.grad(stack(run, where, cos.to(where.dtype), sin.to(where.dtype)),
                                   [where] + [p for b in of for p in b.parameters()], gradient)

    wide = wide_copy(blocks, shape)
    names = ["x"] + [f"{n}_{i}" for i, b in enumerate(blocks) for n, _ in b.named_parameters()]
    with sdpa_kernel([SDPBackend.MATH]):
        want = dict(zip(names, gradients(wide, batched.float().requires_grad_(True), wide,
                                         d_batched.float())))
    leaf = batched.clone().requires_grad_(True)
    eager = dict(zip(names, gradients(blocks, leaf, blocks, d_batched)))
    got = dict(zip(["x"] + trained, ours()))
    errors = {"x": [relative(got["x"], want["x"]), relative(eager["x"], want["x"])]}
    for layer in range(layers):
        for name in own_weights(blocks[layer]):
            of = OWN[name]
            own = kernels.restore({"d" + name: got[f"{name}_{layer}"]})["d" + name]
            key = f"{of}_{layer}"
            errors[key] = [relative(own, want[key]), relative(eager[key], want[key])]
    result["gradient_errors_ours_and_eager"] = errors
    compiled = [torch.compile(b, fullgraph=True, dynamic=False) for b in blocks]
    result["milliseconds"] = in_turns({
        "exported": ours,
        "torch.compile": lambda: gradients(compiled, leaf, blocks, d_batched),
        "eager": lambda: gradients(blocks, leaf, blocks, d_batched),
    })
    times = result["milliseconds"]
    result["speed_over_torch_compile"] = (times["torch.compile"]["median"] /
                                          times["exported"]["median"])


class Model(nn.Module):
    """Embedding, the layers, a norm and the logits: everything but the layers is the same for both."""

    def __init__(self, shape, layers, symbols):
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(symbols, shape.width, device="cuda", dtype=torch.bfloat16)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(layers))
        self.norm = nn.Parameter(torch.ones(shape.width, device="cuda", dtype=torch.bfloat16))
        self.head = nn.Linear(shape.width, symbols, bias=False, device="cuda", dtype=torch.bfloat16)

    def forward(self, tokens, layers):
        x = layers(self.embedding(tokens))
        x = F.rms_norm(x, (self.shape.width,), self.norm, 1e-5)
        return self.head(x)


def prepared(kernels, block, cos, sin):
    """The kernels' weights of one layer as a function of its parameters, so that gradients reach
    them."""
    own = dict(own_weights(block), cos=cos, sin=sin)
    return kernels.prepare(own)


def train(kernels, shape, seed, ours, steps, symbols=256):
    torch.manual_seed(seed)
    model = Model(shape, kernels.manifest["layers"], symbols)
    data = torch.Generator().manual_seed(7)  # a language of pairs: the same for all
    follows = torch.randint(symbols, (symbols, 4), generator=data)
    cos, sin = tables(shape)
    tokens_each = shape.tokens // shape.batch
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    operator = kernels.forward
    one = torch.ones(1, shape.width, dtype=torch.bfloat16, device="cuda")

    def by_kernels(x):
        given = {"x": x.reshape(shape.tokens, shape.width), "w_norm1_next": one}
        for layer, block in enumerate(model.blocks):
            made = prepared(kernels, block, cos, sin)
            given.update(cos=made.pop("cos"), sin=made.pop("sin"))
            given.update({f"{n}_{layer}": w for n, w in made.items()})
        out = operator(**{n: given[n] for n in operator.inputs + operator.changed})
        out = out[0] if isinstance(out, tuple) else out
        return out.view(shape.batch, tokens_each, shape.width)

    layers = by_kernels if ours else (lambda x: stack(model.blocks, x, cos, sin))
    losses = []
    walk = torch.Generator().manual_seed(1000 + seed)
    for _ in range(steps):
        text = [torch.randint(symbols, (shape.batch,), generator=walk)]
        choice = torch.randint(4, (tokens_each, shape.batch), generator=walk)
        for t in range(tokens_each):
            text.append(follows[text[-1], choice[t]])
        text = torch.stack(text, dim=1).cuda()
        logits = model(text[:, :-1], layers)
        loss = F.cross_entropy(logits.float().reshape(-1, symbols), text[:, 1:].reshape(-1))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--head-width", type=int, default=64, help="of a block without RoPE")
    parser.add_argument("--own-products", action="store_true",
                        help="our kernels also for products that the plan leaves to a library")
    parser.add_argument("--no-times", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, options.folder)
    import fuseline_kernels
    kernels = fuseline_kernels.load(options.folder, library_products=not options.own_products)
    use_cudnn_attention()
    torch.manual_seed(1)
    shape = Shape(kernels, options.head_width)
    result = {"folder": kernels.manifest["name"], "hash": kernels.manifest["hash"],
              "layers": kernels.manifest["layers"], "device": torch.cuda.get_device_name(),
              "torch": torch.__version__}
    try:
        if not options.no_times:
            if "backward" in kernels.operators:
                compare_training(kernels, shape, result)
            else:
                compare_forward(kernels, shape, result)
        if options.steps:
            result["losses"] = {
                name: [train(kernels, shape, seed, ours, options.steps)
                       for seed in range(options.seeds)]
                for name, ours in (("exported", True), ("eager", False))}
    finally:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    shown = {k: v for k, v in result.items() if k != "losses"}
    print(json.dumps(shown, indent=1))
    for name, curves in result.get("losses", {}).items():
        for seed, curve in enumerate(curves):
            print(f"{name} seed {seed}: " + " ".join(f"{curve[i]:.4f}" for i in
                                                    sorted({0, 9, 49, 99, 149, len(curve) - 1})
                                                    if i < len(curve)))


if __name__ == "__main__":
    main()
