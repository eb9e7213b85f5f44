// What Hopper's mainloop is compiled for, and what it is launched with.
#pragma once

#include "../batch.cuh"
#include "../byte_types.cuh"
#include "../ptx/tma.cuh"
#include "../ragged.cuh"
#include "tail_sums.cuh"

namespace fuseline::gpu {

template <class Epilogue>
struct Sm90Args;

enum class Schedule { cooperative, ping_pong };

template <class Element_, int tile_m_, int tile_n_, int cluster_ = 2,
          Schedule schedule_ = Schedule::cooperative, bool a_is_km_ = false, bool b_is_kn_ = false,
          bool batched_ = false, int cluster_k_ = 1, int a_rows_ = tile_m_, bool a_apart_ = false,
          bool ragged_ = false, bool ragged_k_ = false, bool shares_tail_ = false,
          bool turned_ = false>
struct Sm90Config {
  using Element = Element_;
  // What is multiplied. Sm90CodesConfig changes it.
  using Operand = Element;
  static constexpr bool scaled = false;
  template <class Epilogue>
  using Args = Sm90Args<Epilogue>;
  static constexpr int tile_m = tile_m_, tile_n = tile_n_, tile_k = 64;
  static constexpr int cluster = cluster_;
  static constexpr bool cooperative = schedule_ == Schedule::cooperative;
  static constexpr bool a_is_km = a_is_km_, b_is_kn = b_is_kn_;
  static constexpr bool batched = batched_;
  static constexpr int cluster_k = cluster_k_;
  // Rows of A that a tile loads: fewer than it has where the matrix ends above. What is multiplied
  // below them is whatever lies there, and becomes rows of D that nobody has. Of groups of rows they
  // are the rows of one box, and a tile loads as many boxes as its group has rows for: the zeros of
  // rows behind the matrix would take as long as the weights.
  static constexpr int a_rows = a_rows_;
  static_assert(a_rows == tile_m || (a_rows % 8 == 0 && tile_m == 64 && !a_is_km && !batched));

  // The rows of A lie apart in runs (one stream's rows of joint sequences), of which no tile meets
  // two. The map then has four dimensions, as those of batches: the runs are the last.
  static constexpr bool a_apart = a_apart_;
  static_assert(!a_apart || (a_rows == tile_m && !a_is_km && !batched));

  // Groups of rows, each with a matrix of its own (ragged.cuh).
  static constexpr bool ragged = ragged_;
  static_assert(!ragged || (cluster == 1 && cluster_k == 1 && tile_m % a_rows == 0 && !a_is_km &&
                            !batched && !a_apart));
  // The same along K: product g of a batch sums the rows of group g of A and B. Thread blocks of a
  // cluster have tiles of one product, which is as deep for all of them.
  static constexpr bool ragged_k = ragged_k_;
  static_assert(!ragged_k || (batched && cooperative && a_is_km && b_is_kn));

  // Where the last round of tiles would fill only a part of the GPU, thread blocks share the tiles
  // of it and of the round before along K (tile_walk.cuh).
  static constexpr bool shares_tail = shares_tail_;
  static_assert(!shares_tail || (cooperative && !batched && !ragged && cluster_k == 1));

  // The mainloop multiplies the other way round: its A is [N, K] and its B is [M, K], so tile_m
  // counts columns of D and tile_n rows. Rows then come in steps of 16 rather than of 64
  // (turned_tile.cuh).
  static constexpr bool turned = turned_;
  static_assert(!turned || (cooperative && !b_is_kn && !batched && cluster_k == 1 && !a_apart &&
                            !ragged && a_rows == tile_m));

  static constexpr int rows_per_group = cooperative ? tile_m / 2 : tile_m;  // of one warpgroup
  static_assert(rows_per_group % 64 == 0, "a warpgroup multiplies 64 rows at once");
  static constexpr int subtiles = rows_per_group / 64;
  static_assert(subtiles * tile_n <= (turned ? 320 : 256), "accumulators must fit the registers");
  // An instruction multiplies with 256 rows of B at most.
  static constexpr int products = tile_n > 256 ? 2 : 1;
  static constexpr int product_n = tile_n / products;
  static_assert(cluster_k == 1 || (cluster == 1 && tile_m == 64 && !cooperative && !batched),
                "thread blocks that share K make one tile of 64 rows");

  // One operand is weights, which no kernel writes: in a struct over this one. The producer asks for
  // those of the first steps before the kernel before has ended (launch_order.cuh).
  static constexpr bool weights_first = false;

  // What `gemm --measure --variants` changes (cuda/emit/gemm_variant.h), in a struct over this one.
  // half_boxes: a step of K comes in two boxes of 32 columns, in the 64-byte swizzle.
  static constexpr bool half_boxes = false;
  // store_by_threads: the copy engine stores nothing.
  static constexpr bool store_by_threads = false;

  // Boxes of the operands' tensor maps (columns, rows), 128-byte swizzle. A block loads all of A's
  // tile and its share of B's.
  static constexpr int a_box_cols = 64, a_box_rows = a_is_km ? 64 : a_rows;
  static constexpr int b_box_cols = 64, b_box_rows = (b_is_kn ? 64 : tile_n) / cluster;
  static_assert(b_box_rows % 8 == 0 && b_box_rows <= 256, "boxes of whole swizzles");
};

// Products of e4m3 codes by e4m3 codes, in a struct over an Sm90Config: what is multiplied has one
// byte instead of two, so that a step of K has 128 codes in the same bytes. Every row of either
// operand has one scale, and the sums are multiplied by both before the epilogue sees them
// (sm90/sum_scales.cuh).
template <class Config, class Weight_>
struct Sm90CodesConfig;

template <class Epilogue_>
struct Sm90Args {
  using Epilogue = Epilogue_;
  TmaMap a, b;
  int M, N, K;       // of D, if Config::turned too
  int raster_group;  // cluster rows of tiles that are swept together
  typename Epilogue::Params epilogue;
  Batch batch{};  // if Config::batched: M, N and K are of one product; maps of matrices
  int a_run = 0;  // if Config::a_apart: the rows of a run, a multiple of the tile's
  // If Config::ragged: N is one group's, M that of all groups. If Config::ragged_k: K is that of
  // all.
  RowGroups groups{};
  TailSums tail{};  // if Config::shares_tail
};

// Scales of codes; numbers from row to row behind the pointers' own.
struct CodeScales {
  const float* a;       // [M, 1]
  const void* b;        // [rows of scales, 1], of Weight's type
  const float* tensor;  // one number of B, or null
  int a_ld, b_ld;
  int b_rows;  // rows of scales of one group of rows
  int unused;
};

template <class Epilogue>
struct Sm90CodesArgs : Sm90Args<Epilogue> {
  alignas(64) CodeScales scales{};  // behind all of the base, its last padding too
};

template <class Config, class Weight_>
struct Sm90CodesConfig : Config {
  using Operand = e4m3;
  using Weight = Weight_;
  static constexpr bool scaled = true;
  template <class Epilogue>
  using Args = Sm90CodesArgs<Epilogue>;
  static constexpr int tile_k = 128;
  static constexpr int a_box_cols = 128, b_box_cols = 128;
  static_assert(!(Config::a_is_km || Config::b_is_kn || Config::batched || Config::a_apart ||
                  Config::half_boxes),
                "codes lie along K");
  static_assert(Weight::codes == Codes::e4m3 && Weight::group == 0 && !Weight::zeros,
                "one scale for a row of e4m3 codes");
};

}  // namespace fuseline::gpu
