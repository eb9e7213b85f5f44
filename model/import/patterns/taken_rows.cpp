// Rows of tokens in the order of their experts, x[order // k], and their gates, gates[order].
#include "model/import/all_patterns.h"
#include "model/import/experts.h"

namespace fuseline {

namespace in_taken_rows {
namespace {

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  const auto read = t.tensor(at, 0, "self");
  const std::vector<std::size_t> indices = t.tensors(at, 1, "indices");
  if (!read || !t.view(*read) || indices.size() != 1) return std::nullopt;
  const TensorView& from = *t.view(*read);
  Draft& draft = t.draft();
  const bool divided = t.is_call(indices[0], "aten.floor_divide");
  const auto order = divided ? t.tensor(indices[0], 0, "self") : std::optional(indices[0]);
  const auto route = order ? route_of_order(t, *order) : std::nullopt;
  if (!route) return std::nullopt;
  const std::int64_t rows = route->rows * route->each.number;
  const MatrixColumns places = draft.all_of(t.view(*order)->matrix);
  if (divided) {  // every place of a token reads its row
    const auto range = in_order(from, t.rows_of(from));
    if (t.whole_or(indices[0], 1, "other", 0) != route->each.number || !range ||
        t.rows_of(from) != route->rows || from.dims.size() != 2)
      return std::nullopt;
    DraftStep step{.call = "take_rows", .reads = {*range, places}};
    step.writes = {draft.add(DraftMatrix{.rows = rows, .columns = range->count})};
    step.values = {{"each", route->each}};
    step.name = {.site = "permute", .result = "routed"};
    step.equal = {{*range, draft.all_of(step.writes[0])}};
    const std::int64_t columns = range->count;
    return TensorView{.matrix = draft.add(std::move(step)),
                      .dims = {{{MatrixAxis::row, rows, 1}}, {{MatrixAxis::column, columns, 1}}}};
  }
  const DraftStep& choice = draft.steps[route->step];
  if (from.matrix != choice.writes.front() || from.dims.size() != 1) return std::nullopt;
  DraftStep step{.call = "take_numbers", .reads = {draft.all_of(choice.writes.front()), places}};
  step.writes = {draft.add(DraftMatrix{.rows = rows, .columns = 1})};
  step.name = {.site = "combine", .op = "gates_of_rows", .result = "gate"};
  step.widths = {{draft.all_of(step.writes[0]), {}}};
  return TensorView{.matrix = draft.add(std::move(step)), .dims = {{{MatrixAxis::row, rows, 1}}}};
}

constexpr const char* kCalls[] = {"aten.index"};
constexpr const char* kWithin[] = {"aten.floor_divide"};

}  // namespace
}  // namespace in_taken_rows

constinit const ImportPattern patterns::taken_rows{.calls = in_taken_rows::kCalls,
                                                   .within = in_taken_rows::kWithin,
                                                   .size = 2,
                                                   .match = in_taken_rows::match};

}  // namespace fuseline
