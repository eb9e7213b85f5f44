// The helpers of a thread block that takes a scan in chunks (chunks.cuh): they copy the operands of
// the next chunk, make its factors, and run the program's body on the results of the one before.
#pragma once

#include "../ptx/cp_async.cuh"
#include "chunk_tile.cuh"

namespace fuseline::gpu::stream {

struct DeviceWarp {
  FUSELINE_DEVICE int lane() const { return static_cast<int>(threadIdx.x % 32); }
  FUSELINE_DEVICE float up(float x, int n) const { return __shfl_up_sync(0xffffffffU, x, n); }
  FUSELINE_DEVICE float down(float x, int n) const { return __shfl_down_sync(0xffffffffU, x, n); }
};

template <class Kernel>
class ChunkOperands {
 public:
  FUSELINE_DEVICE ChunkOperands(const typename Kernel::Params& params, const ChunkPlace<Kernel>& at)
      : p_(params), at_(at), thread_(static_cast<int>(threadIdx.x) % Tile::helper_threads) {
    if constexpr (Kernel::decay == Decay::of_heads) rate_ = read_number(p_.rates, at.head, 0);
    if (thread_ < 32) load_steps(0);
  }

  FUSELINE_DEVICE void fetch(int chunk) {
    const ScanSpace& s = at_.space;
    const int group = at_.head / s.heads_per_group * Kernel::numbers;
    const u32 to = at_.stage(chunk);
    fetch_rows<Kernel::cols, Tile::x_pitch>(to, p_.x, at_.first_col, chunk);
    fetch_rows<Kernel::numbers, Tile::key_pitch>(to + Tile::k, p_.k, group, chunk);
    fetch_rows<Kernel::numbers, Tile::key_pitch>(to + Tile::q, p_.q, group, chunk);
    cp_async_commit();
    if (thread_ >= 32) return;
    TokenFactors tokens[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool exists = chunk * chunk_tokens + 2 * at_.lane + i < s.tokens;
      const bool given = Kernel::decay == Decay::given;
      if (exists) tokens[i] = {given ? steps_[i] : steps_[i] * rate_, given ? 1.0F : steps_[i]};
    }
    chunk_factors(at_.factors(chunk), tokens[0], tokens[1], DeviceWarp());
    load_steps(chunk + 1);  // they are needed one chunk later
  }

  FUSELINE_DEVICE void finish(int chunk) {
    constexpr int vectors = Kernel::cols / vector_cols;
    constexpr int rows = Tile::helper_threads / vectors;  // that all threads take at once
    const int count = min_of(chunk_tokens, at_.space.tokens - chunk * chunk_tokens);
    const int first = at_.sequence * at_.space.tokens + chunk * chunk_tokens;
    const int col = thread_ % vectors * vector_cols;
#pragma unroll 1
    for (int t = thread_ / vectors; t < count; t += rows * Kernel::units) {
      ChunkResults<Kernel::units, Tile::parts, Tile::part_floats> place;
      place.first_row = first + t;
      place.row_step = rows;
      place.first_col = at_.first_col + col;
      place.rows = first + count;
      place.cols = at_.space.heads * at_.space.head_width;
      place.results = at_.results(chunk, 0) + t * Tile::y_pitch + col;
      place.pitch = rows * Tile::y_pitch;
      typename Kernel::State state;
      Kernel::run(p_, state, place);
    }
  }

 private:
  using Tile = ChunkTile<Kernel>;

  // `cols` columns from `col` on of the chunk's tokens; those behind the last one are zeros. A
  // thread has the same columns of some tokens.
  template <int cols, int pitch, class T, bool aligned>
  FUSELINE_DEVICE void fetch_rows(u32 to, const stream::Tile<T, aligned>& from, int col,
                                  int chunk) {
    static_assert(aligned && sizeof(T) == 2, "16 bytes are 8 columns");
    constexpr int vectors = cols / vector_cols, rows = Tile::helper_threads / vectors;
    const int t = thread_ / vectors, vector = thread_ % vectors;
    const int first = at_.sequence * at_.space.tokens, token = chunk * chunk_tokens + t;
    const T* data = from.data + col + vector * vector_cols;
    const T* source = data + (first + token) * from.ld;
    to += t * pitch + 16 * vector;
#pragma unroll
    for (int i = 0; i < chunk_tokens / rows; ++i) {
      const bool exists = token + i * rows < at_.space.tokens;
      cp_async_16(to + i * rows * pitch, exists ? source : data, exists ? 16 : 0);
      source += rows * from.ld;
    }
  }
  FUSELINE_DEVICE void load_steps(int chunk) {
    const int tokens = at_.space.tokens;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int t = min_of(chunk * chunk_tokens + 2 * at_.lane + i, tokens - 1);
      steps_[i] = read_number(p_.step, at_.sequence * tokens + t, at_.head);
    }
  }

  const typename Kernel::Params& p_;
  const ChunkPlace<Kernel>& at_;
  int thread_;
  float steps_[2] = {}, rate_ = 1.0F;
};

}  // namespace fuseline::gpu::stream
