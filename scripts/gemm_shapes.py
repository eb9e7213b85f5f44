#!/usr/bin/env python3
"""The sizes of products that ours and the vendor's library are compared at.

    scripts/gemm_shapes.py > cuda/bench/forty-shapes.csv
    scripts/gemm_shapes.py --variants > cuda/bench/odd-shapes.csv

The lists are made by a rule and a seed, before anything is measured: sizes are log-uniform, half of
them multiples of 64, and half odd multiples of 8 in M, N and K. The operands together have 8 to 600
MB, so that a few copies exceed L2 and a host can check them.

The second list is for variants of our kernels (`fuseline gemm --measure --variants`): 8 odd sizes,
and 4 multiples of 64 that a variant must not make slower. The first list has none of them.
"""
import math
import random
import sys


def size(rng, low, high, odd):
    value = math.exp(rng.uniform(math.log(low), math.log(high)))
    return 8 * (2 * round((value / 8 - 1) / 2) + 1) if odd else max(64, 64 * round(value / 64))


def main():
    of_variants = sys.argv[1:] == ["--variants"]
    rng = random.Random(17 if of_variants else 16)
    print("m,n,k")
    for odd, left in ((False, 4), (True, 8)) if of_variants else ((False, 20), (True, 20)):
        while left:
            m, n, k = (size(rng, low, 28672 if low > 64 else 8192, odd) for low in (64, 512, 512))
            if 8e6 <= 2 * (m * n + m * k + n * k) <= 6e8 and 2 * m * n * k <= 2e12:
                print(f"{m},{n},{k}")
                left -= 1


if __name__ == "__main__":
    main()
