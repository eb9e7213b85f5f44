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
//   scales within rows      codes are dequantised and rounded ahead of the product
//   a scale for a row       multiplies the sums at the end
//   A in codes, too         products of codes are summed, and sums multiplied by the scales of both
//
// For few rows there are few tiles: thread blocks of a cluster take parts of K, and the first adds
// up what it finds in the others' shared memory (sm_90). With `ragged` the rows lie in groups, as
// in the other mainloops.
#pragma once

#include "codes.cuh"
#include "epilogue/gather.cuh"
#include "epilogue/store.cuh"
#include "ragged.cuh"
#include "raster.cuh"
#include "sm80/tile_io.cuh"

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
  static constexpr int depth = rows <= 16 ? 2 : 1;                 // loads of B ahead
  // A load of a lane: 16 bytes; of four lanes: a chunk of K. `eights`: times eight codes.
  static constexpr int unit = 128 / Weight::bits, chunk = 4 * unit, eights = unit / 8;
  static constexpr bool in_rows = Weight::group > 0;  // scales along K
  static constexpr bool codes_alone = !in_rows || Config::a_codes != Codes::none;
  // Sums of products of codes are multiplied by scales where these change along K.
  static constexpr bool rescaled = in_rows && Config::a_codes != Codes::none;
  static_assert(!rescaled || Weight::group % chunk == 0, "a chunk has one scale");
  static constexpr bool one_scale = in_rows && Weight::group % unit == 0;  // of a load
  static constexpr int scales = !in_rows ? 0 : one_scale ? 1 : eights;
  // Columns of A in shared memory at once.
  static constexpr int piece = 16384 / max_of(rows, 8) < 512 ? 512 : 16384 / max_of(rows, 8);
  static constexpr int piece_chunks = piece / chunk;
  static_assert(piece_chunks % (k_warps * depth) == 0, "warps take their turns in every piece");
  // Rows of A begin in other banks than their neighbours.
  static constexpr int a_pitch = 2 * piece + 64;
  static constexpr int sum_pitch = Config::tile_n + 4;
  static constexpr int sum_rows = 16 * strips;
  static constexpr int sum_bytes = 4 * sum_rows * sum_pitch;
  // Shared memory: A, later sums of all warps along K and the warps' stages of the epilogue.
  static constexpr int stages_at = k_warps * sum_bytes;
  static constexpr int shared_bytes = max_of(rows * a_pitch, stages_at + strips * warp_stage_bytes);
  // What an epilogue sees.
  static constexpr int tile_rows = sum_rows;
  static constexpr int tile_threads = 32 * strips, strips_per_warp = 1;
  static constexpr int slab_groups = Epilogue::slab_groups;
  static constexpr int scratch_step = 0;
  static_assert(Epilogue::scratch_bytes == 0, "no sums over columns behind weights in codes");

  using Accumulators = float[strips][groups][4];
  struct Load {  // one lane's codes of a chunk, of its row of each group of columns
    uint4 codes[groups];
    CodeScale scale[groups][scales > 0 ? scales : 1];
  };

  const Args& args;
  unsigned char* shared;
  u32 base;
  int m0 = 0, n0 = 0, end = 0, group = 0;
  int rank = 0;  // in the cluster
  int lane, warp, k_warp;
  float tensor_scale = 1.0F;
  const unsigned char* b_rows[groups];  // this lane's 16 bytes of chunk 0
  long long scale_rows[groups];         // its rows of scales

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
    if constexpr (Weight::tensor_scale) tensor_scale = *args.tensor_scale;
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      // Columns that do not exist repeat the last: nobody stores what they become.
      const int n = min_of(n0 + warp % column_warps * 32 + 8 * g + lane / 4, args.N - 1);
      b_rows[g] =
          args.b + (static_cast<long long>(group) * args.N + n) * args.b_row_bytes + lane % 4 * 16;
      scale_rows[g] = static_cast<long long>(group) * args.scale_rows + n / Weight::group_rows;
    }
    const int chunks = ceil_div(args.K, chunk);
    const int first = static_cast<int>(static_cast<long long>(chunks) * rank / cluster_k);
    const int last = static_cast<int>(static_cast<long long>(chunks) * (rank + 1) / cluster_k);
    Accumulators acc;
#pragma unroll
    for (int s = 0; s < strips; ++s)
#pragma unroll
      for (int g = 0; g < groups; ++g)
#pragma unroll
        for (float& x : acc[s][g]) x = 0.0F;
    multiply(acc, first, last);
    add_up(acc);
    if constexpr (cluster_k > 1) {
      cluster_arrive();
      cluster_wait();
      if (rank == 0) add_cluster();
      // No block leaves while the first reads its sums.
      cluster_arrive();
      cluster_wait();
      if (rank > 0) return;
    }
    __syncthreads();
    if (warp < strips) finish_strip();
  }

  // ---- B ----

  FUSELINE_DEVICE void load(Load& to, int c) const {
    const long long at = static_cast<long long>(c) * (chunk * Weight::bits / 8);
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to.codes[g].x), "=r"(to.codes[g].y), "=r"(to.codes[g].z),
                     "=r"(to.codes[g].w)
                   : "l"(b_rows[g] + at));
#pragma unroll
      for (int i = 0; i < scales; ++i) {
        // What lies beyond K meets zeros; its scale is the last one.
        const int k = min_of(c * chunk + lane % 4 * unit + (one_scale ? 0 : 8 * i), args.K - 1);
        const int at_group = k / max_of(Weight::group, 1);
        CodeScale& s = to.scale[g][i];
        s.scale = load_scale<Weight::scale>(args.scale, scale_rows[g] * args.scale_ld + at_group);
        if constexpr (Weight::tensor_scale) s.scale *= tensor_scale;
        if constexpr (Weight::zeros)
          s.zero = static_cast<float>(args.zero[scale_rows[g] * args.zero_ld + at_group]);
      }
    }
  }

  // ---- A ----

  // Columns [chunk `first`, chunk `last`) of the tile's rows; zeros where they do not exist.
  FUSELINE_DEVICE void fetch_a(int first, int last) const {
    const int eights_of_row = (last - first) * (chunk / 8);
    const int k0 = first * chunk;
    for (int i = static_cast<int>(threadIdx.x); i < rows * eights_of_row; i += threads) {
      const int r = i / eights_of_row, e = i % eights_of_row;
      const int k = k0 + 8 * e;
      uint4 x = make_uint4(0U, 0U, 0U, 0U);
      if (m0 + r < end && k < args.K) {
        const unsigned char* row = static_cast<const unsigned char*>(args.a) +
                                   static_cast<long long>(m0 + r) * args.a_row_bytes;
        x = eight_of_a(row, k);
        // Beyond K a row's padding lies, or the next row.
        if (args.K - k < 8) x = cut(x, args.K - k);
        x = in_order_of_codes<Weight::codes>(x);
      }
      // In a chunk eight j of lane q lies at place 4 j + q.
      const int in_chunk = e % (chunk / 8);
      const int place = in_chunk % eights * 4 + in_chunk / eights;
      store_shared_16(base + r * a_pitch + e / (chunk / 8) * (2 * chunk) + 16 * place, x);
    }
  }
  static FUSELINE_DEVICE uint4 eight_of_a(const unsigned char* row, int k) {
    if constexpr (Config::a_codes == Codes::none) {
      return *reinterpret_cast<const uint4*>(row + 2 * k);
    } else {
      constexpr Codes codes = Config::a_codes;
      const uint2 x = *reinterpret_cast<const uint2*>(row + k);
      return make_uint4(as_element<Element>(code_pair<codes, 0>(x.x, x.y)),
                        as_element<Element>(code_pair<codes, 1>(x.x, x.y)),
                        as_element<Element>(code_pair<codes, 2>(x.x, x.y)),
                        as_element<Element>(code_pair<codes, 3>(x.x, x.y)));
    }
  }
  // The first `count` of eight numbers.
  static FUSELINE_DEVICE uint4 cut(uint4 x, int count) {
    u32* words = reinterpret_cast<u32*>(&x);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      words[i] = count >= 2 * i + 2 ? words[i] : count == 2 * i + 1 ? words[i] & 0xffffU : 0U;
    return x;
  }

  // ---- the mainloop ----

  FUSELINE_DEVICE void multiply(Accumulators& acc, int first, int last) const {
    Load loads[depth];
#pragma unroll
    for (int d = 0; d < depth; ++d)
      if (const int c = first + k_warp + k_warps * d; c < last) load(loads[d], c);
    for (int begin = first; begin < last; begin += piece_chunks) {
      const int stop = min_of(begin + piece_chunks, last);
      __syncthreads();  // everyone is done with the piece before
      fetch_a(begin, stop);
      __syncthreads();
      for (int turn = begin + k_warp; turn < stop; turn += k_warps * depth) {
#pragma unroll
        for (int d = 0; d < depth; ++d) {
          const int c = turn + k_warps * d;
          if (c >= stop) break;
          multiply_chunk(acc, loads[d], base + (c - begin) * (2 * chunk), c);
          if (const int next = c + k_warps * depth; next < last) load(loads[d], next);
        }
      }
    }
  }

  FUSELINE_DEVICE void multiply_chunk(Accumulators& sums, const Load& b, u32 a, int c) const {
    Accumulators part;
    if constexpr (rescaled) {
#pragma unroll
      for (int s = 0; s < strips; ++s)
#pragma unroll
        for (int g = 0; g < groups; ++g)
#pragma unroll
          for (float& x : part[s][g]) x = 0.0F;
    }
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
          a_words[s][half][0] = x.x;
          a_words[s][half][1] = x.y;
          a_words[s][half][2] = x.z;
          a_words[s][half][3] = x.w;
        }
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        u32 pairs[4];
        codes_of(pairs, b, g, e);
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
    if constexpr (rescaled) rescale(sums, part, b, c);
  }
  static FUSELINE_DEVICE void codes_of(u32 (&pairs)[4], const Load& b, int g, int e) {
    const u32 words[4] = {b.codes[g].x, b.codes[g].y, b.codes[g].z, b.codes[g].w};
    const u32 low = Weight::bits == 4 ? words[e] : words[2 * e % 4];
    const u32 high = Weight::bits == 4 ? 0U : words[(2 * e + 1) % 4];
    if constexpr (codes_alone) {
      pairs[0] = as_element<Element>(code_pair<Weight::codes, 0>(low, high));
      pairs[1] = as_element<Element>(code_pair<Weight::codes, 1>(low, high));
      pairs[2] = as_element<Element>(code_pair<Weight::codes, 2>(low, high));
      pairs[3] = as_element<Element>(code_pair<Weight::codes, 3>(low, high));
    } else {
      dequantise<Element, Weight>(pairs, low, high, b.scale[g][one_scale ? 0 : e]);
    }
  }
  // Sums of one chunk: times the scales of A's rows and of B's, whose columns lie in other lanes.
  FUSELINE_DEVICE void rescale(Accumulators& sums, const Accumulators& part, const Load& b,
                               int c) const {
    const int at_group = c * chunk / max_of(Weight::group, 1);
#pragma unroll
    for (int s = 0; s < strips; ++s) {
      float of_row[2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        of_row[half] = scale_of_a(16 * s + 8 * half + lane / 4, at_group);
#pragma unroll
      for (int g = 0; g < groups; ++g)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          // Column 2 (lane mod 4) + e of the group is the row of lanes 4 times that.
          const float of_column =
              __shfl_sync(0xffffffffU, b.scale[g][0].scale, (lane % 4 * 2 + e) * 4);
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
#pragma unroll
    for (int s = 0; s < strips; ++s)
#pragma unroll
      for (int g = 0; g < groups; ++g)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int r = 16 * s + 8 * half + lane / 4;
          *reinterpret_cast<float2*>(sums(k_warp) + r * sum_pitch + warp % column_warps * 32 +
                                     8 * g + lane % 4 * 2) =
              make_float2(acc[s][g][2 * half], acc[s][g][2 * half + 1]);
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
    constexpr bool of_rows = Config::a_codes != Codes::none && !in_rows;
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
              static_cast<long long>(group) * args.scale_rows + n / Weight::group_rows;
          of_column[e] = load_scale<Weight::scale>(args.scale, row * args.scale_ld) * tensor_scale;
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 x = *reinterpret_cast<const float2*>(
            sums(0) + (16 * warp + 8 * half + lane / 4) * sum_pitch + col);
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
      Epilogue::run(args.epilogue, state, slab_at<index>(), accumulated<index>());
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
