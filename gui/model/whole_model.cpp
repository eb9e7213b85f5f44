#include "gui/model/whole_model.h"

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

constexpr std::int64_t kLongestContext = 1 << 22;

// One step of one run, with what it keeps in memory.
struct ComputedStep {
  ModelStep step;
  std::optional<MemoryBar> memory;
};

PredictionCase step_case(const Setup& setup, const Workload& workload,
                         const std::optional<MoneyPerHour>& price) {
  Setup of_step = setup;
  of_step.workload = workload;
  PredictionCase c = resolve(of_step);
  c.layers = std::nullopt;
  c.price = price;
  return c;
}

std::string what_of(const Workload& w) {
  switch (w.phase) {
    case Phase::decode:
      return fmt::format("decode step at {}", grouped(w.context));
    case Phase::train:
      return fmt::format("training step, {} tokens", grouped(w.rows()));
    default:
      return fmt::format("prefill of {}", grouped(w.seq));
  }
}

StepPart part(std::string label, Seconds time, Bytes hbm, Colour colour) {
  StepPart p{.label = std::move(label), .time = time, .hbm = hbm, .colour = colour};
  p.tooltip = fmt::format("{}\n{}\nHBM {}", p.label, short_time(time), exact_bytes(hbm));
  return p;
}

void fill_parts(ModelStep& step, const LayersEstimate& layers) {
  Seconds ends;
  Bytes ends_hbm;
  std::vector<StepPart> around;
  const auto end = [&](const std::optional<PlanEstimate>& e, const std::string& label,
                       Colour colour) {
    if (!e) return;
    ends += e->time;
    ends_hbm += e->hbm_read + e->hbm_write;
    around.push_back(part(label, e->time, e->hbm_read + e->hbm_write, colour));
  };
  end(layers.entry, layers.entry_name, {ColourRole::tensor_input, 0});
  end(layers.exit, layers.exit_name, {ColourRole::tensor_output, 0});
  const Bytes hbm = layers.hbm_read + layers.hbm_write;
  step.parts.push_back(part(fmt::format("{} layers", layers.layers), layers.time - ends,
                            hbm - ends_hbm, {ColourRole::kind_gemm, 0}));
  step.parts.insert(step.parts.begin(), around.begin(), around.end());
  // The embedding comes before the layers, the LM head after them.
  if (step.parts.size() == 3) std::swap(step.parts[1], step.parts[2]);
}

Bytes need_with_context(const Plan& plan, const PredictionCase& c, std::int64_t context) {
  Workload w = c.workload;
  w.context = context;
  MemoryNeed need = memory_need(plan, c.model, c.workload);
  need.kv_cache = kv_cache_bytes(c.model, w);
  return need.total();
}

// The cache grows with the context, all else stays: by halving.
std::optional<std::int64_t> longest_context(const Plan& plan, const PredictionCase& c) {
  if (c.workload.phase != Phase::decode) return std::nullopt;
  const auto fits = [&](std::int64_t context) {
    return need_with_context(plan, c, context) <= c.gpu.hbm_capacity;
  };
  std::int64_t low = 0, high = kLongestContext;
  if (!fits(c.workload.seq)) return 0;
  if (fits(high)) return high;
  for (low = c.workload.seq; high - low > 1;) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

MemoryBar memory_bar(const Plan& plan, const PredictionCase& c, const MemoryNeed& need) {
  MemoryBar bar;
  const auto add = [&](const char* label, Bytes bytes, ColourRole role) {
    if (bytes > Bytes(0)) bar.parts.push_back({label, bytes, {role, 0}});
  };
  add("weights", need.weights, ColourRole::tensor_weight);
  add("gradients, AdamW", need.training, ColourRole::tensor_table);
  add("cache", need.kv_cache, ColourRole::tensor_cache);
  add("activations", need.activations, ColourRole::tensor_activation);
  bar.total = need.total();
  bar.capacity = c.gpu.hbm_capacity;
  bar.fits = bar.total <= bar.capacity;
  bar.longest = longest_context(plan, c);
  bar.verdict =
      bar.fits ? fmt::format("fits: {} of {}", short_bytes(bar.total), short_bytes(bar.capacity))
               : fmt::format("does not fit: {} too many", short_bytes(bar.total - bar.capacity));
  return bar;
}

ComputedStep computed(const Setup& setup, const Workload& workload, const Run& run,
                      const std::optional<MoneyPerHour>& price) {
  ComputedStep out;
  out.step.what = what_of(workload);
  try {
    const PredictionCase c = step_case(setup, workload, price);
    out.step.about = subject_of(c, run.policy, name_of(c.fidelity));
    const Plan plan = plan_of(run, c);
    const Prediction p = predict(plan, c, nullptr);
    out.step.time = p.layers->time;
    out.step.tokens_per_second = p.layers->tokens_per_second(c.workload);
    out.step.cost = cost_per_million_tokens(p, c);
    fill_parts(out.step, *p.layers);
    out.memory = memory_bar(plan, c, *p.memory);
  } catch (const InputError& error) {
    out.step.problem = error.what();
  } catch (const MissingError& error) {
    out.step.problem = error.what();
  }
  return out;
}

std::vector<Workload> steps_of(const Workload& workload) {
  if (workload.phase == Phase::train) return {workload};
  return {prefill_of(workload), decode_of(workload)};
}

}  // namespace

Workload prefill_of(const Workload& workload) {
  Workload w = workload;
  w.phase = Phase::forward;
  if (workload.phase == Phase::decode) w.seq = workload.context;
  w.context = 0;
  return w;
}

Workload decode_of(const Workload& workload) {
  if (workload.phase == Phase::decode) return workload;
  Workload w = workload;
  w.phase = Phase::decode;
  w.context = workload.seq;
  w.seq = 1;
  return w;
}

std::string tokens_per_second_text(double rate) {
  return rate < 100 ? fmt::format("{:.1f} tokens/s", rate)
                    : grouped(std::llround(rate)) + " tokens/s";
}

std::string cost_text(Money cost) { return fmt::format("{:.3g} a million tokens", cost.value()); }

WholeModel whole_model_chart(const WholeModelRequest& request, const std::stop_token& stop,
                             const Progress& progress) {
  WholeModel chart;
  struct Job {
    std::size_t row;
    Setup setup;
    Workload workload;
    ComputedStep out{};
  };
  std::vector<Job> jobs;
  for (const Run& run : request.runs) {
    const Setup setup = run.setup.value_or(request.setup);
    for (const Workload& workload : steps_of(setup.workload))
      jobs.push_back({chart.rows.size(), setup, workload});
    chart.rows.push_back({.run = run.id, .label = run.name});
  }
  std::atomic<bool> stopped = stop.stop_requested();
  const std::stop_callback on_stop(stop, [&] { stopped = true; });
  parallel_for(jobs.size(),
               [&](std::size_t i) {
                 Job& job = jobs[i];
                 job.out = computed(job.setup, job.workload, request.runs[job.row], request.price);
               },
               {.stop = &stopped, .progress = progress});
  throw_if_stopped(stop);
  for (Job& job : jobs) {
    ModelRow& row = chart.rows[job.row];
    row.steps.push_back(std::move(job.out.step));
    row.memory.push_back(job.out.memory.value_or(MemoryBar{}));
  }
  const PredictionCase c = resolve(request.setup);
  chart.title = fmt::format("The whole {} on {}",
                            c.model.title.empty() ? c.model.name : c.model.title, c.gpu.title);
  if (chart.rows.empty()) chart.problem = "only measured runs: add a prediction";
  return chart;
}

Table to_table(const WholeModel& chart) {
  Table table{"whole-model",
              {"run", "step", "part", "time_us", "hbm_bytes", "step_time_us", "tokens_per_s",
               "cost_per_million_tokens", "memory_bytes", "capacity_bytes", "fits",
               "longest_context", "problem"},
              {}};
  for (const ModelRow& row : chart.rows) {
    for (std::size_t i = 0; i < row.steps.size(); ++i) {
      const ModelStep& step = row.steps[i];
      const MemoryBar& memory = row.memory[i];
      if (!step.problem.empty()) {
        std::vector<Cell> cells(table.columns.size());
        cells[0] = row.label;
        cells[1] = step.what;
        cells.back() = step.problem;
        if (missing_in(step.about).empty()) add_row(table, std::move(cells), step.about);
        continue;
      }
      for (const StepPart& part : step.parts) {
        add_row(
            table,
            {row.label, step.what, part.label, to_us(part.time), part.hbm.value(), to_us(step.time),
             step.tokens_per_second, step.cost ? Cell(step.cost->value()) : Cell(),
             memory.total.value(), memory.capacity.value(), std::string(memory.fits ? "yes" : "no"),
             memory.longest ? Cell(*memory.longest) : Cell(), Cell()},
            step.about);
      }
    }
  }
  return table;
}

}  // namespace fuseline::gui
