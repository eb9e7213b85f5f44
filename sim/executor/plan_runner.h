// A plan that runs again and again over one memory, the forward and the backward pass apart: in a
// training step all blocks run forward before the first one runs backward.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/plan.h"
#include "sim/executor/memory.h"
#include "sim/executor/parallel.h"
#include "sim/executor/schedule.h"
#include "sim/gpu/gpu.h"

namespace fuseline::executor {

class PlanRunner {
 public:
  // All given tensors are zero until set. The plan must outlive the object.
  PlanRunner(const Plan& plan, const Gpu& gpu, const Workers& workers);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  // The names of the tensors that the plan is given.
  [[nodiscard]] bool takes(const std::string& tensor) const { return given_.contains(tensor); }
  // Copies the values; asserts that the plan is given this tensor, in this shape and type.
  void set(const std::string& tensor, const Storage& values);
  // A tensor that the plan keeps in HBM, after the kernels that make it.
  [[nodiscard]] const Storage& at(const std::string& tensor) const;
  // The kernels of one pass, in the plan's order. Cancelled when workers.stop was set.
  void run(Pass pass);

 private:
  const Plan& plan_;
  Workers workers_;
  std::map<std::string, std::shared_ptr<Storage>> given_;
  std::unique_ptr<Memory> memory_;
  std::vector<std::vector<PhaseSchedule>> schedules_;  // by kernel and phase
};

}  // namespace fuseline::executor
