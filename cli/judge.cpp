// fuseline judge: predictions beside what others published.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/csv_text.h"
#include "base/data_dir.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "cli/table.h"
#include "sim/judge/published.h"

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

std::string judged_json(const Figures& figures) {
  using nlohmann::ordered_json;
  ordered_json list = ordered_json::array(), groups = ordered_json::array();
  for (const JudgedFigure& j : figures) {
    ordered_json one = {
        {"id", j.figure.id},         {"source", j.figure.source},   {"citation", j.figure.citation},
        {"gpu", j.figure.gpu},       {"quality", j.figure.quality}, {"config", j.figure.config},
        {"metric", j.figure.metric}, {"unit", j.figure.unit},       {"published", j.figure.value},
        {"caveat", j.figure.caveat}};
    if (j.predicted) {
      one["policy"] = j.figure.policy;
      one["predicted"] = *j.predicted;
      one["error"] = *j.error();
      one["cause"] = name_of(j.cause);
      if (j.share) one["share"] = *j.share;
      if (j.share) one["verdict"] = j.verdict;
    } else {
      one["not_predicted"] = j.not_predicted;
    }
    list.push_back(std::move(one));
  }
  for (const FigureGroup& g : groups_of(figures)) {
    groups.push_back({{"cause", name_of(g.cause)},
                      {"gpu", g.gpu},
                      {"phase", g.phase},
                      {"metric", g.metric},
                      {"figures", g.figures},
                      {"mean_error", g.mean_error},
                      {"bias", g.bias}});
  }
  return json_text({{"schema", "fuseline.judgement/1"},
                    {"groups", std::move(groups)},
                    {"figures", std::move(list)}});
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

Figures judged(const std::string& path, const std::optional<std::string>& gpu) {
  std::vector<PublishedFigure> published = load_published_figures(path);
  if (gpu) {
    const std::string name = load_gpu_option(gpu).name;
    std::erase_if(published, [&](const PublishedFigure& f) { return f.gpu != name; });
    if (published.empty()) {
      throw InputError({.file = kCommandLine,
                        .field = "--gpu",
                        .value = *gpu,
                        .message = "no figure was published of it",
                        .allowed = "a GPU of " + path});
    }
  }
  Figures figures;
  ProgressBar bar;
  for (const PublishedFigure& f : published) {
    bar.show(fmt::format("{} of {} figures", figures.size(), published.size()),
             static_cast<double>(figures.size()) / static_cast<double>(published.size()));
    figures.push_back(judge(f));
  }
  bar.clear();
  return figures;
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
  const Figures figures = judged(
      file.empty() ? (data_dir() / "published" / "figures.csv").string() : file.front(), gpu);
  std::string text;
  if (chosen == "json") {
    text = judged_json(figures);
  } else if (chosen == "csv") {
    text = judged_csv(figures);
  } else {
    text = groups_table(figures) + fusions_table(figures) + worst_table(figures, count) +
           reasons_text(figures);
  }
  if (!output) return {std::move(text), {}, ExitStatus::done};
  write_file_atomically(*output, text);
  return {{}, fmt::format("fuseline: written {}\n", *output), ExitStatus::done};
}

}  // namespace fuseline
