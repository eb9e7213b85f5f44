#include "gui/model/search_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/format.h"
#include "gui/model/edge_preview.h"
#include "gui/model/fusion_search.h"
#include "gui/model/text.h"
#include "model/blocks/block.h"

namespace fuseline::gui {

namespace {

constexpr std::size_t kMostPoints = 4000;  // more say nothing more

bool beats(const SearchPoint& a, const SearchPoint& b) {
  return a.time <= b.time && a.hbm <= b.hbm && (a.time < b.time || a.hbm < b.hbm);
}

}  // namespace

void SearchWatch::begin(const Subject& about) {
  const std::lock_guard lock(mutex_);
  state_ = {};
  state_.about = about;
  state_.running = true;
}

void SearchWatch::tried(Seconds time, Bytes hbm) {
  const std::lock_guard lock(mutex_);
  ++state_.tried;
  const SearchPoint point{time, hbm, std::nullopt};
  const bool best = !state_.best || time < state_.points[*state_.best].time;
  const bool on_front = std::ranges::none_of(state_.front, [&](std::size_t i) {
    const SearchPoint& other = state_.points[i];
    return beats(other, point) || (other.time == time && other.hbm == hbm);
  });
  if (state_.points.size() >= kMostPoints && !best && !on_front) return;
  state_.points.push_back(point);
  const std::size_t here = state_.points.size() - 1;
  if (best) state_.best = here;
  if (!on_front) return;
  std::erase_if(state_.front, [&](std::size_t i) { return beats(point, state_.points[i]); });
  const auto place = std::ranges::upper_bound(
      state_.front, time.value(), {}, [&](std::size_t i) { return state_.points[i].time.value(); });
  state_.front.insert(place, here);
}

void SearchWatch::better(const CustomFusion& custom) {
  const std::lock_guard lock(mutex_);
  if (!state_.points.empty()) state_.points.back().custom = custom;
}

void SearchWatch::end() {
  const std::lock_guard lock(mutex_);
  state_.running = false;
}

std::size_t SearchWatch::count() const {
  const std::lock_guard lock(mutex_);
  return state_.tried;
}

SearchState SearchWatch::state() const {
  SearchState state;
  {
    const std::lock_guard lock(mutex_);
    state = state_;
  }
  if (state.best)
    state.text = fmt::format(
        "{} is the best of {} plans{}", short_time(state.points[*state.best].time),
        grouped(static_cast<std::int64_t>(state.tried)), state.running ? " so far" : "");
  else
    state.text = state.running ? "first plans" : "press Best fusion over the block graph";
  return state;
}

std::vector<NextEdit> next_edits(const NextQuestion& q, ResultCache& cache,
                                 const std::stop_token& stop) {
  std::vector<NextEdit> next;
  Document document = q.document;
  const RunId id = document.runs.add(q.run);
  const std::shared_ptr<const RunResult> now = result_of(document, document.runs.at(id), cache);
  if (now->problem || now->plan == nullptr || !now->predicted) return next;
  const RunView view{document.runs.at(id), now, {}};
  for (const FusionNote& note : now->plan->notes) {
    throw_if_stopped(stop);
    const Graph& graph = now->plan->graph;
    const OnChipEdge edge{graph.op(note.edge.from).name, graph.op(note.edge.to).name};
    const bool known = std::ranges::any_of(next, [&](const NextEdit& e) { return e.edge == edge; });
    if (known) continue;
    EdgePreview preview;
    try {
      preview = preview_edge(document, view, edge, cache, stop);
    } catch (const InputError&) {  // an operator that a rewrite made
      continue;
    }
    if (!preview.legal) continue;
    next.push_back(
        {.edge = edge,
         .splits = preview.splits,
         .time = now->predicted->time - preview.saving.time,
         .hbm = now->predicted->hbm_read + now->predicted->hbm_write - preview.saving.hbm,
         .text = preview.text,
         .caption = fmt::format("{}{} {} {}", preview.splits ? "Split " : "Fuse ", arrow_text(edge),
                                signed_time(Seconds() - preview.saving.time),
                                signed_bytes(Bytes() - preview.saving.hbm)),
         .colour = preview.saving.colour});
  }
  std::ranges::stable_sort(next, {}, [](const NextEdit& e) { return e.time.value(); });
  return next;
}

Table to_table(const SearchState& state) {
  Table table{"search", {"number", "time_us", "hbm_bytes", "front", "best"}, {}};
  for (std::size_t i = 0; i < state.points.size(); ++i) {
    const SearchPoint& p = state.points[i];
    const bool front = std::ranges::find(state.front, i) != state.front.end();
    add_row(table,
            {static_cast<std::int64_t>(i) + 1, p.time.value() * 1e6, p.hbm.value(),
             std::string(front ? "yes" : "no"), std::string(state.best == i ? "yes" : "no")},
            state.about);
  }
  return table;
}

}  // namespace fuseline::gui
