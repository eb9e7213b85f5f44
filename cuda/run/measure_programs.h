// Programs of one's own on the GPU here: checked with several seeds, timed in turns with the same
// maths without fusion, counted, and judged.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cuda/compile/compiler.h"
#include "cuda/counters/gpu_state.h"
#include "cuda/run/program_claim.h"
#include "model/plan.h"
#include "sim/executor/parallel.h"
#include "sim/measured/measurement.h"

namespace fuseline::cuda {

struct ProgramMeasureOptions {
  executor::Workers workers;  // of the host, for inputs and the check
  std::uint64_t seed = 1;     // the first of three
  int replays = 20;
  int rounds = 2;  // bursts of each plan, in turns with the other
  bool counters = true;
  // Takes the place of the source of a fused kernel: how tests show that kernels that cheat are
  // found out.
  std::function<std::string(const std::string& text)> replace_source{};
  std::function<void(const std::string&, double)> progress{};
};

// One plan: the programs as they are, or taken apart.
struct MeasuredPrograms {
  SpreadOfTimes time;
  std::vector<MeasuredKernel> kernels;  // times in a graph; with counters, bytes too
  std::optional<Bytes> hbm_read, hbm_write;
  GpuStateSummary state;
  int copies = 1;  // of all tensors, that took turns, so that L2 held none of them
  ClaimEvidence evidence;
  std::vector<ClaimFault> faults;
};

// Where the time from the text to the result went.
struct MeasuringStage {
  std::string what;
  double seconds = 0;
};

struct ProgramMeasurement {
  std::string device, driver, toolkit;
  MeasuredPrograms programs;
  std::optional<MeasuredPrograms> unfused;
  double seconds = 0;                    // from the text to the end of the timing
  std::vector<MeasuringStage> stages{};  // of these seconds
  std::vector<std::string> notes;
  // The programs are right and nothing speaks against their time.
  [[nodiscard]] bool passed() const { return programs.faults.empty(); }
};

// `unfused`: null where nothing can be taken apart. MissingError: no driver, GPU, toolkit or
// memory. InternalError: a kernel faulted.
ProgramMeasurement measure_programs(const Plan& programs, const Plan* unfused, const Gpu& described,
                                    const ProgramMeasureOptions& options);

}  // namespace fuseline::cuda
