#include "gui/model/compute.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "base/error.h"
#include "gui/model/run_machine.h"
#include "gui/model/run_result.h"

namespace fuseline::gui {

namespace {

// Runs that could not be computed for want of a file are tried again each time.
bool may_be_kept(const RunResult& result) { return !result.problem; }

unsigned threads_for(std::size_t tasks) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::min<std::size_t>(cores, tasks));
}

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

  std::atomic<std::size_t> next = 0, done = 0;
  std::vector<std::exception_ptr> bugs(open.size());
  const auto work = [&] {
    for (std::size_t i = next++; i < open.size() && !stop.stop_requested(); i = next++) {
      RunView& view = results.runs[open[i]];
      try {
        view.result = result_of(document, view.run, cache);
      } catch (...) {
        bugs[i] = std::current_exception();
      }
      const std::size_t finished = ++done;
      if (progress) progress(finished, open.size());
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned t = 1; t < threads_for(open.size()); ++t) helpers.emplace_back(work);
    work();
  }
  throw_if_stopped(stop);
  for (const std::exception_ptr& bug : bugs) {
    if (bug) std::rethrow_exception(bug);
  }
  tell_machines_apart(results);
  return results;
}

}  // namespace fuseline::gui
