#include "gui/model/operator_moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gui/model/fusion_search.h"
#include "gui/model/latest_wins.h"
#include "gui/model/text.h"
#include "model/bare_plan.h"

namespace fuseline::gui {

namespace {

constexpr std::size_t kNamedOperators = 2;  // of a kernel with more, the first ones and a count

const Kernel* kernel_of(const Plan& plan, const std::string& op) {
  const auto id = plan.graph.find_op(op);
  if (!id) return nullptr;
  for (const Kernel& k : plan.kernels)
    if (std::ranges::find(k.ops, *id) != k.ops.end()) return &k;
  return nullptr;
}

std::vector<std::string> operators_of(const Plan& plan, const Kernel& kernel) {
  std::vector<std::string> names;
  for (const OpId id : kernel.ops) names.push_back(plan.graph.op(id).name);
  return names;
}

std::string short_list(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamedOperators); ++i)
    text += (i == 0 ? "" : " + ") + names[i];
  if (names.size() > kNamedOperators)
    text += fmt::format(" + {} more", names.size() - kNamedOperators);
  return text;
}

bool holds_name(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// The edges between the operator and one of the others, in the order of the graph.
std::vector<OnChipEdge> edges_between(const Graph& graph, const std::string& op,
                                      const std::vector<std::string>& others) {
  std::vector<OnChipEdge> found;
  for (const Edge& e : edges(graph)) {
    const OnChipEdge edge{graph.op(e.from).name, graph.op(e.to).name};
    const bool between = (edge.from == op && holds_name(others, edge.to)) ||
                         (edge.to == op && holds_name(others, edge.from));
    if (between && std::ranges::find(found, edge) == found.end()) found.push_back(edge);
  }
  return found;
}

CustomFusion without_edges_of(const CustomFusion& custom, const std::string& op) {
  CustomFusion out = custom;
  std::erase_if(out.on_chip, [&](const OnChipEdge& e) { return e.from == op || e.to == op; });
  return out;
}

EditOutcome refused(const CustomFusion& custom, std::string what, std::string reason) {
  return {.legal = false,
          .custom = custom,
          .what = std::move(what),
          .reason = std::move(reason),
          .suggestions = {}};
}

std::string label_of(const Saving& saving) {
  const double us = to_us(saving.time);
  return fmt::format("{}{:.1f} µs", us > 0 ? "−" : us < 0 ? "+" : "±", std::abs(us));
}

}  // namespace

EditOutcome move_operator(const Graph& block, const CustomFusion& custom, const std::string& op,
                          const std::optional<std::string>& beside, Suggest suggest) {
  const Plan plan = make_bare_plan(block, custom);
  const std::string what =
      beside ? fmt::format("move {} to {}", op, *beside) : fmt::format("pull {} out", op);
  const Kernel* from = kernel_of(plan, op);
  const Kernel* to = beside ? kernel_of(plan, *beside) : nullptr;
  if (from == nullptr) return refused(custom, what, op + " is no operator of this block");
  if (beside && to == nullptr)
    return refused(custom, what, *beside + " is no operator of this block");
  if (from == to) return refused(custom, what, "both are in one kernel already");
  std::vector<std::string> left = operators_of(plan, *from);
  std::erase(left, op);
  if (!beside && left.empty()) return refused(custom, what, op + " has a kernel of its own");

  const CustomFusion alone = without_edges_of(custom, op);
  CustomFusion wanted = alone;
  std::vector<OnChipEdge> joined;
  if (beside) {
    const std::vector<std::string> there = operators_of(plan, *to);
    joined = edges_between(plan.graph, op, there);
    if (joined.empty())
      return refused(custom, what,
                     fmt::format("no tensor goes between {} and {}", op, short_list(there)));
    wanted.on_chip.insert(wanted.on_chip.end(), joined.begin(), joined.end());
  }
  if (!why_illegal(block, wanted).empty()) {
    // The checker names the first choice that it refuses: let that be what the move is about.
    CustomFusion these_first{alone.rewrites, joined};
    these_first.on_chip.insert(these_first.on_chip.end(), alone.on_chip.begin(),
                               alone.on_chip.end());
    EditOutcome out = refused(custom, what, why_illegal(block, these_first));
    if (suggest == Suggest::yes && !joined.empty() && why_illegal(block, alone).empty())
      out.suggestions = nearest_fusions(block, alone, joined.front());
    return out;
  }
  const Plan moved = make_bare_plan(block, wanted);
  for (const std::string& other : left)
    if (share_kernel(moved, {op, other}) && !(beside && share_kernel(moved, {other, *beside})))
      return refused(
          custom, what,
          fmt::format("{} and {} are one kernel under custom, whatever is chosen", op, other));
  if (beside && !share_kernel(moved, {op, *beside}))
    return refused(custom, what, "custom does not put them into one kernel");
  return {.legal = true, .custom = wanted, .what = what, .reason = {}, .suggestions = {}};
}

MoveTargets move_targets(const Document& document, const RunView& run, const std::string& op,
                         const std::stop_token& stop) {
  MoveTargets out{.op = op, .from = {}, .together = {}, .targets = {}};
  if (run.run.is_measurement()) {
    out.problem = run.run.name + " was measured: move operators of a prediction";
    return out;
  }
  const RunEdit none =
      edit_run(document, run.run.id, [&](const Graph& block, const CustomFusion& custom) {
        const Plan plan = make_bare_plan(block, custom);
        const Kernel* from = kernel_of(plan, op);
        if (from == nullptr) {
          out.problem = op + " is no operator of this block";
          return EditOutcome{};
        }
        out.together = operators_of(plan, *from);
        out.from = short_list(out.together);
        std::erase(out.together, op);
        for (const Kernel& kernel : plan.kernels) {
          throw_if_stopped(stop);
          if (&kernel == from) continue;
          MoveTarget target{.operators = operators_of(plan, kernel), .name = {}};
          target.name = short_list(target.operators);
          const std::vector<OnChipEdge> joined = edges_between(plan.graph, op, target.operators);
          target.near = !joined.empty();
          target.beside =
              target.near ? (joined.front().from == op ? joined.front().to : joined.front().from)
                          : target.operators.front();
          EditOutcome outcome = move_operator(block, custom, op, target.beside);
          target.legal = outcome.legal;
          target.reason = std::move(outcome.reason);
          out.targets.push_back(std::move(target));
        }
        if (!out.together.empty()) {
          EditOutcome outcome = move_operator(block, custom, op, std::nullopt);
          out.targets.push_back({.operators = {},
                                 .name = "a kernel of its own",
                                 .beside = {},
                                 .near = true,
                                 .legal = outcome.legal,
                                 .reason = std::move(outcome.reason)});
        }
        return EditOutcome{};
      });
  if (out.targets.empty() && out.problem.empty()) out.problem = none.outcome.reason;
  for (MoveTarget& t : out.targets) {
    const std::string what =
        t.beside ? fmt::format("Move {} to {}", op, t.name) : fmt::format("Pull {} out", op);
    t.text = t.legal ? what : fmt::format("{}: not possible, {}", what, t.reason);
    t.label = t.legal ? "…" : "not possible";
  }
  return out;
}

MoveTargets with_savings(MoveTargets targets, const Document& document, const RunView& run,
                         ResultCache& cache, const std::stop_token& stop) {
  if (!run.ok() || !run.result->predicted) return targets;
  for (MoveTarget& t : targets.targets) {
    if (!t.legal) continue;
    throw_if_stopped(stop);
    const RunEdit edit =
        edit_run(document, run.run.id, [&](const Graph& block, const CustomFusion& custom) {
          return move_operator(block, custom, targets.op, t.beside);
        });
    if (!edit.outcome.legal) continue;
    const auto after = result_of(edit.document, edit.document.runs.at(edit.run), cache);
    if (after->problem || !after->predicted) {
      t.legal = false;
      t.reason = after->problem ? after->problem->text : "it cannot be predicted";
      t.text += ": not possible, " + t.reason;
      t.label = "not possible";
      continue;
    }
    t.saving = saving_between(*run.result->predicted, *after->predicted);
    if (edit.like) {
      const auto like = result_of(document, *edit.like, cache);
      if (like->predicted)
        t.saving = saving_of_edit(run.run.policy, *run.result->predicted, *like->predicted,
                                  *after->predicted);
    }
    t.text += ": " + t.saving->text;
    t.label = label_of(*t.saving);
  }
  return targets;
}

}  // namespace fuseline::gui
