#include "sim/executor/plan_runner.h"

#include <algorithm>

#include "base/error.h"
#include "sim/executor/blas.h"
#include "sim/executor/run_context.h"

namespace fuseline::executor {

PlanRunner::PlanRunner(const Plan& plan, const Gpu& gpu, const Workers& workers)
    : plan_(plan), workers_(workers) {
  use_blas_threads(1);
  Inputs inputs;
  for (const Tensor& t : plan.graph.tensors()) {
    if (t.role == Role::activation || t.role == Role::output) continue;
    given_[t.name] = std::make_shared<Storage>(t.dtype, t.rows, t.cols);
    inputs[t.name] = given_[t.name];
  }
  memory_ = std::make_unique<Memory>(plan, inputs);
  const AddressMap addresses(plan);
  for (const Kernel& kernel : plan.kernels) {
    std::vector<PhaseSchedule>& phases = schedules_.emplace_back();
    for (const Program& phase : kernel.phases)
      phases.push_back(schedule_phase(kernel, phase, addresses, gpu));
  }
}

void PlanRunner::set(const std::string& tensor, const Storage& values) {
  const auto found = given_.find(tensor);
  FUSELINE_ASSERT(found != given_.end(), "the plan is not given " + tensor);
  Storage& to = *found->second;
  FUSELINE_ASSERT(
      to.type() == values.type() && to.rows() == values.rows() && to.cols() == values.cols(),
      tensor + " has another shape or type");
  std::copy_n(values.at(0, 0), values.bytes().value(), to.at(0, 0));
}

const Storage& PlanRunner::at(const std::string& tensor) const {
  const auto id = plan_.graph.find_tensor(tensor);
  FUSELINE_ASSERT(id.has_value(), "no tensor " + tensor);
  return memory_->at(*id);
}

void PlanRunner::run(Pass pass) {
  for (std::size_t k = 0; k < plan_.kernels.size(); ++k) {
    const Kernel& kernel = plan_.kernels[k];
    if (plan_.graph.op(kernel.ops.front()).pass != pass) continue;
    std::vector<Port> ports(static_cast<std::size_t>(workers_.threads),
                            Port(plan_.graph, *memory_));
    for (std::size_t phase = 0; phase < kernel.phases.size(); ++phase)
      run_phase(
          {plan_.graph, kernel.phases[phase], schedules_[k][phase], workers_, ports, std::nullopt});
  }
}

}  // namespace fuseline::executor
