#include "model/policy.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "model/assemble.h"
#include "model/backward.h"
#include "model/blocks/block.h"
#include "model/config/several_gpus.h"
#include "model/operators/all_operators.h"
#include "model/policies/all_policies.h"
#include "model/policies/support/backward_choices.h"
#include "model/policies/support/rules.h"
#include "model/programs/block_programs.h"
#include "model/rewrites/dequantise_cache.h"
#include "model/rewrites/interleave_pairs.h"

namespace fuseline {

namespace {

using MakeRules = PolicyRules (*)();

std::vector<MakeRules>& makers() {
  static std::vector<MakeRules> all(std::begin(policy::kAll), std::end(policy::kAll));
  return all;
}

using AllRules = std::shared_ptr<const std::vector<PolicyRules>>;

// Made once, and again when a policy was added.
AllRules all_rules() {
  static std::mutex mutex;
  static AllRules known;
  const std::lock_guard lock(mutex);
  if (known == nullptr || known->size() != makers().size()) {
    std::vector<PolicyRules> all;
    for (const MakeRules make : makers()) all.push_back(make());
    std::ranges::stable_sort(all, {}, [](const PolicyRules& rules) { return rules.info.place; });
    known = std::make_shared<const std::vector<PolicyRules>>(std::move(all));
  }
  return known;
}

PolicyRules find_rules(const std::string& policy) {
  const AllRules all = all_rules();
  std::vector<std::string> names;
  std::string allowed;
  for (const PolicyRules& rules : *all) {
    if (rules.info.name == policy) return rules;
    names.push_back(rules.info.name);
    allowed += (allowed.empty() ? "" : ", ") + rules.info.name;
  }
  throw InputError({.field = "--policy",
                    .value = policy,
                    .message = "unknown policy",
                    .allowed = allowed,
                    .nearest = nearest_name(policy, names)});
}

}  // namespace

std::string without_version(const std::string& field, const std::string& text) {
  const std::size_t at = text.find('@');
  if (at == std::string::npos) return text;
  const std::string name = text.substr(0, at);
  for (const PolicyInfo& p : policies()) {
    if (p.name != name || p.version == text.substr(at + 1)) continue;
    throw InputError(
        {.field = field,
         .value = text,
         .message = p.version.empty() ? "the policy imitates no version of a system"
                                      : "the policy imitates another version of its system",
         .allowed = p.version.empty() ? name : fmt::format("{}, or {}@{}", name, name, p.version)});
  }
  return name;
}

AddedPolicy::AddedPolicy(PolicyRules (*rules)()) {
  const std::string name = rules().info.name;
  for (const PolicyInfo& known : policies()) FUSELINE_ASSERT(known.name != name, name);
  makers().push_back(rules);
}

std::vector<PolicyInfo> policies() {
  std::vector<PolicyInfo> infos;
  const AllRules all = all_rules();
  for (const PolicyRules& rules : *all) {
    infos.push_back(rules.info);
    infos.back().trains = rules.training.has_value();
  }
  return infos;
}

namespace {

void apply_all(const std::vector<Rewrite>& rewrites, Block& block,
               std::vector<std::string>& applied) {
  for (const Rewrite& rewrite : rewrites) {
    if (!rewrite.applies(block.graph)) continue;
    rewrite.apply(block);
    applied.emplace_back(rewrite.name);
  }
}

[[noreturn]] void refuse_training(const PolicyRules& rules) {
  std::string allowed;
  const AllRules all = all_rules();
  for (const PolicyRules& other : *all)
    if (other.training) allowed += (allowed.empty() ? "" : ", ") + other.info.name;
  throw InputError({.field = "--phase",
                    .value = name_of(Phase::train),
                    .message = "policy " + rules.info.name +
                               " has no plan for the backward pass: " + rules.why_no_training,
                    .allowed = "forward or decode; with train the policies " + allowed});
}

// Collectives are declared, so that a block can be written with them, and not planned yet.
void refuse_several_gpus(const Graph& graph) {
  for (const Op& op : graph.ops()) {
    if (op.kind->op_class != OpClass::collective) continue;
    const Devices* devices = op.attributes.get<Devices>();
    const std::string count = devices == nullptr ? "several" : std::to_string(devices->count);
    throw InputError({.field = op.name,
                      .value = std::string(op.kind->name.value) + " over " + count + " GPUs",
                      .message = kSeveralGpusMessage,
                      .allowed = "operators of one GPU"});
  }
}

}  // namespace

Plan plan_with(const PolicyRules& rules, const Graph& graph, const Target& target) {
  refuse_several_gpus(graph);
  if (computed_by_programs(graph)) {
    Plan plan = plan_with(rules, with_programs(graph), target);
    complete_programs(plan, graph);
    return plan;
  }
  Block block{graph, {}};
  PlanParts parts;
  if (has_backward(graph)) {
    if (!rules.training) refuse_training(rules);
    FUSELINE_ASSERT(graph.forward() != nullptr, "a backward pass that was not derived");
    block.graph = *graph.forward();
    apply_all(rules.training->before, block, parts.rewrites);
    const BackwardOptions options = rules.training->options(block.graph);
    block.graph = differentiate(block.graph, options);
    for (const std::string& choice : choices_of(options)) parts.rewrites.push_back(choice);
    apply_all(rules.training->after, block, parts.rewrites);
    note_reordered_gradients(block);
  } else {
    apply_all(rules.rewrites, block, parts.rewrites);
  }
  if (!rules.fused_attention) apply_all({dequantise_cache()}, block, parts.rewrites);
  Groups groups = one_each(block.graph);
  if (rules.fused_attention) {
    groups = fuse_attention(block.graph, std::move(groups));
    if (std::ranges::any_of(groups, [](const auto& g) { return g.size() > 1; }))
      parts.rewrites.emplace_back("fuse_attention");
  }
  groups = grow(block.graph, std::move(groups), rules.fuse, target);
  if (rules.siblings)
    groups = join_siblings(block.graph, std::move(groups), rules.siblings, target);
  if (rules.cache_writes_first) {
    std::stable_partition(groups.begin(), groups.end(), [&](const std::vector<OpId>& group) {
      return any_op(block.graph, group, [](const Op& op) { return op.kind->appends; });
    });
  }
  if (rules.depth_first && has_backward(block.graph)) groups = depth_first(block.graph, groups);
  parts.policy = rules.info.name;
  parts.graph = std::move(block.graph);
  parts.block = graph;
  parts.groups = std::move(groups);
  parts.implement = rules.implement;
  parts.beside = rules.beside;
  parts.rule = rules.fuse;
  parts.persistent = rules.persistent;
  parts.preparation = std::move(block.preparation);
  parts.target = target;
  return assemble(std::move(parts));
}

Plan make_plan(const std::string& policy, const Graph& graph, const Target& target) {
  return plan_with(find_rules(policy), graph, target);
}

Plan make_plan(const std::string& policy, const ModelConfig& config, const Workload& workload,
               const Target& target) {
  static_cast<void>(find_rules(policy));  // an unknown policy is reported before a missing phase
  return make_plan(policy, build_block(config, workload), target);
}

}  // namespace fuseline
