#include "model/rewrites/join_in_epilogues.h"

#include <algorithm>

#include "model/operators/all_operators.h"

namespace fuseline {

namespace in_join_in_epilogues {
namespace {

// Streams that nobody makes here are copied by one kernel as well as by several.
bool joins_what_is_made(const Graph& graph, const Op& op) {
  return op.kind == operators::concat_rows &&
         std::ranges::all_of(
             op.reads, [&](const Operand& part) { return !graph.producers(part.tensor).empty(); });
}

bool applies(const Graph& graph) {
  return std::ranges::any_of(graph.ops(),
                             [&](const Op& op) { return joins_what_is_made(graph, op); });
}

void apply(Block& block) {
  const Graph from = block.graph;
  block.graph = replace_ops(from, [&](const Op& op, Graph& to) {
    if (!joins_what_is_made(from, op)) return false;
    const std::int64_t sequences = op.attributes.as<JointSequences>().count;
    const TensorId joint = op.writes[0].tensor;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < op.reads.size(); ++i) {
      const std::int64_t rows = op.reads[i].rows / sequences;
      Op copy = op;
      copy.name = op.name + "_" + std::to_string(i + 1);
      copy.kind = operators::copy;
      copy.reads = {op.reads[i]};
      copy.writes = {to.rows_of_parts(joint, sequences, begin, rows)};
      copy.attributes = {};
      to.add_op(std::move(copy));
      begin += rows;
    }
    return true;
  });
}

}  // namespace
}  // namespace in_join_in_epilogues

Rewrite join_in_epilogues() {
  return {"join_in_epilogues", "each stream is stored where its joint rows are",
          in_join_in_epilogues::applies, in_join_in_epilogues::apply};
}

}  // namespace fuseline
