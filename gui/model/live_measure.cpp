#include "gui/model/live_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "gui/model/command_text.h"

namespace fuseline::gui {

namespace {

constexpr std::string_view kArgumentsPlace = "{}";

// The words behind "fuseline predict", which `measure` takes as well.
std::string arguments_of(const std::string& predict) {
  constexpr std::string_view first = "fuseline predict";
  return "measure" + predict.substr(first.size()) + " --format lines";
}

std::string in_place(const std::string& command, const std::string& arguments) {
  const std::size_t at = command.find(kArgumentsPlace);
  if (at == std::string::npos) return command + " " + arguments;
  std::string whole = command;
  return whole.replace(at, kArgumentsPlace.size(), shell_word(arguments));
}

bool can_be_measured(const Run& run) {
  return !run.is_measurement() && !run.setup && !run.is_custom() && !run.has_plan();
}

}  // namespace

LiveRequest live_request(const Document& document, const Results& results,
                         const std::string& command) {
  LiveRequest request;
  if (command.find_first_not_of(' ') == std::string::npos) {
    request.problem = "say which command starts fuseline: fuseline, or ssh HOST fuseline {}";
    return request;
  }
  Document measured = document;
  measured.layers = 1;
  std::string left_out;
  for (const Run& run : document.runs.all()) {
    if (can_be_measured(run)) continue;
    if (!run.is_measurement()) left_out += (left_out.empty() ? "" : ", ") + run.name;
    if (measured.runs.all().size() > 1) measured.runs.remove(run.id);
  }
  if (!can_be_measured(measured.runs.all().front())) {
    request.problem =
        "no policy follows the setup: pinned runs, plans and chosen edges are not measured";
    return request;
  }
  if (document.setup.fidelity != Fidelity::hierarchy) measured.setup.fidelity = Fidelity::hierarchy;
  const CommandText text = command_of(measured, "");
  if (text.command.empty() || !text.note.empty()) {
    request.problem = "this cannot be said to another program: " + text.note;
    return request;
  }
  request.shell = in_place(command, arguments_of(text.command));
  if (!left_out.empty())
    request.note = left_out + ": not measured, because words cannot say it to another program";
  for (const Run& run : measured.runs.all()) {
    const RunView* view = results.find(run.id);
    if (view == nullptr || !view->ok()) continue;
    const RunResult& r = *view->result;
    request.runs.push_back({run.id,
                            view->label(),
                            r.totals.time,
                            r.totals.hbm(),
                            {r.block->model.name, run.policy, r.block->workload},
                            subject_of(*view)});
  }
  if (request.runs.empty()) request.problem = "nothing is predicted yet";
  return request;
}

LiveChart live_chart(const LiveRequest& request, const Measuring& measuring, bool running) {
  LiveChart chart;
  chart.problem = request.problem;
  if (!request.problem.empty()) return chart;
  const BlockCase& first = request.runs.front().block;
  chart.title = fmt::format("{} {} {}×{}", first.model, name_of(first.workload.phase),
                            first.workload.batch, first.workload.seq);
  if (first.workload.phase == Phase::decode)
    chart.title += fmt::format(" of {}", first.workload.context);
  if (running) {
    chart.status = measuring.what.empty()
                       ? "started: nothing has come yet"
                       : fmt::format("{}, {:.0f} %", measuring.what, 100 * measuring.done);
  } else if (measuring.passed) {
    chart.status = *measuring.passed ? "measured" : "failed: " + measuring.text;
    chart.failed = !*measuring.passed;
  }
  for (const LiveRun& run : request.runs) {
    LiveRow row{run, std::nullopt};
    for (const MeasuredBlock& b : measuring.blocks)
      if (same_case(b.block, run.block)) row.measured = b;
    chart.rows.push_back(std::move(row));
  }
  return chart;
}

Table to_table(const LiveChart& chart) {
  Table table;
  table.name = "measure";
  table.columns = {"run",
                   "predicted_us",
                   "measured_us",
                   "measured_least_us",
                   "measured_most_us",
                   "predicted_hbm_bytes",
                   "measured_hbm_bytes",
                   "error"};
  for (const LiveRow& row : chart.rows) {
    std::vector<Cell> cells{row.run.label, to_us(row.run.predicted)};
    Subject measured = row.run.about;
    measured.source = kMeasuredSource;
    if (!row.measured) {
      cells.insert(cells.end(),
                   {Cell{}, Cell{}, Cell{}, row.run.predicted_hbm.value(), Cell{}, Cell{}});
      add_row(table, std::move(cells), row.run.about);
      continue;
    }
    const MeasuredBlock& m = *row.measured;
    cells.insert(cells.end(), {to_us(m.time.median), to_us(m.time.least), to_us(m.time.most),
                               row.run.predicted_hbm.value()});
    if (m.hbm_read && m.hbm_write)
      cells.emplace_back((*m.hbm_read + *m.hbm_write).value());
    else
      cells.emplace_back();
    cells.emplace_back(row.run.predicted / m.time.median - 1);
    add_row(table, std::move(cells), row.run.about, &measured);
  }
  return table;
}

std::string reason_of_failure(const Measuring& measuring, const std::string& errors, int status) {
  if (measuring.passed == false && !measuring.text.empty()) return measuring.text;
  // The last lines say what it was; those before them are progress.
  std::vector<std::string> lines = measuring.other;
  for (std::size_t at = 0; at < errors.size();) {
    const std::size_t end = std::min(errors.find('\n', at), errors.size());
    if (end > at) lines.push_back(errors.substr(at, end - at));
    at = end + 1;
  }
  constexpr std::size_t kShown = 4;
  if (lines.size() > kShown) lines.erase(lines.begin(), lines.end() - kShown);
  std::string text = fmt::format("{}", fmt::join(lines, "\n"));
  const std::string ended = status == 0 ? "the command ended without a measurement"
                            : status == 127
                                ? "the command was not found (status 127)"
                                : fmt::format("the command ended with status {}", status);
  return text.empty() ? ended : text + "\n" + ended;
}

std::filesystem::path folder_for_measured(const std::filesystem::path& under,
                                          const LiveRequest& request) {
  std::error_code error;
  std::filesystem::create_directories(under, error);
  if (error)
    throw InputError({.file = under.string(), .message = "cannot be made: " + error.message()});
  const BlockCase& block = request.runs.front().block;
  return fresh_folder(under, fmt::format("{}-{}", block.model, name_of(block.workload.phase)));
}

std::filesystem::path fresh_folder(const std::filesystem::path& under, const std::string& stem) {
  const std::string first = file_stem(stem);
  std::error_code error;
  for (int n = 1;; ++n) {
    const auto folder = under / (n == 1 ? first : fmt::format("{}-{}", first, n));
    if (!std::filesystem::exists(folder, error)) return folder;
  }
}

}  // namespace fuseline::gui
