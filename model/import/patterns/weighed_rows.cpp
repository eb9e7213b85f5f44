// Rows times one number each: what an expert made, and its gate.
#include "model/import/all_patterns.h"

namespace fuseline {

namespace in_weighed_rows {
namespace {

// A column that the number of each row stands in: [M, 1].
std::optional<MatrixColumns> column(Translator& t, std::size_t at, std::int64_t rows) {
  const auto& view = t.view(at);
  if (!view || t.draft().matrices[view->matrix].columns != 1 || t.rows_of(*view) != rows ||
      view->dims.size() != 2 || !view->dims.back().empty())
    return std::nullopt;
  return t.draft().all_of(view->matrix);
}

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  const auto factors = t.both(at);
  if (!factors) return std::nullopt;
  for (const auto& [x, numbers] : {*factors, std::pair(factors->second, factors->first)}) {
    if (!t.view(x) || t.view(x)->dims.size() != 2) continue;
    const TensorView& view = *t.view(x);
    const auto range = in_order(view, t.rows_of(view));
    const auto factor = column(t, numbers, t.rows_of(view));
    if (!range || !factor || range->count == 1) continue;
    Draft& draft = t.draft();
    DraftStep step{.call = "*", .reads = {*range, *factor}};
    step.name = {.site = "combine", .op = "weigh", .result = "weighed"};
    step.writes = {draft.add(DraftMatrix{.rows = t.rows_of(view), .columns = range->count})};
    step.equal = {{*range, draft.all_of(step.writes[0])}};
    return same_dimensions(view, draft.add(std::move(step)));
  }
  return std::nullopt;
}

constexpr const char* kCalls[] = {"aten.mul"};

}  // namespace
}  // namespace in_weighed_rows

constinit const ImportPattern patterns::weighed_rows{
    .calls = in_weighed_rows::kCalls, .size = 2, .match = in_weighed_rows::match};

}  // namespace fuseline
