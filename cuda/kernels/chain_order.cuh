// Which numbers a lane of a chain's warp loads, and where mma.sync takes them: plain functions,
// also compiled and tested on the CPU. A step is 16 rows of a weight and 8 rows of x, 32 columns of
// both: each lane loads 16 bytes of two rows of the weight and of one row of x, and two
// instructions multiply them. Word w of these 16 bytes has columns 2 w and 2 w + 1 of the lane's
// eight.
#pragma once

#include "host_device.cuh"

namespace fuseline::gpu::chain_order {

constexpr int step_columns = 32, tile_rows = 16, most_rows = 8;

// Row of the weight, `half` 0 or 1; row of x; the first of the lane's eight columns.
FUSELINE_HD constexpr int weight_row(int lane, int half) { return lane / 4 + 8 * half; }
FUSELINE_HD constexpr int x_row(int lane) { return lane / 4; }
FUSELINE_HD constexpr int first_column(int lane) { return lane % 4 * 8; }

// The instruction that word w belongs to, and its register there: of the weight's row `half`, of x.
FUSELINE_HD constexpr int instruction(int word) { return word / 2; }
FUSELINE_HD constexpr int weight_register(int word, int half) { return word % 2 * 2 + half; }
FUSELINE_HD constexpr int x_register(int word) { return word % 2; }

// Sum i of the four that a lane has: row of the weight, row of x.
FUSELINE_HD constexpr int sum_weight_row(int lane, int i) { return lane / 4 + 8 * (i / 2); }
FUSELINE_HD constexpr int sum_x_row(int lane, int i) { return lane % 4 * 2 + i % 2; }

}  // namespace fuseline::gpu::chain_order
