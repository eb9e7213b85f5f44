#include "sim/judge/band_fit.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "sim/judge/band_classes.h"
#include "sim/judge/next_machine.h"

namespace fuseline {

namespace {

constexpr double kCoverage = 0.9;
constexpr std::size_t kRowsForSpread = 5;
constexpr double kWideningStep = 0.05;
constexpr double kWidestChecked = 2;
constexpr double kNeverOverChecked = 2;
constexpr std::size_t kMachinesOfPhase = 3;
// How much wider beyond the sizes of all rows: chosen on every other model (in alphabetical order)
// as the least that holds 85 % of its rows, or has the least interval score; checked on the rest.
// `unseen`, for kernels of which no row is, was chosen while looking at all models.
constexpr struct {
  const char* what;
  double beyond, unseen;
} kStretches[] = {{"time", 0.5, 1.5},
                  {"hbm", 2, 1.5},
                  {"kernel_time", 0.5, 1},
                  {"kernel_hbm", 1, 1},
                  {"gain", 0, 1.5}};

// Widenings of nothing but size and kind.
std::vector<Widening> stretches() {
  std::vector<Widening> all;
  for (const auto& s : kStretches) {
    all.push_back({.what = s.what, .phase = {}, .beyond = s.beyond, .unseen = s.unseen});
  }
  return all;
}

Widening stretch_of(const std::string& what) {
  for (Widening& w : stretches()) {
    if (w.what == what) return w;
  }
  return {.what = what, .phase = {}};
}

// Rows of GPUs that were measured here, with fitted constants or with those of a related GPU:
// errors of both are alike, and one kind alone says little of some classes.
ResidualRows measured_here(const std::vector<Residual>& rows, const std::string& without = {}) {
  ResidualRows out;
  for (const Residual& r : rows) {
    if (r.standing != Standing::uncalibrated && (without.empty() || r.model != without))
      out.push_back(&r);
  }
  return out;
}

bool holds(const Band& band, const Residual& row) {
  const double factor = row.measured / row.predicted;
  return band.low <= factor && factor <= band.high;
}

// Bands fitted without each model.
using WithoutModel = std::map<std::string, FittedClasses>;

WithoutModel without_each(const std::vector<Residual>& rows) {
  WithoutModel tables;
  for (const Residual& r : rows) {
    if (!tables.contains(r.model)) {
      tables.emplace(r.model, classes_of(measured_here(rows, r.model)));
    }
  }
  return tables;
}

bool has_subject(const std::vector<BandClass>& classes, const std::string& what) {
  return std::ranges::any_of(
      classes, [&](const BandClass& c) { return c.of.what == what && c.of.apart.empty(); });
}

// The least widening for rows of checked GPUs, of models that no class knows.
double least_widening(const ResidualRows& rows, const WithoutModel& tables) {
  for (double wide = 1; wide < kWidestChecked; wide += kWideningStep) {
    std::map<std::string, BandTable> of_model;
    std::size_t held = 0, count = 0;
    for (const Residual* r : rows) {
      const auto& [classes, spreads] = tables.at(r->model);
      if (!has_subject(classes, r->work.what)) continue;
      std::vector<Widening> by = stretches();
      for (Widening& w : by) w.checked = wide;
      const auto& table =
          of_model.try_emplace(r->model, classes, std::move(by), spreads).first->second;
      ++count;
      held += static_cast<std::size_t>(holds(band_of(table, *r), *r));
    }
    if (static_cast<double>(held) >= kCoverage * static_cast<double>(count)) return wide;
  }
  return kWidestChecked;
}

// Of GPUs that nobody measured here, by subject and phase: how far published figures lie from their
// estimates, over bands that are not widened for such GPUs.
using Reaches = std::map<std::string, std::map<std::string, std::vector<RowReach>>>;

Reaches reaches_of(const std::vector<Residual>& rows, const WithoutModel& tables) {
  std::map<std::string, BandTable> of_model;
  Reaches out;
  for (const Residual& r : rows) {
    if (r.standing != Standing::uncalibrated || !r.work.apart.empty()) continue;
    const auto& [classes, spreads] = tables.at(r.model);
    if (!has_subject(classes, r.work.what)) continue;
    const auto& table = of_model.try_emplace(r.model, classes, stretches(), spreads).first->second;
    out[r.work.what][r.work.phase].push_back(reach_of(band_of(table, r), r));
  }
  return out;
}

std::vector<RowReach> of_all_phases(const std::map<std::string, std::vector<RowReach>>& by_phase) {
  std::vector<RowReach> out;
  for (const auto& [phase, reaches] : by_phase) std::ranges::copy(reaches, std::back_inserter(out));
  return out;
}

// Checked GPUs: where they have too few rows of a phase, the widest of the subject's phases counts.
// GPUs that nobody measured: where too few machines have a phase, machines of all phases count.
// Where nothing was published of a subject, such a GPU needs twice what one needs that was
// checked: no row says so, but its files hold no number of ours either.
class Widenings {
 public:
  Widenings(const std::vector<Residual>& rows, const WithoutModel& tables)
      : tables_(tables), never_(reaches_of(rows, tables)) {
    for (const Residual& r : rows)
      if (r.work.apart.empty() && r.standing == Standing::checked)
        checked_[r.work.what][r.work.phase].push_back(&r);
  }

  [[nodiscard]] std::vector<Widening> all(const std::vector<BandClass>& classes) const {
    std::vector<Widening> out;
    for (const std::string& what : band_subjects()) {
      if (!has_subject(classes, what)) continue;
      const auto checked = of_checked(what);
      for (const char* phase : {"", "forward", "decode", "train"}) {
        const auto found = checked.find(phase);
        Widening w = stretch_of(what);
        w.phase = phase;
        w.checked = found == checked.end() ? checked.at("") : found->second;
        const std::vector<MachineReach> machines = machines_for(what, phase);
        const double never =
            machines.empty() ? kNeverOverChecked * w.checked : widening_of_next(machines);
        w.machines = std::ssize(machines);
        w.uncalibrated = std::max(w.checked, never);
        out.push_back(std::move(w));
      }
    }
    return out;
  }

 private:
  using ByPhase = std::map<std::string, double>;  // "" is the widest

  [[nodiscard]] ByPhase of_checked(const std::string& what) const {
    ByPhase out{{"", 1.0}};
    const auto found = checked_.find(what);
    if (found == checked_.end()) return out;
    for (const auto& [phase, rows] : found->second) {
      const double wide = least_widening(rows, tables_);
      if (rows.size() >= kRowsForSpread) out[phase] = wide;
      out[""] = std::max(out[""], wide);
    }
    return out;
  }
  [[nodiscard]] std::vector<MachineReach> machines_for(const std::string& what,
                                                       const std::string& phase) const {
    const auto found = never_.find(what);
    if (found == never_.end()) return {};
    if (const auto at = found->second.find(phase); at != found->second.end()) {
      std::vector<MachineReach> machines = machines_of(at->second);
      if (machines.size() >= kMachinesOfPhase) return machines;
    }
    return machines_of(of_all_phases(found->second));
  }

  const WithoutModel& tables_;
  Reaches never_;
  std::map<std::string, std::map<std::string, ResidualRows>> checked_;
};

}  // namespace

Band band_of(const BandTable& table, const Residual& row) {
  return row.work.what == "gain" ? table.of_gain(row.work, row.standing, row.predicted)
                                 : table.of(row.work, row.standing, row.predicted);
}

BandTable fit_bands(const std::vector<Residual>& rows) {
  auto [classes, spreads] = classes_of(measured_here(rows));
  // Widenings are of GPUs without fitted constants alone.
  const bool others =
      std::ranges::any_of(rows, [](const Residual& r) { return r.standing != Standing::fitted; });
  const WithoutModel tables = others ? without_each(rows) : WithoutModel{};
  std::vector<Widening> widenings = Widenings(rows, tables).all(classes);
  return {std::move(classes), std::move(widenings), std::move(spreads)};
}

void require_rows_for_bands(const std::vector<Residual>& rows) {
  const WithoutModel tables = without_each(rows);
  for (const Residual& r : rows) {
    if (has_subject(tables.at(r.model).classes, r.work.what)) continue;
    throw InputError({.field = r.work.what,
                      .value = r.model,
                      .message = "has no rows of other models to fit bands to",
                      .allowed = "rows of several models, of GPUs that were measured"});
  }
}

std::vector<Coverage> coverage_of(const std::vector<Residual>& rows, const BandOf& band) {
  std::vector<Coverage> out;
  std::map<std::string, std::vector<double>> widths;
  for (const Residual& r : rows) {
    std::string what = r.work.what + " " + r.work.phase;
    if (!r.work.apart.empty()) what += ", " + r.work.apart;
    auto at = std::ranges::find_if(out, [&](const Coverage& c) { return c.what == what; });
    if (at == out.end()) at = out.insert(out.end(), Coverage{.what = what});
    const Band b = band(r);
    const double truth = r.measured / r.predicted;
    ++at->rows;
    at->held += static_cast<std::size_t>(holds(b, r));
    at->mean_error += std::abs(r.predicted / r.measured - 1);
    const double outside = std::max({0.0, b.low - truth, truth - b.high});
    at->score += b.high - b.low + 2 / (1 - kCoverage) * outside;
    widths[what].push_back((b.high - b.low) / 2);
  }
  for (Coverage& c : out) {
    std::vector<double>& w = widths[c.what];
    std::sort(w.begin(), w.end());
    c.half_width = order_statistic(w, (static_cast<double>(w.size()) + 1) / 2);
    c.mean_error /= static_cast<double>(c.rows);
    c.score /= static_cast<double>(c.rows);
  }
  return out;
}

std::vector<Coverage> left_out_coverage(const std::vector<Residual>& rows) {
  std::map<std::string, BandTable> without;
  for (const Residual& r : rows) {
    if (without.contains(r.model)) continue;
    std::vector<Residual> others;
    std::ranges::copy_if(rows, std::back_inserter(others),
                         [&](const Residual& o) { return o.model != r.model; });
    without.emplace(r.model, fit_bands(others));
  }
  return coverage_of(rows, [&](const Residual& r) { return band_of(without.at(r.model), r); });
}

std::vector<Coverage> not_widened_coverage(const std::vector<Residual>& rows) {
  std::vector<Residual> others;
  std::ranges::copy_if(rows, std::back_inserter(others),
                       [](const Residual& r) { return r.standing != Standing::fitted; });
  std::map<std::string, BandTable> without;
  for (auto& [model, fitted] : without_each(rows))
    without.emplace(model, BandTable(std::move(fitted.classes), {}, std::move(fitted.spreads)));
  return coverage_of(others, [&](const Residual& r) { return band_of(without.at(r.model), r); });
}

std::vector<Coverage> other_machine_coverage(const std::vector<Residual>& rows) {
  using Left = std::pair<std::string, std::string>;  // a GPU and a model
  const auto left = [](const Residual& r) { return Left(r.gpu, r.model); };
  std::map<Left, BandTable> without;
  std::vector<Residual> judged;
  for (const Residual& r : rows) {
    if (r.standing == Standing::uncalibrated || r.gpu.empty() || !r.work.apart.empty()) continue;
    if (!without.contains(left(r))) {
      std::vector<Residual> others;
      std::ranges::copy_if(rows, std::back_inserter(others), [&](const Residual& o) {
        return o.standing != Standing::uncalibrated && o.gpu != r.gpu && o.model != r.model;
      });
      without.emplace(left(r), others.empty() ? BandTable({}, {}) : fit_bands(others));
    }
    if (has_subject(without.at(left(r)).classes(), r.work.what)) judged.push_back(r);
  }
  return coverage_of(judged, [&](const Residual& r) { return band_of(without.at(left(r)), r); });
}

std::vector<LeftOutMachine> left_out_machines(const std::vector<Residual>& rows) {
  std::vector<LeftOutMachine> out;
  for (const auto& [what, by_phase] : reaches_of(rows, without_each(rows)))
    std::ranges::copy(left_out_machines(what, of_all_phases(by_phase)), std::back_inserter(out));
  return out;
}

}  // namespace fuseline
