// The epilogue of a plain GEMM, and the smallest example of the contract (README.md).
#pragma once

#include "../element.cuh"
#include "place.cuh"
#include "store.cuh"

namespace fuseline::gpu {

// `Out` is the mainloop's TileOut<element>.
template <class Out>
struct StoreResult {
  struct Params {
    Out y;
  };
  struct State {};
  static constexpr int tile_loads = 0, col_loads = 0, scratch_bytes = 0, slab_groups = 8;
  static constexpr bool only_stores = true;  // `run` may have y in any form that store_tile takes

  template <class F>
  static FUSELINE_DEVICE void fetch(const Params&, F&&) {}
  static FUSELINE_DEVICE void begin(const Params&, State&, const SlabPlace&) {}
  template <class Slab, class Tile>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Slab& slab, const Tile& y) {
    store_tile(p.y, slab, y);
  }
};

}  // namespace fuseline::gpu
