#include "cli/search_output.h"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/format.h"
#include "cli/predict_table.h"
#include "cli/table.h"

namespace fuseline {

namespace {

std::string value_text(Objective objective, double value) {
  if (objective == Objective::launches) return fmt::format("{:.0f}", value);
  return fmt::format("{:.1f}", shown(objective, value));
}

std::string found_line(const SearchResult& r) {
  const std::string unit =
      r.objective == Objective::launches ? "" : std::string(" ") + unit_of(r.objective);
  std::string text =
      fmt::format("found: {} {}{}", name_of(r.objective), value_text(r.objective, r.value()), unit);
  if (!r.policys_own.empty()) text += " by the plan of " + r.policys_own + " with its own kernels";
  if (r.complete) return text + ", optimal in this space";
  return text + fmt::format("; no plan of this space is below {}{}: at most {:.1f} % better",
                            value_text(r.objective, r.bound), unit,
                            100 * (1 - r.bound / r.value()));
}

std::string space_line(const SearchResult& r) {
  return fmt::format("searched: {} lists of rewrites, {} legal kernels; {} plans simulated\n",
                     r.rewrites, grouped(static_cast<std::int64_t>(r.kernels)),
                     grouped(static_cast<std::int64_t>(r.tried)));
}

std::string kernels_table(const SearchResult& r) {
  std::vector<std::vector<std::string>> rows;
  for (const KernelEstimate& k : r.estimate.kernels) {
    rows.push_back({k.name, in_microseconds(k.time), megabytes(k.hbm_read + k.hbm_write),
                    name_of(k.bound), fmt::format("{}", fmt::join(k.operators, " "))});
  }
  std::vector<std::vector<std::string>> fitted;
  for (std::vector<std::string>& row : rows) {
    constexpr std::size_t kWidest = 52;
    if (row.back().size() > kWidest) row.back() = row.back().substr(0, kWidest - 4) + " ...";
    fitted.push_back(std::move(row));
  }
  return format_table({{"kernel", Align::left},
                       {"time µs"},
                       {"HBM MB"},
                       {"bound", Align::left},
                       {"operators", Align::left}},
                      fitted);
}

std::vector<std::string> gain_cells(const FusionGain& g) {
  const double gain = g.gain();
  return {fmt::format("{:.3f}", gain),
          fmt::format("{:.3f} to {:.3f}", gain * g.band.low, gain * g.band.high), g.verdict};
}

std::string policies_table(const SearchResult& r) {
  if (r.policies.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  std::string outside;
  // Time and launches have columns of their own.
  const bool other = r.objective != Objective::time && r.objective != Objective::launches;
  for (const PolicyComparison& p : r.policies) {
    std::vector<std::string> row = {p.policy + (p.outside.empty() ? "" : " *"),
                                    std::to_string(p.launches),
                                    fmt::format("{:.1f}", shown(Objective::time, p.values[0]))};
    if (other)
      row.push_back(value_text(r.objective, p.values[static_cast<std::size_t>(r.objective)]));
    for (std::string& cell : gain_cells(*p.gain)) row.push_back(std::move(cell));
    rows.push_back(std::move(row));
    if (!p.outside.empty())
      outside += wrap(fmt::format("* {} is not in the space: {}", p.policy, p.outside));
  }
  std::vector<Column> columns = {{"in the place of", Align::left}, {"launches"}, {"time µs"}};
  if (other) columns.push_back({name_of(r.objective)});
  columns.push_back({"gain in time"});
  columns.push_back({"90 % band", Align::left});
  columns.push_back({"the found plan is", Align::left});
  return "\n" + format_table(columns, rows) + outside;
}

std::string decisions_table(const SearchResult& r) {
  if (r.decisions.empty()) return {};
  const bool other = r.objective != Objective::time;
  std::vector<std::vector<std::string>> rows;
  for (const Decision& d : r.decisions) {
    std::vector<std::string> row = {d.what, d.kind};
    if (other) row.push_back(fmt::format("{:.3f}", d.value / r.value()));
    for (std::string& cell : gain_cells(d.gain)) row.push_back(std::move(cell));
    rows.push_back(std::move(row));
  }
  std::vector<Column> columns = {{"decision", Align::left}, {"kind", Align::left}};
  if (other) columns.push_back({fmt::format("gain in {}", name_of(r.objective))});
  columns.push_back({other ? "in time" : "gain in time"});
  columns.push_back({"90 % band", Align::left});
  columns.push_back({"with it", Align::left});
  return "\n" + format_table(columns, rows) +
         "gain: the plan with that decision alone undone, over the found one\n";
}

// Names as far as they fit behind the table's numbers, and how many do not.
std::string fitting(const std::vector<std::string>& names) {
  constexpr std::size_t kRoom = 60;
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string next = (i > 0 ? ", " : "") + names[i];
    if (text.size() + next.size() > kRoom && i > 0)
      return text + fmt::format(", {} more", names.size() - i);
    text += next;
  }
  return text;
}

std::string front_table(const SearchResult& r, Objective other) {
  if (r.front.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const FrontPlan& f : r.front) {
    rows.push_back({value_text(r.objective, f.values[static_cast<std::size_t>(r.objective)]),
                    value_text(other, f.values[static_cast<std::size_t>(other)]),
                    std::to_string(f.plan.kernels.size()), fitting(f.plan.rewrites)});
  }
  return "\n" +
         format_table({{fmt::format("{} {}", name_of(r.objective), unit_of(r.objective))},
                       {fmt::format("{} {}", name_of(other), unit_of(other))},
                       {"kernels"},
                       {"rewrites", Align::left}},
                      rows) +
         "plans tried that no other plan tried beats in both\n";
}

}  // namespace

std::string search_text(const Selection& s, const SearchResult& r) {
  const std::string& model = s.model.title.empty() ? s.model.name : s.model.title;
  std::string text =
      wrap(fmt::format("{}, one block of {}: {}", model, s.model.layers, describe(s.workload))) +
      describe(s.gpu) + "\n" + wrap(found_line(r)) + space_line(r);
  if (!r.plan.rewrites.empty())
    text += wrap(fmt::format("rewrites: {}", fmt::join(r.plan.rewrites, ", ")));
  text += "\n" + kernels_table(r) + policies_table(r) + decisions_table(r);
  if (r.front_with) text += front_table(r, *r.front_with);
  return text;
}

}  // namespace fuseline
