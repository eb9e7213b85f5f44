// A scan in chunks of 64 tokens on the tensor cores (mma.sync). A thread block has `cols` columns
// of one head of one sequence and carries their state, cols × N numbers, from chunk to chunk in
// fp32 registers. Within a chunk everything is a product of matrices (factors.cuh has the factors):
//
//   y  = diag(open) q S^T  +  (decays ∘ shares ∘ q k^T, s <= t) x        [64, cols]
//   S' = open[last] · S    +  (diag(kept) x)^T k                         [cols, N]
//
// Warps take three roles, which work at the same time and meet once for every chunk:
//
//   in step c                                who
//   second part of y, chunk c                4 warps of 16 tokens each
//   first part of y, then S', chunk c        (cols / 16) · across warps: 16 columns and a part of N
//                                            each, whose state stays in the warp's registers
//   copies of chunk c + 1 under way;         4 warps
//   the body on the results of chunk c - 1
//
// Tensor cores multiply 16-bit numbers. x, k and q are such numbers; the state, the decayed scores
// and diag(kept) x are not, and are split into a rounded part and the rest. So a product is two,
// and as good as if these operands had 16 bits of mantissa: far under what y is rounded to.
#pragma once

#include "../ptx/matrix.cuh"
#include "../ptx/sync.cuh"
#include "chunk_operands.cuh"

namespace fuseline::gpu::stream {

// ---- products of split operands ----

// Sixteen by sixteen numbers of an operand as mma's A: rounded, and what that leaves out.
struct SplitWords {
  u32 rounded[4], rest[4];
};
template <class Element>
FUSELINE_DEVICE void split(SplitWords& to, int word, float low, float high) {
  to.rounded[word] = pack<Element>(low, high);
  const FloatPair r = unpack<Element>(to.rounded[word]);
  to.rest[word] = pack<Element>(low - r.low, high - r.high);
}
// Accumulators of a tile, or of two halves of eight columns, as such an operand.
template <class Element>
FUSELINE_DEVICE SplitWords split_tile(const float* d) {
  SplitWords a;
#pragma unroll
  for (int w = 0; w < 4; ++w) split<Element>(a, w, d[2 * w], d[2 * w + 1]);
  return a;
}

// Two tiles of eight columns each: d[16, 16] += a[16, 16] times what ldmatrix gave.
template <class Element>
FUSELINE_DEVICE void mma_16x16(float* d, const u32 (&a)[4], const u32 (&b)[4]) {
  mma_16x8x16<Element>(reinterpret_cast<float(&)[4]>(d[0]), a, b[0], b[1]);
  mma_16x8x16<Element>(reinterpret_cast<float(&)[4]>(d[4]), a, b[2], b[3]);
}
// d[16, 16 · tiles] += a[16, 16] b; get(tile, words) loads b. Sums into the same registers wait for
// each other, so two tiles take turns.
template <class Element, int tiles, class Get>
FUSELINE_DEVICE void mma_split(float* d, const SplitWords& a, Get&& get) {
  constexpr int together = tiles % 2 == 0 ? 2 : 1;
#pragma unroll
  for (int first = 0; first < tiles; first += together) {
    u32 b[together][4];
#pragma unroll
    for (int j = 0; j < together; ++j) get(first + j, b[j]);
#pragma unroll
    for (int j = 0; j < together; ++j) mma_16x16<Element>(d + 8 * (first + j), a.rounded, b[j]);
#pragma unroll
    for (int j = 0; j < together; ++j) mma_16x16<Element>(d + 8 * (first + j), a.rest, b[j]);
  }
}

// ---- what the tokens of a chunk give each other ----

// Rows 16 · warp onward of the second part of y. Keys behind them are not seen.
template <class Kernel>
FUSELINE_DEVICE void chunk_scores(const ChunkPlace<Kernel>& at, int chunk) {
  using Tile = ChunkTile<Kernel>;
  using Element = typename Kernel::Element;
  constexpr int blocks = chunk_tokens / 16;
  const int warp = at.warp, lane = at.lane;
  const u32 x = at.stage(chunk), k = x + Tile::k, q = x + Tile::q;
  const u32 a_row = lane % 16, a_chunk = lane / 16 * 16;
  const u32 b_row = lane / 16 * 8 + lane % 8, b_chunk = lane / 8 % 2 * 16;
  float s[8 * blocks];
#pragma unroll
  for (float& v : s) v = 0.0F;
#pragma unroll
  for (int i = 0; i < Kernel::numbers / 16; ++i) {
    u32 a[4], b[4];
    ldmatrix_x4(a, q + (16 * warp + a_row) * Tile::key_pitch + 32 * i + a_chunk);
#pragma unroll
    for (int j = 0; j < blocks; ++j)
      if (j <= warp) {
        ldmatrix_x4(b, k + (16 * j + b_row) * Tile::key_pitch + 32 * i + b_chunk);
        mma_16x16<Element>(s + 8 * j, a, b);
      }
  }
  const ChunkFactors& f = at.factors(chunk);
  const int t = 16 * warp + lane / 4;
  const float sum[2] = {f.sum[t], f.sum[t + 8]};
  float y[Kernel::cols / 2];
#pragma unroll
  for (float& v : y) v = 0.0F;
#pragma unroll
  for (int j = 0; j < blocks; ++j)
    if (j <= warp) {
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int key = 16 * j + e / 4 * 8 + lane % 4 * 2 + e % 2;
        const int half = e / 2 % 2;
        const float factor = fast_exp(sum[half] - f.sum[key]) * f.share[key];
        s[8 * j + e] = key <= t + 8 * half ? s[8 * j + e] * factor : 0.0F;
      }
      const u32 from = x + (16 * j + a_row) * Tile::x_pitch + a_chunk;
      mma_split<Element, Kernel::cols / 16>(
          y, split_tile<Element>(s + 8 * j),
          [&](int i, u32(&b)[4]) { ldmatrix_x4_transposed(b, from + 32 * i); });
    }
  float* to = at.results(chunk, 0) + t * Tile::y_pitch + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < Kernel::cols / 2; i += 2)
    put_floats<2>(to + i / 2 % 2 * 8 * Tile::y_pitch + i / 4 * 8, y + i);
}

// ---- the state ----

// Sixteen columns' state, or a part of its N numbers, in a warp.
template <class Kernel>
class ChunkState {
 public:
  FUSELINE_DEVICE ChunkState(const typename Kernel::Params& params, const ChunkPlace<Kernel>& at)
      : p_(params), at_(at) {
    const Part part(at);
    row_ = part.row;
    part_ = part.number;
    col_ = part.col;
#pragma unroll
    for (float& number : state_) number = 0.0F;
    if constexpr (Kernel::begins)
      each(p_.state, at_, [](const auto* from, float& number) { number = to_float(*from); });
  }

  // The first part of y, transposed: the state's registers are as mma's A wants them. Half of the
  // tokens at a time, since the state takes most of the registers.
  FUSELINE_DEVICE void read(int chunk) const {
    const ChunkFactors& f = at_.factors(chunk);
    const int lane = at_.lane;
    constexpr int tokens = chunk_tokens / 2;
    u32 q_at = at_.stage(chunk) + Tile::q + (lane / 16 * 8 + lane % 8) * Tile::key_pitch +
               2 * col_ + lane / 8 % 2 * 16;
    float* to = at_.results(chunk, 1 + part_) + lane % 4 * 2 * Tile::y_pitch + row_ + lane / 4;
    const float* open = f.open + lane % 4 * 2;
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      float y[tokens / 2];
#pragma unroll
      for (float& v : y) v = 0.0F;
#pragma unroll
      for (int i = 0; i < Tile::state_tiles; ++i)
        mma_split<Element, tokens / 16>(
            y, split_tile<Element>(state_ + 8 * i),
            [&](int j, u32(&b)[4]) { ldmatrix_x4(b, q_at + 16 * j * Tile::key_pitch + 32 * i); });
#pragma unroll
      for (int i = 0; i < tokens / 2; ++i) {
        const int t = i / 4 * 8 + i % 2;
        to[t * Tile::y_pitch + i / 2 % 2 * 8] = y[i] * open[t];
      }
      q_at += tokens * Tile::key_pitch;
      to += tokens * Tile::y_pitch;
      open += tokens;
    }
  }

  FUSELINE_DEVICE void add(int chunk) {
    const ChunkFactors& f = at_.factors(chunk);
    const int lane = at_.lane;
    const float decay = f.open[chunk_tokens - 1];
#pragma unroll
    for (float& number : state_) number *= decay;
    // Rows of both are tokens, and both are transposed on the way to the registers.
    const u32 x_at = at_.stage(chunk) + (lane / 16 * 8 + lane % 8) * Tile::x_pitch + 2 * row_ +
                     lane / 8 % 2 * 16;
    const u32 k_at =
        at_.stage(chunk) + Tile::k + lane % 16 * Tile::key_pitch + 2 * col_ + lane / 16 * 16;
#pragma unroll
    for (int i = 0; i < chunk_tokens / 16; ++i) {
      u32 words[4];
      ldmatrix_x4_transposed(words, x_at + 16 * i * Tile::x_pitch);
      SplitWords a;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const int t = 16 * i + w / 2 * 8 + lane % 4 * 2;
        const FloatPair v = unpack<Element>(words[w]);
        split<Element>(a, w, v.low * f.kept[t], v.high * f.kept[t + 1]);
      }
      mma_split<Element, Tile::state_tiles>(state_, a, [&](int j, u32(&b)[4]) {
        ldmatrix_x4_transposed(b, k_at + 16 * i * Tile::key_pitch + 32 * j);
      });
    }
  }

  FUSELINE_DEVICE void end() {
    if constexpr (Kernel::ends && Kernel::kept_tokens == 0) store(0);
  }
  // Behind chunk `chunk`. A gradient begins with the state behind every piece, which is whole
  // chunks: those of a sequence lie behind each other.
  FUSELINE_DEVICE void keep(int chunk) {
    if constexpr (Kernel::kept_tokens > 0) {
      static_assert(Kernel::kept_tokens % chunk_tokens == 0, "pieces are whole chunks");
      constexpr int each_piece = Kernel::kept_tokens / chunk_tokens;
      if ((chunk + 1) % each_piece != 0 && chunk + 1 < at_.chunks) return;
      const int pieces = ceil_div(at_.chunks, each_piece);
      store((at_.sequence * (pieces - 1) + chunk / each_piece) * at_.space.heads *
            at_.space.head_width);
    }
  }

 private:
  using Tile = ChunkTile<Kernel>;
  using Element = typename Kernel::Element;

  // Of the block's state, what the warp has.
  struct Part {
    int row, number, col;
    FUSELINE_DEVICE explicit Part(const ChunkPlace<Kernel>& at) {
      const int warp = at.warp - Tile::row_warps;
      row = warp / Kernel::across * 16;
      number = warp % Kernel::across;
      col = number * Tile::state_tiles * 16;
    }
  };
  // `below`: rows from the sequence's first state on.
  FUSELINE_DEVICE void store(int below) {
    each(
        p_.state_after, ChunkPlace<Kernel>(at_.space, at_.shared),
        [](auto* to, float number) { put_number(to, number); }, below);
  }
  // f(the number's place in memory, number) for all numbers of the thread.
  template <class T, bool aligned, class F>
  FUSELINE_DEVICE void each(const stream::Tile<T, aligned>& memory, const ChunkPlace<Kernel>& at,
                            F&& f, int below = 0) {
    const Part part(at);
    const int first = (at.sequence * at.space.heads * at.space.head_width + at.first_col) + below +
                      part.row + at.lane / 4;
    const int col = part.col + at.lane % 4 * 2;
    T* rows[2] = {memory.at(first, col), memory.at(first + 8, col)};
#pragma unroll
    for (int i = 0; i < 8 * Tile::state_tiles; ++i)
      f(rows[i / 2 % 2] + i / 4 * 8 + i % 2, state_[i]);
  }

  const typename Kernel::Params& p_;
  const ChunkPlace<Kernel>& at_;
  int row_, part_, col_;
  float state_[8 * Tile::state_tiles];
};

// ---- the thread block ----

template <class Kernel>
FUSELINE_DEVICE void scan_chunks(const typename Kernel::Params& params, const ScanSpace& space) {
  using Tile = ChunkTile<Kernel>;
  extern __shared__ __align__(16) unsigned char chunk_memory[];
  const ChunkPlace<Kernel> at(space, chunk_memory);
  // Not __syncthreads(), to which all threads come in one place: PTX counts the threads at a
  // barrier by its number, from wherever each warp comes.
  const auto meet = [] { named_barrier(1, Tile::threads); };
  // Step c waits until chunk c and its factors are there, and everyone is done with the one before.
  // A step behind the last chunk finishes it.
  if (at.warp < Tile::row_warps) {
#pragma unroll 1
    for (int c = 0; c <= at.chunks; ++c) {
      meet();
      if (c < at.chunks) chunk_scores<Kernel>(at, c);
    }
  } else if (at.warp < Tile::row_warps + Tile::state_warps) {
    ChunkState<Kernel> state(params, at);
#pragma unroll 1
    for (int c = 0; c <= at.chunks; ++c) {
      meet();
      if (c < at.chunks) state.read(c);
      if (c + 1 < at.chunks || (Kernel::ends && c + 1 == at.chunks)) {
        state.add(c);
        state.keep(c);
      }
    }
    state.end();
  } else {
    ChunkOperands<Kernel> operands(params, at);
    operands.fetch(0);
#pragma unroll 1
    for (int c = 0; c <= at.chunks; ++c) {
      cp_async_wait<0>();
      meet();
      if (c + 1 < at.chunks) operands.fetch(c + 1);
      if (c > 0) operands.finish(c - 1);
    }
  }
}

}  // namespace fuseline::gpu::stream
