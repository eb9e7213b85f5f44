// From operators to kernels: groups grow along edges of the graph as far as a policy's rule and the
// legality rules of why_not.h allow.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/target.h"

namespace fuseline {

using Groups = std::vector<std::vector<OpId>>;  // each in dependency order

// Why the policy does not fuse the edge's two groups although it could; empty = it does.
using FusionRule = std::function<std::string(const Graph&, const std::vector<OpId>& from,
                                             const std::vector<OpId>& to, const Edge&)>;

// Whether the policy puts two groups without an edge between them into one kernel.
using SiblingRule =
    std::function<bool(const Graph&, const std::vector<OpId>& a, const std::vector<OpId>& b)>;

Groups one_each(const Graph& graph);

// Scores, softmax and context become one group (online softmax), their gradients another.
Groups fuse_attention(const Graph& graph, Groups groups);

// Merges groups along edges, in dependency order, until rule and legality allow no more.
Groups grow(const Graph& graph, Groups groups, const FusionRule& rule, const Target& target = {});

// Merges groups side by side, in dependency order.
Groups join_siblings(const Graph& graph, Groups groups, const SiblingRule& rule,
                     const Target& target = {});

// Each group takes the place of its first operator, behind the groups that it needs, the same way:
// the order in which a compiler emits fused loops.
Groups depth_first(const Graph& graph, const Groups& groups);

// The index of the group that holds the operator.
std::size_t group_of(const Groups& groups, OpId op);

// Whether an operator of the group satisfies the predicate.
bool any_op(const Graph& graph, const std::vector<OpId>& group,
            const std::function<bool(const Op&)>& predicate);

bool all_of_kind(const Graph& graph, const std::vector<OpId>& group, OpKind kind);

// A group with the mainloop of a GEMM, of attention or of a scan.
bool has_mainloop(const Graph& graph, const std::vector<OpId>& group);
bool has_gemm(const Graph& graph, const std::vector<OpId>& group);
bool has_attention(const Graph& graph, const std::vector<OpId>& group);
bool has_scan(const Graph& graph, const std::vector<OpId>& group);

}  // namespace fuseline
