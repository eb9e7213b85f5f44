// Time of one wave of a GEMM kernel. The formula stands in gemm_time.h.
#pragma once

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_wave.h"
#include "sim/kernels/kernel_estimate.h"

namespace fuseline {

// Rates that do not change from wave to wave.
struct WaveModel {
  double step_seconds;            // one k step of one tile on the tensor cores
  double fetch_seconds;           // its panels from L2 into shared memory
  double panel_seconds;           // all of them, also those that others of the cluster ask for
  double smem_seconds;            // and from there to the tensor cores
  double absent_row_seconds = 0;  // zeros for one row that the matrix does not have
  bool hides_zeros = false;       // behind the tensor cores, also a panel of nothing else
  double convert_seconds;         // the instructions that dequantise a panel of b, or rescale sums
  double sm_epilogue_rate;        // bytes/s of one SM
  double l2_rate;
  double l2_requests = 1;  // for operands, as many bytes that begin at a line cost as much
  double hbm_rate;
  double concurrency;
  double overlap;             // exponent; of our own mainloop between HBM and the rest
  bool own = false;           // our own Hopper mainloop, for which the next are known
  double own_overlap = 0;     // exponent between all its parts
  double stage_seconds = 0;   // one k step, where the ring of stages waits for what it asked for
  double stages = 0;          // of the ring
  bool in_turns = false;      // two consumers with a tile each
  bool hides_stores = false;  // of an epilogue that only stores, behind the next tile
  double needed_streams;      // for the full HBM rate
  double cluster_k;           // thread blocks for one epilogue
  double sums_rate;           // bytes/s of one SM, of sums of parts of a tile
  double meeting_seconds;     // of parts of tiles that are added up together
  double last_meeting_seconds = 0;  // of all thread blocks, behind their own parts
  double exchange_seconds = 0;      // of clusters along K: meeting, and partial sums
  double restart_seconds = 0;       // of clusters along K: between a wave of them and the next
  double issue_seconds = 0;         // the instructions of the epilogue's functions of a tile
  double hidden_fetches = 0;        // of what the producer fetches for the epilogue
  double turn_seconds = 0;          // of a turned tile's sums, in fp32, once through shared memory
  double table_seconds = 0;         // until the first tile's tables are there, slab after slab

  WaveModel(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu, double clock_factor);
};

// In seconds.
struct WaveTime {
  double tensor, fetch, l2, hbm, smem, convert, epilogue;
  double mainloop;    // of all of them together
  double hidden = 0;  // of the epilogue, where the thread block has another tile behind this one
  Bound bound;
};

WaveTime time_of(const GemmWave& wave, const WaveModel& model);

}  // namespace fuseline
