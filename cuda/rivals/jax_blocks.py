"""One LLaMA-like block in JAX, compiled by XLA for the GPU: what the policy `xla` imitates.

The block is the one of scenarios/blocks/llama.block: QKV is one product, gate and up are one, RoPE turns
halves of a head, everything is bf16, attention is cuDNN's where it takes the shape. `forward` is causal
inference; `decode` writes the key and value of one new token into the cache and attends to all of it.

One row per block: model, phase, batch, seq, context, attention, kernels, milliseconds. `kernels` are the
steps of the compiled program that launch something: fusions, calls of libraries, copies. --steps prints
them in order, to be put beside `fuseline explain --policy xla`. Times are medians over bursts of calls that
wait for nothing in between, on normal random data, with several copies of the weights in turns so that the L2
cache holds none of them. Without JAX or a GPU the script says so and ends with status 3.

  jax_blocks.py --models llama2-7b,llama3-8b --shapes 1x2048 --decode-shapes 16@2048 --steps --out xla.csv
"""

import argparse
import csv
import functools
import re
import statistics
import sys
import time

# D, F, H, Hkv, d
MODELS = {
    "llama2-7b": (4096, 11008, 32, 32, 128),
    "llama3-8b": (4096, 14336, 32, 8, 128),
    "llama2-13b": (5120, 13824, 40, 40, 128),
    "tinyllama": (2048, 5632, 32, 4, 64),
}
COLUMNS = ["model", "execution", "phase", "batch", "seq", "context", "attention", "kernels",
           "ms_median", "ms_min", "ms_max"]
NO_LAUNCH = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "call",
             "after-all", "partition-id", "replica-id"}


def missing(what):
    print(f"jax_blocks.py: not available: {what}", file=sys.stderr)
    sys.exit(3)


try:
    import jax
    import jax.numpy as jnp
except ImportError:
    missing("JAX; pip install 'jax[cuda13]'")

EPS = 1e-5
COPIES = 3  # of the weights


def rms_norm(x, gain):
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + EPS)
    return (wide * scale).astype(x.dtype) * gain


def rope(x, cos, sin):
    """x [B, T, heads, d]; halves of each head are pairs."""
    low, high = jnp.split(x, 2, axis=-1)
    return x * cos + jnp.concatenate([-high, low], axis=-1) * sin


def attend(q, k, v, causal, implementation):
    return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=implementation)


def block(sizes, implementation, weights, x, cos, sin, cache=None):
    """x [B, T, D]. Weights are [out, in]. With a cache: its keys and values [B, S, Hkv, d], whose
    last row is the new token's."""
    D, F, H, Hkv, d = sizes
    B, T, _ = x.shape
    linear = lambda a, w: jnp.einsum("btk,nk->btn", a, w)
    qkv = linear(rms_norm(x, weights["norm1"]), weights["qkv"])
    q, k, v = jnp.split(qkv, [H * d, (H + Hkv) * d], axis=-1)
    q = rope(q.reshape(B, T, H, d), cos, sin)
    k = rope(k.reshape(B, T, Hkv, d), cos, sin)
    v = v.reshape(B, T, Hkv, d)
    if cache is not None:
        at = cache[0].shape[1] - T
        cache = tuple(jax.lax.dynamic_update_slice(old, new, (0, at, 0, 0))
                      for old, new in zip(cache, (k, v)))
        k, v = cache
    a = attend(q, k, v, cache is None, implementation).reshape(B, T, H * d)
    h = x + linear(a, weights["o"])
    gate, up = jnp.split(linear(rms_norm(h, weights["norm2"]), weights["gate_up"]), 2, axis=-1)
    y = h + linear(jax.nn.silu(gate) * up, weights["down"])
    return y if cache is None else (y, cache)


def normal(key, shape, scale=1.0):
    return jax.random.normal(key, shape, jnp.bfloat16) * jnp.bfloat16(scale)


def made_weights(sizes, seed):
    D, F, H, Hkv, d = sizes
    keys = jax.random.split(jax.random.key(seed), 4)
    return {"norm1": jnp.ones(D, jnp.bfloat16), "norm2": jnp.ones(D, jnp.bfloat16),
            "qkv": normal(keys[0], ((H + 2 * Hkv) * d, D), D ** -0.5),
            "o": normal(keys[1], (D, H * d), (H * d) ** -0.5),
            "gate_up": normal(keys[2], (2 * F, D), D ** -0.5),
            "down": normal(keys[3], (D, F), F ** -0.5)}


def angles(first, count, d):
    """cos and sin [1, count, 1, d] of the positions from `first` on."""
    rates = 10000.0 ** (-jnp.arange(0, d, 2) / d)
    turns = jnp.arange(first, first + count)[:, None] * rates[None, :]
    turns = jnp.concatenate([turns, turns], axis=-1)[None, :, None, :]
    return jnp.cos(turns).astype(jnp.bfloat16), jnp.sin(turns).astype(jnp.bfloat16)


def steps_of(compiled):
    """What the program launches, in its order: opcode, name, library's call."""
    steps = []
    inside = False
    for line in compiled.as_text().splitlines():
        if line.endswith("{") and not line.startswith(" "):
            inside = line.startswith("ENTRY") or line.startswith("%command_buffer")
            continue
        found = re.match(r"\s+(?:ROOT )?%?(\S+) = .*? ([a-z][a-z-]*)\(", line) if inside else None
        if not found or found.group(2) in NO_LAUNCH or found.group(2).endswith("-done"):
            continue
        call = re.search(r'custom_call_target="([^"]+)"', line)
        steps.append((found.group(2), found.group(1), call.group(1) if call else ""))
    return steps


def burst_ms(run, calls):
    started = time.perf_counter()
    for i in range(calls):
        last = run(i)
    jax.block_until_ready(last)
    return 1e3 * (time.perf_counter() - started) / calls


def measured(sizes, phase, batch, seq, context, bursts=20):
    """(attention, steps, milliseconds of each burst)"""
    D, _, _, Hkv, d = sizes
    all_weights = [made_weights(sizes, seed) for seed in range(COPIES)]
    x = normal(jax.random.key(99), (batch, seq, D))
    decode = phase == "decode"
    cos, sin = angles(context - seq if decode else 0, seq, d)
    error = None
    for implementation in ("cudnn", "xla"):
        function = jax.jit(functools.partial(block, sizes, implementation),
                           donate_argnums=(4,) if decode else ())
        caches = None
        if decode:
            keys = jax.random.split(jax.random.key(7), 2 * COPIES)
            caches = [tuple(normal(keys[2 * i + j], (batch, context, Hkv, d)) for j in range(2))
                      for i in range(COPIES)]
        arguments = (all_weights[0], x, cos, sin) + ((caches[0],) if decode else ())
        try:
            compiled = function.lower(*arguments).compile()
        except Exception as e:  # cuDNN has no kernel for the shape
            error = e
            continue

        def run(i):
            c = i % COPIES
            if not decode:
                return compiled(all_weights[c], x, cos, sin)
            y, caches[c] = compiled(all_weights[c], x, cos, sin, caches[c])
            return y

        burst_ms(run, 3 * COPIES)
        return implementation, steps_of(compiled), [burst_ms(run, 10 * COPIES)
                                                    for _ in range(bursts)]
    raise error


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default="llama2-7b")
    parser.add_argument("--shapes", default="", help="forward: 1x2048,4x512")
    parser.add_argument("--decode-shapes", default="", help="16@2048: sequences @ tokens of context")
    parser.add_argument("--steps", action="store_true", help="print what each program launches")
    parser.add_argument("--out", default="-", help="CSV file")
    return parser.parse_args()


def main():
    args = options()
    if jax.default_backend() != "gpu":
        missing("a GPU that JAX can use")
    print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind}", file=sys.stderr)
    cases = [("forward", *map(int, s.split("x")), 0) for s in args.shapes.split(",") if s]
    for s in filter(None, args.decode_shapes.split(",")):
        batch, context = map(int, s.split("@"))
        cases.append(("decode", batch, 1, context))
    out = sys.stdout if args.out == "-" else open(args.out, "w", newline="")
    sink = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    sink.writeheader()
    for model in args.models.split(","):
        if model not in MODELS:
            sys.exit(f"jax_blocks.py: --models = '{model}'; allowed: {', '.join(MODELS)}")
        for phase, batch, seq, context in cases:
            attention, steps, ms = measured(MODELS[model], phase, batch, seq, context)
            sink.writerow({"model": model, "execution": "xla", "phase": phase, "batch": batch,
                           "seq": seq, "context": context, "attention": attention,
                           "kernels": len(steps), "ms_median": round(statistics.median(ms), 5),
                           "ms_min": round(min(ms), 5), "ms_max": round(max(ms), 5)})
            out.flush()
            if args.steps:
                for opcode, name, call in steps:
                    print(f"  {model} {phase} {opcode} {name} {call}", file=sys.stderr)


if __name__ == "__main__":
    main()
