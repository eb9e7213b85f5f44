// Time of Hopper's kernel of codes for few rows (cuda/kernels/sm90/codes_columns.cuh).
#pragma once

#include <vector>

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_time.h"

namespace fuseline {

// What a thread block, which has a multiprocessor for itself, has to do: counted in the kernel's
// source.
struct ColumnsWork {
  double copies = 0;       // of 16 bytes of A into shared memory
  double codes = 0;        // that become numbers, columns that do not exist among them
  double code_bytes = 0;   // of these, with the scales beside them
  bool of_groups = false;  // columns of a row share scales: sums of each slice are multiplied
  bool meets = false;      // its sums along rows meet those of its neighbours
};
ColumnsWork columns_work(const GemmProblem& problem, const GemmTile& tile);

// time = launch + Σ over waves of start + copies + loop + meeting, where
//   launch  = empty kernel + gemm.start_us, and less by up to gemm.hot_start_us, the more L2 holds
//   start   = codes.column_start_us: the first codes come, the last sums are added up and stored
//   copies  = 16 bytes of A × codes.column_copy_cycles: nothing is multiplied before they come
//   loop    = the longest of
//             bytes missed and written back / sustained HBM rate
//             code bytes of a thread block / codes.column_bytes_per_cycle
//             where columns share scales: codes of a thread block / codes.column_codes_per_cycle
//   meeting = codes.column_meeting_us where the epilogue sums along rows: it loads what it adds,
//             and the last strip of 128 columns adds up the sums of all
GemmTime time_columns(const GemmProblem& problem, const GemmTile& tile,
                      const std::vector<GemmWave>& waves, const Gpu& gpu, double clock_factor);

}  // namespace fuseline
