// What the simulator predicts of one kernel: time and traffic per memory level, with the bound that
// set the time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/plan.h"
#include "sim/memory/traffic.h"

namespace fuseline {

enum class Bound : std::uint8_t { tensor, hbm, l2, smem, launch, sync };

struct KernelEstimate {
  std::string name;
  KernelKind kind = KernelKind::pointwise;
  std::vector<std::string> operators;
  Seconds time;
  Flops flops;
  // Of them, what codes spare: products of codes take the power of 16-bit ones at their own rate.
  Flops spared;
  Bytes hbm_read;
  Bytes hbm_write;
  Bytes l2;          // bytes through L2 (tile loads with multicast counted once, plus stores)
  Bytes smem;        // bytes through shared memory
  Bytes compulsory;  // each distinct operand once
  Bound bound = Bound::hbm;
  std::vector<std::int64_t> tile;  // {tileM, tileN, tileK} or empty
  std::int64_t split_k = 1;
  // What was chosen besides: a GEMM's thread blocks of a cluster along m, n and k, its splits of K;
  // the splits of keys of an attention; of a kernel of several phases the tiles, choices and
  // launches of each, one after the other. Estimates with equal tiles and choices are of one
  // kernel.
  std::vector<std::int64_t> choice;
  // "chain" for kernels that no constant was fitted to: their errors are judged apart from those of
  // other kernels. Empty for all others.
  std::string judged_apart = {};
  std::int64_t launches = 1;  // a library takes some batches of products in several
  std::vector<RequestedBytes> requested;
  // Of the work at the clock of the estimate; without what an idle GPU draws in this time.
  Joules dynamic_energy;
  // Parts of the time, for the picture: they overlap, so they do not add up.
  Seconds tensor_time, hbm_time, l2_time, smem_time, launch_time;
};

const char* name_of(Bound);

}  // namespace fuseline
