// Which tiles, and which parts of them along K, the thread blocks of a persistent GEMM take.
//
// Cluster c of C takes tiles c, c + C, ...: the last round has `rest` tiles and fills only a part
// of the GPU. With sharing these tiles come first, each cut along K into equal parts, and cluster c
// takes parts c, c + C, ... of all of them. First parts come first, so that clusters that run
// together read the same steps of K, and share them in L2. 2 tiles of 9 steps on 5 clusters, 2
// parts:
//
//   cluster 0: tile 0, steps 0 to 3         cluster 2: tile 0, steps 4 to 8
//   cluster 1: tile 1, steps 0 to 3         cluster 3: tile 1, steps 4 to 8       4: a whole tile
//
// Who has the last part of a tile adds the sums of the others and has the epilogue. It waits for
// parts of lower numbers only, and all take parts in the order of their numbers: so none waits for
// ever. Or all that have a part add up together, behind all that they multiply (parted_tile.cuh).
#pragma once

#include "../host_device.cuh"

namespace fuseline::gpu {

// Steps of K [first, first + steps) of a tile; tile < 0: there is no more.
struct TilePart {
  int tile, first, steps;
  int number;  // of all parts, where the tile is shared
};

struct SharedTiles {
  int tiles, k_steps, clusters;
  int parts;  // of each tile of the last round; 1: none is shared
  int rest;   // tiles that are shared

  FUSELINE_HD SharedTiles(int all, int steps, int of_grid, int of_tile)
      : tiles(all),
        k_steps(steps),
        clusters(of_grid),
        parts(of_tile),
        rest(of_tile > 1 ? all % of_grid : 0) {}
  FUSELINE_HD TilePart part(int number) const {
    const int slice = number / rest;
    const int first = slice * k_steps / parts;
    return {number - slice * rest, first, (slice + 1) * k_steps / parts - first, number};
  }
};

// Of `pieces` of a tile the ones that who has part `slice` of `parts` adds up (parted_tile.cuh).
struct PieceRange {
  int first, last;
};
FUSELINE_HD PieceRange share_of(int slice, int parts, int pieces) {
  return {slice * pieces / parts, (slice + 1) * pieces / parts};
}

// The parts of one cluster, one after the other.
template <bool shares>
struct TileWalk {
  SharedTiles all;
  int step;   // from one tile or part to the next
  int whole;  // the next whole tile
  int part;   // the next part

  FUSELINE_HD TileWalk(const SharedTiles& tiles, int first, int by)
      : all(tiles), step(by), whole(first), part(first) {
    if constexpr (shares) whole += all.rest;
  }
  FUSELINE_HD TilePart next() {
    if constexpr (shares) {
      if (part < all.rest * all.parts) {
        part += step;
        return all.part(part - step);
      }
    }
    const int tile = whole;
    whole += step;
    return {tile < all.tiles ? tile : -1, 0, all.k_steps, 0};
  }
};

}  // namespace fuseline::gpu
