#include "model/rewrites/rotate_boundary.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace in_rotate_boundary {
namespace {

using Matches = bool (*)(const Op&);

bool is_weighting(const Op& op) { return op.kind == operators::mul_cols; }
bool is_statistics(const Op& op) { return op.kind == operators::row_stats_partial; }
// The operator of the kind that reads a block input.
const Op* entry_op(const Graph& graph, Matches matches) {
  const auto it = std::ranges::find_if(graph.ops(), [&](const Op& op) {
    return matches(op) && graph.tensor(op.reads[0].tensor).role == Role::input;
  });
  return it == graph.ops().end() ? nullptr : &*it;
}

bool feeds_codes(const Graph& graph, TensorId tensor) {
  return std::ranges::any_of(graph.consumers(tensor), [&](OpId id) {
    const Op& op = graph.op(id);
    return is_gemm(op) && gemm_shape(op).weight.quantised();
  });
}

// The block's output that has the shape of its input: the residual stream.
std::optional<TensorId> stream_output(const Graph& graph, const Operand& x) {
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& t = graph.tensors()[i];
    if (t.role != Role::output || t.rows != x.rows || t.cols != x.cols) continue;
    const TensorId id{static_cast<std::int32_t>(i)};
    const std::vector<OpId> producers = graph.producers(id);
    if (!producers.empty() && graph.op(producers[0]).pass == Pass::forward) return id;
  }
  return std::nullopt;
}

bool can_rotate(const Graph& graph, Matches matches) {
  const Op* op = entry_op(graph, matches);
  if (op == nullptr) return false;
  // Where its result is what the block gives, no layer stands behind it.
  const auto stream = stream_output(graph, op->reads[0]);
  if (!stream || *stream == op->writes[0].tensor) return false;
  // Only its first result crosses the boundary: a norm's statistics may not have readers.
  return std::all_of(op->writes.begin() + 1, op->writes.end(),
                     [&](const Operand& o) { return graph.consumers(o.tensor).empty(); });
}

// Moves the entry operator to the exit. Its result becomes the input `in`; `out` is made of y.
void rotate(Block& block, Matches matches, const std::string& in, const std::string& out,
            const std::string& name) {
  const Graph from = block.graph;
  const Op* entry = entry_op(from, matches);
  FUSELINE_ASSERT(entry != nullptr, "nothing to rotate");
  const Op op = *entry;
  const TensorId result = op.writes[0].tensor;
  const std::optional<TensorId> y = stream_output(from, op.reads[0]);
  FUSELINE_ASSERT(y, "the block has no residual stream to rotate across");

  Graph to = replace_ops(from, [&](const Op& other, Graph&) { return other.name == op.name; });
  Tensor given = to.tensor(result);
  given.name = in;
  given.role = Role::input;
  to.tensor(result) = given;

  Op prepare = op;
  for (Operand& o : prepare.reads) o = prepared(block, from.tensor(o.tensor));
  prepare.writes = {prepared(block, given)};
  prepare.name = in;
  block.preparation.graph.add_op(std::move(prepare));

  Tensor made = given;
  made.name = out;
  made.role = Role::output;
  Op exit = op;
  exit.name = name;
  exit.site = op.site;
  exit.reads[0] = to.whole(*y);
  for (std::size_t i = 1; i < exit.reads.size(); ++i) {  // the next block has its own weights
    Tensor weight = to.tensor(exit.reads[i].tensor);
    weight.of_next_layer = weight.name;
    weight.name += "_next";
    exit.reads[i] = to.whole(to.add_tensor(weight));
  }
  exit.writes = {to.whole(to.add_tensor(made))};
  to.relate(exit.writes[0].tensor, Relation::carried_to_next_layer, result);
  to.add_op(std::move(exit));
  block.graph = without_unused_tensors(to);
}

}  // namespace
}  // namespace in_rotate_boundary

Rewrite rotate_statistics() {
  return {"rotate_statistics",
          "the entry norm's partial statistics come from the previous block's last epilogue",
          [](const Graph& graph) {
            return in_rotate_boundary::can_rotate(graph, in_rotate_boundary::is_statistics);
          },
          [](Block& block) {
            in_rotate_boundary::rotate(block, in_rotate_boundary::is_statistics, "x_stats",
                                       "y_stats", "stats_next");
          }};
}

Rewrite rotate_weighted() {
  return {"rotate_weighted",
          "the entry norm's weight is applied in the previous block's last epilogue",
          [](const Graph& graph) {
            return in_rotate_boundary::can_rotate(graph, in_rotate_boundary::is_weighting);
          },
          [](Block& block) {
            in_rotate_boundary::rotate(block, in_rotate_boundary::is_weighting, "x_weighted",
                                       "y_weighted", "weight_next");
          }};
}

Rewrite rotate_weighted_before_codes() {
  Rewrite rewrite = rotate_weighted();
  rewrite.applies = [](const Graph& graph) {
    return in_rotate_boundary::can_rotate(graph, in_rotate_boundary::is_weighting) &&
           in_rotate_boundary::feeds_codes(
               graph, in_rotate_boundary::entry_op(graph, in_rotate_boundary::is_weighting)
                          ->writes[0]
                          .tensor);
  };
  return rewrite;
}

Rewrite rotate_entry_norm() {
  return {"rotate_entry_norm", "the entry norm runs at the end of the previous block",
          [](const Graph& graph) { return in_rotate_boundary::can_rotate(graph, is_norm); },
          [](Block& block) {
            in_rotate_boundary::rotate(block, is_norm, "xn1", "xn1_next", "norm1_next");
          }};
}

}  // namespace fuseline
