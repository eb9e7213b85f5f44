#!/usr/bin/env python3
"""Writes graphs/*.json: what torch.export writes for layers of the transformers library.

The calls of every module are spelled out here in the order in which torch.export 2.7 traces
transformers 4.5x in evaluation mode, with tiny sizes; PyTorch is not needed. Line numbers are those
of no release. tests/scripts has the test of real modules, which runs where PyTorch is installed.
Run it in this folder after a change: python3 make_graphs.py
"""
import json
import pathlib

# Names of the arguments in order, for the JSON that torch.export.save() writes.
SCHEMAS = {
    "aten.linear.default": ["input", "weight", "bias"],
    "aten.addmm.default": ["self", "mat1", "mat2"],
    "aten.to.dtype": ["self", "dtype"],
    "aten.pow.Tensor_Scalar": ["self", "exponent"],
    "aten.mean.dim": ["self", "dim", "keepdim"],
    "aten.add.Tensor": ["self", "other"],
    "aten.mul.Tensor": ["self", "other"],
    "aten.div.Tensor": ["self", "other"],
    "aten.rsqrt.default": ["self"],
    "aten.view.default": ["self", "size"],
    "aten.reshape.default": ["self", "shape"],
    "aten.transpose.int": ["self", "dim0", "dim1"],
    "aten.unsqueeze.default": ["self", "dim"],
    "aten.slice.Tensor": ["self", "dim", "start", "end"],
    "aten.neg.default": ["self"],
    "aten.cat.default": ["tensors", "dim"],
    "aten.expand.default": ["self", "size"],
    "aten.contiguous.default": ["self"],
    "aten.silu.default": ["self"],
    "aten.tanh.default": ["self"],
    "aten.dropout.default": ["input", "p", "train"],
    "aten.softmax.int": ["self", "dim", "dtype"],
    "aten.matmul.default": ["self", "other"],
    "aten.split.Tensor": ["self", "split_size", "dim"],
    "aten.chunk.default": ["self", "chunks", "dim"],
    "aten.layer_norm.default": ["input", "normalized_shape", "weight", "bias", "eps"],
    "aten.scaled_dot_product_attention.default": [
        "query", "key", "value", "attn_mask", "dropout_p", "is_causal"],
    "aten.cumprod.default": ["self", "dim"],
    "aten.mode.default": ["self", "dim"],
    "aten._assert_tensor_metadata.default": ["a", "size", "stride", "dtype"],
}
TYPES = {"bfloat16": 13, "float32": 7, "int64": 5, "bool": 12}


class Node:
    def __init__(self, name, shape, dtype):
        self.name, self.shape, self.dtype = name, list(shape), dtype


class Trace:
    """Calls in order, as nodes of a graph."""

    def __init__(self, module, file):
        self.module, self.file = module, file
        self.inputs, self.nodes, self.names = [], [], {}

    def unused(self, name):
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        return name if count == 0 else f"{name}_{count}"

    def input(self, name, *shape, dtype="bfloat16"):
        node = Node(self.unused(name), shape, dtype)
        self.inputs.append((node, "input", ""))
        return node

    def parameter(self, owner, *shape):
        node = Node(self.unused("p_" + owner.replace(".", "_")), shape, "bfloat16")
        self.inputs.append((node, "parameter", owner))
        return node

    def call(self, line, target, shape, *args, dtype="bfloat16", **named):
        node = Node(self.unused(target.split(".")[1]), shape, dtype)
        self.nodes.append((node, target, args, named, line))
        return node

    def parts(self, line, target, shapes, *args):
        whole = Node(self.unused(target.split(".")[1]), [], "bfloat16")
        parts = [Node(self.unused("getitem"), s, "bfloat16") for s in shapes]
        self.nodes.append((whole, target, args, {"parts": parts}, line))
        return parts

    # What modules call often.
    def linear(self, line, x, owner, out, bias=False):
        w = self.parameter(owner + ".weight", out, x.shape[-1])
        b = [self.parameter(owner + ".bias", out)] if bias else []
        return self.call(line, "aten.linear.default", x.shape[:-1] + [out], x, w, *b)

    def binary(self, line, name, a, b, dtype="bfloat16"):
        shapes = [n.shape for n in (a, b) if isinstance(n, Node)]
        rank = max(len(s) for s in shapes)
        shape = [max(([1] * (rank - len(s)) + s)[i] for s in shapes) for i in range(rank)]
        return self.call(line, f"aten.{name}.Tensor", shape, a, b, dtype=dtype)

    def view(self, line, x, *shape, call="view"):
        return self.call(line, f"aten.{call}.default", shape, x, list(shape))

    def transpose(self, line, x, a, b):
        shape = list(x.shape)
        shape[a], shape[b] = shape[b], shape[a]
        return self.call(line, "aten.transpose.int", shape, x, a, b)

    def slice(self, line, x, begin, end):
        size = min(end, x.shape[-1]) - begin
        return self.call(line, "aten.slice.Tensor", x.shape[:-1] + [size], x, len(x.shape) - 1,
                         begin, end)

    def to(self, line, x, dtype):
        self.nodes.append((Node(self.unused("_assert_tensor_metadata"), [], ""),
                           "aten._assert_tensor_metadata.default", (x, None, None, x.dtype), {},
                           line))
        return self.call(line, "aten.to.dtype", x.shape, x, dtype, dtype=dtype)

    def rms_norm(self, line, x, owner, eps, above_one=False):
        w = self.parameter(owner + ".weight", x.shape[-1])
        wide = self.to(line, x, "float32")
        one = x.shape[:-1] + [1]
        square = self.call(line + 1, "aten.pow.Tensor_Scalar", x.shape, wide, 2, dtype="float32")
        mean = self.call(line + 1, "aten.mean.dim", one, square, [-1], True, dtype="float32")
        above = self.binary(line + 2, "add", mean, eps, "float32")
        root = self.call(line + 2, "aten.rsqrt.default", one, above, dtype="float32")
        normed = self.binary(line + 2, "mul", wide, root, "float32")
        if above_one:
            weight = self.binary(line + 3, "add", self.to(line + 3, w, "float32"), 1.0, "float32")
            return self.to(line + 4, self.binary(line + 3, "mul", normed, weight, "float32"),
                           "bfloat16")
        return self.binary(line + 3, "mul", w, self.to(line + 3, normed, "bfloat16"))

    def rotated(self, line, x, cos, sin):
        half = x.shape[-1] // 2
        straight = self.binary(line, "mul", x, cos)
        first = self.slice(line - 40, x, 0, half)
        second = self.slice(line - 39, x, half, 2**63 - 1)
        negated = self.call(line - 38, "aten.neg.default", second.shape, second)
        turned = self.call(line - 38, "aten.cat.default", x.shape, [negated, first], -1)
        return self.binary(line, "add", straight, self.binary(line, "mul", turned, sin))

    def repeated(self, line, x, times):
        if times == 1:
            return x
        b, h, t, d = x.shape
        alone = self.call(line, "aten.unsqueeze.default", [b, h, 1, t, d], x, 2)
        wide = self.call(line, "aten.expand.default", [b, h, times, t, d], alone,
                         [b, h, times, t, d])
        return self.view(line + 1, wide, b, h * times, t, d, call="reshape")

    # The two forms of file.
    def own_form(self, outputs):
        def written(a):
            if isinstance(a, Node):
                return {"node": a.name}
            return [written(i) for i in a] if isinstance(a, (list, tuple)) else a

        nodes = []
        for node, target, args, named, line in self.nodes:
            entry = {"name": node.name, "target": target, "args": written(args)}
            parts = named.get("parts")
            kwargs = {k: written(v) for k, v in named.items() if k != "parts"}
            if kwargs:
                entry["kwargs"] = kwargs
            if not parts and node.dtype:
                entry.update(shape=node.shape, dtype=node.dtype)
            entry.update(file=self.file, line=line)
            nodes.append(entry)
            for i, part in enumerate(parts or []):
                nodes.append({"name": part.name, "target": "getitem",
                              "args": [{"node": node.name}, i], "shape": part.shape,
                              "dtype": part.dtype, "file": self.file, "line": line})
        inputs = []
        for node, kind, owner in self.inputs:
            entry = {"name": node.name, "kind": kind, "shape": node.shape, "dtype": node.dtype}
            if owner:
                entry["owner"] = owner
            inputs.append(entry)
        return {"format": "fuseline.graph/1", "module": self.module, "torch": "2.7.1",
                "inputs": inputs, "nodes": nodes, "outputs": [o.name for o in outputs]}

    def saved_program(self, outputs):
        def argument(a):
            if a is None:
                return {"as_none": True}
            if isinstance(a, Node):
                return {"as_tensor": {"name": a.name}}
            if isinstance(a, bool):
                return {"as_bool": a}
            if isinstance(a, int):
                return {"as_int": a}
            if isinstance(a, float):
                return {"as_float": a}
            if isinstance(a, str):
                return {"as_scalar_type": TYPES[a]}
            if a and isinstance(a[0], Node):
                return {"as_tensors": [{"name": n.name} for n in a]}
            return {"as_ints": list(a)}

        def tensor(node):
            strides = [1] * len(node.shape)
            for i in range(len(node.shape) - 2, -1, -1):
                strides[i] = strides[i + 1] * node.shape[i + 1]
            return {"dtype": TYPES[node.dtype], "sizes": [{"as_int": s} for s in node.shape],
                    "requires_grad": False, "device": {"type": "cpu", "index": None},
                    "strides": [{"as_int": s} for s in strides], "storage_offset": {"as_int": 0},
                    "layout": 7}

        values, nodes = {}, []
        for node, _, _ in self.inputs:
            values[node.name] = tensor(node)
        for node, target, args, named, line in self.nodes:
            parts = named.get("parts")
            inputs = [{"name": n, "arg": argument(a), "kind": 1}
                      for n, a in zip(SCHEMAS[target], args)]
            inputs += [{"name": n, "arg": argument(a), "kind": 2}
                       for n, a in named.items() if n != "parts"]
            if parts:
                result = {"as_tensors": [{"name": p.name} for p in parts]}
                values.update({p.name: tensor(p) for p in parts})
            elif node.dtype:
                result = {"as_tensor": {"name": node.name}}
                values[node.name] = tensor(node)
            else:
                result = None
            trace = f'  File "{self.file}", line {line}, in forward\n    ...'
            nodes.append({"target": "torch.ops." + target, "inputs": inputs,
                          "outputs": [result] if result else [],
                          "metadata": {"stack_trace": trace}, "is_hop_single_tensor_return": None})
        specs = []
        for node, kind, owner in self.inputs:
            if kind == "parameter":
                specs.append({"parameter": {"arg": {"name": node.name}, "parameter_name": owner}})
            else:
                specs.append({"user_input": {"arg": {"as_tensor": {"name": node.name}}}})
        results = [{"as_tensor": {"name": o.name}} for o in outputs]
        graph = {"inputs": [{"as_tensor": {"name": n.name}} for n, _, _ in self.inputs],
                 "outputs": results, "nodes": nodes, "tensor_values": values,
                 "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": False}
        return {"graph_module": {"graph": graph,
                                 "signature": {"input_specs": specs,
                                               "output_specs": [{"user_output": {"arg": r}}
                                                                for r in results]},
                                 "module_call_graph": []},
                "opset_version": {"aten": 10}, "range_constraints": {},
                "schema_version": {"major": 8, "minor": 2}, "torch_version": "2.7.1"}


def one_call_attention(t, line, q, k, v, mask=None, scale=None, gqa=False):
    named = {} if scale is None else {"scale": scale}
    if gqa:
        named["enable_gqa"] = True
    attn = t.call(line, "aten.scaled_dot_product_attention.default", q.shape, q, k, v, mask, 0.0,
                  mask is None, **named)
    return t.call(line + 8, "aten.contiguous.default",
                  [q.shape[0], q.shape[2], q.shape[1], q.shape[3]], t.transpose(line + 8, attn, 1, 2))


def llama(B=1, T=5, D=32, F=48, H=4, Hkv=2, d=8, qk_norm=False, masked=False, eager=False,
          gqa=False, eps=1e-5):
    """LlamaDecoderLayer; with head norms Qwen3DecoderLayer."""
    name = "qwen3" if qk_norm else "llama"
    t = Trace(name.capitalize() + "DecoderLayer", f"transformers/models/{name}/modeling_{name}.py")
    x = t.input("hidden_states", B, T, D)
    mask = t.input("attention_mask", B, 1, T, T) if masked else None
    cos, sin = t.input("position_embeddings_0", B, T, d), t.input("position_embeddings_1", B, T, d)
    xn = t.rms_norm(62, x, "input_layernorm", eps)

    def heads(line, owner, count, norm):
        y = t.view(line, t.linear(line, xn, "self_attn." + owner, count * d), B, T, count, d)
        if norm and qk_norm:
            y = t.rms_norm(62, y, "self_attn." + norm, eps)
        return t.transpose(line, y, 1, 2)

    q = heads(244, "q_proj", H, "q_norm")
    k = heads(245, "k_proj", Hkv, "k_norm")
    v = heads(246, "v_proj", Hkv, "")
    cos = t.call(158, "aten.unsqueeze.default", [B, 1, T, d], cos, 1)
    sin = t.call(159, "aten.unsqueeze.default", [B, 1, T, d], sin, 1)
    q = t.rotated(160, q, cos, sin)
    k = t.rotated(161, k, cos, sin)
    if not gqa:
        k, v = t.repeated(189, k, H // Hkv), t.repeated(189, v, H // Hkv)
    if eager:
        scores = t.call(211, "aten.matmul.default", [B, H, T, T], q, t.transpose(211, k, 2, 3))
        scores = t.binary(211, "mul", scores, d**-0.5)
        if masked:
            part = t.call(213, "aten.slice.Tensor", mask.shape, mask, 3, 0, T)
            scores = t.binary(214, "add", scores, part)
        probs = t.call(216, "aten.softmax.int", scores.shape, scores, -1, "float32",
                       dtype="float32")
        probs = t.call(217, "aten.dropout.default", scores.shape,
                       t.to(216, probs, "bfloat16"), 0.0, False)
        attn = t.call(218, "aten.matmul.default", q.shape, probs, v)
        attn = t.call(219, "aten.contiguous.default", [B, T, H, d], t.transpose(219, attn, 1, 2))
    else:
        attn = one_call_attention(t, 85, q, k, v, mask, d**-0.5, gqa)
    attn = t.view(270, attn, B, T, H * d, call="reshape")
    h = t.binary(314, "add", x, t.linear(271, attn, "self_attn.o_proj", D))
    xn = t.rms_norm(62, h, "post_attention_layernorm", eps)
    gate = t.linear(177, xn, "mlp.gate_proj", F)
    act = t.call(177, "aten.silu.default", gate.shape, gate)
    act = t.binary(177, "mul", act, t.linear(177, xn, "mlp.up_proj", F))
    y = t.binary(320, "add", h, t.linear(177, act, "mlp.down_proj", D))
    return t, [y]


def gpt2(B=2, T=6, D=32, H=4):
    """GPT2Block: Conv1D weights are [in, out], and GELU is written out."""
    t = Trace("GPT2Block", "transformers/models/gpt2/modeling_gpt2.py")
    x = t.input("hidden_states", B, T, D)
    d = D // H

    def norm(line, x, owner):
        return t.call(line, "aten.layer_norm.default", x.shape, x, [D],
                      t.parameter(owner + ".weight", D), t.parameter(owner + ".bias", D), 1e-5)

    def conv1d(x, owner, out):
        width = x.shape[-1]
        w, b = t.parameter(owner + ".weight", width, out), t.parameter(owner + ".bias", out)
        flat = t.view(122, x, B * T, width)
        y = t.call(122, "aten.addmm.default", [B * T, out], b, flat, w)
        return t.view(123, y, B, T, out)

    xn = norm(400, x, "ln_1")
    qkv = conv1d(xn, "attn.c_attn", 3 * D)
    parts = t.parts(280, "aten.split.Tensor", [[B, T, D]] * 3, qkv, D, 2)
    q, k, v = (t.transpose(284, t.view(283, p, B, T, H, d), 1, 2) for p in parts)
    attn = t.view(310, one_call_attention(t, 85, q, k, v), B, T, D, call="reshape")
    o = t.call(312, "aten.dropout.default", [B, T, D], conv1d(attn, "attn.c_proj", D), 0.1, False)
    h = t.binary(413, "add", o, x)
    u = conv1d(norm(440, h, "ln_2"), "mlp.c_fc", 4 * D)
    half = t.binary(47, "mul", u, 0.5)
    cube = t.call(47, "aten.pow.Tensor_Scalar", u.shape, u, 3.0)
    inner = t.binary(47, "add", u, t.binary(47, "mul", cube, 0.044715))
    tanh = t.call(47, "aten.tanh.default", u.shape,
                  t.binary(47, "mul", inner, 0.7978845608028654))
    act = t.binary(47, "mul", half, t.binary(47, "add", tanh, 1.0))
    dn = t.call(335, "aten.dropout.default", [B, T, D], conv1d(act, "mlp.c_proj", D), 0.1, False)
    return t, [t.binary(442, "add", h, dn)]


def gptj(B=1, T=5, D=32, H=4, rotated=4):
    """GPTJBlock: neighbours turn, only the first columns of a head, and branches side by side."""
    t = Trace("GPTJBlock", "transformers/models/gptj/modeling_gptj.py")
    x = t.input("hidden_states", B, T, D)
    table = t.input("sincos", B, T, rotated)
    d, F = D // H, 4 * D
    xn = t.call(300, "aten.layer_norm.default", x.shape, x, [D], t.parameter("ln_1.weight", D),
                t.parameter("ln_1.bias", D), 1e-5)
    q, k, v = (t.view(103, t.linear(198, xn, f"attn.{n}_proj", D), B, T, H, d) for n in "qkv")
    v = t.transpose(105, v, 1, 2)
    halves = t.parts(211, "aten.split.Tensor", [[B, T, rotated // 2]] * 2, table, rotated // 2, 2)
    wide = []
    for half in halves:
        up = t.call(70, "aten.unsqueeze.default", [B, T, 1, rotated // 2], half, 2)
        wide.append(t.call(70, "aten.repeat_interleave.self_int", [B, T, 1, rotated], up, 2, 3))
    sin, cos = wide

    def turned(x):
        part, rest = t.slice(215, x, 0, rotated), t.slice(216, x, rotated, 2**63 - 1)
        straight = t.binary(72, "mul", part, cos)
        pair = part.shape[:-1] + [rotated // 2]
        first = t.call(61, "aten.slice.Tensor", pair, part, 3, 0, 2**63 - 1, 2)
        second = t.call(62, "aten.slice.Tensor", pair, part, 3, 1, 2**63 - 1, 2)
        negated = t.call(63, "aten.neg.default", pair, second)
        stacked = t.call(63, "aten.stack.default", pair + [2], [negated, first], -1)
        flat = t.call(64, "aten.flatten.using_ints", part.shape, stacked, -2)
        y = t.binary(72, "add", straight, t.binary(72, "mul", flat, sin))
        return t.transpose(230, t.call(223, "aten.cat.default", x.shape, [y, rest], -1), 1, 2)

    k, q = turned(k), turned(q)
    attn = t.view(115, one_call_attention(t, 85, q, k, v), B, T, D, call="reshape")
    o = t.linear(260, attn, "attn.out_proj", D)
    u = t.linear(280, xn, "mlp.fc_in", F, bias=True)
    act = t.call(281, "aten.gelu.default", u.shape, u, approximate="tanh")
    m = t.linear(282, act, "mlp.fc_out", D, bias=True)
    return t, [t.binary(330, "add", t.binary(330, "add", o, m), x)]


def phi3(B=1, T=5, D=32, F=48, H=4):
    """Phi3DecoderLayer: one product for Q, K and V, one for gate and up."""
    t = Trace("Phi3DecoderLayer", "transformers/models/phi3/modeling_phi3.py")
    x, d = t.input("hidden_states", B, T, D), D // H
    cos, sin = t.input("position_embeddings_0", B, T, d), t.input("position_embeddings_1", B, T, d)
    xn = t.rms_norm(40, x, "input_layernorm", 1e-5)
    qkv = t.linear(180, xn, "self_attn.qkv_proj", 3 * D)
    q, k, v = (t.transpose(186, t.view(185, t.slice(182, qkv, i * D, (i + 1) * D), B, T, H, d),
                           1, 2) for i in range(3))
    cos = t.call(158, "aten.unsqueeze.default", [B, 1, T, d], cos, 1)
    sin = t.call(159, "aten.unsqueeze.default", [B, 1, T, d], sin, 1)
    q, k = t.rotated(160, q, cos, sin), t.rotated(161, k, cos, sin)
    attn = t.view(210, one_call_attention(t, 85, q, k, v), B, T, D, call="reshape")
    h = t.binary(260, "add", x, t.linear(212, attn, "self_attn.o_proj", D))
    both = t.linear(60, t.rms_norm(40, h, "post_attention_layernorm", 1e-5), "mlp.gate_up_proj",
                    2 * F)
    gate, up = t.parts(62, "aten.chunk.default", [[B, T, F]] * 2, both, 2, -1)
    act = t.binary(63, "mul", up, t.call(63, "aten.silu.default", gate.shape, gate))
    return t, [t.binary(266, "add", h, t.linear(65, act, "mlp.down_proj", D))]


def gemma2(B=1, T=5, D=32, F=48, H=4, Hkv=2, d=16, cap=50.0):
    """Gemma2DecoderLayer with attention written out: capped scores, four norms of 1 + weight."""
    t = Trace("Gemma2DecoderLayer", "transformers/models/gemma2/modeling_gemma2.py")
    x = t.input("hidden_states", B, T, D)
    cos, sin = t.input("position_embeddings_0", B, T, d), t.input("position_embeddings_1", B, T, d)
    mask = t.input("attention_mask", B, 1, T, T)
    xn = t.rms_norm(50, x, "input_layernorm", 1e-6, above_one=True)
    q, k, v = (t.transpose(230, t.view(230, t.linear(230, xn, f"self_attn.{n}_proj", h * d),
                                       B, T, h, d), 1, 2)
               for n, h in (("q", H), ("k", Hkv), ("v", Hkv)))
    cos = t.call(120, "aten.unsqueeze.default", [B, 1, T, d], cos, 1)
    sin = t.call(121, "aten.unsqueeze.default", [B, 1, T, d], sin, 1)
    q, k = t.rotated(122, q, cos, sin), t.rotated(123, k, cos, sin)
    k, v = t.repeated(140, k, H // Hkv), t.repeated(140, v, H // Hkv)
    scores = t.call(160, "aten.matmul.default", [B, H, T, T], q, t.transpose(160, k, 2, 3))
    scores = t.binary(160, "mul", scores, 0.125)
    scores = t.binary(163, "div", scores, cap)
    scores = t.call(164, "aten.tanh.default", scores.shape, scores)
    scores = t.binary(165, "mul", scores, cap)
    scores = t.binary(168, "add", scores, mask)
    probs = t.call(170, "aten.softmax.int", scores.shape, scores, -1, "float32", dtype="float32")
    attn = t.call(172, "aten.matmul.default", q.shape, t.to(170, probs, "bfloat16"), v)
    attn = t.call(173, "aten.contiguous.default", [B, T, H, d], t.transpose(173, attn, 1, 2))
    attn = t.view(250, attn, B, T, H * d, call="reshape")
    o = t.linear(251, attn, "self_attn.o_proj", D)
    h = t.binary(300, "add", x, t.rms_norm(50, o, "post_attention_layernorm", 1e-6, True))
    xn = t.rms_norm(50, h, "pre_feedforward_layernorm", 1e-6, True)
    gate = t.linear(80, xn, "mlp.gate_proj", F)
    act = t.call(80, "aten.gelu.default", gate.shape, gate, approximate="tanh")
    dn = t.linear(80, t.binary(80, "mul", act, t.linear(80, xn, "mlp.up_proj", F)),
                  "mlp.down_proj", D)
    return t, [t.binary(305, "add", h,
                        t.rms_norm(50, dn, "post_feedforward_layernorm", 1e-6, True))]


def strange():
    """A layer that no block can be."""
    t = Trace("StrangeLayer", "strange.py")
    x = t.input("x", 1, 5, 16)
    y = t.call(12, "aten.cumprod.default", x.shape, t.linear(11, x, "first", 16), 1)
    values = t.parts(14, "aten.mode.default", [[1, 5, 16]] * 2, t.linear(13, x, "second", 16), -1)
    return t, [t.binary(16, "add", y, values[0])]


def write(name, form):
    """One node in a line, so that a change shows where it is."""
    def lines(value, level):
        if level == 0 or not isinstance(value, (dict, list)) or not value:
            return json.dumps(value)
        if isinstance(value, dict):
            inner = [f"{json.dumps(k)}: {lines(v, level - 1)}" for k, v in value.items()]
            return "{" + ",\n".join(inner) + "}"
        return "[" + ",\n".join(lines(v, 0) for v in value) + "]"

    depth = 2 if "format" in form else 4
    path = pathlib.Path(__file__).parent / "graphs" / (name + ".json")
    path.write_text(lines(form, depth) + "\n")


def main():
    for name, (trace, outputs) in {
            "llama": llama(),
            "llama_eager_masked": llama(B=2, Hkv=4, masked=True, eager=True),
            "qwen3": llama(qk_norm=True, gqa=True, H=4, Hkv=1, d=16, eps=1e-6),
            "gpt2": gpt2(),
            "gptj": gptj(),
            "phi3": phi3(),
            "gemma2": gemma2(),
            "strange": strange(),
    }.items():
        write(name, trace.own_form(outputs))
        if name in ("llama", "gpt2"):
            write(name + ".program", trace.saved_program(outputs))


if __name__ == "__main__":
    main()
