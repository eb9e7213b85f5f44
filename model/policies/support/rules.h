// What a policy is: a list of rewrites and a few grouping rules. One file of model/policies/ fills
// this in for each policy, in a function with the name of the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/backward.h"
#include "model/grouping.h"
#include "model/policy.h"
#include "model/rewrites/rewrite.h"

namespace fuseline {

// How a block with a backward pass is planned: rewrites of the forward block, reverse mode,
// rewrites of the joint graph (which know the operators of both passes).
struct TrainingRules {
  std::vector<Rewrite> before{};
  BackwardOptions (*options)(const Graph& forward) = nullptr;
  std::vector<Rewrite> after{};
};

struct PolicyRules {
  // Write .info = PolicyInfo{...}, with its type: where a later member throws, GCC 12 destroys the
  // strings of an inner list without a type twice.
  PolicyInfo info;
  std::vector<Rewrite> rewrites;  // those that apply are applied, in this order
  std::optional<TrainingRules> training{};
  std::string why_no_training{};  // instead: the reason
  bool fused_attention = true;    // scores, softmax and context in one kernel
  FusionRule fuse;                // along edges
  SiblingRule siblings;           // side by side; may be empty
  Implementation (*implement)(const Graph&, const std::vector<OpId>&) = nullptr;
  // What a framework launches beside a kernel or in its place; null: nothing.
  FrameworkLaunches (*beside)(const Graph&, const std::vector<OpId>&) = nullptr;
  bool persistent = false;          // all kernels are phases of one launch
  bool cache_writes_first = false;  // of several kernels that could be next
  bool depth_first = false;         // order of a training step's kernels; see grouping.h
};

// The plan that the rules give; graphs with a backward pass get the one of `training` in its place.
// InputError (--phase) when the rules have none.
Plan plan_with(const PolicyRules& rules, const Graph& graph, const Target& target = {});

// A policy from outside this folder joins the list of all, for as long as the program runs. Asserts
// that its name is new.
struct AddedPolicy {
  explicit AddedPolicy(PolicyRules (*rules)());
};

// Rules that several policies share.

// Attention by online softmax saves the log-sum-exp of its scores.
BackwardOptions flash_attention_options(const Graph& forward);
// The same, and the gradients of Q, K and V are tensors that a concatenation puts side by side.
BackwardOptions framework_options(const Graph& forward);

// The results of norms and activations are not saved: they are made again where their tiles pass
// by.
BackwardOptions recompute_options(const Graph& forward);

// Attention's core, or what its library does around the backward kernel.
bool in_attention_library(const Graph&, const std::vector<OpId>& ops);

// Nothing is fused along edges.
std::string one_kernel_per_operator(const Graph&, const std::vector<OpId>& from,
                                    const std::vector<OpId>& to, const Edge&);

// A bias goes into the epilogue of its library GEMM or convolution, nothing else is fused.
std::string bias_into_gemm(const Graph&, const std::vector<OpId>& from, const std::vector<OpId>& to,
                           const Edge&);

// Everything that is legal behind a GEMM goes into its epilogue; attention stays alone.
std::string epilogue_programs(const Graph&, const std::vector<OpId>& from,
                              const std::vector<OpId>& to, const Edge&);

// Element-wise loops of one size that read the same operand.
bool same_loop_and_input(const Graph&, const std::vector<OpId>& a, const std::vector<OpId>& b);

// Both appends to the KV cache.
bool both_cache_appends(const Graph&, const std::vector<OpId>& a, const std::vector<OpId>& b);

// Only element-wise operators and reductions: a loop that a compiler can generate.
bool is_loop(const Graph&, const std::vector<OpId>& ops);

// A bias, or a bias and GELU, right behind the GEMM.
bool library_takes(const Graph&, const std::vector<OpId>& gemm, const std::vector<OpId>& to);

}  // namespace fuseline
