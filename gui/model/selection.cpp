#include "gui/model/selection.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "gui/model/text.h"

namespace fuseline::gui {

namespace {

using Names = std::set<std::string>;

OnChipEdge edge_of(const Plan& plan, const Edge& e) {
  return {plan.graph.op(e.from).name, plan.graph.op(e.to).name};
}

// Sites of operators, over all plans.
std::map<std::string, std::string> sites(const Results& results) {
  std::map<std::string, std::string> found;
  for (const RunView& view : results.runs) {
    if (!view.ok() || !view.result->plan) continue;
    for (const Op& op : view.result->plan->graph.ops()) found.emplace(op.name, op.site);
  }
  return found;
}

// The operators of this plan that stand for the wanted ones: the same names, or the same sites.
Names standing_for(const Plan& plan, const Names& wanted,
                   const std::map<std::string, std::string>& site_of) {
  Names found;
  for (const std::string& name : wanted) {
    if (plan.graph.find_op(name)) {
      found.insert(name);
      continue;
    }
    const auto site = site_of.find(name);
    if (site == site_of.end() || site->second.empty()) continue;
    for (const Op& op : plan.graph.ops()) {
      if (op.site == site->second) found.insert(op.name);
    }
  }
  return found;
}

bool holds_any(const Plan& plan, const Kernel& kernel, const Names& ops) {
  return std::ranges::any_of(kernel.ops,
                             [&](OpId id) { return ops.contains(plan.graph.op(id).name); });
}

std::set<std::size_t> launches_of(const RunResult& result, const Names& ops) {
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < result.kernels.size(); ++i) {
    const auto& kernel = result.kernels[i].plan_kernel;
    if (kernel && holds_any(*result.plan, result.plan->kernels[*kernel], ops)) found.insert(i);
  }
  return found;
}

Names operators_of(const Plan& plan, const Kernel& kernel) {
  Names names;
  for (const OpId id : kernel.ops) names.insert(plan.graph.op(id).name);
  return names;
}

// Tensors that the operators touch, and edges between them.
void add_surroundings(Highlight& h, const Plan& plan, const Names& ops) {
  for (const Op& op : plan.graph.ops()) {
    if (!ops.contains(op.name)) continue;
    for (const Operand& o : op.reads) h.tensors.insert(plan.graph.tensor(o.tensor).name);
    for (const Operand& o : op.writes) h.tensors.insert(plan.graph.tensor(o.tensor).name);
  }
}

void add_operators(Highlight& h, const Results& results, const Names& wanted, bool tensors_too) {
  const auto site_of = sites(results);
  for (const RunView& view : results.runs) {
    if (!view.ok() || !view.result->plan) continue;
    const Plan& plan = *view.result->plan;
    const Names ops = standing_for(plan, wanted, site_of);
    if (ops.empty()) continue;
    h.operators.insert(ops.begin(), ops.end());
    if (tensors_too) add_surroundings(h, plan, ops);
    const std::set<std::size_t> launches = launches_of(*view.result, ops);
    if (!launches.empty()) h.kernels[view.run.id].insert(launches.begin(), launches.end());
  }
}

bool touches(const std::vector<Operand>& operands, TensorId tensor) {
  return std::ranges::any_of(operands, [&](const Operand& o) { return o.tensor == tensor; });
}

void add_tensor(Highlight& h, const Results& results, const std::string& name) {
  h.tensors.insert(name);
  for (const RunView& view : results.runs) {
    if (!view.ok() || !view.result->plan) continue;
    const Plan& plan = *view.result->plan;
    const auto tensor = plan.graph.find_tensor(name);
    if (!tensor) continue;
    Names ops;
    for (const Op& op : plan.graph.ops()) {
      if (touches(op.reads, *tensor) || touches(op.writes, *tensor)) ops.insert(op.name);
    }
    h.operators.insert(ops.begin(), ops.end());
    for (const Edge& e : edges(plan.graph)) {
      if (e.tensor == *tensor) h.edges.insert(edge_text(edge_of(plan, e)));
    }
    const bool on_chip = plan.homes[static_cast<std::size_t>(tensor->index)] == Home::on_chip;
    h.levels.insert(on_chip ? MemoryLevel::registers : MemoryLevel::hbm);
    const std::set<std::size_t> launches = launches_of(*view.result, ops);
    if (!launches.empty()) h.kernels[view.run.id] = launches;
  }
}

void add_edge(Highlight& h, const Results& results, const OnChipEdge& edge) {
  add_operators(h, results, {edge.from, edge.to}, false);
  h.edges.insert(edge_text(edge));
  for (const RunView& view : results.runs) {
    if (!view.ok() || !view.result->plan) continue;
    const Plan& plan = *view.result->plan;
    for (const Edge& e : edges(plan.graph)) {
      if (edge_of(plan, e) == edge) h.tensors.insert(plan.graph.tensor(e.tensor).name);
    }
  }
}

bool set_by(const KernelEstimate& kernel, MemoryLevel level) {
  switch (level) {
    case MemoryLevel::registers:
      return kernel.bound == Bound::tensor;
    case MemoryLevel::smem:
      return kernel.bound == Bound::smem;
    case MemoryLevel::l2:
      return kernel.bound == Bound::l2;
    case MemoryLevel::hbm:
      return kernel.bound == Bound::hbm;
  }
  FUSELINE_ASSERT(false, "memory level");
}

void add_level(Highlight& h, const Results& results, MemoryLevel level) {
  h.levels.insert(level);
  for (const RunView& view : results.runs) {
    if (!view.ok()) continue;
    for (std::size_t i = 0; i < view.result->kernels.size(); ++i) {
      const KernelRow& row = view.result->kernels[i];
      if (!row.measured && set_by(row.estimate, level)) h.kernels[view.run.id].insert(i);
    }
  }
}

void add_kernel(Highlight& h, const Results& results, const Thing& thing) {
  const RunView* view = results.find(thing.run);
  if (view == nullptr || !view->ok() || thing.kernel >= view->result->kernels.size()) return;
  const KernelRow& row = view->result->kernels[thing.kernel];
  if (row.plan_kernel) {
    const Plan& plan = *view->result->plan;
    const Names ops = operators_of(plan, plan.kernels[*row.plan_kernel]);
    add_operators(h, results, ops, false);
    add_surroundings(h, plan, ops);
    for (const Edge& e : edges(plan.graph)) {
      const OnChipEdge edge = edge_of(plan, e);
      if (ops.contains(edge.from) && ops.contains(edge.to)) h.edges.insert(edge_text(edge));
    }
  }
  h.kernels[thing.run] = {thing.kernel};
  h.runs.insert(thing.run);
}

}  // namespace

const char* name_of(MemoryLevel level) {
  switch (level) {
    case MemoryLevel::registers:
      return "registers";
    case MemoryLevel::smem:
      return "shared memory";
    case MemoryLevel::l2:
      return "L2";
    case MemoryLevel::hbm:
      return "HBM";
  }
  FUSELINE_ASSERT(false, "memory level");
}

bool operator==(const Thing& a, const Thing& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case ThingKind::none:
      return true;
    case ThingKind::op:
    case ThingKind::tensor:
      return a.name == b.name;
    case ThingKind::edge:
      return a.edge == b.edge;
    case ThingKind::kernel:
      return a.run == b.run && a.kernel == b.kernel;
    case ThingKind::level:
      return a.level == b.level;
    case ThingKind::run:
      return a.run == b.run;
  }
  FUSELINE_ASSERT(false, "kind of thing");
}

Thing op_thing(std::string name) { return {.kind = ThingKind::op, .name = std::move(name)}; }
Thing tensor_thing(std::string name) {
  return {.kind = ThingKind::tensor, .name = std::move(name)};
}
Thing edge_thing(OnChipEdge edge) { return {.kind = ThingKind::edge, .edge = std::move(edge)}; }
Thing kernel_thing(RunId run, std::size_t kernel) {
  return {.kind = ThingKind::kernel, .run = run, .kernel = kernel};
}
Thing level_thing(MemoryLevel level) { return {.kind = ThingKind::level, .level = level}; }
Thing run_thing(RunId run) { return {.kind = ThingKind::run, .run = run}; }

Highlight highlight(const Results& results, const Thing& thing) {
  Highlight h;
  switch (thing.kind) {
    case ThingKind::none:
      break;
    case ThingKind::op:
      add_operators(h, results, {thing.name}, true);
      break;
    case ThingKind::tensor:
      add_tensor(h, results, thing.name);
      break;
    case ThingKind::edge:
      add_edge(h, results, thing.edge);
      break;
    case ThingKind::kernel:
      add_kernel(h, results, thing);
      break;
    case ThingKind::level:
      add_level(h, results, thing.level);
      break;
    case ThingKind::run:
      h.runs.insert(thing.run);
      break;
  }
  return h;
}

std::vector<SearchHit> search(const Results& results, const std::string& text, std::size_t limit) {
  const std::string wanted = lower_case(text);
  if (wanted.empty()) return {};
  std::vector<SearchHit> first, later;
  Names seen;
  const auto offer = [&](const std::string& name, Thing thing, const std::string& shown) {
    const std::size_t at = lower_case(name).find(wanted);
    if (at == std::string::npos || !seen.insert(shown).second) return;
    (at == 0 ? first : later).push_back({std::move(thing), shown});
  };
  for (const RunView& v : results.runs) offer(v.run.name, run_thing(v.run.id), "run " + v.run.name);
  for (const RunView& v : results.runs) {
    if (!v.ok() || !v.result->plan) continue;
    const Graph& graph = v.result->plan->graph;
    for (const Op& op : graph.ops()) offer(op.name, op_thing(op.name), "operator " + op.name);
    for (const Tensor& t : graph.tensors()) offer(t.name, tensor_thing(t.name), "tensor " + t.name);
  }
  for (const RunView& v : results.runs) {
    if (!v.ok()) continue;
    for (std::size_t i = 0; i < v.result->kernels.size(); ++i) {
      const std::string& name = v.result->kernels[i].estimate.name;
      offer(name, kernel_thing(v.run.id, i), "kernel " + name + " of " + v.run.name);
    }
  }
  first.insert(first.end(), later.begin(), later.end());
  if (first.size() > limit) first.resize(limit);
  return first;
}

bool exists(const Results& results, const Thing& thing) {
  const auto in_a_plan = [&](auto&& holds) {
    return std::ranges::any_of(results.runs, [&](const RunView& v) {
      return v.ok() && v.result->plan && holds(*v.result->plan);
    });
  };
  switch (thing.kind) {
    case ThingKind::none:
    case ThingKind::level:
      return true;
    case ThingKind::op:
      return in_a_plan([&](const Plan& p) { return p.graph.find_op(thing.name).has_value(); });
    case ThingKind::tensor:
      return in_a_plan([&](const Plan& p) { return p.graph.find_tensor(thing.name).has_value(); });
    case ThingKind::edge:
      return in_a_plan([&](const Plan& p) {
        return std::ranges::any_of(edges(p.graph),
                                   [&](const Edge& e) { return edge_of(p, e) == thing.edge; });
      });
    case ThingKind::kernel: {
      const RunView* view = results.find(thing.run);
      return view != nullptr && view->ok() && thing.kernel < view->result->kernels.size();
    }
    case ThingKind::run:
      return results.find(thing.run) != nullptr;
  }
  FUSELINE_ASSERT(false, "kind of thing");
}

}  // namespace fuseline::gui
