// Policies' plans executed and judged: numbers against fp64 and against unfused execution, bytes
// against the simulator's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/config/config.h"
#include "model/plan.h"
#include "model/programs/block_programs.h"
#include "sim/block/estimate.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "sim/executor/tensor_error.h"
#include "sim/gpu/gpu.h"

namespace fuseline::executor {

// A fused plan's error must stay below so many times the unfused one's.
inline constexpr double kWorstRatio = 2.0;
// The same where `numbers` carry the tensor (TensorError::numbers): above it for fewer than 64.
double worst_ratio(double numbers);

struct VerifyOptions {
  Workers workers;
  std::uint64_t seed = 1;
  InputDistribution inputs{};
  std::optional<FaultKind> fault{};
  std::optional<Bytes> memory_limit{};  // empty: what the machine has left
  // What is being done: a policy and kernel, and the share of the whole work.
  std::function<void(const std::string&, double)> progress{};
  std::shared_ptr<const Plan> plan{};  // a plan of the block, in the place of the policies'
};

struct ComparedTensor {
  std::string name;
  std::string kernel;   // that stored it
  bool output = false;  // of the block; else an intermediate that the plan keeps in HBM
  TensorError error;
  TensorError unfused;       // of the same tensor in the unfused plan
  std::string unfused_of{};  // another tensor's, where the block has none of this name
  double ratio = 0;          // the larger of the two that are judged: relative L2, worst tile
  double slack = 0;          // error allowed beyond kWorstRatio times the unfused one's
  double jump_slack = 0;     // the same where a jump of a gradient lies on the way
  std::string problem{};     // why it fails; empty: it agrees
};

struct CountedKernel {
  std::string name;
  std::vector<RequestedBytes> counted;
  std::vector<RequestedBytes> predicted;
  std::vector<std::string> differing{};  // names of the tensors whose bytes differ
};

// The first NaN or infinity that a plan makes, by the order of its kernels.
struct NotFinite {
  std::string tensor;
  std::string kernel;  // that stored it; empty: made of the block's inputs before the first kernel
  std::int64_t row = 0, col = 0;
  double value = 0;
};

struct VerifiedPolicy {
  std::string policy;
  std::vector<ComparedTensor> tensors;  // in the order of the kernels that store them
  std::vector<CountedKernel> kernels;
  std::optional<NotFinite> not_finite{};
  std::int64_t launches = 0;
  std::int64_t launches_predicted = 0;
  bool broken = false;  // the fault had something to act on
  Seconds time;         // of the execution

  [[nodiscard]] bool bytes_equal() const;
  [[nodiscard]] bool passed() const;
};

struct Verification {
  // What programs of one's own make, beside the block's operators, in fp64 on the same inputs.
  std::vector<SameMeaning> own_programs;
  std::vector<VerifiedPolicy> policies;
  [[nodiscard]] bool passed() const;
};

// InputError: sizes that do not fit into memory, a policy that does not support the phase, a fault
// that acts on none of the plans, random inputs that the storage type cannot hold. Cancelled when
// workers.stop is set.
//
// An output agrees when its relative L2 error and that of its worst tile are below kWorstRatio
// times those of the unfused plan in the same storage type. Intermediates, and outputs that the
// block itself does not have, may add their operator's tolerance to that: their way from the
// block's input is short, and one more rounding on it is no fault. No tensor that a plan keeps may
// hold a NaN or infinity. The unfused plan's own relative
// L2 errors must stay below the sum of its operators' tolerances. Behind a jump, the slope of ReLU
// at zero, both may be larger by what numbers of the wrong sign add.
Verification verify(const ModelConfig& config, const Workload& workload,
                    const std::vector<std::string>& policies, const Gpu& gpu,
                    const VerifyOptions& options);

}  // namespace fuseline::executor
