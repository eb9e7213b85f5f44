// The names under which epilogues store tiles; put_tile is the mainloop's, found by its slab.
#pragma once

#include "operands.cuh"

namespace fuseline::gpu {

// `across`: the slab may begin ahead of the part that is stored.
template <bool add, bool across = false>
struct StoreMode {};

template <class T, class Slab, class Value>
FUSELINE_DEVICE void store_tile(const TileOut<T>& to, const Slab& slab, const Value& x) {
  put_tile(StoreMode<false>{}, to, slab, x);
}
// Of a part that begins inside a slab.
template <class T, class Slab, class Value>
FUSELINE_DEVICE void store_part(const TileOut<T>& to, const Slab& slab, const Value& x) {
  put_tile(StoreMode<false, true>{}, to, slab, x);
}
// Adds to what the result's memory holds.
template <class T, class Slab, class Value>
FUSELINE_DEVICE void accumulate_tile(const TileOut<T>& to, const Slab& slab, const Value& x) {
  put_tile(StoreMode<true>{}, to, slab, x);
}

}  // namespace fuseline::gpu
