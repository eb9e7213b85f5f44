// A product of groups of rows, each with the matrix of its expert: _grouped_mm(rows, wᵀ, ends),
// where the ends are the sums of how often each expert was chosen.
#include "model/import/all_patterns.h"
#include "model/import/experts.h"
#include "model/import/step_names.h"

namespace fuseline {

namespace in_expert_linear {
namespace {

// cumsum(histc(sorted experts)).
std::optional<ExpertRoute> route_of_ends(Translator& t, std::size_t at) {
  if (!t.is_call(at, "aten.cumsum")) return std::nullopt;
  const auto counts = t.tensor(at, 0, "self");
  if (!counts || (!t.is_call(*counts, "aten.histc") && !t.is_call(*counts, "aten.bincount")))
    return std::nullopt;
  const auto numbers = t.tensor(*counts, 0, "self");
  if (!numbers) return std::nullopt;
  const auto sorted = route_of_sorted(t, *numbers);
  return sorted ? sorted : route_of_chosen(t, *numbers);
}

// "gate_up" of "mlp.experts.gate_up_proj".
std::string role_of(const std::string& owner) {
  std::string name = language_name(owner.substr(owner.rfind('.') + 1), "product");
  for (const std::string end : {"_weight", "_proj"})
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  return name;
}

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  const auto x = t.tensor(at, 0, "self");
  const auto w = t.tensor(at, 1, "mat2");
  const auto ends = t.tensor(at, 2, "offs");
  if (!x || !w || !ends || !t.view(*x) || !t.view(*w)) return std::nullopt;
  const auto route = route_of_ends(t, *ends);
  const TensorView& rows = *t.view(*x);
  const TensorView& weight = *t.view(*w);
  Draft& draft = t.draft();
  const DraftMatrix& matrices = draft.matrices[weight.matrix];
  const auto range = in_order(rows, t.rows_of(rows));
  if (!route || !range || rows.dims.size() != 2 || weight.dims.size() != 3 ||
      t.rows_of(rows) != route->rows * route->each.number || matrices.kind != MatrixKind::weight ||
      matrices.columns != range->count || matrices.rows % route->experts.number != 0)
    return std::nullopt;
  const std::int64_t out = matrices.rows / route->experts.number;
  const std::vector<Dimension> turned = {{{MatrixAxis::row, route->experts.number, out}},
                                         {{MatrixAxis::column, range->count, 1}},
                                         {{MatrixAxis::row, out, 1}}};
  if (weight.dims != turned) return std::nullopt;
  const std::string role = role_of(matrices.name);
  DraftStep step{.call = "expert_linear", .reads = {*range, draft.all_of(weight.matrix)}};
  draft.matrices[weight.matrix].each_of = route->experts;
  step.values = {{"each", route->each}};
  step.name = {.site = "experts",
               .op = "expert_" + role,
               .result = role == "gate_up" ? "gu"
                         : role == "down"  ? "dn"
                                           : role};
  step.writes = {draft.add(DraftMatrix{.rows = t.rows_of(rows), .columns = out})};
  TensorView y = same_dimensions(rows, draft.add(std::move(step)));
  y.dims.back() = {{MatrixAxis::column, out, 1}};
  return y;
}

constexpr const char* kCalls[] = {"aten._grouped_mm"};
constexpr const char* kWithin[] = {"aten.cumsum", "aten.histc", "aten.bincount"};

}  // namespace
}  // namespace in_expert_linear

constinit const ImportPattern patterns::expert_linear{.calls = in_expert_linear::kCalls,
                                                      .within = in_expert_linear::kWithin,
                                                      .size = 3,
                                                      .match = in_expert_linear::match};

}  // namespace fuseline
