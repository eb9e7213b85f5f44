#include "model/lower.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "model/chain.h"
#include "model/emit.h"
#include "model/lower_attention.h"
#include "model/operators/operator_table.h"
#include "model/programs/block_programs.h"

namespace fuseline {

namespace {

bool holds_pairs(const Graph& graph, const std::vector<OpId>& ops) {
  return std::any_of(ops.begin(), ops.end(),
                     [&](OpId id) { return has_adjacent_pairs(graph.op(id)); });
}

StreamMainloop stream_of(const Graph& graph, const std::vector<OpId>& ops) {
  StreamMainloop space;
  for (const OpId id : ops) {
    const Extent extent = graph.op(id).kind->extent(graph.op(id));
    space.rows = std::max(space.rows, extent.rows);
    space.cols = std::max(space.cols, extent.cols);
  }
  return space;
}

RowMainloop rows_of(const Op& op) {
  if (op.kind->rows != nullptr) return op.kind->rows(op);
  return {op.reads[0].rows, op.reads[0].cols};
}

}  // namespace

std::vector<OpId> mainloop_first(const Graph& graph, const std::vector<OpId>& ops) {
  const auto main =
      std::find_if(ops.begin(), ops.end(), [&](OpId id) { return is_mainloop(graph.op(id)); });
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
  if (given.size() == 1 && is_own_program(graph.op(given[0])))
    return program_of(graph.op(given[0]), name);
  const std::vector<OpId> ops = mainloop_first(graph, given);
  Emitter e(graph, name, ops);
  const auto count = [&](auto predicate) {
    return std::count_if(ops.begin(), ops.end(), [&](OpId id) { return predicate(graph.op(id)); });
  };
  const auto contractions = count([](const Op& op) { return is_contraction(op); });
  if (contractions > 1 && count([](const Op& op) { return is_gemm(op); }) == 0)
    return attention_program(e, ops);
  FUSELINE_ASSERT(contractions <= 1, name + " has two mainloops");

  if (contractions == 1) {
    const Op& main = graph.op(ops.front());
    FUSELINE_ASSERT(main.kind->mainloop != nullptr, name + " does not begin with its mainloop");
    main.kind->mainloop(e, main, holds_pairs(graph, ops));
  } else {
    const auto row =
        std::find_if(ops.begin(), ops.end(), [&](OpId id) { return needs_full_row(graph.op(id)); });
    if (row != ops.end()) {
      const RowMainloop rows = rows_of(graph.op(*row));
      e.set_mainloop(rows, rows.cols);
    } else {
      const StreamMainloop space = stream_of(graph, ops);
      e.set_mainloop(space, space.cols);
    }
  }
  for (const OpId id : ops) graph.op(id).kind->lower(e, graph.op(id));
  return e.finish();
}

std::vector<Program> lower_kernel(const Graph& graph, const std::string& name,
                                  const std::vector<OpId>& ops) {
  const auto chain = parts_of_chain(graph, ops);
  if (!chain) return {lower(graph, name, ops)};
  const auto product =
      std::ranges::find_if(chain->second, [&](OpId id) { return is_contraction(graph.op(id)); });
  return {lower(graph, name, chain->first), lower(graph, graph.op(*product).name, chain->second)};
}

}  // namespace fuseline
