#include "sim/judge/audit/predictions.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "sim/block/limits.h"
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
void count_work(const Plan& plan, Predicted& out) {
  for (const Kernel& kernel : plan.kernels) {
    const bool with_gemm = kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::block;
    for (const OpId id : kernel.ops) {
      const Op& op = plan.graph.op(id);
      const bool attention = op.site.starts_with("attention");
      if (!attention && is_gemm(op)) continue;
      Coverage& part = attention ? out.attention : out.others;
      const Flops work = flops(plan.graph, op);
      part.all += work;
      if (with_gemm) part.with_gemm += work;
    }
  }
}

Predicted predict(const PolicyCase& c, const ModelConfig& config, const Gpu& gpu) {
  const Plan plan = make_plan(c.policy, config, c.workload, plan_target(gpu));
  Predicted out;
  out.block = simulate(plan, gpu, Fidelity::hierarchy);
  for (const KernelEstimate& k : out.block.kernels) {
    out.kernels.push_back({k.time, k.flops,
                           k.kind == KernelKind::gemm || k.kind == KernelKind::block,
                           site_of(plan.graph, k)});
  }
  count_work(plan, out);
  if (c.whole_model) {
    out.model = whole_model(out.block, config, c.workload, gpu);
    out.activations = memory_need(plan, config, c.workload).activations;
  }
  return out;
}

}  // namespace

std::string Predictions::key(const PolicyCase& c) {
  const Workload& w = c.workload;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", c.model, c.gpu, c.policy,
                     name_of(w.phase), w.batch, w.seq, w.context, name_of(w.dtype),
                     w.formats.weights.name(), w.formats.cache.name(), w.formats.activations.name(),
                     c.whole_model);
}

void Predictions::want_gpu(const std::string& name) {
  if (!gpus_.contains(name)) gpus_.emplace(name, load_gpu(name));
}

void Predictions::want(const PolicyCase& c) {
  if (!models_.contains(c.model)) models_.emplace(c.model, load_model(c.model));
  want_gpu(c.gpu);
  check_workload(c.workload, models_.at(c.model));
  if (!c.policy.empty()) entries_.try_emplace(key(c), Entry{c, nullptr});
}

bool Predictions::make(const ParallelOptions& options) {
  std::vector<Entry*> open;
  for (auto& [name, entry] : entries_) {
    if (entry.result == nullptr) open.push_back(&entry);
  }
  // The longest first, so that no thread is left alone with one at the end.
  std::stable_sort(open.begin(), open.end(), [](const Entry* a, const Entry* b) {
    return a->what.workload.rows() > b->what.workload.rows();
  });
  return parallel_for(
      open.size(),
      [&](std::size_t i) {
        const PolicyCase& c = open[i]->what;
        try {
          open[i]->result =
              std::make_unique<const Predicted>(predict(c, models_.at(c.model), gpus_.at(c.gpu)));
        } catch (const InputError& error) {  // several claims may ask for it
          InputProblem problem = error.problem();
          problem.field = "setting";
          problem.value = key(c);
          throw InputError(std::move(problem));
        }
      },
      options);
}

const Predicted& Predictions::of(const PolicyCase& c) const {
  const auto found = entries_.find(key(c));
  FUSELINE_ASSERT(found != entries_.end() && found->second.result != nullptr, key(c));
  return *found->second.result;
}

Ceilings Predictions::ceilings(const std::string& model_name, const std::string& gpu_name,
                               const Workload& workload) const {
  const ModelConfig& config = model(model_name);
  const Gpu& machine = gpu(gpu_name);
  const Limits block = limits_of(build_block(config, workload), machine);
  Ceilings all{block.time, Seconds(), block.least, Bytes()};
  const auto add = [&](const Limits& limits, std::int64_t times) {
    all.model += limits.time * static_cast<double>(times);
    all.model_bytes += limits.least * times;
  };
  for (const BlockUse& use : config.blocks) {
    if (workload.phase == Phase::decode && !use.decodes) continue;
    const Workload work = workload_of(config, use, workload);
    add(limits_of(build_block(config, use, work), machine), config.layers_of(use));
    if (!use.exit.empty()) add(limits_of(build_end(config, use.exit, work), machine), 1);
  }
  if (!config.exit.empty()) add(limits_of(build_exit(config, workload), machine), 1);
  return all;
}

FlopsPerSecond Predictions::tensor_ceiling(const std::string& gpu_name, const Workload& w) const {
  const StoredWeight& activations = w.formats.activations;
  return boosted_tensor_peak(gpu(gpu_name),
                             activations.quantised() ? activations.element() : w.dtype);
}

const ModelConfig& Predictions::model(const std::string& name) const { return models_.at(name); }
const Gpu& Predictions::gpu(const std::string& name) const { return gpus_.at(name); }

}  // namespace fuseline::audit
