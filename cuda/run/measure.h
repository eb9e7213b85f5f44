// Policies' plans of one block on the GPU here: checked, timed and counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/counters/counter_check.h"
#include "cuda/counters/gpu_state.h"
#include "cuda/run/instruction_time.h"
#include "model/config/config.h"
#include "model/gemm_tile.h"
#include "sim/executor/parallel.h"
#include "sim/executor/verification.h"
#include "sim/gpu/gpu.h"
#include "sim/measured/measurement.h"

namespace fuseline::cuda {

enum class CheckSize : std::uint8_t {
  automatic,  // full where the host computes the reference in some seconds, else small
  full,       // at the measured sizes
  small,      // at sizes that the host computes in some seconds, with the same kernels
  none,
};

struct MeasureOptions {
  executor::Workers workers;  // of the host, for inputs and the reference
  std::uint64_t seed = 1;     // of the inputs: normal numbers
  int replays = 20;
  bool counters = true;
  bool library = true;             // the vendor's GEMMs where a policy calls them
  bool library_attention = false;  // the vendor's attention wherever it can take the place of ours
  bool tune = false;               // also times the other tiles of our own GEMMs
  bool ampere = false;             // the sm_80 kernels also where newer ones run
  bool overlap = false;            // launches overlap where a plan gains by it
  CheckSize check = CheckSize::automatic;
  int rounds = 2;  // bursts of each policy and rival
  // Measured first, beside the policies; it is of this block and these sizes, so the check is at
  // the measured sizes too.
  std::shared_ptr<const Plan> plan{};
  std::vector<std::string> rivals{};  // of rival_executions()
  std::string rival_command{};        // starts them; arguments are put behind it
  // What is being done, and the share of the whole work.
  std::function<void(const std::string&, double)> progress{};
  // What is known of a block so far: after each burst of it, and when its bytes are counted.
  std::function<void(const MeasuredBlock&)> seen{};
};

// One GEMM of ours with every tile that it can have.
struct TunedGemm {
  std::string kernel{};
  std::int64_t M = 0, N = 0, K = 0;
  GemmTile chosen{}, best{};
  Seconds chosen_time{}, best_time{};
  std::vector<std::pair<GemmTile, Seconds>> tried{};  // median times of all, the chosen first
};

struct MeasuredPolicy {
  std::string policy;
  MeasuredBlock block;
  std::optional<MeasuredTrace> trace;  // with counters
  GpuStateSummary state;
  int layers = 1;  // that a replay ran through
  Bytes memory;    // of its tensors
  int library_gemms = 0, library_attentions = 0;
  std::vector<executor::ComparedTensor> tensors{};  // checked against fp64
  std::string not_finite{};                         // the first tensor with a NaN or infinity
  bool repeats = true;                              // the same bits after timing as before
  std::vector<TunedGemm> tuned{};
  std::vector<InstructionTime> instructions{};  // of one launch, where the plan has such a kernel

  [[nodiscard]] bool passed() const;
};

struct GpuMeasurement {
  std::string device, driver, toolkit, libraries;
  bool library_attention = false;  // one of the libraries is there for attention
  bool overlap = false;            // launches overlapped where a plan gains by it
  BlockCase checked_as;            // sizes of the check; no model when there was none
  std::vector<MeasuredPolicy> policies;
  std::vector<MeasuredBlock> rivals{};  // the same block in another framework, in turns with ours
  std::string rival_framework{};        // "PyTorch 2.11.0"
  std::optional<CounterCheck> counters;
  std::vector<std::string> notes;  // what is missing, and why

  [[nodiscard]] bool passed() const;
};

// Policies and rivals take turns, so that all see the same clocks. A rival that is not here is a
// note. `described`: the GPU whose tiles the simulator chooses. MissingError: no driver, GPU,
// toolkit or memory, or a policy without kernels. Cancelled when workers.stop is set.
// InternalError: a kernel faulted (policy, kernel, sizes).
GpuMeasurement measure(const ModelConfig& config, const Workload& workload,
                       const std::vector<std::string>& policies, const Gpu& described,
                       const MeasureOptions& options);

// In the form that files have and `compare` reads.
Measurements as_measurements(const GpuMeasurement& measurement, const Gpu& described);

}  // namespace fuseline::cuda
