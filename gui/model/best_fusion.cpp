#include "gui/model/best_fusion.h"

#include <fmt/format.h>

#include <atomic>

#include "base/error.h"
#include "base/format.h"
#include "gui/model/text.h"
#include "model/blocks/block.h"
#include "sim/search/search.h"

namespace fuseline::gui {

BestFusion best_fusion(const Document& document, const Run& run, double seconds,
                       const std::stop_token& stop, const Progress& progress, SearchWatch* watch) {
  BestFusion out;
  out.setup = run.setup;
  if (run.is_measurement()) {
    out.problem = run.name + " was measured: choose a prediction";
    return out;
  }
  throw_if_stopped(stop);
  try {
    const PredictionCase c = resolve(setup_of(document, run));
    std::atomic<bool> stopped = stop.stop_requested();
    const std::stop_callback on_stop(stop, [&] { stopped = true; });
    SearchOptions options;
    options.budget_seconds = seconds;
    options.decisions = false;
    options.stop = &stopped;
    if (progress)
      options.progress = [&](const std::string&, double done) {
        progress(static_cast<std::size_t>(100 * done), 100);
      };
    const Graph block = build_block(c.model, c.workload);
    if (watch != nullptr) {
      watch->begin(subject_of(c, kCustomPolicy, name_of(c.fidelity)));
      options.watch = [&](const PlanValues& values, const Plan* best) {
        const auto value = [&](Objective o) { return values[static_cast<std::size_t>(o)]; };
        watch->tried(Seconds(value(Objective::time)),
                     Bytes(static_cast<std::int64_t>(value(Objective::hbm))));
        if (best != nullptr) watch->better(custom_like(*best, block));
      };
    }
    const SearchResult found = search_block(c, options);
    throw_if_stopped(stop);
    out.custom = custom_like(found.plan, block);
    out.time = found.estimate.time;
    out.bound = Seconds(found.bound);
    out.complete = found.complete;
    out.text = fmt::format(
        "The search found {} among {} plans in {:.1f} s; {}", short_time(out.time),
        grouped(static_cast<std::int64_t>(found.tried)), found.seconds,
        out.complete ? "no plan of these kernels is faster"
                     : fmt::format("no plan of these kernels is faster than {}, {:.1f} % less",
                                   short_time(out.bound), 100 * found.gap() / (1 + found.gap())));
  } catch (const InputError& error) {
    throw_if_stopped(stop);  // a search that was stopped early may have found nothing
    out.problem = error.what();
  }
  return out;
}

}  // namespace fuseline::gui
