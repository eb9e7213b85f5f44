// fuseline judge: predictions beside what others published.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/csv_text.h"
#include "base/format.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/machine_table.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "cli/table.h"
#include "sim/judge/judged_json.h"
#include "sim/judge/published.h"
#include "sim/selection/judge_request.h"
#include "sim/sure/band.h"

namespace fuseline {

namespace {

using Figures = std::vector<JudgedFigure>;

std::string groups_table(const Figures& figures) {
  std::vector<std::vector<std::string>> rows;
  for (const FigureGroup& g : groups_of(figures)) {
    rows.push_back({name_of(g.cause), g.gpu, g.phase, g.metric, std::to_string(g.figures),
                    percent(g.mean_error), signed_percent(g.bias)});
  }
  if (rows.empty()) return {};
  return format_table({{"error is of", Align::left},
                       {"GPU", Align::left},
                       {"phase", Align::left},
                       {"metric", Align::left},
                       {"figures"},
                       {"mean |error|"},
                       {"bias"}},
                      rows) +
         "errors of times: above 0 where the prediction is too slow\n";
}

// Fusions: is the sign right, and how much of what was published can the fusion's kernels be?
std::string fusions_table(const Figures& figures) {
  std::vector<std::vector<std::string>> rows;
  for (const JudgedFigure& j : figures) {
    if (!j.share) continue;
    const double published = j.figure.value;
    const bool right = (published > 1) == (*j.predicted > 1);
    rows.push_back({j.figure.config, j.figure.gpu, fmt::format("{:.3f}", published),
                    fmt::format("{:.3f}", *j.predicted), right ? "right" : "wrong",
                    percent(*j.share), j.cause == Cause::framework ? "not the fusion" : ""});
  }
  if (rows.empty()) return {};
  return "\n" +
         format_table({{"gain of a fusion", Align::left},
                       {"GPU", Align::left},
                       {"published"},
                       {"predicted"},
                       {"sign", Align::left},
                       {"share"},
                       {"", Align::left}},
                      rows) +
         wrap(
             "share: of the time without the fusion that its operators' kernels are predicted to "
             "take; a published change beyond it is not the fusion's");
}

std::string worst_table(const Figures& figures, std::size_t count) {
  Figures judged;
  std::ranges::copy_if(figures, std::back_inserter(judged),
                       [](const JudgedFigure& j) { return j.predicted.has_value(); });
  std::ranges::stable_sort(judged, std::ranges::greater{},
                           [](const JudgedFigure& j) { return std::abs(*j.error()); });
  if (judged.size() > count) judged.resize(count);
  if (judged.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const JudgedFigure& j : judged) {
    rows.push_back({j.figure.config, j.figure.id, j.figure.gpu, fmt::format("{:g}", j.figure.value),
                    fmt::format("{:.4g}", *j.predicted), j.figure.unit,
                    signed_percent(*j.error())});
  }
  return "\n" + format_table({{"worst", Align::left},
                              {"id"},
                              {"GPU", Align::left},
                              {"published"},
                              {"predicted"},
                              {"", Align::left},
                              {"error"}},
                             rows);
}

std::string reasons_text(const Figures& figures) {
  std::map<std::string, int> reasons;
  for (const JudgedFigure& j : figures) {
    if (!j.predicted) ++reasons[j.not_predicted];
  }
  std::string text;
  for (const auto& [why, count] : reasons) {
    text += wrap(fmt::format("not predicted: {} figure{}: {}", count, count == 1 ? "" : "s", why));
  }
  return text.empty() ? text : "\n" + text;
}

std::string judged_csv(const Figures& figures) {
  std::string text =
      "id,quality,gpu,config,metric,unit,published,predicted,error,cause,not_predicted\n";
  for (const JudgedFigure& j : figures) {
    text += fmt::format("{},{},{},{},{},{},{:g},", j.figure.id, j.figure.quality,
                        csv_cell(j.figure.gpu), csv_cell(j.figure.config), j.figure.metric,
                        csv_cell(j.figure.unit), j.figure.value);
    text += j.predicted ? fmt::format("{:.6g},{:.4f},{},\n", *j.predicted, *j.error(),
                                      csv_cell(name_of(j.cause)))
                        : fmt::format(",,,{}\n", csv_cell(j.not_predicted));
  }
  return text;
}

}  // namespace

CommandResult judge_command(const Arguments& args) {
  std::vector<std::string> file;
  std::optional<std::string> gpu, format, worst, output;
  Options options("judge", "Predictions beside figures that others published; none was fitted to.",
                  {"fuseline judge", "fuseline judge --gpu a100-sxm-80gb --worst 10"});
  options.positional("FIGURES.csv", "other figures than scenarios/published/figures.csv", file, 1);
  options.text("--gpu", "NAME", "figures of this GPU alone", gpu);
  options.text("--worst", "N", "how many of the worst to show (5)", worst);
  options.text("--format", "table|json|csv", "what to print (table)", format);
  options.text("--output", "FILE", "write there instead of standard output", output);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const std::string chosen =
      parse_word("--format", format.value_or("table"), {"table", "json", "csv"});
  const auto count =
      static_cast<std::size_t>(parse_whole_number("--worst", worst.value_or("5"), 0, 100'000));
  ProgressBar bar;
  const Figures figures =
      judge_figures(file.empty() ? std::nullopt : std::optional(file.front()), gpu,
                    [&bar](std::size_t done, std::size_t all) {
                      bar.show(fmt::format("{} of {} figures", done, all),
                               static_cast<double>(done) / static_cast<double>(all));
                    });
  bar.clear();
  std::string text;
  if (chosen == "json") {
    text = judged_json(figures);
  } else if (chosen == "csv") {
    text = judged_csv(figures);
  } else {
    text = groups_table(figures) + fusions_table(figures) + worst_table(figures, count) +
           reasons_text(figures) + "\n" + widenings_text(shipped_bands().widenings());
  }
  if (!output) return {std::move(text), {}, ExitStatus::done};
  write_file_atomically(*output, text);
  return {{}, fmt::format("fuseline: written {}\n", *output), ExitStatus::done};
}

}  // namespace fuseline
