#!/usr/bin/env python3
"""Instructions of an epilogue's functions for each element, from the size of their machine code.

No GPU is needed, only nvcc. Each function is compiled for sm_90a twice, for 16 and for 32 elements of
a thread. An instruction has 16 bytes; what loads and stores add is counted in the same way and taken
off. The numbers stand as `instructions` in model/primitives.

    scripts/count_instructions.py
"""
import pathlib
import struct
import subprocess
import sys
import tempfile

KERNELS = pathlib.Path(__file__).resolve().parents[1] / "cuda" / "kernels"
SOURCE = """
#include "{kernels}/epilogue/pair.cuh"
#include "{kernels}/epilogue/reduce.cuh"
#include "{kernels}/epilogue/vector.cuh"
using namespace fuseline::gpu;
constexpr int groups = {groups};
using Tile = Fragment<2, groups>;
using Pairs = Fragment<4, groups>;
struct Slab {{
  static constexpr int groups = ::groups;
  int row, col, rows, result;
}};
template <class F> __device__ F in(const float* p) {{
  F f;
  for (int i = 0; i < sizeof(f.v) / 4; ++i) f.v[i] = p[i * 384];
  return f;
}}
template <class F> __device__ void out(float* p, const F& f) {{
  for (int i = 0; i < sizeof(f.v) / 4; ++i) p[i * 384] = f.v[i];
}}
extern "C" __global__ void __launch_bounds__(384, 1)
k(const float* a, const float* b, float* q, TableIn<bf16> c, TableIn<bf16> s, Slab slab) {{
  a += threadIdx.x; b += threadIdx.x; q += threadIdx.x;
  {body}
}}
"""
ONE = "out(q, map_1(in<Tile>(a), [](float x) {{ return {}; }}));"
PAIRS = "out(q, {}(in<Pairs>(a)));"
ERF = "0.5F * x * (1.0F + erff(0.70710678F * x))"
ERF_SLOPE = "0.5F * (1.0F + erf_of(0.70710678F * x)) + x * 0.39894228F * fast_exp(-0.5F * x * x)"
GEGLU = "out(q, join_pairs(in<Pairs>(a), [](float g, float u) { return gelu_tanh_of(g) * u; }));"
ROPE = ("out(q, rope(in<Tile>(a), load_table<false, 128, true>(c, slab), "
        "load_table<false, 128, true>(s, slab)));")
GRADIENT = ("const auto r = swiglu_backward(in<Pairs>(a), in<Tile>(b)); "
            "out(q, r.pairs); out(q + 384 * 64, r.again);")
GEGLU_GRADIENT = ("const auto r = pairs_gradient(in<Pairs>(a), in<Tile>(b), "
                  "[](float g, float u, float d) { const float t = gelu_tanh_of(g); "
                  "return PairGradient{d * u * gelu_tanh_slope_of(g), d * t, t * u}; }); "
                  "out(q, r.pairs); out(q + 384 * 64, r.again);")
# Name: body, and what its loads and stores of fp32 add for each element.
CASES = {
    "exp": (ONE.format("fast_exp(x)"), 2),
    "reciprocal": (ONE.format("fast_reciprocal(x)"), 2),
    "rsqrt": (ONE.format("reciprocal_root(x)"), 2),
    "log": (ONE.format("natural_log(x)"), 2),
    "tanh": (ONE.format("tanh_of(x)"), 2),
    "sigmoid": (ONE.format("sigmoid_of(x)"), 2),
    "silu": (ONE.format("x * sigmoid_of(x)"), 2),
    "gelu_tanh": (ONE.format("gelu_tanh_of(x)"), 2),
    "gelu_tanh_slope": (ONE.format("gelu_tanh_slope_of(x)"), 2),
    "gelu_erf": (ONE.format(ERF), 2),
    "gelu_erf_slope": (ONE.format(ERF_SLOPE), 2),
    "swiglu": (PAIRS.format("swiglu"), 3),
    "geglu": (GEGLU, 3),
    "swiglu_backward": (GRADIENT, 6),
    "geglu_backward": (GEGLU_GRADIENT, 6),
    "two tables and rope": (ROPE, 2),
}


def code_bytes(path):
    """Bytes of all sections of code of an ELF file."""
    data = path.read_bytes()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    text = sections[names][4]
    return sum(s[5] for s in sections if data[text + s[0]:].startswith(b".text"))


def instructions(folder, body, groups):
    source, binary = folder / "k.cu", folder / "k.cubin"
    source.write_text(SOURCE.format(kernels=KERNELS, groups=groups, body=body))
    subprocess.run(["nvcc", "-std=c++20", "-arch=sm_90a", "-O3", "-cubin", "-o", binary, source],
                   check=True)
    return code_bytes(binary) / 16


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for case, (body, moves) in CASES.items():
            more = instructions(folder, body, 8) - instructions(folder, body, 4)
            print(f"{case:20} {more / 16 - moves:5.1f}")


if __name__ == "__main__":
    sys.exit(main())
