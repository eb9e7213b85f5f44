#include "sim/judge/next_machine.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "sim/judge/band_classes.h"

namespace fuseline {

namespace {

constexpr double kRowsHeld = 0.9;
constexpr double kWidestOfNext = 5;  // beyond it a band says nothing
constexpr double kFarthest = 1e3;    // also where a band does not reach to that side at all
// Ties of a band's end and a row that lies on it are rounded either way.
constexpr double kTie = 1e-9;

// Student's 95th percentile. Its expansion is too small for one and two degrees.
double student_of_machines(std::size_t machines) {
  constexpr double kOne = 6.314, kTwo = 2.920;
  if (machines == 1) return kOne;
  return machines == 2 ? kTwo : student(static_cast<double>(machines));
}

using BySource = std::map<std::string, std::vector<double>>;
using ByMachine = std::map<std::string, BySource>;

ByMachine by_machine(const std::vector<RowReach>& reaches) {
  ByMachine out;
  for (const RowReach& r : reaches) out[r.gpu][r.source].push_back(r.reach);
  return out;
}

// Each with its weight, so that sources weigh the same; in ascending order.
std::vector<std::pair<double, double>> weighted(const BySource& sources) {
  std::vector<std::pair<double, double>> out;
  for (const auto& [source, reaches] : sources) {
    for (const double reach : reaches)
      out.emplace_back(reach, 1 / static_cast<double>(sources.size() * reaches.size()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

double share_held(const BySource& sources, double widening) {
  double share = 0;
  for (const auto& [reach, weight] : weighted(sources))
    if (reach <= widening * (1 + kTie)) share += weight;
  return share;
}

MachineReach machine_of(const std::string& gpu, const BySource& sources) {
  MachineReach out{.gpu = gpu, .sources = sources.size()};
  double share = 0;
  for (const auto& [reach, weight] : weighted(sources)) {
    ++out.rows;
    out.mean_square += weight * reach * reach;
    if (share < kRowsHeld - kTie) out.widening = reach;
    share += weight;
  }
  return out;
}

std::vector<RowReach> without(const std::vector<RowReach>& reaches, const std::string& gpu) {
  std::vector<RowReach> out;
  std::ranges::copy_if(reaches, std::back_inserter(out),
                       [&](const RowReach& r) { return r.gpu != gpu; });
  return out;
}

double widening_by_rows(const std::vector<RowReach>& reaches) {
  if (reaches.empty()) return 1;
  std::vector<double> sorted;
  for (const RowReach& r : reaches) sorted.push_back(r.reach);
  std::sort(sorted.begin(), sorted.end());
  const auto at =
      static_cast<std::size_t>(std::ceil(kRowsHeld * static_cast<double>(sorted.size())));
  return std::max(1.0, sorted[at - 1]);
}

}  // namespace

RowReach reach_of(const Band& band, const Residual& row) {
  const double error = std::log(row.measured / row.predicted);
  const double end = std::log(error < 0 ? band.low : band.high);
  const double reach = end == 0 ? kFarthest : std::min(kFarthest, error / end);
  return {row.gpu, row.model, error == 0 ? 0 : reach};
}

std::vector<MachineReach> machines_of(const std::vector<RowReach>& reaches) {
  std::vector<MachineReach> out;
  for (const auto& [gpu, sources] : by_machine(reaches)) out.push_back(machine_of(gpu, sources));
  return out;
}

double widening_of_next(const std::vector<MachineReach>& machines) {
  if (machines.empty()) return 1;
  double sum = 0;
  for (const MachineReach& m : machines) sum += m.mean_square;
  const double spread = std::sqrt(sum / static_cast<double>(machines.size()));
  return std::clamp(student_of_machines(machines.size()) * spread, 1.0, kWidestOfNext);
}

std::vector<LeftOutMachine> left_out_machines(const std::string& what,
                                              const std::vector<RowReach>& reaches) {
  std::vector<LeftOutMachine> out;
  for (const auto& [gpu, sources] : by_machine(reaches)) {
    const std::vector<RowReach> others = without(reaches, gpu);
    const std::vector<MachineReach> machines = machines_of(others);
    LeftOutMachine left{.what = what,
                        .machine = machine_of(gpu, sources),
                        .others = machines.size(),
                        .by_rows = widening_by_rows(others),
                        .by_machines = widening_of_next(machines)};
    left.held_unwidened = share_held(sources, 1);
    left.held_by_rows = share_held(sources, left.by_rows);
    left.held_by_machines = share_held(sources, left.by_machines);
    out.push_back(std::move(left));
  }
  return out;
}

}  // namespace fuseline
