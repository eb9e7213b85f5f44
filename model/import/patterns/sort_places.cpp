// The places of all rows in the order of their experts: sort(chosen)[1], argsort(chosen).
#include "model/import/all_patterns.h"
#include "model/import/experts.h"

namespace fuseline {

namespace in_sort_places {
namespace {

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t part) {
  const bool places = t.is_call(at, "aten.argsort") || part == 1;
  const auto numbers = t.tensor(at, 0, "self");
  if (!places || !numbers || t.flag_or(at, 2, "descending", false)) return std::nullopt;
  const auto route = route_of_chosen(t, *numbers);
  const std::vector<std::int64_t>& shape = t.node(*numbers).shape;
  if (!route || shape.size() != 1) return std::nullopt;
  Draft& draft = t.draft();
  const std::int64_t rows = route->rows * route->each.number;
  DraftStep step{.call = "sort_places",
                 .reads = {draft.all_of(draft.steps[route->step].writes[1])}};
  step.writes = {draft.add(DraftMatrix{.rows = rows, .columns = 1})};
  step.name = {.site = "route", .op = "sort", .result = "order"};
  step.widths = {{draft.all_of(step.writes[0]), {}}};
  return TensorView{.matrix = draft.add(std::move(step)), .dims = {{{MatrixAxis::row, rows, 1}}}};
}

constexpr const char* kCalls[] = {"aten.sort", "aten.argsort"};

}  // namespace
}  // namespace in_sort_places

constinit const ImportPattern patterns::sort_places{.calls = in_sort_places::kCalls,
                                                    .match = in_sort_places::match};

}  // namespace fuseline
