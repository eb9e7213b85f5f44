// The experts of every row: topk(softmax(scores), k). Gates are those of a softmax of all, unless a
// division by their sum follows (normalised_gates.cpp).
#include "model/import/all_patterns.h"
#include "model/import/experts.h"

namespace fuseline {

namespace in_choose_experts {
namespace {

bool along_last(Translator& t, std::size_t at, std::size_t place, const char* name,
                std::int64_t absent) {
  const std::int64_t dim = t.whole_or(at, place, name, absent);
  return dim == -1 || dim == static_cast<std::int64_t>(t.node(at).shape.size()) - 1;
}

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t part) {
  const auto softmax = t.tensor(at, 0, "self");
  if (!softmax || part > 1 || t.whole_or(at, 2, "dim", -1) != -1 ||
      !t.flag_or(at, 3, "largest", true) ||
      (!t.is_call(*softmax, "aten.softmax") && !t.is_call(*softmax, "aten._softmax")) ||
      !along_last(t, *softmax, 1, "dim", 0))
    return std::nullopt;
  const auto scores = t.tensor(*softmax, 0, "self");
  const std::int64_t count = t.whole_or(at, 1, "k", 0);
  if (!scores || !t.view(*scores)) return std::nullopt;
  const TensorView& view = *t.view(*scores);
  const auto range = in_order(view, t.rows_of(view));
  if (!range || count < 1 || count > range->count || view.dims.empty()) return std::nullopt;
  Draft& draft = t.draft();
  // One step gives both parts.
  std::optional<std::size_t> result;
  for (const DraftStep& step : draft.steps)
    if (step.call == "choose_experts" && step.reads.front() == *range)
      result = step.writes[static_cast<std::size_t>(part)];
  if (!result) {
    const std::int64_t rows = t.rows_of(view);
    const Letter k{"k", count};
    DraftStep step{.call = "choose_experts", .reads = {*range}};
    for (int i = 0; i < 2; ++i)
      step.writes.push_back(draft.add(DraftMatrix{.rows = rows, .columns = count}));
    step.values = {{"count", k}, {"weights", std::string("softmax_of_all")}};
    step.name = {.site = "route", .op = "choose", .result = "gates", .second = "chosen"};
    step.behind = {{.site = "router", .result = "logits", .weight = "router"}};
    step.widths = {{*range, {{"E", range->count}}},
                   {draft.all_of(step.writes[0]), {k}},
                   {draft.all_of(step.writes[1]), {k}}};
    result = step.writes[static_cast<std::size_t>(part)];
    draft.add(std::move(step));
  }
  TensorView y = same_dimensions(view, *result);
  y.dims.back() = {{MatrixAxis::column, count, 1}};
  if (count == 1) y.dims.back().clear();
  return y;
}

constexpr const char* kCalls[] = {"aten.topk"};
constexpr const char* kWithin[] = {"aten.softmax", "aten._softmax"};

}  // namespace
}  // namespace in_choose_experts

constinit const ImportPattern patterns::choose_experts{.calls = in_choose_experts::kCalls,
                                                       .within = in_choose_experts::kWithin,
                                                       .size = 2,
                                                       .match = in_choose_experts::match};

}  // namespace fuseline
