#!/usr/bin/env python3
"""Exported programs of one's own inside PyTorch: results and gradients beside PyTorch's autograd.

    python3 pytorch_programs.py FOLDER --like swish|norm-router --out RESULT.json

FOLDER is what `fuseline program export` made of docs/handbook/swish.fuse or of
scenarios/programs/norm-router.fuse. The same maths is written here in PyTorch. Results and the
gradients of all inputs are compared with PyTorch's in fp32, and a pass forward and backward is
timed in turns with eager and torch.compile, as replays of CUDA graphs. Exit status 1: a result or a
gradient is further from fp32 than twice as far as eager's, plus what rounding to bf16 gives.
"""

import argparse
import json
import os
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pytorch_exported import in_turns  # noqa: E402

BF16 = 2.0**-8  # half a step of bf16, relative


def swish(x, w, b):
    z = F.linear(x, w) + b
    return (z * torch.sigmoid(1.702 * z),)


def norm_router(attn, x, w_o, w_router):
    h = F.linear(attn, w_o) + x
    wide = h.float()
    r = torch.rsqrt(wide.square().mean(1, keepdim=True) + 1e-5)
    return h, r, (wide @ w_router.float().t()) * r


LIKE = {"swish": (swish, ["act"]), "norm-router": (norm_router, ["h", "r", "logits"])}


def distance(got, want):
    return ((got.double() - want.double()).norm() / want.double().norm()).item()


def given_tensors(kernels, names):
    """Random inputs and weights of the sizes that the folder is for."""
    generator = torch.Generator(device="cuda").manual_seed(1)
    made = {}
    for t in kernels.tensors:
        if t["name"] not in names:
            continue
        scale = 1 / t["cols"]**0.5 if t["role"] == "weight" and t["rows"] > 1 else 1.0
        numbers = torch.randn(t["rows"], t["cols"], generator=generator, device="cuda") * scale
        made[t["name"]] = numbers.to(torch.bfloat16)
    return made


def with_gradients(f, tensors, directions):
    """Results, then the gradients of all tensors for these gradients of the results."""
    leaves = [t.detach().clone().requires_grad_() for t in tensors]
    results = f(*leaves)
    torch.autograd.backward(results, [d.to(r.dtype) for d, r in zip(directions, results)])
    return [r.detach() for r in results], [leaf.grad for leaf in leaves]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--like", choices=sorted(LIKE), required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    sys.path.insert(0, options.folder)
    import fuseline_kernels
    kernels = fuseline_kernels.load(options.folder)
    maths, results = LIKE[options.like]
    names = maths.__code__.co_varnames[:maths.__code__.co_argcount]
    given = given_tensors(kernels, names)
    tensors = [given[n] for n in names]

    def exported(*leaves):
        made = kernels.all(**dict(zip(names, leaves)))
        made = made if isinstance(made, tuple) else (made,)
        return tuple(dict(zip(kernels.all.results, made))[n] for n in results)

    wide = [t.float() for t in tensors]
    generator = torch.Generator(device="cuda").manual_seed(2)
    shapes = maths(*wide)
    directions = [torch.randn(r.shape, generator=generator, device="cuda").to(torch.bfloat16).float()
                  for r in shapes]
    want, want_gradients = with_gradients(maths, wide, directions)
    compared, passed = [], True
    eager, eager_gradients = with_gradients(maths, tensors, directions)
    ours, our_gradients = with_gradients(exported, tensors, directions)
    rows = [(n, o, e, w) for n, o, e, w in zip(results, ours, eager, want)]
    rows += [("gradient of " + n, o, e, w)
             for n, o, e, w in zip(names, our_gradients, eager_gradients, want_gradients)]
    for name, our, other, exact in rows:
        if our is None:
            print(f"{name}: none")
            passed = False
            continue
        one = {"tensor": name, "exported": distance(our, exact), "eager": distance(other, exact)}
        one["allowed"] = 2 * one["eager"] + BF16
        one["passed"] = one["exported"] <= one["allowed"]
        passed = passed and one["passed"]
        compared.append(one)
        print(f"{name}: exported {one['exported']:.2e}, eager {one['eager']:.2e} of fp32, "
              f"allowed {one['allowed']:.2e}: {'pass' if one['passed'] else 'FAIL'}", flush=True)

    def both_ways(f):
        leaves = [t.detach().clone().requires_grad_() for t in tensors]
        grads = [d.to(r.dtype) for d, r in zip(directions, eager)]

        def run():
            torch.autograd.grad(f(*leaves), leaves, grads)
        return run

    def forward(f):
        def run():
            with torch.no_grad():
                f(*tensors)
        return run

    compiled = torch.compile(maths)
    times = {}
    for what, made in [("forward", forward), ("forward and backward", both_ways)]:
        try:
            times[what] = in_turns({"exported": made(exported), "torch.compile": made(compiled),
                                         "eager": made(maths)})
        except RuntimeError as problem:  # what is measured elsewhere is kept
            times[what] = {"problem": str(problem)[:400]}
        print(what, times[what], flush=True)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__,
                   "like": options.like, "compared": compared, "ms": times, "passed": passed}, file,
                  indent=2)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
