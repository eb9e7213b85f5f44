// The simulated GPU computes: executes a plan kernel by kernel, in the tiles and raster order that
// the simulator chose, and counts every byte that the tiles load and store.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/plan.h"
#include "sim/block/estimate.h"
#include "sim/executor/fault.h"
#include "sim/executor/memory.h"
#include "sim/executor/parallel.h"
#include "sim/gpu/gpu.h"

namespace fuseline::executor {

struct Progress {
  std::string kernel;
  double done = 0;  // share of the plan's FLOPs
};

struct ExecuteOptions {
  Workers workers;
  std::optional<FaultKind> fault{};
  bool check_inputs = true;  // false: what is not finite goes its way
  std::function<void(const Progress&)> progress{};
};

struct ExecutedKernel {
  std::string name;
  std::vector<RequestedBytes> moved;  // in the order of the tensors; those without traffic left out
  std::int64_t launches = 1;
  Seconds time;  // of this CPU
};

struct Execution {
  std::unique_ptr<Memory> memory;  // the plan's tensors in HBM after the last kernel
  std::vector<ExecutedKernel> kernels;
  std::int64_t launches = 0;
};

// `inputs`: every tensor that the plan is given (prepare_inputs). Results do not depend on the
// number of threads. InputError: a tensor is missing, of the wrong shape, or holds a NaN or
// infinity (tensor and index named). Cancelled: workers.stop was set. The fault is ignored where
// the plan has nothing to which it could happen.
Execution execute(const Plan& plan, const Inputs& inputs, const Gpu& gpu,
                  const ExecuteOptions& options);

// Row and column of the first NaN or infinity of a tensor.
std::optional<std::pair<std::int64_t, std::int64_t>> find_not_finite(const Storage& storage,
                                                                     const Workers& workers);
// Throws InputError for it.
void check_finite(const std::string& name, const Storage& storage, const Workers& workers);

}  // namespace fuseline::executor
