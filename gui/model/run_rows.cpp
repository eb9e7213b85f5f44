#include "gui/model/run_rows.h"

#include <fmt/format.h>

#include "base/error.h"
#include "gui/model/chart_colours.h"
#include "gui/model/run_machine.h"
#include "gui/model/text.h"

namespace fuseline::gui {

namespace {

std::string machine_of(const Document& document, const Run& run, const RunView* view) {
  if (view != nullptr && view->result != nullptr && view->result->block) {
    return machine_line(run, *view->result->block);
  }
  try {
    return machine_line(run, resolve(setup_of(document, run)));
  } catch (const InputError& error) {
    return error.what();
  }
}

void add_note(RunRow& row, const std::string& note) {
  row.note += (row.note.empty() ? "" : "\n") + note;
}

void add_deltas(RunRow& row, const RunView& base, const RunView& view) {
  const std::string note = likeness_note(subject_of(base), subject_of(view));
  if (!note.empty()) add_note(row, note);
  if (!is_comparable(base, view)) return;
  const ComparedTotals c = comparable_totals(base, view);
  row.time_delta = delta_of(c.base.time, c.other.time);
  if (c.base.has_bytes && c.other.has_bytes) {
    row.hbm_delta = delta_of(c.base.hbm(), c.other.hbm());
  }
  if (c.like_for_like) add_note(row, "compared as replays, as it was measured");
}

void add_numbers(RunRow& row, const RunView& view) {
  const Totals& t = view.result->totals;
  row.time = short_time(t.time);
  if (t.has_bytes) row.hbm = short_bytes(t.hbm());
  if (t.launches > 0) row.launches = std::to_string(t.launches);
  row.tooltip = fmt::format("{}\n{:.3f} µs", view.run.name, to_us(t.time));
  if (t.has_bytes) {
    row.tooltip +=
        fmt::format("\nread from HBM: {}\nwritten to HBM: {}\nthrough L2: {}",
                    exact_bytes(t.hbm_read), exact_bytes(t.hbm_write), exact_bytes(t.l2));
  }
  if (view.result->layers) {
    row.tooltip += "\n" + layers_text(*view.result->layers, view.result->block->workload);
  }
  if (!view.result->source.empty()) row.tooltip += "\nmeasured: " + view.result->source;
}

}  // namespace

std::vector<RunRow> run_rows(const Document& document, const Results& results) {
  std::vector<RunRow> rows;
  const RunView* base = results.baseline_view();
  for (const Run& run : document.runs.all()) {
    RunRow row;
    row.id = run.id;
    row.name = run.name;
    row.is_baseline = run.id == document.runs.baseline();
    row.measured = run.is_measurement();
    row.custom = run.is_custom();
    row.pinned = run.setup.has_value();
    row.colour = colour_of_run(results, run.id);
    const RunView* view = results.find(run.id);
    row.label = label_of(run.name, view == nullptr ? "" : view->machine);
    row.machine = machine_of(document, run, view);
    if (run.is_measurement() && !document.setup.what_if.is_neutral() && !run.setup) {
      row.note = "measured on the unchanged GPU: \"what if\" changes predictions alone";
    }
    if (view == nullptr || view->result == nullptr) {
      row.note = "not computed yet";
    } else if (view->result->problem) {
      row.note = view->result->problem->text;
      row.tooltip = row.note;
      row.has_problem = true;
      row.missing = view->result->problem->something_missing;
    } else {
      add_numbers(row, *view);
      if (base != nullptr && base->run.id != run.id) add_deltas(row, *base, *view);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace fuseline::gui
