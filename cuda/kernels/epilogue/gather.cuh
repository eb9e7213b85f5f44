// Sums over groups of columns that are wider than a slab (norms of heads of 128 columns): before
// the epilogue runs, a pass over all slabs of the tile gathers them from the accumulators. A tile
// holds whole groups, so a row's sum needs its own four lanes only.
//
// An epilogue that has such a pass says so (`gathers`) and has a second function, which computes
// what is summed:
//
//   static constexpr bool gathers = true;
//   template <class Slab, class Tile>
//   static FUSELINE_DEVICE void gather(const Params& p, State& state, const Slab& slab,
//                                      const Tile& y);
#pragma once

#include "reduce.cuh"

namespace fuseline::gpu {

template <class Epilogue, class = void>
constexpr bool gathers_groups = false;
template <class Epilogue>
constexpr bool gathers_groups<Epilogue, decltype(void(Epilogue::gathers))> = Epilogue::gathers;

// What a thread keeps of a tile's groups of `group` columns, for its two rows.
template <class Op, int group>
struct GroupState {
  static constexpr int widest_tile = 256, groups = widest_tile / group;
  float v[groups][2];
  FUSELINE_DEVICE GroupState() {
#pragma unroll
    for (auto& of_group : v) of_group[0] = of_group[1] = Op::start;
  }
};

// Which of the tile's groups a slab belongs to: slabs and groups begin where the tile does.
template <class Slab, int group>
constexpr int group_of_slab = Slab::index * 8 * Slab::groups / group;

template <class Op, int group, class Slab, int groups>
FUSELINE_DEVICE void gather_group(const Slab&, GroupState<Op, group>& state,
                                  const Fragment<2, groups>& x) {
  constexpr int span = 8 * groups;  // columns of the slab
  static_assert(group % span == 0 && Slab::tile_cols % group == 0, "a tile cuts a group");
  float(&sum)[2] = state.v[group_of_slab<Slab, group>];
  for_each_element<Fragment<2, groups>>(
      [&](int h, int g, int e) { sum[h] = Op::join(sum[h], Op::term(x.at(h, g, e))); });
  if constexpr ((Slab::index + 1) * span % group == 0) {
#pragma unroll
    for (float& of_row : sum) {
      of_row = Op::join(of_row, __shfl_xor_sync(0xffffffffU, of_row, 1));
      of_row = Op::join(of_row, __shfl_xor_sync(0xffffffffU, of_row, 2));
    }
  }
}

// What was gathered of the slab's group, at each of its columns.
template <class Op, int group, class Slab>
FUSELINE_DEVICE Fragment<2, Slab::groups> gathered(const Slab& slab,
                                                   const GroupState<Op, group>& state) {
  // Where slabs come in a loop, their number is not known when the code is compiled, and registers
  // have no index.
  const int of_slab = slab.number() * 8 * Slab::groups / group;
  float sum[2] = {state.v[0][0], state.v[0][1]};
#pragma unroll
  for (int i = 1; i < GroupState<Op, group>::groups; ++i) {
    sum[0] = i == of_slab ? state.v[i][0] : sum[0];
    sum[1] = i == of_slab ? state.v[i][1] : sum[1];
  }
  Fragment<2, Slab::groups> out;
  for_each_element<Fragment<2, Slab::groups>>(
      [&](int h, int g, int e) { out.at(h, g, e) = sum[h]; });
  return out;
}

}  // namespace fuseline::gpu
