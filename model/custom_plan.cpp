// Policy `custom`: a person chooses the edges to keep on chip.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/assemble.h"
#include "model/backward.h"
#include "model/bare_plan.h"
#include "model/custom_fusion.h"
#include "model/implementation.h"
#include "model/lower.h"
#include "model/policies/support/backward_choices.h"
#include "model/policies/support/rules.h"
#include "model/policy.h"
#include "model/program.h"
#include "model/programs/block_programs.h"
#include "model/rewrites/attention_backward.h"
#include "model/rewrites/chain_products.h"
#include "model/rewrites/copy_slices.h"
#include "model/rewrites/decompose_modulation.h"
#include "model/rewrites/decompose_norm.h"
#include "model/rewrites/decompose_rope.h"
#include "model/rewrites/decompose_swiglu.h"
#include "model/rewrites/defer_norm_backward.h"
#include "model/rewrites/finish_in_epilogues.h"
#include "model/rewrites/inline_pointwise.h"
#include "model/rewrites/interleave_pairs.h"
#include "model/rewrites/merge_rope.h"
#include "model/rewrites/order_linear_gradients.h"
#include "model/rewrites/rotate_boundary.h"
#include "model/rewrites/split_column_sums.h"
#include "model/rewrites/split_cross_entropy.h"
#include "model/rewrites/split_norm.h"
#include "model/rewrites/split_product_sums.h"
#include "model/rewrites/store_places.h"
#include "model/why_not.h"

namespace fuseline {

namespace {

// Not rewrites, but named among them.
std::vector<std::string> choice_names() {
  std::vector<std::string> names;
  for (const BackwardChoice& choice : backward_choices()) names.emplace_back(choice.name);
  return names;
}

bool is_backward_choice(const std::string& name) {
  return std::ranges::any_of(backward_choices(),
                             [&](const BackwardChoice& c) { return name == c.name; });
}

// Those that reverse mode goes through: in training they come before the backward pass is made.
std::vector<Rewrite> forward_rewrites() {
  return {merge_rope(), interleave_heads(), interleave_gate_up()};
}

std::vector<Rewrite> all_rewrites() {
  std::vector<Rewrite> all = forward_rewrites();
  for (const Rewrite& r : {copy_slices(),
                           decompose_norm(),
                           decompose_rope(),
                           decompose_swiglu(),
                           decompose_modulation(),
                           split_product_sums(),
                           split_norm(),
                           split_norm_keeping_weight(),
                           finish_in_epilogues(),
                           defer_norm_backward(),
                           split_column_sums(),
                           rotate_statistics(),
                           rotate_weighted(),
                           rotate_entry_norm(),
                           accumulate_dq(),
                           sum_grouped_heads(),
                           order_linear_gradients(),
                           inline_pointwise(),
                           split_cross_entropy(),
                           store_places(),
                           chain_products()})
    all.push_back(r);
  return all;
}

bool is_forward_rewrite(const std::string& name) {
  return std::ranges::any_of(forward_rewrites(), [&](const Rewrite& r) { return name == r.name; });
}

Rewrite find_rewrite(const std::string& name) {
  std::string allowed;
  for (const Rewrite& r : all_rewrites()) {
    if (r.name == name) return r;
    allowed += (allowed.empty() ? "" : ", ") + std::string(r.name);
  }
  for (const std::string& choice : choice_names()) allowed += ", " + choice;
  throw InputError({.field = "custom.rewrites",
                    .value = name,
                    .message = "unknown rewrite",
                    .allowed = allowed,
                    .nearest = nearest_name(name, rewrite_names())});
}

OpId find_operator(const Graph& graph, const std::string& name) {
  if (const auto id = graph.find_op(name)) return *id;
  std::vector<std::string> names;
  for (const Op& op : graph.ops()) names.push_back(op.name);
  throw InputError({.field = "custom.on_chip",
                    .value = name,
                    .message = "no such operator in the block",
                    .nearest = nearest_name(name, names)});
}

[[noreturn]] void refuse(const OnChipEdge& edge, const std::string& reason) {
  throw InputError({.field = "custom.on_chip",
                    .value = edge.from + " -> " + edge.to,
                    .message = "cannot stay on chip: " + reason});
}

std::string not_chosen(const Graph&, const std::vector<OpId>&, const std::vector<OpId>&,
                       const Edge&) {
  return "the edge was not chosen";
}

// Merges both groups without asking: single steps may be illegal where the whole is not.
void unite(const Graph& graph, Groups& groups, OpId from, OpId to) {
  const std::size_t a = group_of(groups, from);
  const std::size_t b = group_of(groups, to);
  if (a == b) return;
  std::vector<OpId> both;
  for (const OpId id : topological_order(graph))
    if (const std::size_t g = group_of(groups, id); g == a || g == b) both.push_back(id);
  groups[a] = std::move(both);
  groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(b));
}

[[noreturn]] void refuse_rewrite(const std::string& name, const std::string& why) {
  throw InputError({.field = "custom.rewrites", .value = name, .message = why});
}

// The block after the rewrites; its backward pass is made anew behind the forward rewrites, which
// must come first. The choices of backward_choices.h say how.
Block rewritten(const Graph& graph, const std::vector<std::string>& rewrites) {
  const bool training = has_backward(graph);
  FUSELINE_ASSERT(!training || graph.forward() != nullptr, "a backward pass that was not derived");
  Block block{training ? *graph.forward() : graph, {}};
  bool pending = training;  // the backward pass is still to be made
  std::vector<std::string> choices;
  bool repeated = false;  // inline_pointwise gave readers values of their own, which only it knows
  const auto differentiate_now = [&] {
    if (!std::exchange(pending, false)) return;
    block.graph = differentiate(block.graph, options_of(choices, block.graph));
    note_reordered_gradients(block);
  };
  for (auto at = rewrites.begin(); at != rewrites.end(); ++at) {
    const std::string& name = *at;
    if (std::find(rewrites.begin(), at, name) != at) refuse_rewrite(name, "is named twice");
    if (is_backward_choice(name)) {
      if (!pending)
        refuse_rewrite(name, "is a choice for the backward pass, before it is rewritten");
      choices.push_back(name);
      continue;
    }
    const Rewrite rewrite = find_rewrite(name);
    if (repeated) refuse_rewrite(name, "comes before inline_pointwise, which is the last");
    if (!is_forward_rewrite(name)) differentiate_now();
    if (training && !pending && is_forward_rewrite(name))
      refuse_rewrite(name, "in training it comes before the rewrites that know the backward pass");
    if (!rewrite.applies(block.graph))
      refuse_rewrite(name, "does not apply to this block after the rewrites before it");
    rewrite.apply(block);
    repeated = name == inline_pointwise().name;
  }
  differentiate_now();
  return block;
}

}  // namespace

std::vector<std::string> rewrite_names() {
  std::vector<std::string> names;
  for (const Rewrite& r : all_rewrites()) names.emplace_back(r.name);
  for (const std::string& choice : choice_names()) names.push_back(choice);
  return names;
}

std::string rewrite_summary(const std::string& name) {
  for (const BackwardChoice& choice : backward_choices())
    if (name == choice.name) return choice.summary;
  for (const Rewrite& r : all_rewrites())
    if (name == r.name) return r.summary;
  return {};
}

namespace {

Plan custom_plan(const Graph& graph, const std::vector<std::string>& rewrites,
                 const std::vector<OnChipEdge>& on_chip, const Target& target, bool reasons) {
  if (computed_by_programs(graph)) {
    Plan plan = custom_plan(with_programs(graph), rewrites, on_chip, target, reasons);
    complete_programs(plan, graph);
    return plan;
  }
  Block block = rewritten(graph, rewrites);
  const std::vector<Edge> all = edges(block.graph);
  Groups groups = one_each(block.graph);
  if (std::ranges::find(rewrites, kSaveProbabilities) == rewrites.end())
    groups = fuse_attention(block.graph, std::move(groups));
  for (const OnChipEdge& choice : on_chip) {
    const OpId from = find_operator(block.graph, choice.from);
    const OpId to = find_operator(block.graph, choice.to);
    const bool known =
        std::ranges::any_of(all, [&](const Edge& e) { return e.from == from && e.to == to; });
    if (!known) refuse(choice, choice.to + " does not read what " + choice.from + " writes");
    unite(block.graph, groups, from, to);
  }
  for (const OnChipEdge& choice : on_chip) {
    const std::size_t g = group_of(groups, find_operator(block.graph, choice.from));
    const std::string reason = why_no_program(block.graph, groups[g], target);
    if (!reason.empty()) refuse(choice, reason);
    const std::string cycle = why_cycle(block.graph, groups, g);
    if (!cycle.empty()) refuse(choice, cycle);
    // The rules above are about operators; the program that they make must hold as well.
    for (const Program& program : lower_kernel(block.graph, choice.from, groups[g]))
      if (const auto problems = check_program(block.graph, program); !problems.empty())
        refuse(choice, problems.front());
  }
  PlanParts parts;
  parts.policy = "custom";
  parts.graph = std::move(block.graph);
  parts.block = graph;
  parts.groups = std::move(groups);
  parts.implement = hand_written_implementation;
  parts.rule = not_chosen;
  parts.rewrites = rewrites;
  parts.preparation = std::move(block.preparation);
  parts.target = target;
  parts.reasons = reasons;
  return assemble(std::move(parts));
}

}  // namespace

Plan make_custom_plan(const Graph& graph, const std::vector<std::string>& rewrites,
                      const std::vector<OnChipEdge>& on_chip, const Target& target) {
  return custom_plan(graph, rewrites, on_chip, target, true);
}

Plan make_bare_plan(const Graph& graph, const CustomFusion& custom) {
  return custom_plan(graph, custom.rewrites, custom.on_chip, {}, false);
}

}  // namespace fuseline
