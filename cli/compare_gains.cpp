#include "cli/compare_gains.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/csv_text.h"
#include "base/error.h"
#include "base/format.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/table.h"
#include "sim/judge/band_rows.h"
#include "sim/judge/measured_gains.h"
#include "sim/selection/selection.h"

namespace fuseline {

namespace {

std::string name_of_case(const MeasuredGain& gain) {
  BlockCase block = gain.block;
  block.execution.clear();
  std::string text = block.label();
  // Two spaces stand where the execution was.
  if (const auto at = text.find("  "); at != std::string::npos) text.erase(at, 1);
  return text;
}

std::string gains_csv(std::span<const MeasuredGain> gains) {
  std::string text = "measurement,case,gain_measured,gain_predicted\n";
  for (const MeasuredGain& g : gains)
    text += fmt::format("{},{},{:.4f},{:.4f}\n", csv_cell(g.folder), csv_cell(name_of_case(g)),
                        g.measured, g.predicted);
  return text;
}

std::vector<std::string> agreement_row(const std::string& what,
                                       const std::vector<MeasuredGain>& gains) {
  const GainAgreement a = agreement_of(gains);
  const auto number = [&](double x) { return a.cases > 2 ? fmt::format("{:.2f}", x) : "-"; };
  return {what,
          std::to_string(a.cases),
          signed_percent(a.mean_measured),
          signed_percent(a.mean_predicted),
          number(a.slope),
          number(a.slope_through_none),
          percent(a.spread),
          fmt::format("{} of {}", a.wrong, a.orders)};
}

// Of all, of each phase, and of each measurement.
std::string agreement_table(const std::vector<MeasuredGain>& gains) {
  std::vector<std::vector<std::string>> rows = {agreement_row("all", gains)};
  const auto add = [&](const std::string& what, const auto& keeps) {
    std::vector<MeasuredGain> some;
    std::ranges::copy_if(gains, std::back_inserter(some), keeps);
    if (!some.empty() && some.size() < gains.size())
      rows.push_back(agreement_row("  " + what, some));
  };
  for (const Phase phase : {Phase::forward, Phase::decode, Phase::train})
    add(name_of(phase), [&](const MeasuredGain& g) { return g.block.workload.phase == phase; });
  const auto today = [](const MeasuredGain& g) { return !g.earlier_kernels; };
  if (!std::ranges::all_of(gains, today)) {
    add("kernels as they are", today);
    for (const Phase phase : {Phase::forward, Phase::decode, Phase::train})
      add(fmt::format("  {}", name_of(phase)),
          [&](const MeasuredGain& g) { return today(g) && g.block.workload.phase == phase; });
  }
  std::vector<std::string> folders;
  for (const MeasuredGain& g : gains)
    if (folders.empty() || folders.back() != g.folder) folders.push_back(g.folder);
  for (const std::string& folder : folders)
    add(folder, [&](const MeasuredGain& g) { return g.folder == folder; });
  return format_table({{"gains", Align::left},
                       {"blocks"},
                       {"measured"},
                       {"predicted"},
                       {"slope"},
                       {"through 0"},
                       {"spread"},
                       {"wrong orders"}},
                      rows);
}

std::string cases_table(const std::vector<MeasuredGain>& all) {
  std::vector<MeasuredGain> gains = all;
  std::ranges::stable_sort(gains, {}, [](const MeasuredGain& g) {
    return -std::abs(std::log(g.measured / g.predicted));
  });
  std::vector<std::vector<std::string>> rows;
  for (const MeasuredGain& g : gains)
    rows.push_back({name_of_case(g), g.folder, signed_percent(g.measured - 1),
                    signed_percent(g.predicted - 1), wrong_order(g) ? "wrong" : ""});
  return format_table({{"farthest first", Align::left},
                       {"measurement", Align::left},
                       {"measured"},
                       {"predicted"},
                       {"order"}},
                      rows);
}

}  // namespace

std::string compared_gains(const GainTexts& texts) {
  const std::string format =
      parse_word("--format", texts.format.value_or("table"), {"table", "csv"});
  const auto one_policy = [](const char* option, const std::string& text) {
    const std::vector<std::string> names = parse_policies(text);
    if (names.size() == 1) return names.front();
    throw InputError({.file = kCommandLine,
                      .field = option,
                      .value = text,
                      .message = "names several policies",
                      .allowed = "one: gains are of one policy over another"});
  };
  const std::string over = one_policy("--gain-over", texts.over);
  if (!texts.policy) {
    throw InputError({.file = kCommandLine,
                      .field = "--policy",
                      .message = "is missing",
                      .allowed = "the policy whose gain over " + over + " is compared"});
  }
  const std::string policy = one_policy("--policy", *texts.policy);
  const std::vector<std::string> folders =
      texts.folders.empty() ? measurement_folders() : texts.folders;
  std::vector<MeasuredGain> gains;
  ProgressBar bar;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    bar.show(fmt::format("{} of {} folders", i, folders.size()),
             static_cast<double>(i) / static_cast<double>(folders.size()));
    std::ranges::move(measured_gains(folders[i], policy, over), std::back_inserter(gains));
  }
  bar.clear();
  if (gains.empty()) {
    throw InputError({.file = folders.front(),
                      .message = fmt::format("no block was measured under {} and {}", policy, over),
                      .allowed = "measurements of both"});
  }
  if (format == "csv") return gains_csv(gains);
  return wrap(fmt::format("gain: time of a block under {} over its time under {}, less 1", over,
                          policy)) +
         "\n" + agreement_table(gains) +
         wrap(
             "slope: of the measured gain's logarithm on the predicted one's; through 0: of the "
             "line through no gain; spread: of measured over predicted gains; wrong orders: of "
             "those predicted at least 2 % apart; kernels as they are: without the tables whose "
             "notes "
             "say that our kernels have changed since") +
         "\n" + cases_table(gains);
}

}  // namespace fuseline
