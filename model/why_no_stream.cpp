#include "model/why_no_stream.h"

#include <algorithm>

#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace {

// Operators that write columns of one tensor, or make the parts of one concatenation, run side by
// side: narrower than the widest of them.
bool side_by_side(const Graph& graph, const Op& op, const std::vector<OpId>& ops) {
  const Operand& w = op.writes[0];
  return std::ranges::any_of(ops, [&](OpId id) {
    const Op& other = graph.op(id);
    if (other.name == op.name) return false;
    if (other.kind->columns == ColumnOrder::side_by_side)
      return std::ranges::any_of(other.reads,
                                 [&](const Operand& part) { return part.cols == w.cols; });
    return other.writes[0].tensor == w.tensor;
  });
}

// The operator among `ops` that makes what this one reads in parts: a concatenation, or the
// gradients of gate and up side by side.
const Op* maker_in_parts(const Graph& graph, const Op& op, const std::vector<OpId>& ops) {
  for (const OpId id : ops) {
    const Op& other = graph.op(id);
    if (other.kind->in_parts == nullptr || !other.kind->in_parts(other)) continue;
    for (const Operand& read : op.reads)
      if (read.tensor == other.writes[0].tensor) return &other;
  }
  return nullptr;
}

// Rows that a sum along columns adds up: those of a sequence, or all.
std::int64_t rows_summed(const Op& op) {
  const auto* sequences = op.attributes.get<Sequences>();
  return sequences != nullptr ? sequences->tokens : op.reads[0].rows;
}

// Sums along columns in one loop add up the same rows, and nobody reads them there.
std::string why_no_column_sums(const Graph& graph, const std::vector<OpId>& ops) {
  const Op* first = nullptr;
  for (const OpId id : ops) {
    const Op& op = graph.op(id);
    if (!needs_full_column(op)) continue;
    if (first != nullptr && rows_summed(*first) != rows_summed(op))
      return first->name + " and " + op.name + " sum columns over different rows";
    first = &op;
    if (op.attributes.get<Sequences>() == nullptr) continue;
    for (const OpId reader : graph.consumers(op.writes[0].tensor))
      if (std::ranges::find(ops, reader) != ops.end())
        return graph.op(reader).name + " reads sums that " + op.name +
               " has when its last row is done";
  }
  return "";
}

}  // namespace

std::string finisher_reason(const Op& op) {
  const bool columns = op.kind->finishes == Sums::columns;
  return op.name + " needs the partials of all " +
         (columns ? "row tiles of its columns" : "column tiles of its rows") +
         ": other thread blocks make them";
}

std::string why_no_stream_program(const Graph& graph, const std::vector<OpId>& ops) {
  const Op* row = nullptr;
  const Op* column = nullptr;
  const Op* widest = nullptr;
  for (const OpId id : ops) {
    const Op& op = graph.op(id);
    if (needs_full_row(op)) {
      if (row != nullptr && row->reads[0].cols != op.reads[0].cols)
        return row->name + " and " + op.name + " reduce rows of different widths";
      row = &op;
    }
    if (needs_full_column(op)) column = &op;
    if (widest == nullptr || op.kind->extent(op).cols > widest->kind->extent(*widest).cols)
      widest = &op;
  }
  if (row != nullptr && column != nullptr)
    return row->name + " sums along rows, " + column->name +
           " along columns: no thread block holds both";
  if (ops.size() == 1) return "";
  if (std::string sums = why_no_column_sums(graph, ops); !sums.empty()) return sums;
  const bool finish = std::ranges::all_of(ops, [&](OpId id) { return is_finisher(graph.op(id)); });
  for (const OpId id : ops)
    if (is_finisher(graph.op(id)) && !finish) return finisher_reason(graph.op(id));
  for (const OpId id : ops) {
    const Op& op = graph.op(id);
    const Op& other = row != nullptr ? *row : *widest;
    if (op.kind->alone != nullptr) return op.name + " " + op.kind->alone;
    if (const Op* parts = maker_in_parts(graph, op, ops))
      return op.name + " reads all columns of what " + parts->name + " makes in parts";
    if (op.kind->extent(op).rows != other.kind->extent(other).rows &&
        op.reads[0].rows != other.reads[0].rows)
      return op.name + " and " + other.name + " have different rows";
    const auto fits = [&](std::int64_t cols) {
      return cols == 1 || cols == op.reads[0].cols || cols == op.writes[0].cols;
    };
    const bool reduces =
        other.writes[0].cols == 1 || leaves_partials(other) || needs_full_column(other);
    const std::int64_t space = reduces ? other.reads[0].cols : other.writes[0].cols;
    // Beside resident rows a part of a concatenation has a place where it is no wider than they
    // are.
    const bool wider =
        row != nullptr && op.kind->columns == ColumnOrder::side_by_side &&
        std::ranges::any_of(op.reads, [&](const Operand& part) { return part.cols > space; });
    const bool apart =
        !fits(space) && op.writes[0].cols != 1 && (row != nullptr || !side_by_side(graph, op, ops));
    if (wider || apart) return op.name + " and " + other.name + " have different widths";
  }
  return "";
}

}  // namespace fuseline
