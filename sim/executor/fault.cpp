#include "sim/executor/fault.h"

#include <algorithm>
#include <set>
#include <variant>

#include "model/error.h"

namespace fuseline::executor {

namespace {

bool is_rope(const PairMap& p) { return p.fn == PairFn::rope || p.fn == PairFn::rope_inverse; }

// Values that are one number a row, and one a column.
struct Seen {
  std::set<Value> per_row;
  std::set<Value> per_col;

  void note(const Primitive& primitive) {
    if (const auto* load = std::get_if<LoadVector>(&primitive)) {
      (load->axis == Axis::rows ? per_row : per_col).insert(load->out);
    } else if (const auto* r = std::get_if<RowReduce>(&primitive)) {
      per_row.insert(r->out);
    } else if (const auto* m = std::get_if<Map>(&primitive)) {
      if (std::ranges::all_of(m->in, [&](Value v) { return per_row.contains(v); }))
        per_row.insert(m->out);
    }
  }
};

bool fits(FaultKind kind, const Primitive& primitive, const Seen& seen) {
  const auto* map = std::get_if<Map>(&primitive);
  const auto* pair = std::get_if<PairMap>(&primitive);
  switch (kind) {
    case FaultKind::dropped_row_scale:
      return map != nullptr && map->fn == MapFn::mul && !seen.per_row.contains(map->in[0]) &&
             seen.per_row.contains(map->in[1]);
    case FaultKind::missed_partial: {
      const auto* reduce = std::get_if<RowReduce>(&primitive);
      return reduce != nullptr && reduce->fn != ReduceFn::max;
    }
    case FaultKind::swapped_pair:
      return pair != nullptr || std::holds_alternative<ConcatHalves>(primitive);
    case FaultKind::wrong_rotation_sign:
      return (pair != nullptr && is_rope(*pair)) || (map != nullptr && map->fn == MapFn::negate);
    case FaultKind::dropped_residual:
      return map != nullptr && map->fn == MapFn::add && !seen.per_col.contains(map->in[1]);
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
           std::ranges::any_of(kernel.ops,
                               [&](OpId id) { return graph.op(id).kind == OpKind::gemm; });
  const auto* attention = std::get_if<AttentionMainloop>(&program.mainloop);
  if (kind == FaultKind::unnormalised_softmax) return attention != nullptr;
  if (kind == FaultKind::shifted_mask) return attention != nullptr;
  return false;
}

// dropped_residual: other sums of two tiles are no residuals.
bool kernel_fits(FaultKind kind, const Kernel& kernel, const Graph& graph) {
  if (kind != FaultKind::dropped_residual) return true;
  return std::ranges::any_of(kernel.ops,
                             [&](OpId id) { return graph.op(id).kind == OpKind::residual_add; });
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
        // The last GEMM writes the block's output.
        if (kind != FaultKind::stale_tile) return found;
        continue;
      }
      Seen seen;
      for (const bool prologue : {true, false}) {
        const std::vector<Primitive>& primitives = prologue ? program.prologue : program.body;
        for (std::size_t i = 0; i < primitives.size(); ++i) {
          if (fits(kind, primitives[i], seen)) return FaultPoint{kind, k, f, prologue, i};
          seen.note(primitives[i]);
        }
      }
    }
  }
  return found;
}

}  // namespace fuseline::executor
