// The order in which tiles are computed. All SMs work on neighbouring tiles at the same time, and
// what they read must come from L2 as often as possible: a wave of w tiles reads least when it is
// close to a square. So tiles run down a group of `group` tile rows, then one column to the right;
// every other group runs from right to left (serpentine), so that the columns of B that the last
// wave left in L2 are used first.
//
//   group 0:  0 2 4 6      group = 2, 4 columns: tile 0 lies above tile 1, tile 8 above tile 9.
//             1 3 5 7
//   group 1: 14 12 10 8
//            15 13 11 9
#pragma once

#include "host_device.cuh"

namespace fuseline::gpu {

struct TilePlace {
  int m, n;
  int result = 0;  // of a batch
};

FUSELINE_HD TilePlace grouped_tile(int index, int tiles_m, int tiles_n, int group) {
  const int per_group = group * tiles_n;
  const int g = index / per_group;
  const int rest = index - g * per_group;
  const int height = min_of(group, tiles_m - g * group);
  const int n = rest / height;
  return {g * group + rest - n * height, g % 2 == 0 ? n : tiles_n - 1 - n};
}

}  // namespace fuseline::gpu
