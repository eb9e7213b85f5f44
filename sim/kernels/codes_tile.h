// Which of our own mainloops has a product of codes.
//
// Tiles of the mainloop for weights in codes (cuda/kernels/gemm_codes.cuh). All its tiles have
// the same number of columns. Their rows, and how K is divided, follow from the shape alone. The
// simulator and the sources of the kernels ask the same function.
#pragma once

#include <cstdint>
#include <vector>

#include "model/gemm_tile.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_problem.h"

namespace fuseline {

inline constexpr std::int64_t kCodesColumns = 128;  // of a tile
inline constexpr std::int64_t kCodesTogether = 8;   // codes that share a scale
inline constexpr std::int64_t kCodesLowestTile = 8;
inline constexpr std::int64_t kCodesLowTile = 16;     // rows up to which a multiprocessor has two
inline constexpr std::int64_t kCodesDeepTile = 32;    // rows up to which two loads are ahead
inline constexpr std::int64_t kCodesWarpsAlongK = 2;  // which take turns along K

// Whether that mainloop can compute the product. The weights must be codes along K, of one product
// or of groups of rows. The groups of columns and the partial sums of the epilogue must lie within
// tiles of its width.
bool has_codes_tile(const GemmProblem& problem, const Gpu& gpu);

// Whether Hopper's tensor cores multiply both operands' codes as they are, and the sums by scales
// behind the mainloop (cuda/kernels/sm90/sum_scales.cuh): e4m3 codes by e4m3 codes whose rows have
// one scale each.
bool multiplies_codes(const StoredWeight& weight, const StoredWeight& activation);
// Whether that mainloop can compute the product, on a GPU that has it. Groups of rows are left to
// the other.
bool has_tile_of_codes(const GemmProblem& problem, const Gpu& gpu);
// A tile of the menu for such a product: a step of K has as many bytes, and so twice as many codes.
GemmTile tile_of_codes(const GemmTile& tile);

// `clusters`: thread blocks of a cluster may share K.
GemmTile codes_tile(std::int64_t m, std::int64_t n, std::int64_t k,
                    const std::vector<std::int64_t>& groups, const StoredWeight& weight,
                    bool clusters);
GemmTile codes_tile(const GemmProblem& problem, const Gpu& gpu);

// Columns of K that a warp takes in one turn.
std::int64_t codes_chunk(std::int64_t bits);

// The most tiles of `tile_m` rows that `rows` rows in at most `groups` groups can need.
std::int64_t most_row_tiles(std::int64_t rows, std::int64_t groups, std::int64_t tile_m);

// Turns of the warp that has most of them, in the thread block with the longest part of K.
std::int64_t codes_turns(const GemmTile& tile, std::int64_t k, std::int64_t bits);

}  // namespace fuseline
