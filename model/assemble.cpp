#include "model/assemble.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "model/chain.h"
#include "model/implementation.h"
#include "model/lower.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/why_not.h"
#include "model/wiring.h"

namespace fuseline {

namespace {

// A GEMM's name, "attention", or the names of the operators; biases and recomputed values are left
// out beside others.
std::string name_group(const Graph& graph, const std::vector<OpId>& ops) {
  if (ops.size() == 1) return graph.op(ops[0]).name;
  for (const OpId id : ops)
    if (is_mainloop(graph.op(id))) return graph.op(id).name;
  if (has_attention(graph, ops))
    return graph.op(ops[0]).pass == Pass::backward ? "d_attention" : "attention";
  const std::string& site = graph.op(ops[0]).site;
  const bool appends =
      std::ranges::all_of(ops, [&](OpId id) { return graph.op(id).kind->appends; });
  if (appends) return site;
  const bool finishes = std::ranges::all_of(
      ops, [&](OpId id) { return graph.op(id).kind->finishes == Sums::columns; });
  if (finishes) return "finish_column_sums";
  std::string name;
  for (const OpId id : ops) {
    const Op& op = graph.op(id);
    const bool minor = op.kind->minor || op.inlined;
    if (!minor) name += (name.empty() ? "" : "_") + op.name;
  }
  if (!name.empty()) return name;
  for (const OpId id : ops)  // partial sums of values computed again
    if (graph.op(id).kind->partial == Sums::columns) return graph.op(id).name;
  return graph.op(ops[0]).name;
}

std::vector<Home> homes_of(const Plan& plan) {
  std::vector<Home> homes(plan.graph.tensors().size(), Home::on_chip);
  for (const Kernel& kernel : plan.kernels) {
    const std::optional<Operand> kept = handed_over(kernel);
    for (const Program& program : kernel.phases) {
      for (const auto& operands : {loads(program), stores(program)})
        for (const Operand& o : operands)
          if (!kept || o.tensor != kept->tensor)
            homes[static_cast<std::size_t>(o.tensor.index)] = Home::hbm;
    }
  }
  return homes;
}

// Who else needs the tensor: operators of other groups, or whoever follows the block.
std::string readers_outside(const PlanParts& parts, TensorId tensor, std::size_t group) {
  std::string readers;
  for (const OpId id : parts.graph.consumers(tensor))
    if (group_of(parts.groups, id) != group)
      readers += (readers.empty() ? "" : ", ") + parts.graph.op(id).name;
  if (parts.graph.tensor(tensor).role != Role::activation)
    readers += std::string(readers.empty() ? "" : " and ") + "what follows the block";
  return readers;
}

std::vector<FusionNote> notes_of(const PlanParts& parts, const std::vector<Home>& homes) {
  const Graph& graph = parts.graph;
  const Wiring wiring(graph);
  std::vector<FusionNote> notes;
  for (const Edge& e : wiring.edges) {
    const std::size_t a = group_of(parts.groups, e.from);
    const std::size_t b = group_of(parts.groups, e.to);
    const std::string& tensor = graph.tensor(e.tensor).name;
    FusionNote note{e, a == b || parts.persistent, ""};
    if (a == b) {
      const bool chip = homes[static_cast<std::size_t>(e.tensor.index)] == Home::on_chip;
      note.reason = chip ? "same kernel, " + tensor + " stays on chip"
                         : "same kernel, " + tensor + " is stored too for " +
                               readers_outside(parts, e.tensor, a);
    } else {
      const bool two_mainloops =
          has_mainloop(graph, parts.groups[a]) && has_mainloop(graph, parts.groups[b]);
      const bool attention =
          has_attention(graph, parts.groups[a]) || has_attention(graph, parts.groups[b]);
      std::string illegal;  // the pair's own reason comes before that of the groups around it
      if (!two_mainloops && !attention)
        illegal = why_no_program(graph, {e.from, e.to}, parts.target);
      if (illegal.empty()) illegal = why_not_merge(graph, wiring, parts.groups, a, b, parts.target);
      note.reason = !illegal.empty() ? illegal
                                     : "could share a kernel, but " +
                                           parts.rule(graph, parts.groups[a], parts.groups[b], e);
      if (parts.persistent) note.reason = "same launch, a grid barrier between: " + note.reason;
    }
    notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace

Plan assemble(PlanParts parts) {
  Plan plan;
  plan.policy = parts.policy;
  plan.rewrites = parts.rewrites;
  plan.preparation = parts.preparation;
  const auto order = order_groups(parts.graph, parts.groups);
  FUSELINE_ASSERT(order.has_value(),
                  parts.policy + ": the kernels depend on each other in a cycle");

  std::set<std::string> taken;
  for (const std::size_t g : *order) {
    const std::vector<OpId>& ops = parts.groups[g];
    std::string name = name_group(parts.graph, ops);
    for (int n = 2; !taken.insert(name).second; ++n)
      name = name_group(parts.graph, ops) + "_" + std::to_string(n);
    std::vector<Program> programs = lower_kernel(parts.graph, name, ops);
    FrameworkLaunches launched;
    if (parts.beside != nullptr) launched = parts.beside(parts.graph, ops);
    plan.kernels.push_back({name, kind_of(parts.graph, ops), parts.implement(parts.graph, ops), ops,
                            std::move(programs), std::move(launched.launches), launched.instead});
  }
  if (parts.persistent) {
    Kernel block{"block", KernelKind::block, Implementation::persistent_block, {}, {}};
    for (Kernel& kernel : plan.kernels) {
      block.ops.insert(block.ops.end(), kernel.ops.begin(), kernel.ops.end());
      for (Program& program : kernel.phases) block.phases.push_back(std::move(program));
    }
    plan.kernels = {std::move(block)};
  }
  plan.graph = parts.graph;
  plan.block = std::move(parts.block);
  plan.homes = homes_of(plan);
  if (parts.reasons) plan.notes = notes_of(parts, plan.homes);
  return plan;
}

}  // namespace fuseline
