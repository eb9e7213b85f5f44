#include "sim/judge/audit/predictions.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/piece_text.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/block/limits.h"
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

// Of a block, or of a row of layers.
template <class Estimate>
PredictedWork work_of(const Estimate& e) {
  return {.time = e.time,
          .flops = e.flops,
          .hbm_read = e.hbm_read,
          .hbm_write = e.hbm_write,
          .launches = e.launches};
}

Predicted predict(const PolicyCase& c, const ModelConfig& config, const Gpu& gpu) {
  const Plan plan = make_plan(c.policy, config, c.workload, plan_target(gpu));
  Predicted out;
  const PlanEstimate block = simulate(plan, gpu, Fidelity::hierarchy);
  out.block = work_of(block);
  for (const KernelEstimate& k : block.kernels) {
    out.kernels.push_back({k.time, k.flops,
                           k.kind == KernelKind::gemm || k.kind == KernelKind::block,
                           site_of(plan.graph, k)});
  }
  count_work(plan, out);
  if (c.whole_model) {
    out.model = work_of(whole_model(block, config, c.workload, gpu));
    out.activations = activations_at_once(plan, config, c.workload);
  }
  return out;
}

// A prediction on its way between processes.
class PredictedText {
 public:
  static std::string packed(const Predicted& p) {
    PieceWriter out;
    put(out, p.block);
    put(out, p.model);
    out.whole(p.activations.value());
    for (const Coverage* c : {&p.attention, &p.others})
      out.whole(c->all.value()).whole(c->with_gemm.value());
    for (const PredictedKernel& k : p.kernels)
      out.real(k.time.value()).whole(k.flops.value()).flag(k.is_gemm).word(k.site);
    return std::move(out).text();
  }
  static Predicted unpacked(const std::string& text) {
    PieceReader in(text);
    Predicted p;
    get(in, p.block);
    get(in, p.model);
    p.activations = Bytes(in.whole());
    for (Coverage* c : {&p.attention, &p.others}) {
      c->all = Flops(in.whole());
      c->with_gemm = Flops(in.whole());
    }
    while (in.more()) {
      PredictedKernel k;
      k.time = Seconds(in.real());
      k.flops = Flops(in.whole());
      k.is_gemm = in.flag();
      k.site = in.word();
      p.kernels.push_back(std::move(k));
    }
    return p;
  }

 private:
  static void put(PieceWriter& out, const PredictedWork& w) {
    out.real(w.time.value()).whole(w.flops.value());
    out.whole(w.hbm_read.value()).whole(w.hbm_write.value()).whole(w.launches);
  }
  static void get(PieceReader& in, PredictedWork& w) {
    w.time = Seconds(in.real());
    w.flops = Flops(in.whole());
    w.hbm_read = Bytes(in.whole());
    w.hbm_write = Bytes(in.whole());
    w.launches = in.whole();
  }
};

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

bool Predictions::make(Sharing& sharing, const Sharing::Progress& progress) {
  std::vector<Entry*> open;
  for (auto& [name, entry] : entries_) {
    if (entry.result == nullptr) open.push_back(&entry);
  }
  // The longest first, so that no thread is left alone with one at the end.
  std::stable_sort(open.begin(), open.end(), [](const Entry* a, const Entry* b) {
    return a->what.workload.rows() > b->what.workload.rows();
  });
  std::string name = "predictions";
  for (const Entry* entry : open) name += "\n" + key(entry->what);
  const auto work = [&](std::size_t i) {
    const PolicyCase& c = open[i]->what;
    try {
      return PredictedText::packed(predict(c, models_.at(c.model), gpus_.at(c.gpu)));
    } catch (const InputError& error) {  // several claims may ask for it
      InputProblem problem = error.problem();
      problem.field = "setting";
      problem.value = key(c);
      throw InputError(std::move(problem));
    }
  };
  const SharedTexts made = sharing.texts(name, open.size(), work, progress);
  for (std::size_t i = 0; i < open.size() && made.all; ++i)
    open[i]->result = std::make_unique<const Predicted>(PredictedText::unpacked(made.texts[i]));
  return made.all;
}

const Predicted& Predictions::of(const PolicyCase& c) const {
  const auto found = entries_.find(key(c));
  FUSELINE_ASSERT(found != entries_.end() && found->second.result != nullptr, key(c));
  return *found->second.result;
}

const Ceilings& Predictions::ceilings(const std::string& model_name, const std::string& gpu_name,
                                      const Workload& workload) const {
  const auto [found, is_new] = ceilings_.try_emplace(
      key({.model = model_name, .gpu = gpu_name, .policy = {}, .workload = workload}));
  if (is_new) found->second = ceilings_of(model_name, gpu_name, workload);
  return found->second;
}

Ceilings Predictions::ceilings_of(const std::string& model_name, const std::string& gpu_name,
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
