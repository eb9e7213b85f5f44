#include "sim/executor/fault.h"

#include <algorithm>
#include <set>
#include <variant>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/primitives/functions.h"

namespace fuseline::executor {

namespace {

// Values that are one number a row, one a column, and differences.
struct Seen {
  std::set<Value> per_row;
  std::set<Value> per_col;
  std::set<Value> differences;

  void note(const Primitive& primitive) {
    if (const auto* load = primitive.as<LoadVector>()) {
      (load->axis == Axis::rows ? per_row : per_col).insert(load->out);
    } else if (const auto* r = primitive.as<RowReduce>()) {
      per_row.insert(r->out);
    } else if (const auto* m = primitive.as<Map>()) {
      if (std::ranges::all_of(m->in, [&](Value v) { return per_row.contains(v); }))
        per_row.insert(m->out);
      if (m->fn == maps::sub) differences.insert(m->out);
    }
  }
};

bool fits(FaultKind kind, const Primitive& primitive, const Seen& seen) {
  const auto* map = primitive.as<Map>();
  const auto* pair = primitive.as<PairMap>();
  switch (kind) {
    case FaultKind::dropped_row_scale:
      return map != nullptr && map->fn == maps::mul && !seen.per_row.contains(map->in[0]) &&
             seen.per_row.contains(map->in[1]);
    case FaultKind::missed_partial: {
      const auto* reduce = primitive.as<RowReduce>();
      return reduce != nullptr && reduce->fn != reductions::max;
    }
    case FaultKind::swapped_pair:
      return pair != nullptr || primitive.is<ConcatHalves>();
    case FaultKind::wrong_rotation_sign:
      return (pair != nullptr && pair->rotates()) || (map != nullptr && map->fn == maps::negate);
    case FaultKind::dropped_residual:
      return map != nullptr && map->fn == maps::add && !seen.per_col.contains(map->in[1]);
    case FaultKind::missed_column_partial:
      return primitive.is<RowReduce>() || primitive.is<ColumnReduce>();
    case FaultKind::swapped_gradient_pair:
      return (pair != nullptr && pair->fn->backward) || primitive.is<ConcatHalves>();
    case FaultKind::unscaled_norm_gradient:
      return map != nullptr && map->fn == maps::mul && seen.differences.contains(map->in[0]) &&
             seen.per_row.contains(map->in[1]);
    case FaultKind::dropped_residual_gradient:
      return map != nullptr && map->fn == maps::add && !seen.per_col.contains(map->in[1]);
    case FaultKind::stale_delta:  // where attention is no kernel of its own
      return map != nullptr && map->fn == maps::sub && seen.per_row.contains(map->in[1]);
    case FaultKind::stale_tile:
    case FaultKind::unnormalised_softmax:
    case FaultKind::shifted_mask:
      return false;
  }
  FUSELINE_ASSERT(false, "unknown fault");
}

bool in_mainloop(FaultKind kind, const Kernel& kernel, const Graph& graph, const Program& program) {
  if (kind == FaultKind::stale_tile)
    return std::holds_alternative<GemmMainloop>(program.mainloop) &&
           std::ranges::any_of(kernel.ops, [&](OpId id) { return is_gemm(graph.op(id)); });
  const auto* attention = std::get_if<AttentionMainloop>(&program.mainloop);
  if (kind == FaultKind::stale_delta) return attention != nullptr && attention->gradient;
  if (kind == FaultKind::unnormalised_softmax) return attention != nullptr;
  if (kind == FaultKind::shifted_mask) return attention != nullptr;
  return false;
}

// Operators of which the kernel must have one: other sums of two tiles are no residuals.
std::vector<OpKind> where(FaultKind kind) {
  switch (kind) {
    case FaultKind::dropped_residual:
      return {operators::residual_add};
    case FaultKind::missed_column_partial:
      return {operators::col_stats_finish, operators::column_sum, operators::norm_weight_grad};
    case FaultKind::swapped_gradient_pair:
      return {operators::swiglu_backward, operators::rope_backward, operators::concat_halves};
    case FaultKind::unscaled_norm_gradient:
      return {operators::norm_backward_deferred, operators::rms_norm_backward,
              operators::layer_norm_backward};
    case FaultKind::dropped_residual_gradient:
      return {operators::norm_backward_deferred, operators::grad_add};
    case FaultKind::stale_delta:
      return {operators::softmax_backward, operators::softmax_backward_delta};
    default:
      return {};
  }
}

bool kernel_fits(FaultKind kind, const Kernel& kernel, const Graph& graph) {
  const std::vector<OpKind> kinds = where(kind);
  const Pass pass = kind == FaultKind::dropped_residual ? Pass::forward : Pass::backward;
  return kinds.empty() || std::ranges::any_of(kernel.ops, [&](OpId id) {
           return std::ranges::find(kinds, graph.op(id).kind) != kinds.end() &&
                  graph.op(id).pass == pass;
         });
}

// Of several places in a program the last: what comes before makes the operands.
bool takes_last(FaultKind kind) {
  return kind == FaultKind::unscaled_norm_gradient || kind == FaultKind::dropped_residual_gradient;
}

}  // namespace

std::vector<FaultInfo> faults() {
  return {
      {FaultKind::dropped_row_scale, "dropped-row-scale", "a norm's row scale is not applied"},
      {FaultKind::missed_partial, "missed-partial", "a row's sum leaves out its last partial"},
      {FaultKind::swapped_pair, "swapped-pair", "the two columns of every pair change places"},
      {FaultKind::wrong_rotation_sign, "wrong-rotation-sign", "a rotation turns the wrong way"},
      {FaultKind::stale_tile, "stale-tile", "a GEMM's last tile is not computed"},
      {FaultKind::dropped_residual, "dropped-residual", "a sum forgets its second operand"},
      {FaultKind::unnormalised_softmax, "unnormalised-softmax",
       "attention does not divide by the sum of its exponentials"},
      {FaultKind::shifted_mask, "shifted-mask", "every query sees one key too few"},
      {FaultKind::missed_column_partial, "missed-column-partial",
       "a column's sum leaves out its last partial", true},
      {FaultKind::swapped_gradient_pair, "swapped-gradient-pair",
       "the two columns of every pair of gradients change places", true},
      {FaultKind::unscaled_norm_gradient, "unscaled-norm-gradient",
       "a norm's row scale is not applied to its gradient", true},
      {FaultKind::dropped_residual_gradient, "dropped-residual-gradient",
       "a sum of gradients forgets the residual branch", true},
      {FaultKind::stale_delta, "stale-delta", "attention's gradient does not subtract its row sum",
       true},
  };
}

FaultKind parse_fault(const std::string& name) {
  std::vector<std::string> names;
  std::string all;
  for (const FaultInfo& f : faults()) {
    if (f.name == name) return f.kind;
    names.push_back(f.name);
    all += (all.empty() ? "" : ", ") + f.name;
  }
  throw InputError({.file = "command line",
                    .field = "--break",
                    .value = name.empty() ? "\"\"" : name,
                    .message = "there is no such fault",
                    .allowed = all,
                    .nearest = nearest_name(name, names)});
}

std::optional<FaultPoint> find_fault(const Plan& plan, FaultKind kind) {
  std::optional<FaultPoint> found;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const Kernel& kernel = plan.kernels[k];
    if (!kernel_fits(kind, kernel, plan.graph)) continue;
    for (std::size_t f = 0; f < kernel.phases.size(); ++f) {
      const Program& program = kernel.phases[f];
      if (in_mainloop(kind, kernel, plan.graph, program)) {
        found = FaultPoint{kind, k, f};
        // The last GEMM writes an output of the block.
        if (kind != FaultKind::stale_tile) return found;
        continue;
      }
      Seen seen;
      std::optional<FaultPoint> last;
      for (const bool prologue : {true, false}) {
        const std::vector<Primitive>& primitives = prologue ? program.prologue : program.body;
        for (std::size_t i = 0; i < primitives.size(); ++i) {
          if (fits(kind, primitives[i], seen)) last = FaultPoint{kind, k, f, prologue, i};
          if (last && !takes_last(kind)) return last;
          seen.note(primitives[i]);
        }
      }
      if (last) return last;
    }
  }
  return found;
}

}  // namespace fuseline::executor
