#include "sim/search/rewrite_space.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/backward.h"
#include "model/policies/support/backward_choices.h"
#include "model/rewrites/attention_backward.h"
#include "model/rewrites/chain_products.h"
#include "model/rewrites/defer_norm_backward.h"
#include "model/rewrites/finish_in_epilogues.h"
#include "model/rewrites/interleave_pairs.h"
#include "model/rewrites/join_in_epilogues.h"
#include "model/rewrites/merge_rope.h"
#include "model/rewrites/rotate_boundary.h"
#include "model/rewrites/split_column_sums.h"
#include "model/rewrites/split_cross_entropy.h"
#include "model/rewrites/split_norm.h"

namespace fuseline {

namespace {

struct Draft {
  Block block;
  std::vector<std::string> names;
};

// What one step of the list may be: each is a way of its own, applied where it applies.
using Way = std::vector<Rewrite>;

Draft after(const Draft& before, const Way& way) {
  Draft draft = before;
  for (const Rewrite& rewrite : way) {
    if (!rewrite.applies(draft.block.graph)) continue;
    rewrite.apply(draft.block);
    draft.names.emplace_back(rewrite.name);
  }
  return draft;
}

// Every draft goes on in each of the ways; those that change nothing are not there twice.
std::vector<Draft> branch(const std::vector<Draft>& drafts, const std::vector<Way>& ways) {
  std::vector<Draft> all;
  for (const Draft& draft : drafts) {
    const std::size_t first = all.size();
    for (const Way& way : ways) {
      Draft next = after(draft, way);
      const bool known = std::any_of(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
                                     [&](const Draft& other) { return other.names == next.names; });
      if (!known) all.push_back(std::move(next));
    }
  }
  return all;
}

std::vector<Draft> without_backward(const Graph& block) {
  std::vector<Draft> drafts = {{{block, {}}, {}}};
  drafts = branch(drafts, {{}, {merge_rope()}});
  drafts = branch(drafts, {{}, {join_in_epilogues()}});
  drafts = branch(drafts, {{},
                           {rotate_entry_norm()},
                           {split_norm(), finish_in_epilogues()},
                           {split_norm(), rotate_statistics(), rotate_weighted_before_codes(),
                            finish_in_epilogues()}});
  drafts = branch(drafts, {{}, {interleave_heads()}});
  return branch(drafts, {{}, {interleave_gate_up()}});
}

std::vector<Draft> differentiated(const std::vector<Draft>& forward) {
  std::vector<Draft> all;
  for (const Draft& draft : forward) {
    for (const bool recompute : {false, true}) {
      BackwardOptions options = options_of({}, draft.block.graph);
      if (recompute) options.recompute = options_of({"recompute"}, draft.block.graph).recompute;
      if (recompute && options.recompute.empty()) continue;
      Draft joint = draft;
      joint.block.graph = differentiate(draft.block.graph, options);
      for (const std::string& choice : choices_of(options)) joint.names.push_back(choice);
      all.push_back(std::move(joint));
    }
  }
  return all;
}

std::vector<Draft> with_backward(const Graph& block) {
  FUSELINE_ASSERT(block.forward() != nullptr, "a backward pass that was not derived");
  std::vector<Draft> drafts = {{{*block.forward(), {}}, {}}};
  drafts = branch(drafts, {{}, {merge_rope()}});
  drafts = branch(drafts, {{}, {interleave_heads(), interleave_gate_up()}});
  drafts = differentiated(drafts);
  drafts = branch(drafts, {{accumulate_dq()}});
  drafts =
      branch(drafts, {{},
                      {split_norm_keeping_weight(), finish_in_epilogues()},
                      {split_norm_keeping_weight(), finish_in_epilogues(), defer_norm_backward()}});
  drafts = branch(drafts, {{}, {split_column_sums()}});
  drafts = branch(drafts, {{split_cross_entropy()}});
  drafts = branch(drafts, {{}, {rotate_statistics(), rotate_weighted()}});
  for (Draft& draft : drafts) note_reordered_gradients(draft.block);
  return drafts;
}

}  // namespace

std::vector<RewrittenBlock> rewritten_blocks(const Graph& block, bool chains) {
  std::vector<RewrittenBlock> out;
  std::vector<Draft> drafts = has_backward(block) ? with_backward(block) : without_backward(block);
  if (chains) drafts = branch(drafts, {{}, {chain_products()}});
  for (Draft& draft : drafts)
    out.push_back(
        {std::move(draft.block.graph), std::move(draft.block.preparation), std::move(draft.names)});
  return out;
}

RewrittenBlock rewritten_like(const Plan& plan) {
  return {plan.graph, plan.preparation, plan.rewrites};
}

}  // namespace fuseline
