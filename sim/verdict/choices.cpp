#include "sim/verdict/choices.h"

#include <algorithm>

#include "base/error.h"
#include "model/policy.h"

namespace fuseline {

namespace {

// How a refusal of make_custom_plan() begins.
constexpr std::string_view kRefusal = "cannot stay on chip: ";

bool together(const Plan& plan, const OnChipEdge& edge) {
  const auto from = plan.graph.find_op(edge.from), to = plan.graph.find_op(edge.to);
  return from && to && std::ranges::any_of(plan.kernels, [&](const Kernel& k) {
           return std::ranges::find(k.ops, *from) != k.ops.end() &&
                  std::ranges::find(k.ops, *to) != k.ops.end();
         });
}

// Why the edge cannot be chosen so; empty = it can.
std::string refusal(const Graph& block, const CustomFusion& custom, const Target& target) {
  try {
    static_cast<void>(make_custom_plan(block, custom.rewrites, custom.on_chip, target));
    return {};
  } catch (const InputError& error) {
    std::string why = error.problem().message;
    if (why.starts_with(kRefusal)) why.erase(0, kRefusal.size());
    return why;
  }
}

// The base with one more rewrite, at the last place where it is accepted.
std::optional<CustomFusion> with_rewrite(const Graph& block, const CustomFusion& with,
                                         const std::string& name, const Target& target) {
  for (std::size_t at = with.rewrites.size() + 1; at-- > 0;) {
    CustomFusion more = with;
    more.rewrites.insert(more.rewrites.begin() + static_cast<std::ptrdiff_t>(at), name);
    const auto plan = possible_plan(block, more, target);
    if (plan && together(*plan, with.on_chip.back())) return more;
  }
  return std::nullopt;
}

void try_rewrites(const Graph& block, const Target& target, EdgeChoice& choice) {
  for (const std::string& name : rewrite_names()) {
    if (std::ranges::find(choice.with.rewrites, name) != choice.with.rewrites.end()) continue;
    if (auto more = with_rewrite(block, choice.with, name, target)) {
      choice.with = std::move(*more);
      choice.rewrite = name;
      choice.why_not.clear();
      return;
    }
  }
}

}  // namespace

std::optional<Plan> possible_plan(const Graph& block, const CustomFusion& custom,
                                  const Target& target) {
  try {
    return make_custom_plan(block, custom.rewrites, custom.on_chip, target);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::vector<EdgeChoice> edge_choices(const Graph& block, const CustomFusion& base,
                                     const Target& target) {
  const Plan plan = make_custom_plan(block, base.rewrites, base.on_chip, target);
  const Plan bare = make_custom_plan(block, base.rewrites, {}, target);
  std::vector<EdgeChoice> out;
  for (const Edge& e : edges(plan.graph)) {
    const OnChipEdge edge{plan.graph.op(e.from).name, plan.graph.op(e.to).name};
    const bool again =
        std::ranges::any_of(out, [&](const EdgeChoice& c) { return c.edge == edge; });
    if (again || together(bare, edge)) continue;
    EdgeChoice c{.edge = edge, .tensor = plan.graph.tensor(e.tensor).name};
    c.kept = together(plan, edge);
    c.without = c.with = base;
    if (c.kept) {
      std::erase(c.without.on_chip, edge);
      c.why_not = refusal(block, c.without, target);
      const auto apart = possible_plan(block, c.without, target);
      if (apart && together(*apart, edge)) {
        c.why_not = edge.from + " and " + edge.to + " share a kernel through other edges";
      }
    } else {
      c.with.on_chip.push_back(edge);
      c.why_not = refusal(block, c.with, target);
      if (!c.why_not.empty()) try_rewrites(block, target, c);
    }
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace fuseline
