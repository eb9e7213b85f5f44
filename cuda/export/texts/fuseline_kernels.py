"""Loads the kernels of this folder: libcuda through ctypes, and PyTorch where it is installed.

    import fuseline_kernels
    kernels = fuseline_kernels.load()            # the folder of this file
    out = kernels.all(x=x, w=w, ...)             # tensors by name; a tuple, or one tensor
    y = torch.ops.fuseline_NAME.all(x, w, ...)   # the same as a custom operator of PyTorch

README.md beside this file lists operators, tensors, shapes and what was checked.
"""

import collections
import ctypes
import json
import math
import os
import struct

_TYPES = {"bf16": 2, "fp16": 2, "fp32": 4, "e4m3": 1, "int8": 1}
_MOST_BOUND = 256  # sets of addresses whose parameters are kept


class KernelError(RuntimeError):
    pass


def _driver():
    for name in ("libcuda.so.1", "libcuda.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise KernelError("no NVIDIA driver on this machine: libcuda.so.1 is not here")


class _Cuda:
    """The functions of the driver that a launch needs."""

    def __init__(self):
        self.lib = _driver()
        self.lib.cuLaunchKernel.argtypes = (
            [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3)

    def check(self, result, doing):
        if result != 0:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorString(result, ctypes.byref(text))
            raise KernelError(f"CUDA, {doing}: {(text.value or b'unknown error').decode()}")

    def load(self, path):
        with open(path, "rb") as file:
            code = file.read()
        module = ctypes.c_void_p()
        self.check(self.lib.cuModuleLoadData(ctypes.byref(module), code), f"loading {path}")
        return module

    def function(self, module, name, shared):
        function = ctypes.c_void_p()
        self.check(self.lib.cuModuleGetFunction(ctypes.byref(function), module, name.encode()),
                   f"finding {name}")
        if shared > 48 * 1024:
            self.check(self.lib.cuFuncSetAttribute(function, 8, ctypes.c_int(shared)),
                       f"giving {name} {shared} bytes of shared memory")
        return function

    def encode_map(self, address, m):
        memory = (ctypes.c_byte * 192)()
        at = -ctypes.addressof(memory) % 64
        rank = m["rank"]
        sizes = (ctypes.c_uint64 * rank)(*m["sizes"][:rank])
        strides = (ctypes.c_uint64 * max(1, rank - 1))(*m["strides"][:max(1, rank - 1)])
        box = (ctypes.c_uint32 * rank)(*m["box"][:rank])
        steps = (ctypes.c_uint32 * rank)(*([1] * rank))
        self.check(
            self.lib.cuTensorMapEncodeTiled(
                ctypes.c_void_p(ctypes.addressof(memory) + at), ctypes.c_int(m["type"]),
                ctypes.c_uint32(rank), ctypes.c_void_p(address), sizes, strides, box, steps,
                ctypes.c_int(0), ctypes.c_int(m["swizzle"]), ctypes.c_int(m["promotion"]),
                ctypes.c_int(0)),
            "describing a tensor to the copy engine")
        return bytes(memory)[at:at + 128]


class _Launch:
    """A kernel with the parameters of one set of addresses."""

    def __init__(self, cuda, function, described, address):
        self.cuda, self.function, self.name = cuda, function, described["function"]
        self.product = described.get("product")
        self.shape = described["grid"] + described["block"] + [described["shared_bytes"]]
        blocks = [bytearray.fromhex(p) for p in described["parameters"]]
        for place in described["addresses"]:
            struct.pack_into("<Q", blocks[place["parameter"]], place["offset"],
                             address(place["target"]) + place["addend"])
        for place in described["maps"]:
            code = cuda.encode_map(address(place["target"]) + place["addend"], place)
            at = place["offset"]
            blocks[place["parameter"]][at:at + 128] = code
        # The driver copies parameters at the launch; those with maps start at multiples of 64 bytes.
        self.kept, pointers = [], []
        for block in blocks:
            memory = (ctypes.c_byte * (len(block) + 64))()
            at = -ctypes.addressof(memory) % 64
            ctypes.memmove(ctypes.addressof(memory) + at, bytes(block), len(block))
            self.kept.append(memory)
            pointers.append(ctypes.addressof(memory) + at)
        self.parameters = (ctypes.c_void_p * len(pointers))(*pointers)

    def __call__(self, stream):
        self.cuda.check(
            self.cuda.lib.cuLaunchKernel(self.function, *self.shape, stream, self.parameters, None),
            f"launching {self.name}")


class Operator:
    """One function of tensors. `inputs`, `changed` and `outputs` are names."""

    def __init__(self, kernels, described):
        self.kernels, self.described = kernels, described
        self.name = described["name"]
        names = [t["name"] for t in kernels.tensors]
        self.inputs = [names[i] for i in described["inputs"]]
        self.changed = [names[i] for i in described["changed"]]
        self.outputs = [names[i] for i in described["outputs"]]
        # What is of use to a caller; the rest of the outputs is what the gradient reads.
        self.results = [names[i] for i in described["outputs"]
                        if kernels.tensors[i]["role"] == "output" or not described["gradient"]]
        self.bound = collections.OrderedDict()
        self.op = None

    def run(self, addresses, stream, tensors=None):
        """`addresses` of all tensors of the operator, by index. Launches on that stream. With the
        tensors of PyTorch themselves, products that a library may do are PyTorch's."""
        key = tuple(addresses.values())
        launches = self.bound.get(key)
        if launches is None:
            k = self.kernels

            def address(target):
                return addresses[target] if target >= 0 else k.workspace(-1 - target)

            launches = [_Launch(k.cuda, k.function(i), k.launches[i], address)
                        for i in self.described["launches"]]
            if len(self.bound) >= _MOST_BOUND:
                self.bound.popitem(last=False)
            self.bound[key] = launches
        for launch in launches:
            if launch.product is None or tensors is None:
                launch(stream)
                continue
            a, b, out = (tensors[launch.product[name]] for name in ("a", "b", "out"))
            self.kernels.torch.mm(a.t() if launch.product["a_transposed"] else a,
                                  b.t() if launch.product["b_transposed"] else b, out=out)

    def __call__(self, *tensors, **named):
        """Tensors of PyTorch in the order of inputs and changed, or by name."""
        wanted = self.inputs + self.changed
        given = dict(zip(wanted, tensors))
        given.update(named)
        missing = [n for n in wanted if n not in given]
        unknown = [n for n in given if n not in wanted]
        if missing or unknown:
            raise KernelError(f"{self.name}: missing {missing}, unknown {unknown}; it takes {wanted}")
        out = self.op(*[given[n] for n in wanted])
        out = out if isinstance(out, (tuple, list)) else (out,)
        out = out[:len(self.results)]
        return out[0] if len(out) == 1 else out


class Kernels:
    def __init__(self, folder, library_products=True):
        self.folder, self.library_products = folder, library_products
        with open(os.path.join(folder, "kernels.json"), encoding="utf-8") as file:
            self.manifest = json.load(file)
        if self.manifest.get("schema") != "fuseline.kernels/1":
            raise KernelError(f"{folder}: not of a version that this loader reads")
        self.tensors = self.manifest["tensors"]
        self.launches = self.manifest["launches"]
        self.cuda = _Cuda()
        self.modules, self.functions, self.workspaces = {}, {}, {}
        self.operators = {o["name"]: Operator(self, o) for o in self.manifest["operators"]}
        self.library = "fuseline_" + self.manifest["name"]
        try:
            import torch
        except ImportError:
            self.torch = None
        else:
            self.torch = torch
            _register(self)

    def __getattr__(self, name):
        operators = self.__dict__.get("operators", {})
        if name in operators:
            return operators[name]
        raise AttributeError(f"no operator {name}; there are {', '.join(operators)}")

    def function(self, launch):
        described = self.launches[launch]
        key = (described["code"], described["function"], described["shared_bytes"])
        if key not in self.functions:
            code = described["code"]
            if code not in self.modules:
                name = self.manifest["codes"][code]["name"] + ".cubin"
                self.modules[code] = self.cuda.load(os.path.join(self.folder, name))
            self.functions[key] = self.cuda.function(self.modules[code], *key[1:])
        return self.functions[key]

    def workspace(self, index):
        """Memory that kernels work in: theirs for as long as they are loaded."""
        if index not in self.workspaces:
            described = self.manifest["workspaces"][index]
            memory = self.torch.zeros(described["bytes"], dtype=self.torch.uint8, device="cuda")
            if described["contents"]:
                data = bytearray.fromhex(described["contents"])
                memory.copy_(self.torch.frombuffer(data, dtype=self.torch.uint8))
            self.torch.cuda.synchronize()
            self.workspaces[index] = memory
        return self.workspaces[index].data_ptr()

    def prepare(self, weights):
        """From a block's own weights by name to those of the kernels: norms folded in, rows and
        columns whose pairs are adjacent."""
        torch, made = self.torch, dict(weights)
        for step in self.manifest["preparation"]["steps"]:
            if all(name in made for name in step["reads"]):
                first, *others = [made[name].float() for name in step["reads"]]
                made[step["result"]] = _step(step, first, others)
        for step in self.manifest["preparation"]["steps"]:
            if step["result"] in made:
                made[step["result"]] = made[step["result"]].to(_torch_type(torch, step["dtype"]))
        for step in self.manifest["preparation"]["interleavings"]:
            if step["tensor"] in made:
                made[step["tensor"]] = _interleaved(torch, made[step["tensor"]], step)
        return made

    def restore(self, results):
        """Gradients of reordered weights in the order of the block's own."""
        made = dict(results)
        for step in reversed(self.manifest["preparation"]["results"]):
            if step["tensor"] in made:
                made[step["tensor"]] = _interleaved(self.torch, made[step["tensor"]], step, back=True)
        return made


def _step(step, first, others):
    """What is computed once from weights, in fp32."""
    if step["operator"] == "mul_cols":
        return first * others[0].reshape(1, -1)
    if step["operator"] == "gemm":
        return first @ others[0].t()
    if step["operator"] == "bias_add":
        return first + others[0].reshape(1, -1)
    raise KernelError(f"{step['result']}: this loader does not compute {step['operator']}")


def _interleaved(torch, tensor, step, back=False):
    dim = 1 if step["columns"] else 0
    group, begin, count = step["group"], step["begin"], step["count"]
    order = list(range(tensor.shape[dim]))
    for start in range(begin, begin + count, group):
        for j in range(group):
            to = 2 * j if j < group // 2 else 2 * (j - group // 2) + 1
            order[start + to] = start + j
    index = torch.tensor(order, device=tensor.device)
    if back:
        index = torch.argsort(index)
    return tensor.index_select(dim, index)


def _torch_type(torch, name):
    return {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32,
            "e4m3": torch.float8_e4m3fn, "int8": torch.int8}[name]


def _empty(torch, described, device):
    """A tensor with the rows' distance and the room behind that kernels want."""
    size = _TYPES[described["dtype"]]
    pitch = described["row_bytes"] // size
    flat = torch.empty(math.ceil(described["bytes"] / size),
                       dtype=_torch_type(torch, described["dtype"]), device=device)
    return flat[:described["rows"] * pitch].view(described["rows"], pitch)[:, :described["cols"]]


def _as_given(torch, described, tensor, operator, may_copy):
    """The tensor itself where it lies as kernels want it, else a copy that does."""
    name = described["name"]
    shape = (described["rows"], described["cols"])
    if tensor.dtype != _torch_type(torch, described["dtype"]):
        raise KernelError(f"{operator}: {name} is {tensor.dtype}, the kernels are for {described['dtype']}")
    if tensor.numel() != shape[0] * shape[1]:
        raise KernelError(f"{operator}: {name} is {tuple(tensor.shape)}, the kernels are for {shape}")
    flat = tensor.detach().reshape(shape)
    wanted = described["row_bytes"] // _TYPES[described["dtype"]]
    lies = (shape[1] == 1 or flat.stride(1) == 1) and (shape[0] == 1 or flat.stride(0) == wanted)
    if lies and flat.data_ptr() % 16 == 0:
        return flat
    if not may_copy:
        raise KernelError(f"{operator}: {name} must lie in rows of {described['row_bytes']} bytes")
    copy = _empty(torch, described, tensor.device)
    copy.copy_(flat)
    return copy


def _register(kernels):
    torch = kernels.torch
    for operator in kernels.operators.values():
        _register_operator(kernels, operator, torch)
    for operator in kernels.operators.values():
        gradient = operator.described["gradient"]
        if gradient:
            _register_gradient(kernels, operator, kernels.operators[gradient], torch)


def _register_operator(kernels, operator, torch):
    d = operator.described
    given = d["inputs"] + d["changed"]
    arguments = [("Tensor" if i in d["inputs"] else f"Tensor(a{n}!)") + " " + kernels.tensors[i]["name"]
                 for n, i in enumerate(given)]
    count = len(d["outputs"])
    result = "()" if count == 0 else "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
    changed = [kernels.tensors[i]["name"] for i in d["changed"]]

    def compute(*tensors):
        device, lying = tensors[0].device, {}
        for i, tensor in zip(given, tensors):
            lying[i] = _as_given(torch, kernels.tensors[i], tensor, operator.name, i in d["inputs"])
        for i in d["outputs"] + d["temporaries"]:
            lying[i] = _empty(torch, kernels.tensors[i], device)
        made = [lying[i] for i in d["outputs"]]
        operator.run({i: t.data_ptr() for i, t in lying.items()},
                     torch.cuda.current_stream(device).cuda_stream,
                     lying if kernels.library_products else None)
        return None if count == 0 else made[0] if count == 1 else tuple(made)

    def shapes(*tensors):
        made = [_empty(torch, kernels.tensors[i], tensors[0].device) for i in d["outputs"]]
        return None if count == 0 else made[0] if count == 1 else tuple(made)

    name = f"{kernels.library}::{operator.name}"
    operator.op = torch.library.custom_op(name, compute, mutates_args=changed,
                                          schema=f"({', '.join(arguments)}) -> {result}")
    operator.op.register_fake(shapes)


def _register_gradient(kernels, forward, backward, torch):
    f, b = forward.described, backward.described
    of = {g: t for g, t in b["gradients"]}
    gradient_of_input = {t: g for g, t in of.items() if g in b["outputs"]}
    gradient_of_output = {t: g for g, t in of.items() if g in b["inputs"]}

    def keep(ctx, inputs, output):
        output = output if isinstance(output, (tuple, list)) else (output,)
        known = dict(zip(f["inputs"] + f["changed"], inputs))
        known.update(zip(f["outputs"], output))
        ctx.indices = [i for i in b["inputs"] if i in known]
        ctx.shapes = [tensor.shape for tensor in inputs]
        ctx.save_for_backward(*[known[i] for i in ctx.indices])
        ctx.set_materialize_grads(False)

    def compute(ctx, *gradients):
        known = dict(zip(ctx.indices, ctx.saved_tensors))
        device = next(g.device for g in gradients if g is not None)
        for i, gradient in zip(f["outputs"], gradients):
            if i in gradient_of_output:
                if gradient is None:  # nothing was made of this result
                    gradient = _empty(torch, kernels.tensors[i], device).zero_()
                known[gradient_of_output[i]] = gradient.contiguous()
        made = backward.op(*[known[i] for i in b["inputs"]])
        made = dict(zip(b["outputs"], made if isinstance(made, (tuple, list)) else (made,)))
        found = [made.get(gradient_of_input.get(i)) for i in f["inputs"] + f["changed"]]
        return tuple(g if g is None else g.reshape(s) for g, s in zip(found, ctx.shapes))

    forward.op.register_autograd(compute, setup_context=keep)


def load(folder=None, library_products=True):
    """`library_products`: products without anything behind them, which the plan leaves to a library,
    are PyTorch's; else the folder has kernels for them too."""
    return Kernels(folder or os.path.dirname(os.path.abspath(__file__)), library_products)
