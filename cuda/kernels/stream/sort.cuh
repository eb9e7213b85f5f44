// At which places keys stand when all are sorted: keys compared with each other, or many keys of
// few values counted.
#pragma once

#include "../routing.cuh"
#include "key_counts.cuh"
#include "memory.cuh"

namespace fuseline::gpu::stream {

// At which place the key of a row stands when all are sorted: the inverse of what is stored.
template <int units>
struct PlaceOfKey {
  int v[units];
};

// Counts the keys that come before the rows' own; key i is number i mod cols of row i / cols. A
// warp has the same rows in all lanes, and each lane looks at every 32nd key. So the work grows
// with the square of the number of keys, and nothing waits for other thread blocks.
template <int cols, class T, int units>
FUSELINE_DEVICE PlaceOfKey<units> sort_places(const Rows<T>& keys, const TilePlace<units>& place) {
  const auto key = [&](int i) { return to_float(keys.data[i / cols * keys.step + i % cols]); };
  const int lane = static_cast<int>(threadIdx.x % 32);
  float own[units];
  PlaceOfKey<units> out{};
#pragma unroll
  for (int u = 0; u < units; ++u) own[u] = key(min_of(place.row(u), place.rows - 1));
  int i = lane;
  // Keys ahead of all of this warp's come first where they are equal, those behind do not.
  for (; i < place.row(0); i += 32) {
    const float x = key(i);
#pragma unroll
    for (int u = 0; u < units; ++u) out.v[u] += x <= own[u] ? 1 : 0;
  }
  for (; i <= place.row(units - 1) && i < place.rows; i += 32) {
    const float x = key(i);
#pragma unroll
    for (int u = 0; u < units; ++u) out.v[u] += sorted_before(x, i, own[u], place.row(u)) ? 1 : 0;
  }
  for (; i < place.rows; i += 32) {
    const float x = key(i);
#pragma unroll
    for (int u = 0; u < units; ++u) out.v[u] += x < own[u] ? 1 : 0;
  }
#pragma unroll
  for (int u = 0; u < units; ++u) out.v[u] = __reduce_add_sync(0xffffffffU, out.v[u]);
  return out;
}

// Of one value in every lane: how many lanes before this one have it, and how many in all.
struct EqualLanes {
  int before, count;
};
FUSELINE_DEVICE EqualLanes equal_lanes(int key) {
  const u32 equal = __match_any_sync(0xffffffffU, key);
  const u32 below = (1U << (threadIdx.x % 32)) - 1;
  return {__popc(equal & below), __popc(equal)};
}

// A warp turns counts into the first places of the block's keys: smaller keys, and equal ones ahead.
template <int values>
FUSELINE_DEVICE void sum_counts(KeyCounts<values>& counts) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  int smaller = 0;
#pragma unroll 1
  for (int first = 0; first < values; first += 32) {
    const int v = first + lane;
    const int ahead = v < values ? counts.ahead[v] : 0;
    const int own = v < values ? ahead + counts.others[v] : 0;
    int sum = own;  // of this lane and those before it
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int below = __shfl_up_sync(0xffffffffU, sum, step);
      if (lane >= step) sum += below;
    }
    if (v < values) counts.ahead[v] = smaller + sum - own + ahead;
    smaller += __shfl_sync(0xffffffffU, sum, 31);
  }
}

// Keys that are whole numbers below `values`. Every thread block counts all keys, those ahead of its
// own rows apart from the others, then its own in their order, so that nothing waits for other
// thread blocks. Called by all threads of a block at once; each lane has rows of its own, those of a
// warp lie behind each other.
template <int cols, int values, class T, int units>
FUSELINE_DEVICE PlaceOfKey<units> count_places(const Rows<T>& keys, const TilePlace<units>& place) {
  __shared__ KeyCounts<values> counts;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  // Other numbers are no keys of such a plan; none may be counted outside.
  const auto key = [&](int row, int col) {
    const int k = static_cast<int>(to_float(keys.data[row * keys.step + col]));
    return min_of(max_of(k, 0), values - 1);
  };
  counts.clear(thread);
  __syncthreads();
  const int block_begin = place.row(0) - lane - warp * units * 32;
#pragma unroll 4
  for (int row = thread; row < place.rows / cols; row += counting_threads) {
#pragma unroll
    for (int c = 0; c < cols; ++c)
      atomicAdd(&(row * cols + c < block_begin ? counts.ahead : counts.others)[key(row, c)], 1);
  }
  int own[units];
  PlaceOfKey<units> out;  // among equal keys of the warp, then in all
#pragma unroll
  for (int u = 0; u < units; ++u) {
    const int row = place.row(u);
    own[u] = row < place.rows ? key(row / cols, row % cols) : -1;
    const EqualLanes equal = equal_lanes(own[u]);
    out.v[u] = equal.before;
    if (own[u] >= 0) out.v[u] += counts.of_warp[warp][own[u]];
    __syncwarp();
    if (own[u] >= 0 && equal.before == 0) counts.of_warp[warp][own[u]] += equal.count;
    __syncwarp();
  }
  __syncthreads();
  if (warp == 0) sum_counts(counts);
  __syncthreads();
#pragma unroll
  for (int u = 0; u < units; ++u) {
    if (own[u] < 0) continue;
    out.v[u] += counts.ahead[own[u]];
#pragma unroll 1
    for (int w = 0; w < warp; ++w) out.v[u] += counts.of_warp[w][own[u]];
  }
  return out;
}

// The places as numbers of the rows.
template <int units>
FUSELINE_DEVICE PerRow<units> numbers_of(const PlaceOfKey<units>& key) {
  PerRow<units> out;
#pragma unroll
  for (int u = 0; u < units; ++u) out.v[u] = static_cast<float>(key.v[u]);
  return out;
}
// Each row stores its own number at its key's place.
template <class T, int units>
FUSELINE_DEVICE void store_rows(const Rows<T>& to, const TilePlace<units>& place,
                                const PlaceOfKey<units>& key) {
  if (!place.writes_rows()) return;
#pragma unroll
  for (int u = 0; u < units; ++u)
    if (place.row(u) < place.rows)
      to.data[key.v[u] * to.step] = from_float<T>(static_cast<float>(place.row(u)));
}

}  // namespace fuseline::gpu::stream
