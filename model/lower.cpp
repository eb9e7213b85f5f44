#include "model/lower.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "model/emit.h"
#include "model/lower_ops.h"
#include "model/operators.h"

namespace fuseline {

namespace {

bool holds_pairs(const Graph& graph, const std::vector<OpId>& ops) {
  return std::any_of(ops.begin(), ops.end(),
                     [&](OpId id) { return graph.op(id).attributes.pairs_interleaved; });
}

void gemm_mainloop(Emitter& e, const Op& op, bool interleaved) {
  const GemmShape shape = gemm_shape(op);
  GemmMainloop m;
  m.a = op.reads[0];
  m.b = op.reads[1];
  m.M = shape.M;
  m.N = shape.N;
  m.K = shape.K;
  m.a_is_km = shape.a_is_km;
  m.b_is_kn = shape.b_is_kn;
  m.interleaved = interleaved;
  e.set_mainloop(m, m.N);
  e.produce_result(op.writes[0]);
}

bool overlap(const Operand& a, const Operand& b) {
  return a.tensor == b.tensor && a.col_begin < b.col_begin + b.cols &&
         b.col_begin < a.col_begin + a.cols;
}

bool needs_row(const Op& op) { return operator_info(op.kind).locality == Locality::full_row; }

StreamMainloop stream_of(const Graph& graph, const std::vector<OpId>& ops) {
  StreamMainloop space;
  for (const OpId id : ops) {
    const Extent extent = extent_of(graph.op(id));
    space.rows = std::max(space.rows, extent.rows);
    space.cols = std::max(space.cols, extent.cols);
  }
  return space;
}

RowMainloop rows_of(const Op& op) {
  const OpAttributes& a = op.attributes;
  if (op.kind == OpKind::attention_backward_dot)
    return {a.batch * a.heads * a.q_tokens, a.head_width, a.heads, a.q_tokens};
  if (op.kind == OpKind::cross_entropy_finish) return {op.reads[0].rows, op.reads[0].cols / 3};
  // Finishers of two sums read every second column for each.
  const bool two = (op.kind == OpKind::row_stats_finish || op.kind == OpKind::row_dot_finish) &&
                   op.writes[0].cols == 2;
  return {op.reads[0].rows, op.reads[0].cols / (two ? 2 : 1)};
}

}  // namespace

std::vector<OpId> mainloop_first(const Graph& graph, const std::vector<OpId>& ops) {
  const auto main = std::find_if(ops.begin(), ops.end(),
                                 [&](OpId id) { return graph.op(id).kind == OpKind::gemm; });
  if (main == ops.end()) return ops;
  // Backwards from the mainloop: what it needs, directly or not.
  std::vector<Operand> wanted = graph.op(*main).reads;
  std::vector<OpId> before;
  for (auto it = std::make_reverse_iterator(main); it != ops.rend(); ++it) {
    const Op& op = graph.op(*it);
    const bool needed = std::any_of(op.writes.begin(), op.writes.end(), [&](const Operand& w) {
      return std::any_of(wanted.begin(), wanted.end(),
                         [&](const Operand& r) { return overlap(w, r); });
    });
    if (!needed) continue;
    before.insert(before.begin(), *it);
    wanted.insert(wanted.end(), op.reads.begin(), op.reads.end());
  }
  std::vector<OpId> ordered = before;
  ordered.push_back(*main);
  for (const OpId id : ops)
    if (std::find(ordered.begin(), ordered.end(), id) == ordered.end()) ordered.push_back(id);
  return ordered;
}

Program lower(const Graph& graph, const std::string& name, const std::vector<OpId>& given) {
  const std::vector<OpId> ops = mainloop_first(graph, given);
  Emitter e(graph, name, ops);
  const auto count = [&](auto predicate) {
    return std::count_if(ops.begin(), ops.end(), [&](OpId id) { return predicate(graph.op(id)); });
  };
  const auto contractions =
      count([](const Op& op) { return operator_info(op.kind).locality == Locality::contraction; });
  if (contractions > 1 && count([](const Op& op) { return op.kind == OpKind::gemm; }) == 0)
    return attention_program(e, ops);
  FUSELINE_ASSERT(contractions <= 1, name + " has two mainloops");

  if (contractions == 1) {
    const Op& main = graph.op(ops.front());
    FUSELINE_ASSERT(operator_info(main.kind).locality == Locality::contraction,
                    name + " does not begin with its mainloop");
    if (main.kind == OpKind::gemm)
      gemm_mainloop(e, main, holds_pairs(graph, ops));
    else
      batched_mainloop(e, main);
  } else {
    const auto row =
        std::find_if(ops.begin(), ops.end(), [&](OpId id) { return needs_row(graph.op(id)); });
    if (row != ops.end()) {
      const RowMainloop rows = rows_of(graph.op(*row));
      e.set_mainloop(rows, rows.cols);
    } else {
      const StreamMainloop space = stream_of(graph, ops);
      e.set_mainloop(space, space.cols);
    }
  }
  for (const OpId id : ops) emit_op(e, graph.op(id));
  return e.finish();
}

}  // namespace fuseline
