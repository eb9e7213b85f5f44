#include "model/rewrites/finish_in_epilogues.h"

#include <algorithm>

#include "model/operators/all_operators.h"

namespace fuseline {

namespace in_finish_in_epilogues {
namespace {

bool apart(const Op& op) {
  return op.kind == operators::row_stats_finish && !op.attributes.as<RowStatistics>().in_epilogue;
}

bool applies(const Graph& graph) { return std::ranges::any_of(graph.ops(), apart); }

void apply(Block& block) {
  const Graph from = block.graph;
  block.graph = replace_ops(from, [&](const Op& op, Graph& to) {
    if (!apart(op)) return false;
    Op again = op;
    RowStatistics statistics = op.attributes.as<RowStatistics>();
    statistics.in_epilogue = true;
    again.attributes = statistics;
    to.add_op(std::move(again));
    return true;
  });
}

}  // namespace
}  // namespace in_finish_in_epilogues

Rewrite finish_in_epilogues() {
  return {"finish_in_epilogues", "tiles that scale by a norm sum its partials themselves",
          in_finish_in_epilogues::applies, in_finish_in_epilogues::apply};
}

}  // namespace fuseline
