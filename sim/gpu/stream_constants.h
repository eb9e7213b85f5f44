// Constants of kernels without a matrix product; see constants.h.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace fuseline {

// Kernels without a matrix product: element-wise work, norms, softmax, copies.
struct StreamConstants {
  double pointwise_instructions = 0;
  double rope_instructions = 0;
  double concat_instructions = 0;
  double gelu_instructions = 0;
  double erf_instructions = 0;
  double erf_slope_instructions = 0;
  double generated_norm_instructions = 0;
  double layer_norm_instructions = 0;
  double resident_row_instructions = 0;
  double row_instructions = 0;
  double softmax_instructions = 0;
  double scatter_add_instructions = 0;
  double strided_instructions = 0;
  double strided_add_factor = 0;
  double strided_convert_factor = 0;
  double transposing_instructions = 0;
  double column_instructions = 0;
  Seconds column_step;
  Seconds column_tree;
  Seconds column_row_store;
  double issue_lanes = 0;
  double hbm_fraction = 0;
  double l2_fraction = 0;
  Seconds ramp;
  Seconds search_step, dependent_load, choice_step;
  Seconds strided_latency;
  double concat_latency_fraction = 0;
  Seconds reduce_latency;
  Seconds reduce_least;
  double reduce_rows = 0;
  Seconds row_step;
  Seconds row_block;
  Seconds row_start;
  Seconds generated_row_start;
  double resident_row_steps = 0;
  double layer_norm_step_factor = 0;
  double generated_row_padding = 0;
  double miss_wait = 0;
  double miss_exposed = 0;
  double exposed_row_waves = 0;
  std::int64_t block_threads = 0;
  std::int64_t generated_row_threads = 0;
  std::int64_t resident_row_threads = 0;
  std::int64_t thread_elements = 0;
  std::int64_t vector_thread_elements = 0;
};

// A framework's kernels that choose experts and sort what belongs to them.
struct RouteConstants {
  double select_instructions = 0;
  Seconds select_start;
  Seconds select_row;
  Seconds order;
  Seconds sort_step;
  Seconds sort_number;
  Seconds sort_warp;
  Seconds sort_pass;
  Seconds generated_sort;
};

}  // namespace fuseline
