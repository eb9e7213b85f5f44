// The gradient of a scan by rates, token by token: with a = exp(step · rate), S' = a · S + step · x
// k^T and y = S' q, and with G what the loss says of the state behind a token,
//
//   G  <- G + dy q^T                     dq = Σ_p dy S'      dk = Σ_p step · x · G
//   dx = step · G k                      d_step = Σ_p x · (G k) + Σ_pn a · G · S · rate
//   d_rate = Σ step · a · G · S          G  <- a · G
//
// It needs the states in order and walks backwards. So a sequence is taken in pieces, the last one
// first, and a piece begins with a state that the forward pass kept:
//
//   piece     walked forward once; the state ahead of every segment goes to memory
//   segment   16 tokens, the last one first, whose operands lie in shared memory
//   tokens    `together` of them, the last ones first: the thread walks forward to them from the
//             segment's state, keeps the states ahead of each in registers, then walks back
//
// A thread block has whole heads of one sequence, and all N numbers of their states. A thread has
// `columns` columns of one head and `numbers` numbers of each; `lanes` neighbouring lanes share
// these columns. Sums over N are those of lanes; sums over columns are those of a warp's lanes,
// then of the warps through shared memory. A second kernel adds up what thread blocks have.
#pragma once

#include "gradient_sums.cuh"

namespace fuseline::gpu::stream {

template <class Kernel>
class ScanGradientBlock {
 public:
  FUSELINE_DEVICE ScanGradientBlock(const typename Kernel::Params& params,
                                    const ScanGradientSpace& space, float* shared)
      : p_(params), space_(space), s_(space.scan), shared_(shared) {
    const int across = s_.heads / Kernel::heads;
    sequence_ = static_cast<int>(blockIdx.x) / across;
    first_head_ = static_cast<int>(blockIdx.x) % across * Kernel::heads;
    group_ = first_head_ / s_.heads_per_group;
    const int thread = static_cast<int>(threadIdx.x);
    lane_ = thread % Kernel::lanes;
    first_ = thread / Kernel::lanes * Kernel::columns;
    cols_ = Kernel::heads * s_.head_width;
    exists_ = first_ < cols_;
    head_ = min_of(first_ / s_.head_width, Kernel::heads - 1);
    if constexpr (of_columns) {
#pragma unroll
      for (int i = 0; i < Kernel::numbers; i += 4) {
        float from[4];
        read_row(p_.rates, first_head_ + head_, number_of(i), s_.state_width, from);
#pragma unroll
        for (int e = 0; e < 4; ++e) rates_[i + e] = from[e];
      }
    } else {
      rates_[0] = read_number(p_.rates, first_head_ + head_, 0);
    }
  }

  FUSELINE_DEVICE void run() {
    const int pieces = ceil_div(s_.tokens, space_.piece);
    for (int piece = pieces - 1; piece >= 0; --piece) {
      const int begin = piece * space_.piece, end = min_of(s_.tokens, begin + space_.piece);
      const int segments = ceil_div(end - begin, segment_tokens);
      load_kept(piece, pieces - 1);
      for (int i = 0; i < segments; ++i) {
        put_state(i);
        if (i + 1 == segments) break;
        stage(begin + i * segment_tokens, segment_tokens);
        __syncthreads();
        for (int t = 0; t < segment_tokens; ++t) forward(t);
        __syncthreads();
      }
      for (int i = segments - 1; i >= 0; --i) {
        const int first = begin + i * segment_tokens;
        const int count = min_of(segment_tokens, end - first);
        stage(first, count);
        __syncthreads();
        for (int t = (count - 1) / together * together; t >= 0; t -= together) {
          take_state(i);
          for (int before = 0; before < t; ++before) forward(before);
          back(t);
          __syncthreads();
          store_keys(first + t, count - t);
          __syncthreads();  // the next tokens take the place
        }
        finish(first, count);
        __syncthreads();
      }
    }
    store_rates();
  }

 private:
  using Tile = ScanGradientTile<Kernel>;
  static constexpr bool of_columns = Kernel::decay == Decay::of_columns;
  static constexpr int columns = Kernel::columns, numbers = Kernel::numbers;
  static constexpr int lanes = Kernel::lanes, together = Kernel::together;
  using State = float[columns][numbers];

  // The thread's numbers i to i + 3 are these of the state, so that lanes read neighbours.
  FUSELINE_DEVICE int number_of(int i) const { return i * lanes + 4 * lane_; }
  template <class F>
  static FUSELINE_DEVICE void each(F&& f) {
#pragma unroll
    for (int c = 0; c < columns; ++c)
#pragma unroll
      for (int i = 0; i < numbers; ++i) f(c, i);
  }

  // Ahead of the first piece there is none.
  FUSELINE_DEVICE void load_kept(int piece, int kept) {
    each([&](int c, int i) { state_[c][i] = 0.0F; });
    if constexpr (Kernel::begins) {
      if (piece == 0) return;
      const int row = (sequence_ * kept + piece - 1) * s_.heads * s_.head_width +
                      first_head_ * s_.head_width + first_;
#pragma unroll
      for (int c = 0; c < columns; ++c)
#pragma unroll
        for (int i = 0; i < numbers; i += 4) {
          float from[4];
          read_row(p_.states, exists_ ? row + c : 0, number_of(i), exists_ ? s_.state_width : 0,
                   from);
#pragma unroll
          for (int e = 0; e < 4; ++e) state_[c][i + e] = from[e];
        }
    }
  }
  // Of segment i, in the order of the threads.
  FUSELINE_DEVICE float* state_at(int segment) const {
    const int segments = ceil_div(min_of(space_.piece, s_.tokens), segment_tokens);
    const long long slot = static_cast<long long>(blockIdx.x) * segments + segment;
    return space_.states + (slot * Kernel::threads * columns * numbers + 4 * threadIdx.x);
  }
  FUSELINE_DEVICE void put_state(int segment) const {
    float* to = state_at(segment);
#pragma unroll
    for (int c = 0; c < columns; ++c)
#pragma unroll
      for (int i = 0; i < numbers; i += 4)
        put_floats<4>(to + (c * numbers + i) * Kernel::threads, state_[c] + i);
  }
  FUSELINE_DEVICE void take_state(int segment) {
    const float* from = state_at(segment);
#pragma unroll
    for (int c = 0; c < columns; ++c)
#pragma unroll
      for (int i = 0; i < numbers; i += 4) {
        const auto some = floats_at<4>(from + (c * numbers + i) * Kernel::threads);
#pragma unroll
        for (int e = 0; e < 4; ++e) state_[c][i + e] = some.v[e];
      }
  }

  FUSELINE_DEVICE void put(int at, const float (&from)[vector_cols]) const {
    put_floats<4>(shared_ + at, from);
    put_floats<4>(shared_ + at + 4, from + 4);
  }
  // Tokens [first, first + count) of the sequence; those behind them are zeros, whose decay is 1.
  FUSELINE_DEVICE void stage(int first, int count) const {
    constexpr int x_vectors = Tile::cols / vector_cols, k_vectors = Tile::key_cols / vector_cols;
    const int row = sequence_ * s_.tokens + first, begin = first_head_ * s_.head_width;
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread; i < segment_tokens * x_vectors; i += Kernel::threads) {
      const int t = i / x_vectors, col = i % x_vectors * vector_cols;
      const int end = t < count ? begin + cols_ : 0;
      float x[vector_cols], dy[vector_cols];
      read_row(p_.x, row + t, begin + col, end, x);
      read_row(p_.dy, row + t, begin + col, end, dy);
      put(Tile::x + t * Tile::cols + col, x);
      put(Tile::dy + t * Tile::cols + col, dy);
    }
    for (int i = thread; i < segment_tokens * k_vectors; i += Kernel::threads) {
      const int t = i / k_vectors, n = i % k_vectors * vector_cols;
      const int from = group_ * s_.state_width, end = t < count ? from + s_.state_width : 0;
      float k[vector_cols], q[vector_cols];
      read_row(p_.k, row + t, from + n, end, k);
      read_row(p_.q, row + t, from + n, end, q);
      put(Tile::k + t * Tile::key_cols + n, k);
      put(Tile::q + t * Tile::key_cols + n, q);
    }
    for (int i = thread; i < segment_tokens * Kernel::heads; i += Kernel::threads) {
      const int t = i / Kernel::heads, head = first_head_ + i % Kernel::heads;
      float pair[2] = {0.0F, 1.0F};
      if (t < count) pair[0] = read_number(p_.step, row + t, head);
      if constexpr (!of_columns)
        if (t < count) pair[1] = fast_exp(pair[0] * read_number(p_.rates, head, 0));
      put_floats<2>(shared_ + Tile::steps + 2 * i, pair);
    }
  }
  struct Token {
    float step, decay;
    Floats<columns> x, dy;
  };
  FUSELINE_DEVICE Token token(int t) const {
    const auto pair = floats_at<2>(shared_ + Tile::steps + 2 * (t * Kernel::heads + head_));
    return {pair.v[0], pair.v[1], floats_at<columns>(shared_ + Tile::x + t * Tile::cols + first_),
            floats_at<columns>(shared_ + Tile::dy + t * Tile::cols + first_)};
  }
  FUSELINE_DEVICE Floats<4> keys(int operand, int t, int i) const {
    return floats_at<4>(shared_ + operand + t * Tile::key_cols + number_of(i));
  }
  FUSELINE_DEVICE float decay_of(const Token& at, int i) const {
    return of_columns ? fast_exp(at.step * rates_[of_columns ? i : 0]) : at.decay;
  }

  FUSELINE_DEVICE void forward(int t) {
    const Token at = token(t);
#pragma unroll
    for (int i = 0; i < numbers; i += 4) {
      const auto k = keys(Tile::k, t, i);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float decay = decay_of(at, i + e);
#pragma unroll
        for (int c = 0; c < columns; ++c)
          state_[c][i + e] = decay * state_[c][i + e] + at.step * at.x.v[c] * k.v[e];
      }
    }
  }

  // Tokens t to t + together - 1, whose first has the state.
  FUSELINE_DEVICE void back(int t) {
    float before[together][columns][numbers];
#pragma unroll
    for (int u = 0; u < together; ++u) {
      each([&](int c, int i) { before[u][c][i] = state_[c][i]; });
      forward(t + u);
      const Token at = token(t + u);
      float dq[numbers];
#pragma unroll
      for (int i = 0; i < numbers; ++i) {
        dq[i] = 0.0F;
#pragma unroll
        for (int c = 0; c < columns; ++c) dq[i] += at.dy.v[c] * state_[c][i];
      }
      leave_keys(u, 1, dq);
    }
#pragma unroll
    for (int u = together - 1; u >= 0; --u) back_token(t + u, u, before[u]);
  }

  FUSELINE_DEVICE void back_token(int t, int u, const State& before) {
    const Token at = token(t);
    float sums[2 * columns];  // of each column: G k, and what its decays say of the step
#pragma unroll
    for (float& sum : sums) sum = 0.0F;
    float dk[numbers];
#pragma unroll
    for (int i = 0; i < numbers; i += 4) {
      const auto k = keys(Tile::k, t, i), q = keys(Tile::q, t, i);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float decay = decay_of(at, i + e);
        float of_rate = 0.0F;
        dk[i + e] = 0.0F;
#pragma unroll
        for (int c = 0; c < columns; ++c) {
          float& g = backward_[c][i + e];
          g += at.dy.v[c] * q.v[e];
          dk[i + e] += g * at.x.v[c];
          sums[c] += g * k.v[e];
          g *= decay;
          const float of_decay = g * before[c][i + e];
          sums[columns + c] += of_decay * rates_[of_columns ? i + e : 0];
          of_rate += of_decay;
        }
        dk[i + e] *= at.step;
        d_rates_[of_columns ? i + e : 0] += of_rate * at.step;
      }
    }
    leave_keys(u, 0, dk);
    leave_columns(t, sums);
  }

  // Sums over the lanes of a column go to of_x and of_decay.
  FUSELINE_DEVICE void leave_columns(int t, float (&sums)[2 * columns]) const {
    constexpr int count = 2 * columns;
    constexpr int kept = count > lanes ? count / lanes : 1;
    constexpr int holders = lanes > count ? lanes / count : 1;
    const int first = sum_over_lanes<lanes / 2, count>(sums, lane_, ThreadBlock());
    if (lane_ % holders != 0) return;
#pragma unroll
    for (int i = 0; i < kept; ++i) {
      const int at = first + i;
      shared_[(at < columns ? Tile::of_x : Tile::of_decay) + t * Tile::cols + first_ +
              at % columns] = sums[i];
    }
  }
  // What the warp's columns say of dk (0) and dq (1) goes to the parts.
  FUSELINE_DEVICE void leave_keys(int u, int which, float (&values)[numbers]) const {
#pragma unroll
    for (int apart = lanes; apart < 32; apart *= 2)
#pragma unroll
      for (float& v : values) v += __shfl_xor_sync(0xffffffffU, v, apart);
    if (static_cast<int>(threadIdx.x) % 32 >= lanes) return;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    float* to = shared_ + Tile::parts + ((u * 2 + which) * Tile::warps + warp) * Tile::numbers;
#pragma unroll
    for (int i = 0; i < numbers; i += 4) put_floats<4>(to + number_of(i), values + i);
  }

  // ---- results ----

  FUSELINE_DEVICE void store_keys(int first, int count) const {
    const int N = s_.state_width;
    for (int i = static_cast<int>(threadIdx.x); i < together * 2 * N; i += Kernel::threads) {
      const int at = i / N, n = i % N, u = at / 2, which = at % 2;
      if (u >= count) break;
      const float* from = shared_ + Tile::parts + at * Tile::warps * Tile::numbers + n;
      float sum = 0.0F;
#pragma unroll
      for (int warp = 0; warp < Tile::warps; ++warp) sum += from[warp * Tile::numbers];
      const long long row =
          (static_cast<long long>(blockIdx.x) * 2 + which) * s_.tokens + first + u;
      space_.keys[row * N + n] = sum;
    }
  }

  // The steps' gradients, and the body on dx.
  FUSELINE_DEVICE void finish(int first, int count) const {
    const int row = sequence_ * s_.tokens + first;
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread; i < count * Kernel::heads; i += Kernel::threads) {
      const int t = i / Kernel::heads, head = i % Kernel::heads;
      const int at = t * Tile::cols + head * s_.head_width;
      float sum = 0.0F;
      for (int c = 0; c < s_.head_width; ++c)
        sum += shared_[Tile::x + at + c] * shared_[Tile::of_x + at + c] +
               shared_[Tile::of_decay + at + c];
      put_number(p_.d_step.at(row + t, first_head_ + head), sum);
    }
    __syncthreads();
    for (int i = thread; i < count * cols_; i += Kernel::threads) {
      const int t = i / cols_, col = i % cols_;
      shared_[Tile::of_x + t * Tile::cols + col] *=
          shared_[Tile::steps + 2 * (t * Kernel::heads + col / s_.head_width)];
    }
    __syncthreads();
    constexpr int vectors = Tile::cols / vector_cols;
    for (int i = thread; i < segment_tokens / Kernel::units * vectors; i += Kernel::threads) {
      const int t = i / vectors * Kernel::units, col = i % vectors * vector_cols;
      if (t >= count) break;
      if (col >= cols_) continue;
      ScanPlace<Kernel::units> place;
      place.first_row = row + t;
      place.row_step = 1;
      place.first_col = first_head_ * s_.head_width + col;
      place.rows = row + count;
      place.cols = first_head_ * s_.head_width + cols_;
      place.results = shared_ + Tile::of_x + t * Tile::cols + col;
      place.pitch = Tile::cols;
      typename Kernel::State state;
      Kernel::run(p_, state, place);
    }
  }

  // Sums over the threads that share a head's rates.
  FUSELINE_DEVICE void store_rates() {
    constexpr int each_row = of_columns ? Tile::numbers : 1;
    const int thread = static_cast<int>(threadIdx.x), row = thread / lanes;
    float* parts = shared_ + Tile::parts;
    if constexpr (of_columns) {
#pragma unroll
      for (int i = 0; i < numbers; i += 4)
        put_floats<4>(parts + row * each_row + number_of(i), d_rates_ + i);
    } else {
      float sum = d_rates_[0];
#pragma unroll
      for (int apart = lanes / 2; apart > 0; apart /= 2)
        sum += __shfl_xor_sync(0xffffffffU, sum, apart);
      if (lane_ == 0) parts[row] = sum;
    }
    __syncthreads();
    const int all = of_columns ? s_.state_width : 1;  // rates of a head
    const int rows = s_.head_width / columns;         // of threads that have it
    for (int i = thread; i < Kernel::heads * all; i += Kernel::threads) {
      const int head = i / all, n = i % all;
      float sum = 0.0F;
      for (int r = 0; r < rows; ++r) sum += parts[(head * rows + r) * each_row + n];
      space_.rates[(static_cast<long long>(sequence_) * s_.heads + first_head_ + head) * all + n] =
          sum;
    }
  }

  const typename Kernel::Params& p_;
  const ScanGradientSpace& space_;
  const ScanSpace& s_;
  float* shared_;
  int sequence_, first_head_, group_, cols_;
  int lane_, first_, head_;  // among the lanes, first column and head in the block
  bool exists_;
  State state_ = {}, backward_ = {};
  float rates_[of_columns ? numbers : 1], d_rates_[of_columns ? numbers : 1] = {};
};

template <class Kernel>
FUSELINE_DEVICE void scan_gradient(const typename Kernel::Params& params,
                                   const ScanGradientSpace& space) {
  extern __shared__ __align__(32) float gradient_memory[];
  ScanGradientBlock<Kernel>(params, space, gradient_memory).run();
}

}  // namespace fuseline::gpu::stream
