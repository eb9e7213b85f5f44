// What was measured on hardware: block times, kernel traces with byte counters, library GEMMs. Read
// from a folder (block.csv, kernels.csv, gemm.csv, rivals.csv, meta.toml) or from one of the CSV
// files; measurement_write.h writes such a folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/config/config.h"
#include "model/plan.h"

namespace fuseline {

// Where the numbers come from; empty parts were not recorded.
struct MeasurementMeta {
  std::string title;
  std::string gpu;  // name in scenarios/gpus
  std::string device, driver, toolkit, framework, date, clocks, command;
  std::string version = {};             // of fuseline, where it measured itself
  std::string counters = {};            // where byte counts come from: "Nsight Compute", "CUPTI"
  std::vector<std::string> notes = {};  // what a reader of the numbers should know
  // Clusters of tiles in a group of our own products' raster, where it was the same for all; empty:
  // as the tool chooses them. 0: those that read least from HBM (sim/kernels/gemm_raster.h).
  std::optional<std::int64_t> raster_clusters = {};
  // kOverlappingLaunches where launches of our own kernels did (sim/block/launch_overlap.h); empty:
  // no.
  std::string launches = {};
};

inline constexpr const char* kOverlappingLaunches = "overlap";  // of MeasurementMeta

// One way to run one block. `execution` is a policy's name where the policy imitates it.
struct BlockCase {
  std::string model;
  std::string execution;
  Workload workload;

  [[nodiscard]] std::string label() const;  // "llama2-7b eager forward 1x2048"
};

struct SpreadOfTimes {
  Seconds median, least, most;
};

// What is optional was recorded by some tools and not by others; an empty text likewise.
struct MeasuredBlock {
  BlockCase block;
  SpreadOfTimes time;
  std::string timer = {};  // "graph": replays of a CUDA graph
  // While the block ran: clocks of the SMs, power drawn by the board, why clocks fell ("none").
  std::optional<Hertz> sm_clock_median = {}, sm_clock_least = {};
  std::optional<Watts> power = {};
  std::string throttle = {};
  std::optional<double> checked = {};  // relative error of the block's outputs
  std::optional<Bytes> hbm_read = {}, hbm_write = {}, l2 = {};  // counters over the whole block
};

struct MeasuredKernel {
  std::string site;    // "norm1"; empty where the framework fused several
  std::string kernel;  // name of the kernel's code
  Seconds time;
  Bytes hbm_read, hbm_write, l2;  // hardware counters

  std::string grid = {}, block = {};             // of the launch: "(132, 1, 1)"
  std::optional<KernelKind> recorded_kind = {};  // where the file says it
  std::string tile = {};                         // "128x256x64"
  std::optional<Seconds> time_in_graph = {};     // without counters, between its neighbours

  // Without counters where that was recorded: under a profiler short kernels take longer.
  [[nodiscard]] Seconds duration() const { return time_in_graph.value_or(time); }
  [[nodiscard]] KernelKind kind() const;  // as recorded, else told from the kernel's name
};

// The kernels of one block in the order of their launches.
struct MeasuredTrace {
  BlockCase block;
  std::vector<MeasuredKernel> kernels;

  [[nodiscard]] Bytes hbm_read() const;
  [[nodiscard]] Bytes hbm_write() const;
};

// A library GEMM y[m,n] = x[m,k] w[n,k]^T in bf16.
struct MeasuredGemm {
  std::int64_t m = 0, n = 0, k = 0;
  SpreadOfTimes time;
};

struct Measurements {
  std::string path;
  MeasurementMeta meta;
  std::vector<MeasuredBlock> blocks;
  std::vector<MeasuredTrace> traces;
  std::vector<MeasuredGemm> gemms;
  // Other frameworks' runs of the same blocks, timed in turns with them: nothing that we predict.
  std::vector<MeasuredBlock> rivals = {};
};

// `path`: a folder with at least one of the CSV files, or one such file (told by its header;
// meta.toml is read from its folder when it is there). InputError: unreadable, empty, malformed
// (file, line, column name, value, allowed).
Measurements load_measurements(const std::string& path);

// The measurement of that case, if there is one (the first).
std::optional<MeasuredBlock> find_block(const Measurements& all, const BlockCase& wanted);
std::optional<MeasuredTrace> find_trace(const Measurements& all, const BlockCase& wanted);

// Same model, execution and sizes.
bool same_case(const BlockCase& a, const BlockCase& b);

// "gemm" → KernelKind::gemm; nothing for another word.
std::optional<KernelKind> kernel_kind_of(std::string_view name);

}  // namespace fuseline
