// D[M, N] = A[M, K] B[N, K]^T where B, and perhaps A, are codes with scales (codes.cuh), then the
// same epilogues as behind the other mainloops. For sm_80 on.
//
// A thread block makes a tile of 8 to 64 rows × 128 columns. Its eight warps read B's codes
// straight from global memory into the registers in which tensor cores take them, 16 bytes a lane,
// two loads ahead: every code is read, and turned into a number, once for a row of tiles. Four
// warps lie side by side with 32 columns each, two take turns along K. What the lanes read side by
// side is not what an instruction multiplies side by side; any order of K will do, if A has it too:
//
//   lane 4 r + q reads 16 bytes q of row r: codes 32 q to 32 q + 31 of 128 (4 bits), or 16 of 64
//   step j multiplies codes 4 j to 4 j + 3 of all four lanes with the same columns of A
//
// A lies in shared memory, some columns at a time, in an order in which the four lanes find their
// eight columns side by side.
//
//   a scale for a row       multiplies the sums at the end
//   scales within rows      of a chunk or more: multiply the sums of each chunk; of fewer columns,
//                           or with zero points: codes are dequantised and rounded ahead
//   A in codes, too         products of codes are summed, and sums multiplied by the scales of both
//
// For 8 rows the weights are the instruction's first operand: it has 16 rows, and A would leave
// half of them empty.
//
// For few rows there are few tiles: thread blocks of a cluster take parts of K, and the first adds
// up what it finds in the others' shared memory (sm_90). With `ragged` the rows lie in groups, as
// in the other mainloops.
#pragma once

#include "launch_order.cuh"
#include "epilogue/gather.cuh"
#include "epilogue/run.cuh"
#include "epilogue/store.cuh"
#include "ptx/cp_async.cuh"
#include "ragged.cuh"
#include "raster.cuh"
#include "sm80/tile_io.cuh"
#include "weight_loads.cuh"

namespace fuseline::gpu {

// `a_codes`: none, or those of A; `a_group`: its columns that share a scale, 0 for all of a row.
template <class Element_, class Weight_, int tile_m_, int cluster_k_ = 1, bool ragged_ = false,
          Codes a_codes_ = Codes::none, int a_group_ = 0>
struct CodesConfig {
  using Element = Element_;
  using Weight = Weight_;
  static constexpr int tile_m = tile_m_, tile_n = 128, cluster_k = cluster_k_;
  static constexpr bool ragged = ragged_;
  static constexpr Codes a_codes = a_codes_;
  static constexpr int a_group = a_group_;
  static constexpr int threads = 256;
  static_assert(tile_m == 8 || tile_m == 16 || tile_m == 32 || tile_m == 64, "rows of a tile");
  static_assert(Weight::group % 8 == 0, "eight codes share a scale");
  static_assert(a_codes == Codes::none || bits_of(a_codes) == 8, "A in codes of 8 bits");
  static_assert(a_codes == Codes::none || a_group == Weight::group, "groups of both are the same");
};

template <class Epilogue>
struct CodesArgs {
  const void* a;
  const unsigned char* b;
  const void* scale;          // [rows of scales, groups of columns]
  const signed char* zero;    // the same, or null
  const float* tensor_scale;  // or null
  const float* a_scale;       // [M, groups of columns], or null
  int M, N, K;
  int a_row_bytes, b_row_bytes;
  int scale_ld, zero_ld, a_scale_ld;  // numbers from row to row
  int scale_rows;                     // of one group of rows
  int raster_group;
  typename Epilogue::Params epilogue;
  RowGroups groups{};  // if Config::ragged
};

template <class Config, class Epilogue>
struct CodesGemm {
  using Args = CodesArgs<Epilogue>;
  using Element = typename Config::Element;
  using Weight = typename Config::Weight;
  static constexpr int threads = Config::threads;
  static constexpr bool ragged = Config::ragged, batched = false;
  static constexpr int cluster_k = Config::cluster_k;
  static constexpr int rows = Config::tile_m, strips = rows < 16 ? 1 : rows / 16;
  static constexpr int column_warps = 4, k_warps = 2, groups = 4;  // of 8 columns, of a warp
  static constexpr bool a_in_codes = Config::a_codes != Codes::none;
  using Loads = WeightLoads<Element, Weight, groups, a_in_codes>;
  using Load = typename Loads::Load;
  static constexpr int depth = rows <= 32 ? 2 : 1;       // loads of B ahead
  static constexpr int side_by_side = min_of(depth, 2);  // chunks of a warp: 128 bytes of a row
  static constexpr int chunk = Loads::chunk, eights = Loads::eights;
  static constexpr bool in_rows = Weight::group > 0;  // scales along K
  // Sums of a chunk are multiplied by its scales.
  static constexpr bool rescaled = in_rows && Loads::alone;
  static_assert(!rescaled || Weight::group % chunk == 0, "a chunk has one scale");
  // Columns of A in each of two buffers: one is filled while the other is multiplied.
  static constexpr int piece = rows <= 16 ? 1024 : rows == 32 ? 512 : 256;
  static constexpr int piece_chunks = piece / chunk;
  static_assert(piece_chunks % (k_warps * depth) == 0, "warps take their turns in every piece");
  // Codes of 4 bits come in another order. Few rows of A follow it; else the codes do.
  static constexpr bool turn_a = strips == 1;
  // Rows of A begin in other banks than their neighbours.
  static constexpr int a_pitch = 2 * piece + 64, a_bytes = rows * a_pitch;
  static constexpr int sum_pitch = Config::tile_n + 4;
  static constexpr int sum_rows = 16 * strips;
  static constexpr int sum_bytes = 4 * sum_rows * sum_pitch;
  // Shared memory: A, later sums of all warps along K and the warps' stages of the epilogue.
  static constexpr int stages_at = k_warps * sum_bytes;
  static constexpr int shared_bytes = max_of(2 * a_bytes, stages_at + strips * warp_stage_bytes);
  // What an epilogue sees.
  static constexpr int tile_rows = sum_rows;
  static constexpr int tile_threads = 32 * strips, strips_per_warp = 1;
  static constexpr int slab_groups = Epilogue::slab_groups;
  static constexpr int scratch_step = 0;
  static_assert(Epilogue::scratch_bytes == 0, "no sums over columns behind weights in codes");

  // Of 8 rows: two groups of 8 columns and of the first operand's 16 rows. Else rows × columns.
  static constexpr bool turned = rows == 8;
  using Accumulators = float[strips][turned ? groups / 2 : groups][4];

  const Args& args;
  unsigned char* shared;
  u32 base;
  int m0 = 0, n0 = 0, end = 0, group = 0;
  int rank = 0;  // in the cluster
  int lane, warp, k_warp;
  Loads b;

  FUSELINE_DEVICE CodesGemm(const Args& a, unsigned char* s)
      : args(a),
        shared(s),
        base(shared_address(s)),
        lane(static_cast<int>(threadIdx.x % 32)),
        warp(static_cast<int>(threadIdx.x / 32)),
        k_warp(static_cast<int>(threadIdx.x / 32) / column_warps) {
    const int tiles_n = ceil_div(a.N, Config::tile_n);
    const int tile = static_cast<int>(blockIdx.x) / cluster_k;
    if constexpr (cluster_k > 1) rank = static_cast<int>(cluster_rank());
    if constexpr (ragged) {
      RaggedTiles tiles{a.groups, rows, tiles_n, a.raster_group};
      const RaggedTile t = tiles.find(tile);
      group = t.group;
      m0 = t.row;
      n0 = t.column_tile * Config::tile_n;
      end = t.end;
    } else {
      const TilePlace p = grouped_tile(tile, ceil_div(a.M, rows), tiles_n, a.raster_group);
      m0 = p.m * rows;
      n0 = p.n * Config::tile_n;
      end = a.M;
    }
  }

  FUSELINE_DEVICE void run() {
    if (ragged && group < 0) return;
    b.begin(args, group, n0 + warp % column_warps * 32);
    const int chunks = ceil_div(args.K, chunk);
    const int first = static_cast<int>(static_cast<long long>(chunks) * rank / cluster_k);
    const int last = static_cast<int>(static_cast<long long>(chunks) * (rank + 1) / cluster_k);
    Accumulators acc;
    clear(acc);
    multiply(acc, first, last);
    add_up(acc);
    if constexpr (cluster_k > 1) {
      cluster_arrive();
      cluster_wait();
      if (rank == 0) add_cluster();
      cluster_sync_relaxed();  // no block leaves while the first reads its sums
      if (rank > 0) return;
    }
    __syncthreads();
    if (warp < strips) finish_strip();
  }

  // ---- A ----

  // Chunks [first, last) of the tile's rows; zeros where they do not exist.
  FUSELINE_DEVICE void fetch_a(u32 to, int first, int last) const {
    constexpr int eights_of_chunk = chunk / 8;
    const int eights_of_row = piece_chunks * eights_of_chunk;
    const int k0 = first * chunk;
    const int here = (last - first) * eights_of_chunk;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < rows * eights_of_row; i += threads) {
      const int r = i / eights_of_row, e = i % eights_of_row;
      if (e >= here) continue;
      const int k = k0 + 8 * e;
      const bool exists = m0 + r < end && k < args.K;
      const unsigned char* row = static_cast<const unsigned char*>(args.a) +
                                 static_cast<long long>(exists ? m0 + r : m0) * args.a_row_bytes;
      // In a chunk eight j of lane q lies at place 4 j + q.
      const int in_chunk = e % eights_of_chunk;
      const int place = in_chunk % eights * 4 + in_chunk / eights;
      const u32 at = to + r * a_pitch + e / eights_of_chunk * (2 * chunk) + 16 * place;
      const int count = exists ? min_of(args.K - k, 8) : 0;
      if constexpr (Config::a_codes == Codes::none)
        cp_async_16(at, row + (exists ? 2 * k : 0), 2 * count);
      else
        store_shared_16(at, numbers_of_a(row + (exists ? k : 0), count));
    }
    cp_async_commit();
  }
  // The first `count` of eight codes as numbers.
  static FUSELINE_DEVICE uint4 numbers_of_a(const unsigned char* from, int count) {
    constexpr Codes codes = Config::a_codes;
    const uint2 x = *reinterpret_cast<const uint2*>(from);
    u32 words[4] = {as_element<Element>(code_pair<codes, 0>(x.x, x.y)),
                    as_element<Element>(code_pair<codes, 1>(x.x, x.y)),
                    as_element<Element>(code_pair<codes, 2>(x.x, x.y)),
                    as_element<Element>(code_pair<codes, 3>(x.x, x.y))};
#pragma unroll
    for (int i = 0; i < 4; ++i)
      words[i] = count >= 2 * i + 2 ? words[i] : count == 2 * i + 1 ? words[i] & 0xffffU : 0U;
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  // ---- the mainloop ----

  // The chunk of this warp's turn `t`, counted from the block's first.
  FUSELINE_DEVICE int chunk_of(int t) const {
    return t / side_by_side * (k_warps * side_by_side) + k_warp * side_by_side + t % side_by_side;
  }

  FUSELINE_DEVICE void multiply(Accumulators& acc, int first, int last) const {
    constexpr int turns = piece_chunks / k_warps;  // of a piece
    Load loads[depth];
#pragma unroll
    for (int d = 0; d < depth; ++d)
      if (const int c = first + chunk_of(d); c < last) b.load(loads[d], args, c);
    fetch_a(base, first, min_of(first + piece_chunks, last));
    u32 from = base;
    for (int begin = first, turn = 0; begin < last; begin += piece_chunks, turn += turns) {
      const u32 other = 2 * base + a_bytes - from;
      const int next = begin + piece_chunks;
      if (next < last)
        fetch_a(other, next, min_of(next + piece_chunks, last));
      else
        cp_async_commit();
      cp_async_wait<1>();
      __syncthreads();
#pragma unroll 1
      for (int t = turn; t < turn + turns; t += depth) {
#pragma unroll
        for (int d = 0; d < depth; ++d) {
          const int c = first + chunk_of(t + d);
          if (c < last) multiply_chunk(acc, loads[d], from + (c - begin) * (2 * chunk), c);
          if (const int ahead = first + chunk_of(t + d + depth); ahead < last)
            b.load(loads[d], args, ahead);
        }
      }
      __syncthreads();  // everyone is done with the piece
      from = other;
    }
  }

  static FUSELINE_DEVICE void clear(Accumulators& acc) {
#pragma unroll
    for (auto& strip : acc)
#pragma unroll
      for (auto& sums : strip)
#pragma unroll
        for (float& x : sums) x = 0.0F;
  }
  FUSELINE_DEVICE void multiply_chunk(Accumulators& sums, const Load& codes, u32 a, int c) const {
    Accumulators part;
    if constexpr (rescaled) clear(part);
    Accumulators& acc = rescaled ? part : sums;
#pragma unroll
    for (int e = 0; e < eights; ++e) {
      u32 a_words[strips][2][4];  // rows r and r + 8: eight columns
#pragma unroll
      for (int s = 0; s < strips; ++s)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          uint4 x = make_uint4(0U, 0U, 0U, 0U);
          if (rows >= 16 || half == 0)
            x = load_shared_16(a + (16 * s + 8 * half + lane / 4) * a_pitch + 64 * e +
                               lane % 4 * 16);
          if constexpr (turn_a) x = in_order_of_codes<Weight::codes>(x);
          a_words[s][half][0] = x.x;
          a_words[s][half][1] = x.y;
          a_words[s][half][2] = x.z;
          a_words[s][half][3] = x.w;
        }
      if constexpr (turned) {
#pragma unroll
        for (int g = 0; g < groups; g += 2) {
          u32 above[4], below[4];
          Loads::pairs(above, codes, g, e);
          Loads::pairs(below, codes, g + 1, e);
#pragma unroll
          for (int i = 0; i < 4; i += 2) {
            const u32 words[4] = {above[i], below[i], above[i + 1], below[i + 1]};
            mma_16x8x16<Element>(acc[0][g / 2], words, a_words[0][0][i], a_words[0][0][i + 1]);
          }
        }
      } else {
#pragma unroll
        for (int g = 0; g < groups; ++g) {
          u32 pairs[4];
          Loads::pairs(pairs, codes, g, e);
          if constexpr (!turn_a) natural_order<Weight::codes>(pairs);
#pragma unroll
          for (int s = 0; s < strips; ++s)
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
              const u32 words[4] = {a_words[s][0][i], a_words[s][1][i], a_words[s][0][i + 1],
                                    a_words[s][1][i + 1]};
              mma_16x8x16<Element>(acc[s][g], words, pairs[i], pairs[i + 1]);
            }
        }
      }
    }
    if constexpr (rescaled && turned)
      rescale_turned(sums[0], part[0], codes, c);
    else if constexpr (rescaled)
      rescale(sums, part, codes, c);
  }
  // A lane's sums have the columns whose scales it has loaded.
  FUSELINE_DEVICE void rescale_turned(float (&sums)[groups / 2][4],
                                      const float (&part)[groups / 2][4], const Load& codes,
                                      int c) const {
    float of_row[2] = {1.0F, 1.0F};
    if constexpr (a_in_codes) {
#pragma unroll
      for (int e = 0; e < 2; ++e)
        of_row[e] = scale_of_a(lane % 4 * 2 + e, c * chunk / max_of(Weight::group, 1));
    }
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      const float of_column = Loads::scale_of(codes, g, 0).scale;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int at = g % 2 * 2 + e;
        sums[g / 2][at] += part[g / 2][at] * (a_in_codes ? of_row[e] * of_column : of_column);
      }
    }
  }
  // Sums of one chunk: times the scales of A's rows and of B's, whose columns lie in other lanes.
  FUSELINE_DEVICE void rescale(Accumulators& sums, const Accumulators& part, const Load& codes,
                               int c) const {
    const int at_group = c * chunk / max_of(Weight::group, 1);
#pragma unroll
    for (int s = 0; s < strips; ++s) {
      float of_row[2] = {1.0F, 1.0F};
      if constexpr (a_in_codes) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
          of_row[half] = scale_of_a(16 * s + 8 * half + lane / 4, at_group);
      }
#pragma unroll
      for (int g = 0; g < groups; ++g)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          // Column 2 (lane mod 4) + e of the group is the row of lanes 4 times that.
          const float of_column =
              __shfl_sync(0xffffffffU, Loads::scale_of(codes, g, 0).scale, (lane % 4 * 2 + e) * 4);
#pragma unroll
          for (int half = 0; half < 2; ++half)
            sums[s][g][2 * half + e] += part[s][g][2 * half + e] * (of_row[half] * of_column);
        }
    }
  }
  FUSELINE_DEVICE float scale_of_a(int r, int at_group) const {
    const int row = m0 + r;
    return row < end ? args.a_scale[static_cast<long long>(row) * args.a_scale_ld + at_group]
                     : 0.0F;
  }

  // ---- sums ----

  FUSELINE_DEVICE float* sums(int of_warp) const {
    return reinterpret_cast<float*>(shared) + of_warp * (sum_bytes / 4);
  }
  FUSELINE_DEVICE int rows_here() const { return min_of(rows, end - m0); }

  // The sums of all warps along K into those of the first.
  FUSELINE_DEVICE void add_up(const Accumulators& acc) const {
    __syncthreads();  // A has been read
    float* const of_warp = sums(k_warp) + warp % column_warps * 32;
    if constexpr (turned) {
#pragma unroll
      for (int g = 0; g < groups; ++g)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          of_warp[(lane % 4 * 2 + e) * sum_pitch + 8 * g + lane / 4] = acc[0][g / 2][g % 2 * 2 + e];
    } else {
#pragma unroll
      for (int s = 0; s < strips; ++s)
#pragma unroll
        for (int g = 0; g < groups; ++g)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int r = 16 * s + 8 * half + lane / 4;
            *reinterpret_cast<float2*>(of_warp + r * sum_pitch + 8 * g + lane % 4 * 2) =
                make_float2(acc[s][g][2 * half], acc[s][g][2 * half + 1]);
          }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < rows_here() * 32; i += threads) {
      const int at = i / 32 * sum_pitch + i % 32 * 4;
      float4& x = *reinterpret_cast<float4*>(sums(0) + at);
      const float4 y = *reinterpret_cast<const float4*>(sums(1) + at);
      x = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
  }
  // Those of the cluster's other blocks, in their order.
  FUSELINE_DEVICE void add_cluster() const {
    for (int i = static_cast<int>(threadIdx.x); i < rows_here() * 32; i += threads) {
      const int at = i / 32 * sum_pitch + i % 32 * 4;
      float4 y[cluster_k];
#pragma unroll
      for (int b = 1; b < cluster_k; ++b)
        y[b] = load_from_cluster(address_in_block(base + 4 * static_cast<u32>(at), b));
      float4& x = *reinterpret_cast<float4*>(sums(0) + at);
#pragma unroll
      for (int b = 1; b < cluster_k; ++b) {
        x.x += y[b].x;
        x.y += y[b].y;
        x.z += y[b].z;
        x.w += y[b].w;
      }
    }
  }

  // ---- the epilogue: a warp for 16 rows ----

  FUSELINE_DEVICE void finish_strip() const {
    typename Epilogue::State state;
    Epilogue::begin(args.epilogue, state, SlabPlace{m0 + 16 * warp, 0, end, args.N, 0});
    if constexpr (gathers_groups<Epilogue>) gather<0>(state);
    finish<0>(state);
  }
  // Scales of whole rows of either operand are factors of the sums.
  template <int index>
  FUSELINE_DEVICE Fragment<2, slab_groups> accumulated() const {
    Fragment<2, slab_groups> y;
    constexpr bool of_rows = a_in_codes && !in_rows;
    float of_row[2] = {1.0F, 1.0F};
    if constexpr (of_rows) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        of_row[half] = scale_of_a(16 * warp + 8 * half + lane / 4, 0);
    }
#pragma unroll
    for (int i = 0; i < slab_groups; ++i) {
      const int col = 8 * (index * slab_groups + i) + lane % 4 * 2;
      float of_column[2] = {1.0F, 1.0F};
      if constexpr (!in_rows) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int n = min_of(n0 + col + e, args.N - 1);
          const long long row =
              static_cast<long long>(group) * args.scale_rows + Weight::scale_row(n);
          of_column[e] =
              load_scale<Weight::scale>(args.scale, row * args.scale_ld) * b.tensor_scale;
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float2 x = make_float2(0.0F, 0.0F);
        if (half == 0 || rows > 8)
          x = *reinterpret_cast<const float2*>(sums(0) +
                                               (16 * warp + 8 * half + lane / 4) * sum_pitch + col);
        y.at(half, i, 0) = x.x * (of_column[0] * of_row[half]);
        y.at(half, i, 1) = x.y * (of_column[1] * of_row[half]);
      }
    }
    return y;
  }
  template <int index>
  FUSELINE_DEVICE Slab80<CodesGemm, index> slab_at() const {
    return {{m0 + 16 * warp, n0 + index * 8 * slab_groups, end, args.N, 8 * slab_groups, 0},
            base + stages_at + warp * warp_stage_bytes,
            16 * warp,
            0,
            static_cast<int>(threadIdx.x),
            base,
            1};
  }
  template <int index>
  FUSELINE_DEVICE void gather(typename Epilogue::State& state) const {
    if constexpr (index * slab_groups < 16) {
      Epilogue::gather(args.epilogue, state, slab_at<index>(), accumulated<index>());
      gather<index + 1>(state);
    }
  }
  template <int index>
  FUSELINE_DEVICE void finish(typename Epilogue::State& state) const {
    if constexpr (index * slab_groups < 16) {
      run_epilogue<Epilogue>(args.epilogue, state, slab_at<index>(), accumulated<index>());
      finish<index + 1>(state);
    }
  }
};

// The body of a kernel with CodesGemm::threads threads and CodesGemm::shared_bytes of dynamic
// shared memory: a thread block, or a cluster of cluster_k, for each tile.
template <class Config, class Epilogue>
FUSELINE_DEVICE void gemm_codes(const CodesArgs<Epilogue>& args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  CodesGemm<Config, Epilogue>(args, shared).run();
}

}  // namespace fuseline::gpu
