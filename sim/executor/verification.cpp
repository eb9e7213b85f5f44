#include "sim/executor/verification.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "model/backward.h"
#include "model/blocks/block.h"
#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "sim/executor/comparison.h"
#include "sim/executor/inputs.h"
#include "sim/executor/memory_need.h"
#include "sim/executor/reference_fast.h"
#include "sim/gpu/plan_target.h"

namespace fuseline::executor {

namespace {

// Loads and stores per tensor, in one order.
std::map<TensorId, std::pair<Bytes, Bytes>> by_tensor(const std::vector<RequestedBytes>& moved) {
  std::map<TensorId, std::pair<Bytes, Bytes>> sums;
  for (const RequestedBytes& r : moved) {
    if (r.loaded.value() == 0 && r.stored.value() == 0) continue;
    sums[r.tensor].first += r.loaded;
    sums[r.tensor].second += r.stored;
  }
  return sums;
}

std::vector<CountedKernel> counted_kernels(const Plan& plan, const Execution& execution,
                                           const PlanEstimate& predicted) {
  std::vector<CountedKernel> kernels;
  for (const ExecutedKernel& k : execution.kernels) {
    CountedKernel counted{k.name, k.moved, {}};
    const auto same = std::find_if(predicted.kernels.begin(), predicted.kernels.end(),
                                   [&](const KernelEstimate& e) { return e.name == k.name; });
    FUSELINE_ASSERT(same != predicted.kernels.end(), k.name);
    counted.predicted = same->requested;
    const auto want = by_tensor(counted.predicted);
    auto got = by_tensor(counted.counted);
    for (const auto& [tensor, bytes] : want)
      if (got[tensor] != bytes) counted.differing.push_back(plan.graph.tensor(tensor).name);
    for (const auto& [tensor, bytes] : got)
      if (!want.contains(tensor)) counted.differing.push_back(plan.graph.tensor(tensor).name);
    kernels.push_back(std::move(counted));
  }
  return kernels;
}

// Given tensors first, then in the order in which kernels store them.
std::optional<NotFinite> first_not_finite(const Plan& plan, const Memory& memory,
                                          const Workers& workers) {
  std::vector<std::pair<TensorId, std::string>> order;
  for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i) {
    const Role role = plan.graph.tensors()[i].role;
    if (role == Role::input || role == Role::weight || role == Role::table)
      order.emplace_back(TensorId{static_cast<std::int32_t>(i)}, "");
  }
  for (const Kernel& kernel : plan.kernels)
    for (const Program& phase : kernel.phases)
      for (const Operand& o : stores(phase)) order.emplace_back(o.tensor, phase.name);
  for (const auto& [id, kernel] : order) {
    if (!memory.has(id)) continue;
    const auto found = find_not_finite(memory.at(id), workers);
    if (!found) continue;
    NotFinite first{plan.graph.tensor(id).name, kernel, found->first, found->second, 0};
    float value = 0;
    memory.at(id).read(first.row, first.col, 1, &value);
    first.value = value;
    return first;
  }
  return std::nullopt;
}

class Verifier {
 public:
  Verifier(const ModelConfig& config, const Workload& workload,
           const std::vector<std::string>& policies, const Gpu& gpu, const VerifyOptions& options)
      : gpu_(gpu), options_(options), block_(build_block(config, workload)) {
    const Target target = plan_target(gpu);
    plans_.push_back(make_plan("unfused", block_.without_programs(), target));
    for (const std::string& policy : policies)
      plans_.push_back(options.plan ? *options.plan : make_plan(policy, config, workload, target));
    check_memory(memory_need(block_, plans_, options.workers.threads),
                 options.memory_limit.value_or(available_memory()));
    require_fault();
  }

  Verification run() {
    report("inputs", 0);
    inputs_ = random_storage(block_, options_.seed, options_.workers, options_.inputs);
    for (const auto& [name, storage] : inputs_) require_finite(name, *storage);
    report("fp64 reference", 0);
    ++steps_done_;
    const TensorValues reference = fast_reference(block_, inputs_, options_.workers);
    const Comparison comparison(block_, reference);

    ExecuteOptions sound = execute_options("unfused (baseline)");
    const Inputs inputs = prepared(plans_.front());
    std::optional<Execution> unfused = execute(plans_.front(), inputs, gpu_, sound);
    ++steps_done_;
    const Baseline baseline = comparison.baseline(plans_.front(), *unfused->memory);

    Verification result;
    // The reference keeps no weights that only products read.
    const auto value = [&](TensorId id) {
      return reference.has(id) ? reference.at(id) : to_doubles(*inputs_.at(block_.tensor(id).name));
    };
    result.own_programs = compare_programs(block_, value, options_.workers.threads);
    for (std::size_t i = 1; i < plans_.size(); ++i) {
      const bool reuse = plans_[i].policy == "unfused" && !options_.fault && !options_.plan &&
                         block_.programs().empty();
      if (!reuse) unfused.reset();
      result.policies.push_back(
          verify_plan(plans_[i], comparison, baseline, reuse ? std::move(unfused) : std::nullopt));
      unfused.reset();
      ++steps_done_;
    }
    return result;
  }

 private:
  void require_finite(const std::string& name, const Storage& storage) const {
    const auto found = find_not_finite(storage, options_.workers);
    if (!found) return;
    throw InputError({.file = "command line",
                      .field = name + "[" + std::to_string(found->first) + ", " +
                               std::to_string(found->second) + "]",
                      .message = std::string("is not finite in ") + name_of(storage.type()),
                      .allowed = "smaller inputs (--input-scale, --outliers, --gradient-scale) or "
                                 "another --dtype"});
  }

  VerifiedPolicy verify_plan(const Plan& plan, const Comparison& comparison,
                             const Baseline& baseline, std::optional<Execution> done) {
    VerifiedPolicy v;
    v.policy = plan.policy;
    v.broken = options_.fault && find_fault(plan, *options_.fault);
    const Inputs inputs = prepared(plan);
    if (!done) {
      ExecuteOptions options = execute_options(plan.policy);
      options.fault = options_.fault;
      done = execute(plan, inputs, gpu_, options);
    }
    for (const ExecutedKernel& k : done->kernels) v.time += k.time;
    v.tensors = comparison.judge(plan, *done->memory, inputs, baseline);
    const PlanEstimate predicted = simulate(plan, gpu_, Fidelity::hierarchy);
    v.kernels = counted_kernels(plan, *done, predicted);
    v.not_finite = first_not_finite(plan, *done->memory, options_.workers);
    v.launches = done->launches;
    v.launches_predicted = predicted.launches;
    return v;
  }

  Inputs prepared(const Plan& plan) const {
    return prepare_inputs(plan, inputs_, options_.seed, options_.workers);
  }

  ExecuteOptions execute_options(const std::string& what) const {
    ExecuteOptions e;
    e.workers = options_.workers;
    e.check_inputs = false;  // of the block they are; those made of them are judged
    e.progress = [this, what](const Progress& p) { report(what + ": " + p.kernel, p.done); };
    return e;
  }

  // Steps: the reference, the baseline, and each policy.
  void report(const std::string& what, double part) const {
    if (!options_.progress) return;
    const double steps = static_cast<double>(plans_.size() + 1);
    options_.progress(what, (steps_done_ + part) / steps);
  }

  void require_fault() const {
    if (!options_.fault) return;
    for (std::size_t i = 1; i < plans_.size(); ++i)
      if (find_fault(plans_[i], *options_.fault)) return;
    const std::vector<FaultInfo> all = faults();
    const auto fault =
        std::ranges::find_if(all, [&](const FaultInfo& f) { return f.kind == *options_.fault; });
    const bool forward = fault->backward && !has_backward(block_);
    throw InputError(
        {.file = "command line",
         .field = "--break",
         .value = fault->name,
         .message = forward ? "happens in the backward pass, which these plans do not have"
                            : "none of these plans has anything to which this could happen",
         .allowed = forward ? "--phase train"
                            : "policy coda of a LLaMA-like model, which all faults can happen to"});
  }

  const Gpu& gpu_;
  const VerifyOptions& options_;
  Graph block_;
  std::vector<Plan> plans_;  // the unfused baseline, then the policies
  Inputs inputs_;
  double steps_done_ = 0;
};

}  // namespace

bool VerifiedPolicy::bytes_equal() const {
  return std::all_of(kernels.begin(), kernels.end(),
                     [](const CountedKernel& k) { return k.differing.empty(); });
}

bool VerifiedPolicy::passed() const {
  return bytes_equal() && launches == launches_predicted && !tensors.empty() && !not_finite &&
         std::all_of(tensors.begin(), tensors.end(),
                     [](const ComparedTensor& t) { return t.problem.empty(); });
}

bool Verification::passed() const {
  return !policies.empty() && std::ranges::all_of(own_programs, &SameMeaning::same) &&
         std::ranges::all_of(policies, &VerifiedPolicy::passed);
}

Verification verify(const ModelConfig& config, const Workload& workload,
                    const std::vector<std::string>& policies, const Gpu& gpu,
                    const VerifyOptions& options) {
  return Verifier(config, workload, policies, gpu, options).run();
}

}  // namespace fuseline::executor
