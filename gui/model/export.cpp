#include "gui/model/export.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/error.h"
#include "base/output_file.h"
#include "gui/model/block_graph.h"
#include "gui/model/delta.h"
#include "gui/model/kernel_table.h"
#include "gui/model/memory_chart.h"
#include "gui/model/roofline_chart.h"
#include "gui/model/sureness.h"
#include "gui/model/timeline_chart.h"
#include "gui/model/traffic_chart.h"
#include "gui/model/validation_chart.h"
#include "sim/report/json_output.h"

namespace fuseline::gui {

namespace {

class Files {
 public:
  void add(Table table, const std::string& suffix = {}) {
    const std::string stem = unique(table.name + (suffix.empty() ? "" : "-" + file_stem(suffix)));
    files_.push_back({stem + ".csv", to_csv(table)});
    files_.push_back({stem + ".json", to_json(table)});
  }
  void add_text(const std::string& stem, const std::string& extension, std::string text) {
    files_.push_back({unique(stem) + extension, std::move(text)});
  }
  [[nodiscard]] std::vector<ExportFile> take() { return std::move(files_); }

 private:
  std::string unique(const std::string& stem) {
    std::string name = stem;
    for (int n = 2; !taken_.insert(name).second; ++n) name = fmt::format("{}-{}", stem, n);
    return name;
  }

  std::vector<ExportFile> files_;
  std::set<std::string> taken_;
};

void add_predictions(Files& files, const Results& results) {
  std::map<std::string, std::size_t> by_setup;
  std::vector<std::pair<const PredictionCase*, std::vector<Prediction>>> groups;
  for (const RunView& view : results.runs) {
    if (!view.ok() || view.run.is_measurement()) continue;
    const std::string key = view.run.setup ? cache_key(*view.run.setup) : "";
    const auto [place, fresh] = by_setup.try_emplace(key, groups.size());
    if (fresh) groups.push_back({view.result->block.get(), {}});
    Prediction p;
    p.block = *view.result->predicted;
    p.layers = view.result->layers;
    p.memory = view.result->memory;
    for (const RunView& other : results.runs) {  // what was measured of it
      if (!other.ok() || !other.run.is_measurement()) continue;
      if (!comparable_totals(view, other).like_for_like) continue;
      p.measured = other.result->measured_block;
      p.trace = other.result->measured_trace;
      p.replayed = other.result->predicted;
    }
    groups[place->second].second.push_back(std::move(p));
  }
  for (const auto& [block, predictions] : groups) {
    files.add_text("predictions", ".json", predictions_json(*block, predictions));
  }
}

// Model, GPU ("h200+what-if" with factors), phase and sizes; empty where the setup is wrong.
std::vector<Cell> machine_cells(const RunView& view) {
  if (!view.result || !view.result->block) return std::vector<Cell>(6);
  const PredictionCase& c = *view.result->block;
  const bool decode = c.workload.phase == Phase::decode;
  return {c.model.name,     c.gpu.name,     std::string(name_of(c.workload.phase)),
          c.workload.batch, c.workload.seq, decode ? Cell(c.workload.context) : Cell()};
}

// The ends of the bands, and the gain over the baseline; empty cells where there are none.
std::vector<Cell> sure_cells(const RunView* base, const RunView& view) {
  std::vector<Cell> cells(8);
  if (const auto ends = sure_figures(view)) {
    cells[0] = to_us(ends->time_low);
    cells[1] = to_us(ends->time_high);
    cells[2] = ends->hbm_low.value();
    cells[3] = ends->hbm_high.value();
  }
  const auto gain = base == nullptr ? std::nullopt : sure_gain(*base, view);
  if (gain) {
    cells[4] = gain->gain;
    cells[5] = gain->low;
    cells[6] = gain->high;
    cells[7] = gain->verdict;
  }
  return cells;
}

}  // namespace

Table runs_table(const Results& results) {
  Table table{"runs",
              {"run",
               "policy",
               "measured",
               "baseline",
               "model",
               "gpu",
               "phase",
               "batch",
               "seq",
               "context",
               "launches",
               "time_us",
               "flops",
               "hbm_read_bytes",
               "hbm_write_bytes",
               "l2_bytes",
               "time_relative",
               "hbm_relative",
               "time_us_low",
               "time_us_high",
               "hbm_bytes_low",
               "hbm_bytes_high",
               "gain",
               "gain_low",
               "gain_high",
               "verdict",
               "problem"},
              {}};
  const RunView* base = results.baseline_view();
  for (const RunView& view : results.runs) {
    const std::string measured = view.run.is_measurement() ? "yes" : "no";
    const std::string baseline = view.run.id == results.baseline ? "yes" : "no";
    if (!view.ok()) {
      std::vector<Cell> row(table.columns.size());
      row[0] = view.run.name;
      row[1] = view.run.policy;
      row[2] = measured;
      row[3] = baseline;
      const std::vector<Cell> machine = machine_cells(view);
      std::copy(machine.begin(), machine.end(), row.begin() + 4);
      if (view.result && view.result->problem) row.back() = view.result->problem->text;
      add_row(table, std::move(row), subject_of(view));
      continue;
    }
    const Totals& t = view.result->totals;
    Cell time, hbm;
    const Subject base_subject = base == nullptr ? Subject{} : subject_of(*base);
    if (base != nullptr && is_comparable(*base, view)) {
      const ComparedTotals c = comparable_totals(*base, view);
      time = delta_of(c.base.time, c.other.time).relative;
      if (c.base.has_bytes && c.other.has_bytes) {
        hbm = delta_of(c.base.hbm(), c.other.hbm()).relative;
      }
    }
    const auto bytes = [&](Bytes b) { return t.has_bytes ? Cell(b.value()) : Cell(); };
    std::vector<Cell> row{view.run.name, view.run.policy, measured, baseline};
    for (const Cell& cell : machine_cells(view)) row.push_back(cell);
    for (const Cell& cell : {Cell(t.launches), Cell(to_us(t.time)), Cell(t.flops.value()),
                             bytes(t.hbm_read), bytes(t.hbm_write), bytes(t.l2), time, hbm}) {
      row.push_back(cell);
    }
    for (const Cell& cell : sure_cells(base, view)) row.push_back(cell);
    row.emplace_back();
    add_row(table, std::move(row), subject_of(view), base == nullptr ? nullptr : &base_subject);
  }
  return table;
}

std::vector<ExportFile> export_data(const ExportInput& input) {
  FUSELINE_ASSERT(input.results != nullptr, "nothing to export");
  const Results& results = *input.results;
  Files files;
  files.add(runs_table(results));
  files.add(to_table(traffic_chart(results, StackBy::kernel)), "by kernel");
  files.add(to_table(traffic_chart(results, StackBy::tensor)), "by tensor");
  for (const MemoryLevel level : {MemoryLevel::hbm, MemoryLevel::l2}) {
    files.add(to_table(roofline_chart(results, level), results));
  }
  files.add(to_table(timeline_chart(results, Align::start)));
  files.add(scatter_table(validation_of_runs(results)));
  for (const RunView& view : results.runs) {
    if (!view.ok()) continue;
    files.add(to_table(kernel_table(results, view.run.id)), view.run.name);
    files.add(to_table(memory_chart(view, std::nullopt)), view.run.name);
    files.add(to_table(block_graph(view)), view.run.name);
  }
  if (input.waterfall) files.add(to_table(*input.waterfall));
  if (input.sweep) files.add(to_table(*input.sweep));
  add_predictions(files, results);
  return files.take();
}

void write_files(const std::filesystem::path& folder, const std::vector<ExportFile>& files) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const ExportFile& file : files) replace_file(folder / file.name, file.text);
}

}  // namespace fuseline::gui
