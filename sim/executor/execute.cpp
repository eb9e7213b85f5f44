#include "sim/executor/execute.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "model/chain.h"
#include "model/operators/operator_table.h"
#include "sim/executor/blas.h"
#include "sim/executor/run_context.h"
#include "sim/memory/traffic.h"

namespace fuseline::executor {

namespace {

// What the kernel moved in memory: not what one of its programs hands to the other on chip.
std::vector<RequestedBytes> sum(const Kernel& kernel, const std::vector<Port>& ports) {
  std::vector<RequestedBytes> moved;
  const std::optional<Operand> kept = handed_over(kernel);
  for (std::size_t t = 0; t < ports.front().traffic().size(); ++t) {
    RequestedBytes r{TensorId{static_cast<std::int32_t>(t)}, Bytes(), Bytes()};
    if (kept && kept->tensor == r.tensor) continue;
    for (const Port& port : ports) {
      r.loaded += Bytes(port.traffic()[t].loaded);
      r.stored += Bytes(port.traffic()[t].stored);
    }
    if (r.loaded.value() > 0 || r.stored.value() > 0) moved.push_back(r);
  }
  return moved;
}

class Executor {
 public:
  Executor(const Plan& plan, const Gpu& gpu, const ExecuteOptions& options, Memory& memory)
      : plan_(plan), gpu_(gpu), options_(options), memory_(memory), addresses_(plan) {
    if (options.fault) fault_ = find_fault(plan, *options.fault);
    for (const Kernel& kernel : plan.kernels) total_ += weight(kernel);
  }

  ExecutedKernel run(std::size_t index) {
    const Kernel& kernel = plan_.kernels[index];
    const auto start = std::chrono::steady_clock::now();
    std::vector<Port> ports(static_cast<std::size_t>(options_.workers.threads),
                            Port(plan_.graph, memory_));
    std::vector<PhaseSchedule> schedules;
    const double share = weight(kernel) / total_ / static_cast<double>(kernel.phases.size());
    for (std::size_t phase = 0; phase < kernel.phases.size(); ++phase) {
      schedules.push_back(schedule_phase(kernel, kernel.phases[phase], addresses_, gpu_));
      RunContext context{plan_.graph, kernel.phases[phase], schedules.back(), options_.workers,
                         ports,       std::nullopt};
      if (fault_ && fault_->kernel == index && fault_->phase == phase) context.fault = fault_;
      context.progress = [&](double part) { report(kernel.name, done_ + share * part); };
      context.progress(0);
      run_phase(context);
      done_ += share;
    }
    ExecutedKernel result{kernel.name, sum(kernel, ports), launches_of(kernel, schedules),
                          Seconds()};
    result.time =
        Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return result;
  }

 private:
  // Work of a kernel, for the progress: even a kernel without FLOPs takes some.
  [[nodiscard]] double weight(const Kernel& kernel) const {
    return flops(plan_.graph, kernel).as_double() + 1.0;
  }
  void report(const std::string& kernel, double done) const {
    if (options_.progress) options_.progress({kernel, std::min(done, 1.0)});
  }

  const Plan& plan_;
  const Gpu& gpu_;
  const ExecuteOptions& options_;
  Memory& memory_;
  AddressMap addresses_;
  std::optional<FaultPoint> fault_;
  double total_ = 0;
  double done_ = 0;
};

}  // namespace

std::optional<std::pair<std::int64_t, std::int64_t>> find_not_finite(const Storage& storage,
                                                                     const Workers& workers) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> first = kNone;  // element index
  const auto elements = static_cast<double>(storage.rows() * storage.cols());
  parallel_for(workers, Loop{storage.rows(), elements}, [&](std::int64_t row, int) {
    if (first.load() < row * storage.cols()) return;
    std::vector<float> values(static_cast<std::size_t>(storage.cols()));
    storage.read(row, 0, storage.cols(), values.data());
    const auto bad =
        std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
    if (bad == values.end()) return;
    const std::int64_t found = row * storage.cols() + (bad - values.begin());
    std::int64_t known = first.load();
    while (found < known && !first.compare_exchange_weak(known, found)) {
    }
  });
  if (first == kNone) return std::nullopt;
  return std::pair(first / storage.cols(), first % storage.cols());
}

void check_finite(const std::string& name, const Storage& storage, const Workers& workers) {
  const auto found = find_not_finite(storage, workers);
  if (!found) return;
  const auto [row, col] = *found;
  float value = 0;
  storage.read(row, col, 1, &value);
  throw InputError({.field = name + "[" + std::to_string(row) + ", " + std::to_string(col) + "]",
                    .value = std::to_string(value),
                    .message = "the input tensor holds a value that is not finite",
                    .allowed = "finite numbers"});
}

Execution execute(const Plan& plan, const Inputs& inputs, const Gpu& gpu,
                  const ExecuteOptions& options) {
  FUSELINE_ASSERT(options.workers.threads >= 1, "no threads");
  use_blas_threads(1);
  Execution result;
  result.memory = std::make_unique<Memory>(plan, inputs);
  for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i) {
    const Tensor& t = plan.graph.tensors()[i];
    const TensorId id{static_cast<std::int32_t>(i)};
    const bool given = t.role != Role::activation && t.role != Role::output;
    if (options.check_inputs && given && result.memory->has(id))
      check_finite(t.name, result.memory->at(id), options.workers);
  }
  Executor executor(plan, gpu, options, *result.memory);
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    result.kernels.push_back(executor.run(i));
    result.launches += result.kernels.back().launches;
  }
  return result;
}

}  // namespace fuseline::executor
