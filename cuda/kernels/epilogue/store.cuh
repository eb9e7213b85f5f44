// The names under which epilogues store tiles; put_tile is the mainloop's, found by its slab.
#pragma once

#include "operands.cuh"

namespace fuseline::gpu {

template <bool add>
struct StoreMode {};

template <class T, class Slab, class Value>
FUSELINE_DEVICE void store_tile(const TileOut<T>& to, const Slab& slab, const Value& x) {
  put_tile(StoreMode<false>{}, to, slab, x);
}
// Adds to what the result's memory holds.
template <class T, class Slab, class Value>
FUSELINE_DEVICE void accumulate_tile(const TileOut<T>& to, const Slab& slab, const Value& x) {
  put_tile(StoreMode<true>{}, to, slab, x);
}

}  // namespace fuseline::gpu
