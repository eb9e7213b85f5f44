// The least traffic of a plan's kernels for the capacities of a GPU's memories, and of chains of
// two of them: what `fuseline limits` prints.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/block/estimate.h"
#include "sim/draw/svg.h"
#include "sim/nests/product_traffic.h"
#include "sim/report/prediction.h"

namespace fuseline {

// Between two memories: the near one holds `capacity`.
struct TrafficLevel {
  Bytes capacity;
  Bytes least;                        // no schedule moves less
  std::optional<TiledTraffic> tiled;  // the best tiling that fits; empty: none does
  Bytes predicted;
};

// One kernel with a mainloop of products, or two kernels that could be one. It is taken by itself:
// nothing is in the near memory before, and results leave it.
struct KernelTraffic {
  std::string name;   // "gate_up", "gate_up + down"
  std::string loops;  // "m 2048, n 4096, k 4096, 32 times"
  Bytes compulsory;
  TrafficLevel hbm;  // into everything on the chip
  TrafficLevel l2;   // into the shared memory and registers of one SM; of a chain: not predicted
  std::vector<TiledTraffic> curve;
  std::function<Bytes(Bytes)> least_at;  // least_traffic() for any capacity of the near memory
  // Of the better tilings that integer sets refuse the last: "m by 3: the two iterations in the
  // wrong order". Empty: none was refused. Those above respect every dependence.
  std::string broken;
};

struct TrafficLimits {
  Bytes on_chip;  // L2, shared memory and registers of all SMs
  Bytes of_sm;    // shared memory and registers of one
  Bytes block_least;
  PlanEstimate estimate;
  std::vector<KernelTraffic> kernels, chains;
  std::vector<std::string> names;  // of all kernels and chains, also where one alone was asked for
};

// Where curves are read: powers of two of 16 KiB and more up to all that is touched, and the
// GPU's own capacities.
std::vector<Bytes> curve_capacities(const KernelTraffic& kernel, const Gpu& gpu);

// Of one kernel as a drawing; and everything as JSON or CSV.
Svg draw_curve(const KernelTraffic& kernel, const Gpu& gpu);
std::string traffic_limits_json(const PredictionCase& c, const TrafficLimits& limits);
std::string curves_csv(const std::vector<const KernelTraffic*>& kernels, const Gpu& gpu);

// `show` is told which kernel comes next, and the share of them that is done. `only`: of this
// kernel or chain alone; empty: of all.
TrafficLimits traffic_limits(const Plan& plan, const Gpu& gpu, const SimulationOptions& options,
                             const std::function<void(const std::string&, double)>& show = {},
                             const std::string& only = {});

// Bytes that HBM moves at least in one of many equal blocks, when all memories on the chip hold
// `on_chip` bytes: limits_of()'s `least` and, where a weight does not fit, what its product reads
// again. Products that share an operand may read it together, so of those the one that reads most
// counts.
Bytes least_of_block(const Graph& block, const Gpu& gpu, Bytes on_chip);
Bytes on_chip_memory(const Gpu& gpu);

// Bytes that a product's kernel moves at least from L2 into the SMs; nothing of kernels without a
// product. A cluster of SMs receives what its members share once.
Bytes least_from_l2(const Plan& plan, const Kernel& kernel, const Gpu& gpu);

}  // namespace fuseline
