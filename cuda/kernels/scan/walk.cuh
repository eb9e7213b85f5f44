// The mainloop of a scan: a thread block has neighbouring columns of one sequence and walks down
// its tokens, with the state of every column in registers. All of it is also compiled for the host,
// where a test runs it with one host thread for each thread of a block
// (tests/cuda/kernels/scan_test.cpp).
//
// Column c of x belongs to head c / P. Its state is a row of N numbers, which `lanes` neighbouring
// lanes of a warp share, `numbers` each, and a thread has `columns` columns of one head:
//
//   N = 16, numbers = 4, lanes = 2:   lane 0 has 0-3 and 8-11, lane 1 has 4-7 and 12-15
//
// Tokens are taken in chunks: the block copies the operands of a chunk to shared memory in fp32,
// every thread walks over them, the results take the place of x in shared memory, and the program's
// body runs on them as in a kernel of tiles.
#pragma once

#include "../epilogue/map.cuh"
#include "../stream/place.cuh"

namespace fuseline::gpu::stream {

// The log decay of a token is an operand; or the operand is a step, and the log decay is the step
// times the rate of the head, or of each column of its state.
enum class Decay { given, of_heads, of_columns };

struct ScanSpace {
  int tokens;  // of each sequence
  int heads, head_width;
  int state_width;
  int heads_per_group;  // that share columns of k and q
};

// So many numbers that move together.
template <int count>
struct alignas(4 * count) Floats {
  float v[count];
};
template <int count>
FUSELINE_HD const Floats<count>& floats_at(const float* from) {
  return *reinterpret_cast<const Floats<count>*>(from);
}
template <int count>
FUSELINE_HD void put_floats(float* to, const float* from) {
  Floats<count> all;
  FUSELINE_UNROLL
  for (int i = 0; i < count; ++i) all.v[i] = from[i];
  *reinterpret_cast<Floats<count>*>(to) = all;
}

// A place of the body: unit u is a token, and the mainloop's result there lies in shared memory.
template <int units_>
struct ScanPlace : TilePlace<units_> {
  const float* results;
  int pitch;
  FUSELINE_HD Strip<units_> result() const {
    Strip<units_> out;
    FUSELINE_UNROLL
    for (int u = 0; u < units_; ++u) FUSELINE_UNROLL
    for (int e = 0; e < vector_cols; e += 4) {
      const auto some = floats_at<4>(results + u * pitch + e);
      FUSELINE_UNROLL
      for (int i = 0; i < 4; ++i) out.at(u, e + i) = some.v[i];
    }
    return out;
  }
};

// Adds up `count` numbers over lanes that are up to 2 · apart - 1 apart. The lanes share the work:
// afterwards a lane has the sums of some of the numbers, in front, and the first of them is
// returned. `count` is a power of two. Example with 4 numbers and 2 lanes: lane 0 has the sums of
// numbers 0 and 1, lane 1 those of 2 and 3.
template <int apart, int count, int size, class Block>
FUSELINE_HD int sum_over_lanes(float (&v)[size], int lane, const Block& block) {
  if constexpr (apart == 0) {
    return 0;
  } else if constexpr (count == 1) {
    v[0] += block.exchange(v[0], apart);
    return sum_over_lanes<apart / 2, 1>(v, lane, block);
  } else {
    constexpr int half = count / 2;
    const bool upper = (lane & apart) != 0;
    FUSELINE_UNROLL
    for (int i = 0; i < half; ++i) {
      const float given = upper ? v[i] : v[i + half];
      const float own = upper ? v[i + half] : v[i];
      v[i] = own + block.exchange(given, apart);
    }
    return (upper ? half : 0) + sum_over_lanes<apart / 2, half>(v, lane, block);
  }
}

// The sizes of one block's work that follow from a kernel's constants, and where its operands lie
// in shared memory, in floats. `groups`: of k and q that the columns of a block may belong to.
template <class Kernel>
struct ScanTile {
  static constexpr int column_groups = Kernel::threads / Kernel::lanes;
  static constexpr int cols = column_groups * Kernel::columns;
  static constexpr int state_numbers = Kernel::lanes * Kernel::numbers;
  static constexpr int key_numbers = Kernel::groups * state_numbers;  // of one token
  static constexpr int x = 0;
  static constexpr int k = x + Kernel::tokens * cols;
  static constexpr int q = k + Kernel::tokens * key_numbers;
  static constexpr int steps = q + Kernel::tokens * key_numbers;
  static constexpr int shared_floats = steps + 2 * Kernel::tokens * column_groups;
  static_assert(cols % vector_cols == 0 && state_numbers % vector_cols == 0, "whole vectors move");
  static_assert(Kernel::tokens % Kernel::together == 0 && Kernel::tokens % Kernel::units == 0);
};

// Kernel: constants, Params with operands x, step, k, q, rates, state and state_after, and the
// body. Block: thread(), number(), sync(), exchange(x, apart).
template <class Kernel, class Block>
class ScanBlock {
 public:
  FUSELINE_HD ScanBlock(const typename Kernel::Params& params, const ScanSpace& space,
                        float* shared, const Block& block)
      : p_(params), space_(space), shared_(shared), block_(block) {
    const int cols = space.heads * space.head_width;
    const int across = ceil_div(cols, Tile::cols);
    sequence_ = block.number() / across;
    first_col_ = block.number() % across * Tile::cols;
    first_group_ = first_col_ / space.head_width / space.heads_per_group;
    lane_ = block.thread() % Kernel::lanes;
    place_ = block.thread() / Kernel::lanes;
    const int col = first_col_ + place_ * Kernel::columns;
    exists_ = col < cols;
    row_ = sequence_ * cols + col;
    head_ = head_of(place_);
    group_ = head_ / space.heads_per_group - first_group_;
  }

  FUSELINE_HD void begin() {
    FUSELINE_UNROLL
    for (int i = 0; i < Kernel::numbers; i += 4) {
      const int n = number_of(i);
      FUSELINE_UNROLL
      for (int c = 0; c < Kernel::columns; ++c) {
        float from[4] = {};
        if constexpr (Kernel::begins)
          read_row(p_.state, row_ + c, n, exists_ ? space_.state_width : 0, from);
        FUSELINE_UNROLL
        for (int e = 0; e < 4; ++e) state_[c][i + e] = from[e];
      }
      if constexpr (Kernel::decay == Decay::of_columns) {
        float from[4];
        read_row(p_.rates, head_, n, space_.state_width, from);
        FUSELINE_UNROLL
        for (int e = 0; e < 4; ++e) rates_[i + e] = from[e];
      }
    }
  }

  // Tokens [first, first + count) of the sequence. Those behind them, up to where a thread takes as
  // many together as it does, leave the state as it is.
  FUSELINE_HD void stage(int first, int count) {
    constexpr int x_vectors = Tile::cols / vector_cols;
    constexpr int key_vectors = Tile::state_numbers / vector_cols;
    const int cols = space_.heads * space_.head_width;
    const int groups = space_.heads / space_.heads_per_group;
    const int row = sequence_ * space_.tokens + first;
    FUSELINE_UNROLL_2
    for (int i = block_.thread(); i < Kernel::tokens * x_vectors; i += Kernel::threads) {
      const int t = i / x_vectors, col = i % x_vectors * vector_cols;
      float x[vector_cols];
      read_row(p_.x, row + t, first_col_ + col, t < count ? cols : 0, x);
      put(Tile::x + t * Tile::cols + col, x);
    }
    FUSELINE_UNROLL_2
    for (int i = block_.thread(); i < Kernel::tokens * Kernel::groups * key_vectors;
         i += Kernel::threads) {
      const int at = i / key_vectors, n = i % key_vectors * vector_cols;
      const int t = at / Kernel::groups, group = first_group_ + at % Kernel::groups;
      const int begin = group * space_.state_width;
      const int end = t < count && group < groups ? begin + space_.state_width : 0;
      float k[vector_cols], q[vector_cols];
      read_row(p_.k, row + t, begin + n, end, k);
      read_row(p_.q, row + t, begin + n, end, q);
      put(Tile::k + at * Tile::state_numbers + n, k);
      put(Tile::q + at * Tile::state_numbers + n, q);
    }
    FUSELINE_UNROLL_2
    for (int i = block_.thread(); i < Kernel::tokens * Tile::column_groups; i += Kernel::threads) {
      const int t = i / Tile::column_groups;
      stage_step(shared_ + Tile::steps + 2 * i, row + t, head_of(i % Tile::column_groups),
                 t < count);
    }
  }

  FUSELINE_HD void walk(int count) {
    constexpr int columns = Kernel::columns, together = Kernel::together, lanes = Kernel::lanes;
    constexpr int sums = together * columns;
    constexpr int kept = sums > lanes ? sums / lanes : 1;     // of a lane, behind sum_over_lanes
    constexpr int holders = lanes > sums ? lanes / sums : 1;  // lanes that have the same one
    FUSELINE_NO_UNROLL
    for (int t = 0; t < count; t += together) {
      float y[sums];
      FUSELINE_UNROLL
      for (int u = 0; u < together; ++u) step(t + u, y + u * columns);
      const int first = sum_over_lanes<lanes / 2, sums>(y, lane_, block_);
      if (lane_ % holders != 0) continue;
      FUSELINE_UNROLL
      for (int i = 0; i < kept; ++i)
        shared_[Tile::x + (t + (first + i) / columns) * Tile::cols + place_ * columns +
                (first + i) % columns] = y[i];
    }
  }

  FUSELINE_HD void finish(int first, int count) {
    constexpr int vectors = Tile::cols / vector_cols;
    const int row = sequence_ * space_.tokens + first;
    for (int i = block_.thread(); i < Kernel::tokens / Kernel::units * vectors;
         i += Kernel::threads) {
      const int t = i / vectors * Kernel::units, col = i % vectors * vector_cols;
      if (t >= count) break;
      ScanPlace<Kernel::units> place;
      place.first_row = row + t;
      place.row_step = 1;
      place.first_col = first_col_ + col;
      place.rows = row + count;
      place.cols = space_.heads * space_.head_width;
      place.results = shared_ + Tile::x + t * Tile::cols + col;
      place.pitch = Tile::cols;
      typename Kernel::State state;
      Kernel::run(p_, state, place);
    }
  }

  // A gradient begins with the state behind every piece: those of a sequence lie behind each other.
  FUSELINE_HD void keep(int tokens) const {
    if constexpr (Kernel::kept_tokens > 0) {
      if (tokens % Kernel::kept_tokens != 0 && tokens < space_.tokens) return;
      const int pieces = ceil_div(space_.tokens, Kernel::kept_tokens);
      const int piece = ceil_div(tokens, Kernel::kept_tokens) - 1;
      const int cols = space_.heads * space_.head_width;
      store_state(row_ + (sequence_ * (pieces - 1) + piece) * cols);
    }
  }
  FUSELINE_HD void end() const {
    if constexpr (Kernel::ends && Kernel::kept_tokens == 0) store_state(row_);
  }

 private:
  using Tile = ScanTile<Kernel>;

  // The thread's numbers i to i + 3 are these of the state, so that lanes read neighbours.
  FUSELINE_HD int number_of(int i) const { return i * Kernel::lanes + 4 * lane_; }
  FUSELINE_HD int head_of(int place) const {
    return min_of((first_col_ + place * Kernel::columns) / space_.head_width, space_.heads - 1);
  }
  FUSELINE_HD void put(int at, const float (&from)[vector_cols]) const {
    put_floats<4>(shared_ + at, from);
    put_floats<4>(shared_ + at + 4, from + 4);
  }

  // The factor of x, and the decay where all numbers of a head's state have the same.
  FUSELINE_HD void stage_step(float* to, int row, int head, bool exists) const {
    float pair[2] = {0.0F, 1.0F};
    if (exists) {
      const float step = read_number(p_.step, row, head);
      pair[0] = Kernel::decay == Decay::given ? 1.0F : step;
      if constexpr (Kernel::decay == Decay::given) pair[1] = fast_exp(step);
      if constexpr (Kernel::decay == Decay::of_heads)
        pair[1] = fast_exp(step * read_number(p_.rates, head, 0));
    }
    put_floats<2>(to, pair);
  }

  FUSELINE_HD void store_state(int row) const {
    if (!exists_) return;
    FUSELINE_UNROLL
    for (int i = 0; i < Kernel::numbers; i += 4) {
      FUSELINE_UNROLL
      for (int c = 0; c < Kernel::columns; ++c) {
        float to[4];
        FUSELINE_UNROLL
        for (int e = 0; e < 4; ++e) to[e] = state_[c][i + e];
        write_row(p_.state_after, row + c, number_of(i), space_.state_width, to);
      }
    }
  }

  // S <- decay · S + step · x k^T; y: the thread's part of S q.
  FUSELINE_HD void step(int t, float* y) {
    constexpr int columns = Kernel::columns;
    const auto pair = floats_at<2>(shared_ + Tile::steps + 2 * (t * Tile::column_groups + place_));
    const auto x = floats_at<columns>(shared_ + Tile::x + t * Tile::cols + place_ * columns);
    const int keys = (t * Kernel::groups + group_) * Tile::state_numbers;
    float share[columns];
    FUSELINE_UNROLL
    for (int c = 0; c < columns; ++c) {
      share[c] = pair.v[0] * x.v[c];
      y[c] = 0.0F;
    }
    FUSELINE_UNROLL
    for (int i = 0; i < Kernel::numbers; i += 4) {
      const auto k = floats_at<4>(shared_ + Tile::k + keys + number_of(i));
      const auto q = floats_at<4>(shared_ + Tile::q + keys + number_of(i));
      FUSELINE_UNROLL
      for (int e = 0; e < 4; ++e) {
        float decay = pair.v[1];
        if constexpr (Kernel::decay == Decay::of_columns)
          decay = fast_exp(pair.v[0] * rates_[i + e]);
        FUSELINE_UNROLL
        for (int c = 0; c < columns; ++c) {
          float& s = state_[c][i + e];
          s = decay * s + share[c] * k.v[e];
          y[c] += s * q.v[e];
        }
      }
    }
  }

  const typename Kernel::Params& p_;
  const ScanSpace& space_;
  float* shared_;
  const Block& block_;
  int sequence_, first_col_, first_group_;
  int lane_, place_;  // among the lanes of a column, and among the columns of the block
  int row_, head_, group_;
  bool exists_;
  float state_[Kernel::columns][Kernel::numbers];
  float rates_[Kernel::decay == Decay::of_columns ? Kernel::numbers : 1];
};

template <class Kernel, class Block>
FUSELINE_HD void walk_tokens(const typename Kernel::Params& params, const ScanSpace& space,
                             float* shared, const Block& block) {
  ScanBlock<Kernel, Block> scan(params, space, shared, block);
  scan.begin();
  for (int first = 0, count = 0; first < space.tokens; first += count) {
    count = min_of(Kernel::tokens, space.tokens - first);
    if constexpr (Kernel::kept_tokens > 0)
      count = min_of(count, Kernel::kept_tokens - first % Kernel::kept_tokens);
    scan.stage(first, count);
    block.sync();
    scan.walk(count);
    block.sync();
    scan.finish(first, count);
    scan.keep(first + count);
    block.sync();  // the next tokens take its place
  }
  scan.end();
}

// Thread blocks of a batch.
template <class Kernel>
FUSELINE_HD int scan_blocks(const ScanSpace& space, int batch) {
  return batch * ceil_div(space.heads * space.head_width, ScanTile<Kernel>::cols);
}

}  // namespace fuseline::gpu::stream
