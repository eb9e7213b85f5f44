// CODA (arXiv 2605.19269): everything but attention's core is a GEMM-epilogue program. Norms are
// split into partial statistics, a finisher and a deferred scale; pairs are interleaved; the entry
// norm's statistics come from the previous block. In training a norm's gradient is behind the dgrad
// GEMM too, and what the weights' gradients need of the forward pass is computed again in
// epilogues.
#include <algorithm>

#include "model/implementation.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/policies/all_policies.h"
#include "model/policies/support/rules.h"
#include "model/rewrites/attention_backward.h"
#include "model/rewrites/defer_norm_backward.h"
#include "model/rewrites/interleave_pairs.h"
#include "model/rewrites/join_in_epilogues.h"
#include "model/rewrites/merge_rope.h"
#include "model/rewrites/rotate_boundary.h"
#include "model/rewrites/split_column_sums.h"
#include "model/rewrites/split_cross_entropy.h"
#include "model/rewrites/split_norm.h"
#include "model/rewrites/store_places.h"

namespace fuseline {

namespace in_coda {
namespace {

bool is_tile(const Operand& o) { return o.rows > 1 && o.cols > 2; }

bool reads_tile(const Graph& graph, const std::vector<OpId>& ops, const Operand& tile) {
  return any_op(graph, ops, [&](const Op& op) {
    return !is_gemm(op) && std::ranges::any_of(op.reads, [&](const Operand& r) {
      return r.tensor == tile.tensor && r.col_begin == tile.col_begin && r.cols == tile.cols &&
             r.at == tile.at;
    });
  });
}

// A value computed again from tiles that the GEMM's epilogue holds.
bool from_tiles_at_hand(const Graph& graph, const std::vector<OpId>& gemm,
                        const std::vector<OpId>& other) {
  if (!has_gemm(graph, gemm) || other.size() != 1) return false;
  const Op& op = graph.op(other[0]);
  if (op.kind->op_class != OpClass::pointwise) return false;
  if (!reads_tile(graph, gemm, op.reads[0])) return false;
  return std::ranges::all_of(
      op.reads, [&](const Operand& r) { return !is_tile(r) || reads_tile(graph, gemm, r); });
}

// Loops over columns of one tensor: the gradients of Q, K and V, and the row sums of all three.
bool columns_of_one_tensor(const Graph& graph, const std::vector<OpId>& a,
                           const std::vector<OpId>& b) {
  if (has_mainloop(graph, a) || has_mainloop(graph, b)) return false;
  return any_op(graph, a, [&](const Op& x) {
    return any_op(graph, b, [&](const Op& y) { return x.writes[0].tensor == y.writes[0].tensor; });
  });
}

// Finishers of column sums, and loops that leave nothing but partial sums of the same tiles.
bool sums_of_one_shape(const Graph& graph, const std::vector<OpId>& a, const std::vector<OpId>& b) {
  const Operand& x = graph.op(a.back()).reads[0];
  const Operand& y = graph.op(b.back()).reads[0];
  if (all_of_kind(graph, a, operators::col_stats_finish) &&
      all_of_kind(graph, b, operators::col_stats_finish))
    return x.rows == y.rows && x.cols == y.cols;
  const auto partial = [](const Op& op) {
    return op.kind == operators::row_dot_partial || op.kind == operators::col_stats_partial;
  };
  return a.size() == 1 && b.size() == 1 && partial(graph.op(a[0])) && partial(graph.op(b[0])) &&
         x.tensor == y.tensor && x.cols == y.cols;
}

// A kernel that holds whole rows and sums down columns has as many thread blocks as there are
// partial sums, one for 128 rows: five for 600 rows, which leaves nearly all of a GPU idle.
std::string fuse(const Graph& graph, const std::vector<OpId>& from, const std::vector<OpId>& to,
                 const Edge& edge) {
  const auto whole_rows = [](const Op& op) { return op.kind->locality == Locality::full_row; };
  if (is_loop(graph, from) && any_op(graph, from, whole_rows) &&
      graph.op(edge.to).kind == operators::col_stats_partial)
    return "sums down columns are a loop of their own behind one over whole rows: together they "
           "would have one thread block for each 128 rows";
  return epilogue_programs(graph, from, to, edge);
}

// Vectors that meet one matrix of weights: a norm's weight and its bias. Together they read it
// once.
bool vectors_of_one_matrix(const Graph& graph, const std::vector<OpId>& a,
                           const std::vector<OpId>& b) {
  return all_of_kind(graph, a, operators::vector_product) &&
         all_of_kind(graph, b, operators::vector_product) &&
         graph.op(a.front()).reads[0] == graph.op(b.front()).reads[0];
}

bool siblings(const Graph& graph, const std::vector<OpId>& a, const std::vector<OpId>& b) {
  return from_tiles_at_hand(graph, a, b) || from_tiles_at_hand(graph, b, a) ||
         columns_of_one_tensor(graph, a, b) || sums_of_one_shape(graph, a, b) ||
         vectors_of_one_matrix(graph, a, b);
}

}  // namespace
}  // namespace in_coda

PolicyRules policy::coda() {
  return {.info = PolicyInfo{.name = "coda",
                             .imitates = "CODA",
                             .fuses = "everything but attention as GEMM-epilogue programs",
                             .place = 90},
          .rewrites = {merge_rope(), join_in_epilogues(), split_norm(), rotate_statistics(),
                       rotate_weighted_before_codes(), interleave_heads(), interleave_gate_up(),
                       store_places()},
          .training = TrainingRules{.before = {interleave_heads(), interleave_gate_up()},
                                    .options = recompute_options,
                                    .after = {accumulate_dq(), split_norm_keeping_weight(),
                                              defer_norm_backward(), split_column_sums(),
                                              split_cross_entropy(), rotate_statistics(),
                                              rotate_weighted(), store_places()}},
          .fuse = in_coda::fuse,
          .siblings = in_coda::siblings,
          .implement = hand_written_implementation};
}

}  // namespace fuseline
