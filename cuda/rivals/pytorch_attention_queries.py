"""Times attention of 1 to 256 new tokens against a cache, on cuDNN and on FlashAttention.

No mask, graph replays over rotated caches that do not fit in L2. CSV on standard output; a case that
a backend refuses is a comment line.
"""

import statistics

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
# batch, heads, kv_heads, context, head_width
SHAPES = [(4, 32, 32, 8192, 128), (1, 32, 32, 2048, 128), (1, 64, 8, 8192, 128),
          (16, 64, 8, 2048, 128), (64, 32, 32, 3000, 128), (8, 25, 25, 4001, 64)]
TOKENS = [1, 2, 4, 8, 15, 16, 17, 18, 24, 32, 33, 48, 64, 65, 96, 128, 129, 192, 256]
FEW_TOKENS = [1, 2, 8, 16, 17, 32, 64]  # of large batches
ROTATED_BYTES = 256 * 2**20
REPLAYS = 15


def timed_us(batch, heads, kv_heads, tokens, context, width, backend):
    """Median, least and most microseconds of one call."""
    cache_bytes = 4 * batch * kv_heads * context * width
    count = min(16, max(2, -(-ROTATED_BYTES // cache_bytes)))

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.bfloat16, device="cuda")

    inputs = [(normal(batch, heads, tokens, width), normal(batch, kv_heads, context, width),
               normal(batch, kv_heads, context, width)) for _ in range(count)]

    def run_all():
        for q, k, v in inputs:
            F.scaled_dot_product_attention(q, k, v, enable_gqa=heads != kv_heads)

    with sdpa_kernel([BACKENDS[backend]]):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            run_all()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            run_all()
    for _ in range(3):
        graph.replay()
    times = []
    for _ in range(REPLAYS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / count * 1e3)
    return statistics.median(times), min(times), max(times)


def main():
    torch.manual_seed(1)
    print("batch,heads,kv_heads,new_tokens,context,head_width,backend,us_median,us_min,us_max")
    for batch, heads, kv_heads, context, width in SHAPES:
        for tokens in TOKENS if batch < 64 else FEW_TOKENS:
            for backend in BACKENDS:
                case = f"{batch},{heads},{kv_heads},{tokens},{context},{width},{backend}"
                try:
                    median, least, most = timed_us(batch, heads, kv_heads, tokens, context, width,
                                                   backend)
                    print(f"{case},{median:.3f},{least:.3f},{most:.3f}", flush=True)
                except RuntimeError as error:
                    print(f"# {case}: {str(error).splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main()
