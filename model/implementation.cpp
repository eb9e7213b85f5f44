#include "model/implementation.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/chain.h"
#include "model/grouping.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/why_not.h"

namespace fuseline {

namespace {

bool has_kind(const Graph& graph, const std::vector<OpId>& ops, OpKind kind) {
  return any_op(graph, ops, [kind](const Op& op) { return op.kind == kind; });
}

// Forward or backward.
bool whole_attention(const Graph& graph, const std::vector<OpId>& ops) {
  return has_kind(graph, ops, operators::attention_scores) &&
         (has_kind(graph, ops, operators::attention_context) ||
          has_kind(graph, ops, operators::attention_d_q));
}

// A reduction along rows or columns, or a loop that stores nothing but partial sums.
bool reduces(const Graph& graph, const std::vector<OpId>& ops) {
  const bool whole = any_op(graph, ops, [](const Op& op) {
    return needs_whole_heads(op) || needs_full_row(op) || needs_full_column(op);
  });
  if (whole) return true;
  return std::ranges::all_of(ops, [&](OpId id) {
    if (graph.op(id).kind->partial != Sums::none) return true;
    const TensorId made = graph.op(id).writes[0].tensor;
    return graph.tensor(made).role == Role::activation &&
           std::ranges::all_of(graph.consumers(made), [&](OpId reader) {
             return std::find(ops.begin(), ops.end(), reader) != ops.end();
           });
  });
}

// A product for each group of rows, which a framework's library has a kernel for.
bool grouped(const Graph& graph, const std::vector<OpId>& ops) {
  return any_op(graph, ops, [](const Op& op) { return is_ragged(op); });
}

bool library_can(const Graph& graph, const std::vector<OpId>& ops) {
  return std::all_of(ops.begin() + 1, ops.end(),
                     [&](OpId id) { return graph.op(id).kind->library_epilogue; });
}

// A product of 16-bit rows with weights in codes: our own kernel runs it, and no library that we
// call. Libraries multiply codes by codes.
bool of_codes(const Graph& graph, const std::vector<OpId>& ops) {
  return any_op(graph, ops, [](const Op& op) {
    if (!is_gemm(op)) return false;
    const GemmShape shape = gemm_shape(op);
    return shape.weight.quantised() && !shape.activation.quantised();
  });
}

// What the attention library launches around its backward kernel.
bool around_attention(const Graph& graph, const std::vector<OpId>& ops) {
  return std::ranges::all_of(ops, [&](OpId id) {
    const Op& op = graph.op(id);
    return is_around_attention(op);
  });
}

bool element_wise(const Op& op) {
  return op.kind->op_class == OpClass::pointwise && op.kind->locality == Locality::tile_local &&
         op.kind->index_read < 0;
}

// Operands of the result's shape, which are not broadcast.
std::vector<Operand> matrices(const Op& op) {
  std::vector<Operand> found;
  std::ranges::copy_if(op.reads, std::back_inserter(found), [&](const Operand& o) {
    return o.rows == op.writes[0].rows && o.cols == op.writes[0].cols;
  });
  return found;
}

// Whether a framework keeps the tensor column by column, as the last operator that turned it left
// it. Of two orders the result takes that of rows.
bool turned(const Graph& graph, TensorId tensor) {
  for (const OpId id : graph.producers(tensor)) {
    const Op& op = graph.op(id);
    if (op.kind->framework_turns != nullptr) return op.kind->framework_turns(op);
    const std::vector<Operand> read = matrices(op);
    return element_wise(op) && !read.empty() &&
           std::ranges::all_of(read, [&](const Operand& o) { return turned(graph, o.tensor); });
  }
  return false;
}

// An element-wise operator of two matrices of which one lies turned.
bool reads_two_orders(const Graph& graph, const Op& op) {
  if (!element_wise(op)) return false;
  const std::vector<Operand> read = matrices(op);
  return std::ranges::any_of(read, [&](const Operand& o) {
    return turned(graph, o.tensor) != turned(graph, read.front().tensor);
  });
}

}  // namespace

Implementation framework_implementation(const Graph& graph, const std::vector<OpId>& ops) {
  if (whole_attention(graph, ops)) return Implementation::library_attention;
  if (has_scan(graph, ops)) return Implementation::library_scan;
  if (has_mainloop(graph, ops)) return Implementation::library_gemm;
  for (const OpId id : ops) {
    const Op& op = graph.op(id);
    if (op.kind->leads) return op.kind->framework(graph, op);
  }
  const Op& last = graph.op(ops.back());
  if (reads_two_orders(graph, last)) return Implementation::transposing;
  return last.kind->framework(graph, last);
}

Implementation hand_written_implementation(const Graph& graph, const std::vector<OpId>& ops) {
  if (whole_attention(graph, ops)) return Implementation::flash_attention;
  if (has_scan(graph, ops)) return Implementation::chunked_scan;
  if (parts_of_chain(graph, ops)) return Implementation::chained_products;
  if (has_mainloop(graph, ops))
    return library_can(graph, ops) && !grouped(graph, ops) && !of_codes(graph, ops)
               ? Implementation::library_gemm
               : Implementation::epilogue_gemm;
  const bool finishes =
      any_op(graph, ops, [](const Op& op) { return op.kind->finishes != Sums::none; });
  if (finishes) return Implementation::finisher;
  if (around_attention(graph, ops) ||
      any_op(graph, ops, [](const Op& op) { return op.kind->scatters; }))
    return Implementation::vectorized;
  return reduces(graph, ops) ? Implementation::resident_row : Implementation::vectorized;
}

Implementation generated_implementation(const Graph& graph, const std::vector<OpId>& ops) {
  if (whole_attention(graph, ops)) return Implementation::library_attention;
  if (has_scan(graph, ops)) return Implementation::library_scan;
  if (has_mainloop(graph, ops) && library_can(graph, ops)) return Implementation::library_gemm;
  // A call of the framework's own kernel, which the compiler leaves as it is.
  const Op& last = graph.op(ops.back());
  if (last.kind->scatters && last.kind->framework(graph, last) == Implementation::scatter_add)
    return Implementation::scatter_add;
  const Implementation by_hand = hand_written_implementation(graph, ops);
  if (around_attention(graph, ops)) return by_hand;
  if (by_hand == Implementation::resident_row) return Implementation::generated_reduction;
  if (by_hand == Implementation::vectorized) return Implementation::generated_pointwise;
  return by_hand;
}

namespace {

bool moves(const FrameworkLaunches& launches, const Operand& operand) {
  return std::ranges::any_of(launches.launches, [&](const FrameworkLaunch& launch) {
    return std::ranges::any_of(launch.moved, [&](const LaunchAccess& access) {
      const auto* moved = std::get_if<Operand>(&access.of);
      return moved != nullptr && moved->tensor == operand.tensor;
    });
  });
}

// What stands in the place of a kernel moves all that comes to it from outside, whatever the
// operator's own description leaves out: a bias that joined, tokens kept from before. The last
// launch loads it.
void complete(const Graph& graph, const std::vector<OpId>& ops, FrameworkLaunches& launches) {
  std::vector<LaunchAccess>& last = launches.launches.back().moved;
  const auto inside = [&](OpId id) { return std::find(ops.begin(), ops.end(), id) != ops.end(); };
  for (const OpId id : ops) {
    for (const Operand& o : graph.op(id).reads) {
      if (std::ranges::none_of(graph.producers(o.tensor), inside) && !moves(launches, o))
        last.insert(last.begin(), {o, false});
    }
  }
  // A bias that joined makes the result that is stored.
  const Operand result = graph.op(ops.back()).writes[0];
  for (LaunchAccess& access : last) {
    const auto* stored = std::get_if<Operand>(&access.of);
    if (!access.store || stored == nullptr || graph.tensor(stored->tensor).role != Role::activation)
      continue;
    const std::vector<OpId> readers = graph.consumers(stored->tensor);
    if (!readers.empty() && std::ranges::all_of(readers, inside)) access.of = result;
  }
}

FrameworkLaunches launches_beside(const Graph& graph, const std::vector<OpId>& ops,
                                  bool generated) {
  FrameworkLaunches all;
  for (const OpId id : ops) {
    const Op& op = graph.op(id);
    if (op.kind->framework_launches == nullptr) continue;
    FrameworkLaunches of_op = op.kind->framework_launches(graph, op, generated);
    all.instead = all.instead || of_op.instead;
    for (FrameworkLaunch& launch : of_op.launches) all.launches.push_back(std::move(launch));
  }
  if (all.instead) complete(graph, ops, all);
  return all;
}

}  // namespace

FrameworkLaunches framework_launches(const Graph& graph, const std::vector<OpId>& ops) {
  return launches_beside(graph, ops, false);
}

FrameworkLaunches generated_launches(const Graph& graph, const std::vector<OpId>& ops) {
  return launches_beside(graph, ops, true);
}

KernelKind kind_of(const Graph& graph, const std::vector<OpId>& ops) {
  if (whole_attention(graph, ops)) return KernelKind::attention;
  if (has_scan(graph, ops)) return KernelKind::scan;
  if (has_mainloop(graph, ops)) return KernelKind::gemm;
  if (any_op(graph, ops, [](const Op& op) { return op.kind->op_class == OpClass::conv; }))
    return KernelKind::conv;
  const bool norm =
      any_op(graph, ops, [](const Op& op) { return op.kind->op_class == OpClass::norm; });
  if (norm) return KernelKind::norm;
  return reduces(graph, ops) ? KernelKind::reduction : KernelKind::pointwise;
}

}  // namespace fuseline
