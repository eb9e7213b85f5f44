#include "model/import/experts.h"

namespace fuseline {

namespace {

// The step that writes the matrix as its result of that number.
std::optional<std::size_t> maker(Translator& t, std::size_t at, const char* call,
                                 std::size_t result) {
  const auto& view = t.view(at);
  if (!view) return std::nullopt;
  const auto made_by = t.draft().matrices[view->matrix].made_by;
  if (!made_by) return std::nullopt;
  const DraftStep& step = t.draft().steps[*made_by];
  if (step.call != call || step.writes.size() <= result || step.writes[result] != view->matrix)
    return std::nullopt;
  return made_by;
}

ExpertRoute route_of_step(Translator& t, std::size_t step) {
  const DraftStep& choice = t.draft().steps[step];
  return {.step = step,
          .each = std::get<Letter>(choice.values.front().value),
          .experts = {"E", choice.reads.front().count},
          .rows = t.draft().matrices[choice.writes.front()].rows};
}

}  // namespace

std::optional<PartOfCall> part_of_call(const Translator& t, std::size_t at) {
  const SavedNode& n = t.node(at);
  if (n.kind != SavedKind::part) return std::nullopt;
  return PartOfCall{n.args[0].get<NodeRef>()->index, *n.args[1].get<std::int64_t>()};
}

std::optional<ExpertRoute> route_of_chosen(Translator& t, std::size_t at) {
  const auto step = maker(t, at, "choose_experts", 1);
  return step ? std::optional(route_of_step(t, *step)) : std::nullopt;
}

std::optional<ExpertRoute> route_of_sorted(Translator& t, std::size_t at) {
  const auto part = part_of_call(t, at);
  if (!part || part->part != 0 || !t.is_call(part->call, "aten.sort")) return std::nullopt;
  const auto numbers = t.tensor(part->call, 0, "self");
  return numbers ? route_of_chosen(t, *numbers) : std::nullopt;
}

std::optional<ExpertRoute> route_of_order(Translator& t, std::size_t at) {
  const auto sort = maker(t, at, "sort_places", 0);
  if (!sort) return std::nullopt;
  const std::size_t chosen = t.draft().steps[*sort].reads.front().matrix;
  return route_of_step(t, *t.draft().matrices[chosen].made_by);
}

}  // namespace fuseline
