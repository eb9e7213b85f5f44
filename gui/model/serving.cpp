#include "gui/model/serving.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/parallel_for.h"
#include "gui/model/run_plan.h"
#include "gui/model/text.h"
#include "sim/gpu/plan_target.h"
#include "sim/memory/memory_fit.h"

namespace fuseline::gui {

namespace {

std::vector<std::int64_t> multiplied(std::int64_t from, std::int64_t to, std::int64_t by) {
  std::vector<std::int64_t> values;
  for (std::int64_t v = from; v <= to; v *= by) values.push_back(v);
  return values;
}

ServingCell cell_of(const PredictionCase& base, const ServingRequest& request, std::int64_t batch,
                    std::int64_t context) {
  ServingCell cell;
  PredictionCase c = base;
  c.workload.batch = batch;
  c.workload.context = context;
  cell.about = subject_of(c, request.run.policy, name_of(c.fidelity));
  try {
    check_workload(c.workload, c.model);
    const Plan plan = plan_of(request.run, c);
    cell.memory = memory_need(plan, c.model, c.workload).total();
    cell.capacity = c.gpu.hbm_capacity;
    cell.fits = cell.memory <= cell.capacity;
    if (!cell.fits) return cell;  // nothing is worth simulating
    const Prediction p = predict(plan, c, nullptr);
    cell.step = p.layers->time;
    cell.tokens_per_second = p.layers->tokens_per_second(c.workload);
    cell.cost = cost_per_million_tokens(p, c);
  } catch (const InputError& error) {
    cell.problem = error.what();
  }
  return cell;
}

// "950", "12.4k", "1.25M"
std::string short_count(double n) {
  if (n >= 1e6) return fmt::format("{:.3g}M", n / 1e6);
  if (n >= 1e4) return fmt::format("{:.3g}k", n / 1e3);
  return fmt::format("{:.0f}", n);
}

}  // namespace

std::vector<std::int64_t> usual_batches() { return multiplied(1, 256, 4); }
std::vector<std::int64_t> usual_contexts() { return multiplied(1024, 131072, 2); }

ServingMap serving_map(const ServingRequest& request, const std::stop_token& stop,
                       const Progress& progress) {
  Setup setup = request.run.setup.value_or(request.setup);
  if (setup.workload.phase == Phase::train)
    throw InputError({.field = "phase",
                      .value = "train",
                      .message = "serves no tokens: choose forward or decode"});
  setup.workload = decode_of(setup.workload);
  setup.workload.seq = 1;
  PredictionCase base = resolve(setup);
  base.layers = std::nullopt;
  base.price = request.price;
  ServingMap map;
  map.batches = request.batches;
  map.contexts = request.contexts;
  map.title =
      fmt::format("Decode of {} on {}, {}", base.model.title, base.gpu.title, request.run.name);
  map.cells.resize(map.batches.size() * map.contexts.size());
  std::atomic<bool> stopped = stop.stop_requested();
  const std::stop_callback on_stop(stop, [&] { stopped = true; });
  parallel_for(map.cells.size(),
               [&](std::size_t i) {
                 map.cells[i] = cell_of(base, request, map.batches[i / map.contexts.size()],
                                        map.contexts[i % map.contexts.size()]);
               },
               {.stop = &stopped, .progress = progress});
  throw_if_stopped(stop);
  return map;
}

std::optional<double> number_of(const ServingCell& cell, ServingQuantity quantity) {
  if (!cell.problem.empty()) return std::nullopt;
  if (quantity == ServingQuantity::memory) return cell.memory.as_double();
  if (!cell.fits) return std::nullopt;
  switch (quantity) {
    case ServingQuantity::tokens_per_second:
      return cell.tokens_per_second;
    case ServingQuantity::step_time:
      return cell.step.value() * 1e3;
    case ServingQuantity::cost:
      return cell.cost ? std::optional(cell.cost->value()) : std::nullopt;
    case ServingQuantity::memory:
      break;
  }
  return std::nullopt;
}

std::string cell_text(const ServingCell& cell, ServingQuantity quantity) {
  const std::optional<double> number = number_of(cell, quantity);
  if (!number) return "–";
  switch (quantity) {
    case ServingQuantity::tokens_per_second:
      return short_count(*number);
    case ServingQuantity::step_time:
      return fmt::format("{:.3g} ms", *number);
    case ServingQuantity::cost:
      return fmt::format("{:.2g}", *number);
    case ServingQuantity::memory:
      break;
  }
  return fmt::format("{:.0f} GB", *number / 1e9);
}

bool more_is_better(ServingQuantity quantity) {
  return quantity == ServingQuantity::tokens_per_second;
}

Table to_table(const ServingMap& map, const std::string& run) {
  Table table{"serving",
              {"run", "B", "S", "step_time_us", "tokens_per_s", "cost_per_million_tokens",
               "memory_bytes", "capacity_bytes", "fits", "problem"},
              {}};
  for (std::size_t b = 0; b < map.batches.size(); ++b) {
    for (std::size_t s = 0; s < map.contexts.size(); ++s) {
      const ServingCell& cell = map.at(b, s);
      const bool ok = cell.problem.empty(), fits = ok && cell.fits;
      add_row(table,
              {run, map.batches[b], map.contexts[s], fits ? Cell(to_us(cell.step)) : Cell(),
               fits ? Cell(cell.tokens_per_second) : Cell(),
               cell.cost ? Cell(cell.cost->value()) : Cell(),
               ok ? Cell(cell.memory.value()) : Cell(), ok ? Cell(cell.capacity.value()) : Cell(),
               ok ? Cell(std::string(cell.fits ? "yes" : "no")) : Cell(),
               ok ? Cell() : Cell(cell.problem)},
              cell.about);
    }
  }
  return table;
}

}  // namespace fuseline::gui
