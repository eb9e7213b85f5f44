#include "sim/judge/audit/one_workload.h"

#include <algorithm>
#include <utility>

#include "model/blocks/block.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/block/whole_model.h"
#include "sim/gpu/plan_target.h"
#include "sim/memory/memory_fit.h"

namespace fuseline::audit {

namespace {

// Kernels that the simulator adds to the plan's (split-K sums, attention's combination) carry
// operators of the plan too.
std::string site_of(const Graph& graph, const KernelEstimate& kernel) {
  std::string first;
  for (const std::string& name : kernel.operators) {
    const auto id = graph.find_op(name);
    if (!id) continue;
    const Op& op = graph.op(*id);
    if (is_gemm(op)) {
      const bool weight_gradient = gemm_shape(op).a_is_km;
      if (!weight_gradient) return op.site;
      const std::size_t end = op.site.rfind("_bwd");
      return op.site.substr(0, end) + "_dw";
    }
    if (first.empty()) first = op.site;
  }
  return first;
}

// By steps of the block: scores, softmax and context of the forward pass, and their gradients.
void count_work(const Plan& plan, Coverage& of_attention, Coverage& of_others) {
  for (const Kernel& kernel : plan.kernels) {
    const bool with_gemm = kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::block;
    for (const OpId id : kernel.ops) {
      const Op& op = plan.graph.op(id);
      const bool attention = op.site.starts_with("attention");
      if (!attention && is_gemm(op)) continue;
      Coverage& part = attention ? of_attention : of_others;
      const Flops work = flops(plan.graph, op);
      part.all += work;
      if (with_gemm) part.with_gemm += work;
    }
  }
}

// Of a block, or of a row of layers.
template <class Estimate>
PredictedWork work_of(const Estimate& e) {
  return {.time = e.time,
          .flops = e.flops,
          .hbm_read = e.hbm_read,
          .hbm_write = e.hbm_write,
          .launches = e.launches};
}

// All of a target that a plan depends on: a GPU's name is none of it. A new member does not compile
// here until it is compared.
bool same_budgets(const Target& a, const Target& b) {
  const auto& [name, shared_bytes_per_block, tile] = a;
  return shared_bytes_per_block == b.shared_bytes_per_block && tile == b.tile;
}

}  // namespace

OneWorkload::OneWorkload(const ModelConfig& config, Workload workload)
    : config_(config), workload_(std::move(workload)), block_(build_block(config_, workload_)) {}

OneWorkload::Planned& OneWorkload::planned(const std::string& policy, const Target& target) {
  const auto known = std::ranges::find_if(plans_, [&](const Planned& p) {
    return p.policy == policy && same_budgets(p.target, target);
  });
  if (known != plans_.end()) return *known;
  Planned& made =
      plans_.emplace_back(Planned{policy, target, make_plan(policy, block_, target), {}, {}, {}});
  count_work(made.plan, made.attention, made.others);
  return made;
}

Predicted OneWorkload::predict(const std::string& policy, const Gpu& gpu, bool with_whole_model) {
  Planned& own = planned(policy, plan_target(gpu));
  Predicted out;
  const PlanEstimate block = simulate(own.plan, gpu, Fidelity::hierarchy, {.by_tensor = false});
  out.block = work_of(block);
  for (const KernelEstimate& k : block.kernels) {
    out.kernels.push_back({k.time, k.flops,
                           k.kind == KernelKind::gemm || k.kind == KernelKind::block,
                           site_of(own.plan.graph, k)});
  }
  out.attention = own.attention;
  out.others = own.others;
  if (with_whole_model) {
    out.model = work_of(whole_model(block, config_, workload_, gpu, Launching::graph, false));
    if (!own.activations) own.activations = activations_at_once(own.plan, config_, workload_);
    out.activations = *own.activations;
  }
  return out;
}

}  // namespace fuseline::audit
