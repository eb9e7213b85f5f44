// The names under which epilogues store tiles (TileOut, TileOutRuns); put_tile is the mainloop's,
// found by its slab.
#pragma once

#include "operands.cuh"

namespace fuseline::gpu {

// `across`: the slab may begin ahead of the part that is stored.
template <bool add, bool across = false>
struct StoreMode {};

template <class To, class Slab, class Value>
FUSELINE_DEVICE void store_tile(const To& to, const Slab& slab, const Value& x) {
  put_tile(StoreMode<false>{}, to, slab, x);
}
// Of a part that begins inside a slab.
template <class To, class Slab, class Value>
FUSELINE_DEVICE void store_part(const To& to, const Slab& slab, const Value& x) {
  put_tile(StoreMode<false, true>{}, to, slab, x);
}
// Adds to what the result's memory holds.
template <class To, class Slab, class Value>
FUSELINE_DEVICE void accumulate_tile(const To& to, const Slab& slab, const Value& x) {
  put_tile(StoreMode<true>{}, to, slab, x);
}

}  // namespace fuseline::gpu
