// What a token's experts made, summed: sum(view(rows[inverse order], M, k, D), 1), where the
// inverse is an empty tensor into which 0, 1, 2, ... were put at the places of the order.
#include "model/import/all_patterns.h"
#include "model/import/experts.h"

namespace fuseline {

namespace in_summed_experts {
namespace {

// The order of which the tensor is the inverse.
std::optional<std::size_t> inverted(Translator& t, std::size_t at) {
  if (t.is_call(at, "aten.argsort")) return t.tensor(at, 0, "self");
  if (!t.is_call(at, "aten.index_put")) return std::nullopt;
  const std::vector<std::size_t> places = t.tensors(at, 1, "indices");
  const auto numbers = t.tensor(at, 2, "values");
  if (places.size() != 1 || !numbers || !t.is_call(*numbers, "aten.arange") ||
      t.flag_or(at, 3, "accumulate", false))
    return std::nullopt;
  return places[0];
}

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  const auto grouped = t.tensor(at, 0, "self");
  if (!grouped || (!t.is_call(*grouped, "aten.view") && !t.is_call(*grouped, "aten.reshape")) ||
      t.wholes(at, 1, "dim") != std::vector<std::int64_t>{1})
    return std::nullopt;
  const auto taken = t.tensor(*grouped, 0, "self");
  if (!taken || !t.is_call(*taken, "aten.index")) return std::nullopt;
  const auto rows = t.tensor(*taken, 0, "self");
  const std::vector<std::size_t> indices = t.tensors(*taken, 1, "indices");
  const auto order = indices.size() == 1 ? inverted(t, indices[0]) : std::nullopt;
  const auto route = order ? route_of_order(t, *order) : std::nullopt;
  if (!route || !rows || !t.view(*rows)) return std::nullopt;
  const TensorView& view = *t.view(*rows);
  const auto range = in_order(view, t.rows_of(view));
  if (!range || t.node(*grouped).shape !=
                    std::vector<std::int64_t>{route->rows, route->each.number, range->count})
    return std::nullopt;
  Draft& draft = t.draft();
  DraftStep step{.call = "sum_rows", .reads = {*range, draft.all_of(t.view(*order)->matrix)}};
  step.writes = {draft.add(DraftMatrix{.rows = route->rows, .columns = range->count})};
  step.values = {{"each", route->each}};
  step.name = {.site = "combine", .op = "sum", .result = "mixed"};
  step.equal = {{*range, draft.all_of(step.writes[0])}};
  const std::int64_t count = range->count;
  return TensorView{
      .matrix = draft.add(std::move(step)),
      .dims = {{{MatrixAxis::row, route->rows, 1}}, {{MatrixAxis::column, count, 1}}}};
}

constexpr const char* kCalls[] = {"aten.sum"};
constexpr const char* kWithin[] = {"aten.index", "aten.index_put", "aten.arange", "aten.argsort",
                                   "aten.empty_like"};

}  // namespace
}  // namespace in_summed_experts

constinit const ImportPattern patterns::summed_experts{.calls = in_summed_experts::kCalls,
                                                       .within = in_summed_experts::kWithin,
                                                       .size = 4,
                                                       .match = in_summed_experts::match};

}  // namespace fuseline
