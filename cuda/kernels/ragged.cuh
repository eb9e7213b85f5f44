// Rows in groups of different lengths that lie behind each other, each times a matrix of its own:
// the tokens of every expert. The lengths are read from memory: `ends` has the row behind each
// group's last one.
//
// A tile holds rows of one group only, so a group's last tile may be low:
//
//   ends = 3 3 10, tiles of 4 rows:    group 0: rows 0 to 2
//                                      group 1: has none
//                                      group 2: rows 3 to 6, rows 7 to 9
//
// How many tiles there are depends on the lengths. A kernel is launched for the most there can be
// (most_row_tiles), and thread blocks without a tile leave.
#pragma once

#include "raster.cuh"

namespace fuseline::gpu {

struct RowGroups {
  const int* ends = nullptr;
  int count = 0;

  FUSELINE_HD int begin(int group) const { return group > 0 ? ends[group - 1] : 0; }
  FUSELINE_HD int rows(int group) const { return ends[group] - begin(group); }
};

// The group that has the row; the last one has all rows behind it too.
FUSELINE_HD int group_of(const RowGroups& groups, int row) {
  int first = 0, last = groups.count - 1;
  while (first < last) {
    const int middle = (first + last) / 2;
    if (row < groups.ends[middle])
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

// Tiles below each other that `rows` rows in at most `groups` groups can need. Every group with
// rows has a tile that it may fill with one row; all others are full.
FUSELINE_HD constexpr int most_row_tiles(int rows, int groups, int tile_m) {
  const int used = min_of(rows, groups);
  return used == 0 ? 0 : (rows - used) / tile_m + used;
}

struct RaggedTile {
  int group = -1;        // -1: there is no such tile
  int row = 0, end = 0;  // its first row, and the row behind the group's last one
  int column_tile = 0;
};

FUSELINE_HD int row_tiles(const RowGroups& groups, int tile_m) {
  int tiles = 0;
  for (int g = 0; g < groups.count; ++g) tiles += ceil_div(groups.rows(g), tile_m);
  return tiles;
}

// Finds the groups' tiles, `tiles_n` of them side by side: the groups behind each other, and within
// a group in the raster's order. It goes on from the tile it found last, so indexes must not fall.
struct RaggedTiles {
  RowGroups groups;
  int tile_m, tiles_n, raster_group;
  int group = 0;   // that it has come to
  int before = 0;  // tiles of the groups ahead of that

  FUSELINE_HD RaggedTile find(int index) {
    for (; group < groups.count; ++group) {
      const int begin = groups.begin(group), end = groups.ends[group];
      const int tiles_m = ceil_div(end - begin, tile_m);
      if (index < before + tiles_m * tiles_n) {
        const TilePlace place = grouped_tile(index - before, tiles_m, tiles_n, raster_group);
        return {group, begin + place.m * tile_m, end, place.n};
      }
      before += tiles_m * tiles_n;
    }
    return {};
  }
};

}  // namespace fuseline::gpu
