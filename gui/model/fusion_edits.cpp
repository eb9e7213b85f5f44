#include "gui/model/fusion_edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "base/error.h"
#include "gui/model/fusion_search.h"
#include "model/bare_plan.h"

namespace fuseline::gui {

namespace {

CustomFusion with_edge(CustomFusion custom, const OnChipEdge& edge) {
  if (std::ranges::find(custom.on_chip, edge) == custom.on_chip.end()) {
    custom.on_chip.push_back(edge);
  }
  return custom;
}

EditOutcome accepted(CustomFusion custom, std::string what) {
  return {.legal = true,
          .custom = std::move(custom),
          .what = std::move(what),
          .reason = {},
          .suggestions = {}};
}

// The chosen edges that hang together with the operator, as indices.
std::vector<std::size_t> chosen_around(const CustomFusion& custom, const Plan& plan,
                                       const std::string& op) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < custom.on_chip.size(); ++i) {
    if (share_kernel(plan, {op, custom.on_chip[i].from})) found.push_back(i);
  }
  return found;
}

CustomFusion without(const CustomFusion& custom, const std::vector<std::size_t>& indices) {
  CustomFusion out{custom.rewrites, {}};
  for (std::size_t i = 0; i < custom.on_chip.size(); ++i) {
    if (std::ranges::find(indices, i) == indices.end()) out.on_chip.push_back(custom.on_chip[i]);
  }
  return out;
}

// Subsets of `items` with `size` members, in order, until `stop` says so.
bool any_subset(const std::vector<std::size_t>& items, std::size_t size,
                const std::function<bool(const std::vector<std::size_t>&)>& stop) {
  std::vector<std::size_t> picked;
  const std::function<bool(std::size_t)> pick = [&](std::size_t from) {
    if (picked.size() == size) return stop(picked);
    for (std::size_t i = from; i < items.size(); ++i) {
      picked.push_back(items[i]);
      if (pick(i + 1)) return true;
      picked.pop_back();
    }
    return false;
  };
  return pick(0);
}

// Summaries begin in lower case, and one refers to the rewrite that is listed before it.
std::string rewrite_label(const std::string& name) {
  constexpr std::string_view kSame = "the same, and ";
  std::string label = rewrite_summary(name);
  if (label.starts_with(kSame)) label = "a norm is split, and " + label.substr(kSame.size());
  if (label.empty()) return name;
  label.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(label.front())));
  return label;
}

}  // namespace

std::string arrow_text(const OnChipEdge& edge) { return edge.from + " → " + edge.to; }

std::optional<Plan> legal_plan(const Graph& block, const CustomFusion& custom) {
  try {
    return make_bare_plan(block, custom);
  } catch (const InputError&) {
    return std::nullopt;
  } catch (const InternalError&) {
    // A search tries combinations that nobody asked for: one that we cannot plan is no suggestion.
    return std::nullopt;
  }
}

std::string why_illegal(const Graph& block, const CustomFusion& custom) {
  try {
    static_cast<void>(make_bare_plan(block, custom));
    return {};
  } catch (const InputError& error) {
    const InputProblem& p = error.problem();
    std::string text = p.value;
    if (const std::size_t arrow = text.find("->"); arrow != std::string::npos) {
      text.replace(arrow, 2, "→");
    }
    text += (text.empty() ? "" : " ") + p.message;
    if (!p.nearest.empty()) text += "; did you mean " + p.nearest + "?";
    return text;
  } catch (const InternalError& bug) {
    return std::string("it cannot be planned, by a mistake of fuseline: ") + bug.what();
  }
}

bool share_kernel(const Plan& plan, const OnChipEdge& edge) {
  const auto from = plan.graph.find_op(edge.from), to = plan.graph.find_op(edge.to);
  if (!from || !to) return false;
  const auto holds = [](const std::vector<OpId>& ops, OpId op) {
    return std::ranges::find(ops, op) != ops.end();
  };
  return std::ranges::any_of(
      plan.kernels, [&](const Kernel& k) { return holds(k.ops, *from) && holds(k.ops, *to); });
}

EditOutcome fuse_edge(const Graph& block, const CustomFusion& custom, const OnChipEdge& edge,
                      Suggest suggest) {
  const CustomFusion wanted = with_edge(custom, edge);
  const std::string what = "fuse " + arrow_text(edge);
  EditOutcome out{.legal = false, .custom = custom, .what = what, .reason = {}, .suggestions = {}};
  if (why_illegal(block, wanted).empty()) return accepted(wanted, what);
  // The checker names the first choice of a kernel that it refuses: let that be this one.
  CustomFusion this_first{custom.rewrites, {edge}};
  this_first.on_chip.insert(this_first.on_chip.end(), custom.on_chip.begin(), custom.on_chip.end());
  out.reason = why_illegal(block, this_first);
  if (suggest == Suggest::yes) out.suggestions = nearest_fusions(block, custom, edge);
  return out;
}

namespace {

EditOutcome split_in(const Plan& plan, const Graph& block, const CustomFusion& custom,
                     const OnChipEdge& edge) {
  const std::string what = "split " + arrow_text(edge);
  EditOutcome out{.legal = false, .custom = custom, .what = what, .reason = {}, .suggestions = {}};
  if (!share_kernel(plan, edge)) {
    out.reason = arrow_text(edge) + " is not on chip";
    return out;
  }
  const std::vector<std::size_t> around = chosen_around(custom, plan, edge.from);
  std::optional<CustomFusion> apart;
  std::string first_reason;
  const auto try_without = [&](const std::vector<std::size_t>& picked) {
    const CustomFusion candidate = without(custom, picked);
    const std::optional<Plan> result = legal_plan(block, candidate);
    if (!result) {
      if (first_reason.empty()) first_reason = why_illegal(block, candidate);
      return false;
    }
    if (share_kernel(*result, edge)) return false;
    apart = candidate;
    return true;
  };
  for (std::size_t size = 1; size <= std::min<std::size_t>(3, around.size()); ++size) {
    if (any_subset(around, size, try_without)) break;
  }
  if (!apart && !around.empty()) try_without(around);
  if (apart) return accepted(*apart, what);
  out.reason = first_reason.empty()
                   ? "the steps of attention are one kernel under custom: online softmax"
                   : "without it, " + first_reason;
  return out;
}

}  // namespace

EditOutcome split_edge(const Graph& block, const CustomFusion& custom, const OnChipEdge& edge) {
  return split_in(make_bare_plan(block, custom), block, custom, edge);
}

EditOutcome toggle_edge_of(const Plan& plan, const Graph& block, const CustomFusion& custom,
                           const OnChipEdge& edge, Suggest suggest) {
  return share_kernel(plan, edge) ? split_in(plan, block, custom, edge)
                                  : fuse_edge(block, custom, edge, suggest);
}

EditOutcome toggle_edge(const Graph& block, const CustomFusion& custom, const OnChipEdge& edge,
                        Suggest suggest) {
  return toggle_edge_of(make_bare_plan(block, custom), block, custom, edge, suggest);
}

EditOutcome fuse_all(const Graph& block, const CustomFusion& custom,
                     const std::vector<std::string>& operators) {
  const Plan plan = make_bare_plan(block, custom);
  const std::set<std::string> inside(operators.begin(), operators.end());
  std::vector<OnChipEdge> fresh;
  for (const Edge& e : edges(plan.graph)) {
    const OnChipEdge edge{plan.graph.op(e.from).name, plan.graph.op(e.to).name};
    const bool inner = inside.contains(edge.from) && inside.contains(edge.to);
    if (inner && !share_kernel(plan, edge) && std::ranges::find(fresh, edge) == fresh.end()) {
      fresh.push_back(edge);
    }
  }
  const std::string what =
      fmt::format("fuse {} operator{}", inside.size(), inside.size() == 1 ? "" : "s");
  EditOutcome out{.legal = false, .custom = custom, .what = what, .reason = {}, .suggestions = {}};
  if (fresh.empty()) {
    out.reason = "no two of the operators are neighbours that could be joined";
    return out;
  }
  CustomFusion wanted = custom;
  for (const OnChipEdge& edge : fresh) wanted = with_edge(std::move(wanted), edge);
  out.reason = why_illegal(block, wanted);
  if (out.reason.empty()) return accepted(std::move(wanted), what);
  out.suggestions = largest_fusions(block, custom, fresh);
  return out;
}

EditOutcome toggle_rewrite(const Graph& block, const CustomFusion& custom,
                           const std::string& rewrite) {
  CustomFusion wanted = custom;
  const auto on = std::ranges::find(wanted.rewrites, rewrite);
  const bool removes = on != wanted.rewrites.end();
  if (removes) {
    wanted.rewrites.erase(on);
  } else {
    wanted.rewrites.push_back(rewrite);
  }
  const std::string what = (removes ? "without " : "rewrite ") + rewrite;
  const std::string reason = why_illegal(block, {wanted.rewrites, {}});
  if (!reason.empty()) {
    return {.legal = false, .custom = custom, .what = what, .reason = reason, .suggestions = {}};
  }
  CustomFusion kept{wanted.rewrites, {}};
  std::string dropped;
  for (const OnChipEdge& edge : wanted.on_chip) {
    kept.on_chip.push_back(edge);
    if (why_illegal(block, kept).empty()) continue;
    kept.on_chip.pop_back();
    dropped += (dropped.empty() ? "no longer fused: " : ", ") + arrow_text(edge);
  }
  // Edges that need each other come together or not at all.
  if (!dropped.empty() && why_illegal(block, wanted).empty()) return accepted(wanted, what);
  EditOutcome out = accepted(std::move(kept), what);
  out.reason = dropped;
  return out;
}

std::vector<RewriteChoice> rewrite_choices(const Graph& block, const CustomFusion& custom) {
  std::vector<RewriteChoice> choices;
  for (const std::string& name : rewrite_names()) {
    const bool on = std::ranges::find(custom.rewrites, name) != custom.rewrites.end();
    CustomFusion changed{custom.rewrites, {}};
    if (on) {
      std::erase(changed.rewrites, name);
    } else {
      changed.rewrites.push_back(name);
    }
    const std::string why_not = why_illegal(block, changed);
    choices.push_back(
        {name, rewrite_summary(name), rewrite_label(name), on, why_not.empty(), why_not});
  }
  return choices;
}

}  // namespace fuseline::gui
