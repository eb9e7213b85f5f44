// The constants of the hierarchy model: what its formulas take from measurements and from the
// kernels that libraries launch. sim/gpu/constant_table.cpp says what each means and in which unit
// a file gives it. The values stand in scenarios/architectures/*.toml with range, source and
// status; a GPU's file may replace each. load_gpu() resolves them once.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "sim/gpu/stream_constants.h"

namespace fuseline {

// GEMMs: the mainloop as fractions of the GPU's own numbers, and how a tile is chosen.
struct GemmConstants {
  double tensor_fraction = 0;
  double sm_fetch_bytes_per_cycle = 0;
  double l2_fraction = 0;
  double own_l2_fraction = 0;
  double second_line_cost = 0;
  double hbm_fraction = 0;
  double concurrency_exponent = 0;
  double stream_gb_per_s = 0;
  double drift = 0;
  double overlap_exponent = 0;
  double own_overlap_exponent = 0;
  double idle_tensor_gain = 0;
  double most_tensor_fraction = 0;
  Seconds stage_latency;
  Seconds stage_latency_in_turns;
  double absent_bytes_per_cycle = 0;
  double epilogue_bytes_per_cycle = 0;
  double epilogue_issue_fraction = 0;
  double exposed_epilogue_bytes_per_cycle = 0;
  double exposed_fetch_fraction = 0;
  double turn_bytes_per_cycle = 0;
  Seconds start;
  Seconds hot_start;
  Seconds reduction;
  Seconds cluster_wave, cluster_start;
  Seconds parts_meet, parts_meet_all;
  double sums_bytes_per_cycle = 0;
  double reduction_fraction = 0;
  double packed_fraction = 0;
  double odd_packed_fraction = 0;
  double raster_group_tiles = 0;
  double unaligned_bytes_per_cycle = 0;
  double dequantise_instructions = 0;
  double fp8_fraction = 0;
  double int8_fraction = 0;
  double rescale_instructions = 0;
  std::int64_t alignment_bytes = 0;
  double tf32_fraction = 0;
  std::int64_t packed_cluster = 0;
  std::int64_t least_split_steps = 0;
  std::int64_t split_waves = 0;
  double tile_indifference = 0;
  double own_tile_indifference = 0;
  std::int64_t thin_rows = 0;
  std::int64_t least_tile_rows = 0;
  std::int64_t thin_columns = 0;
};

// Products of weights in codes by our own mainloop: clocks of one multiprocessor.
struct CodesConstants {
  double copy_cycles = 0;
  double scale_cycles = 0;
  double row_cycles = 0;
  double wait_cycles = 0;
  Seconds cluster;
  // Of Hopper's kernel for few rows.
  double column_bytes_per_cycle = 0;
  double column_codes_per_cycle = 0;
  double column_copy_cycles = 0;
  Seconds column_start;
  Seconds column_meeting;
};

// Attention in one kernel.
struct AttentionConstants {
  double block_bytes_per_cycle = 0;
  double wide_block_bytes_per_cycle = 0;
  double block_cycles_per_key = 0;
  double served_blocks_per_sm = 0;
  double repeated_l2_share = 0;
  Seconds combine;
  Seconds combine_split;
  double exp_cycles = 0;
  double gradient_exps = 0;
  double gradient_products = 0;
  double gradient_item_cycles = 0;
  double generic_product = 0;
  double generic_gradient_product = 0;
  double own_decode_bytes_per_cycle = 0;
  Seconds own_decode_round;
  double own_forward_exp_cycles = 0;
  double own_forward_product = 0;
  Seconds own_forward_start;
  double own_join_gb_per_s = 0;
  double generic_longest = 0;
  double own_gradient_exps = 0;
  double own_gradient_product = 0;
  double own_gradient_item_cycles = 0;
  double hbm_fraction = 0;
  double item_cycles_per_width = 0;
  double product_exposed = 0;
  Seconds split_start;
  Seconds own_decode_start;
  Seconds start;
  double overlap_exponent = 0;
  std::int64_t blocks_per_sm = 0;
  std::int64_t split_least_keys = 0;
  std::int64_t full_tile_width = 0;
  double wide_head_loss = 0;
};

// Scans with a state on chip.
struct ScanConstants {
  Seconds chunk;                    // of chunks on tensor cores: what waits for each other
  double product_fraction = 0;      // of the tensor cores' rate that their products reach
  double body_bytes_per_cycle = 0;  // of what operators behind a chunk load and store
  Seconds body_step;                // what those that load something add to a token of a walk
  Seconds step;                     // of a walk token by token
  Seconds gradient_step;            // of our own gradient's, which takes each token several times
  double gradient_instructions = 0;
  double walk_instructions = 0;  // of a walk, for each number of the state and token
  double prefix_instructions = 0;
  std::int64_t prefix_tokens = 0;
};

// Launches of a graph.
struct LaunchConstants {
  Seconds gap;
  Seconds overlap;
  Seconds stream;
};

// Waiting within one launch.
struct SyncConstants {
  Seconds barrier;
};

// The shared cache.
struct L2Constants {
  double capacity_fraction = 0;
  double single_partition_fraction = 0;
  double set_spread = 0;
};

// Energy, and the power limit.
struct PowerConstants {
  double idle_w = 0;
  double tensor_pj_per_flop = 0;
  double hbm_pj_per_byte = 0;
  double l2_pj_per_byte = 0;
  double smem_pj_per_byte = 0;
  double energy_uncertainty = 0;
  double clock_exponent = 0;
  Seconds reaction;
  double reaction_sharpness = 0;
  double lowest_clock = 0;
};

struct Constants {
  GemmConstants gemm;
  CodesConstants codes;
  AttentionConstants attention;
  ScanConstants scan;
  StreamConstants stream;
  RouteConstants route;
  LaunchConstants launch;
  SyncConstants sync;
  L2Constants l2;
  PowerConstants power;
};

}  // namespace fuseline
