#include "gui/model/details.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "gui/model/text.h"
#include "model/operators/operator_table.h"

namespace fuseline::gui {

namespace {

// The numbers of the GPU's file that a memory level rests on.
std::set<std::string> constants_of(MemoryLevel level) {
  switch (level) {
    case MemoryLevel::registers:
      return {"register_file_per_sm", "sm_count", "tensor_bf16_dense", "tensor_clock",
              "sm_clock_boost"};
    case MemoryLevel::smem:
      return {"smem_per_sm", "smem_per_block_max", "smem_bandwidth_per_sm", "sm_count"};
    case MemoryLevel::l2:
      return {"l2_capacity", "l2_partitions", "l2_bandwidth"};
    case MemoryLevel::hbm:
      return {"hbm_capacity", "hbm_bandwidth", "hbm_bandwidth_sustained"};
  }
  FUSELINE_ASSERT(false, "memory level");
}

std::set<std::string> constants_of(Bound bound) {
  switch (bound) {
    case Bound::tensor:
      return constants_of(MemoryLevel::registers);
    case Bound::hbm:
      return constants_of(MemoryLevel::hbm);
    case Bound::l2:
      return constants_of(MemoryLevel::l2);
    case Bound::smem:
      return constants_of(MemoryLevel::smem);
    case Bound::launch:
    case Bound::sync:
      return {"tiny_kernel_graph"};
  }
  FUSELINE_ASSERT(false, "bound");
}

std::vector<HardwareConstant> pick(const Gpu& gpu, const std::set<std::string>& keys) {
  std::vector<HardwareConstant> all = hardware_constants(gpu);
  std::erase_if(all, [&](const HardwareConstant& c) { return !keys.contains(c.key); });
  return all;
}

const RunView* any_plan(const Results& results, auto&& holds) {
  if (const RunView* base = results.baseline_view();
      base != nullptr && base->result->plan && holds(base->result->plan->graph)) {
    return base;
  }
  for (const RunView& v : results.runs) {
    if (v.ok() && v.result->plan && holds(v.result->plan->graph)) return &v;
  }
  return nullptr;
}

std::string operand_text(const Graph& graph, const Operand& o) {
  const Tensor& t = graph.tensor(o.tensor);
  const std::string columns =
      o.cols == t.cols ? "" : fmt::format(", columns {}:{}", o.col_begin, o.col_begin + o.cols);
  return fmt::format("{} [{}, {}]{} {}", t.name, o.rows, t.cols, columns, name_of(t.dtype));
}

void add_op(Details& d, const Results& results, const std::string& name) {
  const RunView* view =
      any_plan(results, [&](const Graph& g) { return g.find_op(name).has_value(); });
  if (view == nullptr) return;
  const Graph& graph = view->result->plan->graph;
  const Op& op = graph.op(*graph.find_op(name));
  d.title = "operator " + name;
  d.lines.push_back({"computes", op.kind->formula.value});
  for (const Operand& o : op.reads) d.lines.push_back({"reads", operand_text(graph, o)});
  for (const Operand& o : op.writes) d.lines.push_back({"writes", operand_text(graph, o)});
  d.lines.push_back({"arithmetic", exact_flops(flops(graph, op))});
  const Highlight h = highlight(results, op_thing(name));
  for (const RunView& v : results.runs) {
    const auto kernels = h.kernels.find(v.run.id);
    if (kernels == h.kernels.end()) continue;
    std::string names;
    for (const std::size_t k : kernels->second) {
      names += (names.empty() ? "" : ", ") + v.result->kernels[k].estimate.name;
    }
    d.lines.push_back({"kernels of " + v.label(), names});
  }
}

void add_tensor(Details& d, const Results& results, const std::string& name) {
  const RunView* view =
      any_plan(results, [&](const Graph& g) { return g.find_tensor(name).has_value(); });
  if (view == nullptr) return;
  const Graph& graph = view->result->plan->graph;
  const Tensor& t = graph.tensor(*graph.find_tensor(name));
  d.title = fmt::format("{} {}", name_of(t.role), name);
  d.lines.push_back(
      {"shape", fmt::format("{} = [{}, {}] {}", t.symbol, t.rows, t.cols, name_of(t.dtype))});
  d.lines.push_back({"size", exact_bytes(t.bytes())});
  for (const RunView& v : results.runs) {
    if (!v.ok() || !v.result->explanation) continue;
    for (const TensorExplanation& e : v.result->explanation->tensors) {
      if (e.name == name) d.lines.push_back({"found in, " + v.label(), e.home});
    }
  }
}

void add_edge(Details& d, const Results& results, const OnChipEdge& edge) {
  for (const RunView& v : results.runs) {
    if (!v.ok() || !v.result->explanation) continue;
    for (const EdgeExplanation& e : v.result->explanation->edges) {
      if (e.from != edge.from || e.to != edge.to) continue;
      d.title = "edge " + edge.from + " → " + edge.to;
      d.lines.push_back(
          {e.tensor + ", " + v.label(), (e.fused ? "one kernel: " : "apart: ") + e.reason});
    }
  }
}

void add_amounts(Details& d, const KernelEstimate& k) {
  d.lines.push_back({"read from HBM", exact_bytes(k.hbm_read)});
  d.lines.push_back({"written to HBM", exact_bytes(k.hbm_write)});
  d.lines.push_back({"through L2", exact_bytes(k.l2)});
  d.lines.push_back({"arithmetic", exact_flops(k.flops)});
}

void add_kernel(Details& d, const Results& results, const Thing& thing) {
  const RunView* view = results.find(thing.run);
  if (view == nullptr || !view->ok() || thing.kernel >= view->result->kernels.size()) return;
  const KernelRow& row = view->result->kernels[thing.kernel];
  const KernelEstimate& k = row.estimate;
  d.title = fmt::format("kernel {} of {}", k.name, view->label());
  if (!row.code.empty()) d.lines.push_back({"code", row.code});
  d.lines.push_back({"operators", fmt::format("{}", fmt::join(k.operators, " "))});
  d.lines.push_back({"time", fmt::format("{:.3f} µs", to_us(k.time))});
  add_amounts(d, k);
  if (row.measured) {
    d.lines.push_back({"measured", view->result->source});
    return;
  }
  d.lines.push_back({"compulsory bytes", exact_bytes(k.compulsory)});
  d.lines.push_back({"time set by", name_of(k.bound)});
  d.constants = pick(view->result->block->gpu, constants_of(k.bound));
}

void add_run(Details& d, const Results& results, RunId id) {
  const RunView* view = results.find(id);
  if (view == nullptr) return;
  d.title = "run " + view->run.name;
  if (!view->ok()) {
    if (view->result && view->result->problem) {
      d.lines.push_back({"problem", view->result->problem->text});
    }
    return;
  }
  const RunResult& r = *view->result;
  d.lines.push_back({"block", describe(*r.block)});
  d.lines.push_back({"time", fmt::format("{:.3f} µs", to_us(r.totals.time))});
  if (r.totals.has_bytes) {
    d.lines.push_back({"read from HBM", exact_bytes(r.totals.hbm_read)});
    d.lines.push_back({"written to HBM", exact_bytes(r.totals.hbm_write)});
    d.lines.push_back({"through L2", exact_bytes(r.totals.l2)});
  }
  if (r.predicted) {
    d.lines.push_back({"compulsory bytes", exact_bytes(r.predicted->limits.compulsory)});
    d.lines.push_back({"least through HBM", exact_bytes(r.predicted->limits.least)});
    d.lines.push_back(
        {"SM clock sustained", fmt::format("{:.0f} MHz", r.block->gpu.sm_clock.value() / 1e6 *
                                                             r.predicted->clock_factor)});
  }
  if (r.layers) d.lines.push_back({"layers", layers_text(*r.layers, r.block->workload)});
  if (!r.source.empty()) d.lines.push_back({"measured", r.source});
  d.constants = hardware_constants(r.block->gpu);
}

void add_level(Details& d, const Results& results, MemoryLevel level) {
  const RunView* view = results.baseline_view();
  if (view == nullptr) return;
  d.title = name_of(level);
  d.constants = pick(view->result->block->gpu, constants_of(level));
  for (const HardwareConstant& c : d.constants) {
    d.lines.push_back({c.name, c.value + (c.unit.empty() ? "" : " " + c.unit)});
  }
}

}  // namespace

Details details_of(const Results& results, const Thing& thing) {
  Details d;
  switch (thing.kind) {
    case ThingKind::none:
      break;
    case ThingKind::op:
      add_op(d, results, thing.name);
      break;
    case ThingKind::tensor:
      add_tensor(d, results, thing.name);
      break;
    case ThingKind::edge:
      add_edge(d, results, thing.edge);
      break;
    case ThingKind::kernel:
      add_kernel(d, results, thing);
      break;
    case ThingKind::level:
      add_level(d, results, thing.level);
      break;
    case ThingKind::run:
      add_run(d, results, thing.run);
      break;
  }
  return d;
}

}  // namespace fuseline::gui
