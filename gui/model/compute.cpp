#include "gui/model/compute.h"

#include <atomic>
#include <stop_token>
#include <vector>

#include "base/data_files.h"
#include "base/error.h"
#include "base/parallel_for.h"
#include "gui/model/run_machine.h"
#include "gui/model/run_result.h"

namespace fuseline::gui {

namespace {

// Runs that could not be computed for want of a file are tried again each time.
bool may_be_kept(const RunResult& result) { return !result.problem; }

}  // namespace

std::string result_key(const Document& document, const Run& run) {
  std::string key = cache_key(setup_of(document, run)) + "\n" + run.policy + "\n" +
                    run.measurements + "\n" +
                    (document.layers ? std::to_string(*document.layers) : "all");
  for (const std::string& rewrite : run.custom.rewrites) key += "\nrewrite " + rewrite;
  for (const OnChipEdge& edge : run.custom.on_chip) key += "\n" + edge_text(edge);
  if (run.is_measurement()) {
    key += "\n" + std::to_string(last_change(run.measurements));
  }
  if (!run.plan_text.empty()) {
    key += "\nplan of " + run.name + " " + run.plan + "\n" + run.plan_text;
  } else if (!run.plan.empty())
    key += "\nplan " + run.plan + "\n" + std::to_string(last_change(run.plan));
  // A saved text is in its file and no longer in the setup.
  const BlockChange& change = setup_of(document, run).change;
  if (looks_like_path(change.block)) key += "\n" + std::to_string(last_change(change.block));
  return key;
}

RunResult compute_run(const Document& document, const Run& run, ResultCache& measurements) {
  RunResult result;
  try {
    auto block = std::make_shared<PredictionCase>(resolve(setup_of(document, run)));
    block->layers = document.layers;
    result.block = block;
    if (run.is_measurement()) {
      fill_measured(result, run, *measurements.measurements(run.measurements));
    } else {
      fill_predicted(result, run);
    }
  } catch (const InputError& error) {
    result.problem = RunProblem{error.what(), false};
  } catch (const MissingError& error) {
    result.problem = RunProblem{error.what(), true};
  }
  return result;
}

std::shared_ptr<const RunResult> result_of(const Document& document, const Run& run,
                                           ResultCache& cache) {
  const std::string key = result_key(document, run);
  std::shared_ptr<const RunResult> result = cache.find(key);
  if (result != nullptr) return result;
  result = std::make_shared<const RunResult>(compute_run(document, run, cache));
  if (may_be_kept(*result)) cache.store(key, result);
  return result;
}

Results compute(const Document& document, ResultCache& cache, const std::stop_token& stop,
                const Progress& progress) {
  Results results;
  results.baseline = document.runs.baseline();
  std::vector<std::size_t> open;
  for (const Run& run : document.runs.all()) {
    results.runs.push_back({run, cache.find(result_key(document, run))});
    if (results.runs.back().result == nullptr) open.push_back(results.runs.size() - 1);
  }
  results.computed = open.size();

  std::atomic<bool> stopped = stop.stop_requested();
  const std::stop_callback on_stop(stop, [&] { stopped = true; });
  parallel_for(open.size(),
               [&](std::size_t i) {
                 RunView& view = results.runs[open[i]];
                 view.result = result_of(document, view.run, cache);
               },
               {.stop = &stopped, .progress = progress});
  throw_if_stopped(stop);
  tell_machines_apart(results);
  return results;
}

}  // namespace fuseline::gui
