#include "cli/machine_table.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/format.h"
#include "cli/table.h"

namespace fuseline {

std::string left_out_machines_text(const std::vector<LeftOutMachine>& machines) {
  std::vector<std::vector<std::string>> rows;
  for (const LeftOutMachine& m : machines) {
    rows.push_back({m.what, m.machine.gpu, std::to_string(m.machine.sources),
                    std::to_string(m.machine.rows), fmt::format("{:.2f}", m.machine.widening),
                    percent(m.held_unwidened), fmt::format("{:.2f}", m.by_rows),
                    percent(m.held_by_rows), fmt::format("{:.2f}", m.by_machines),
                    percent(m.held_by_machines)});
  }
  return format_table({{"band of", Align::left},
                       {"GPU", Align::left},
                       {"sources"},
                       {"rows"},
                       {"needs"},
                       {"at 1"},
                       {"rows say"},
                       {"within"},
                       {"machines"},
                       {"within"}},
                      rows) +
         wrap(
             "needs: how many times wider holds 90 % of the GPU's rows; rows say, machines: how "
             "many times wider the other GPUs make it, all their rows alike or every GPU alike");
}

std::string widenings_text(const std::vector<Widening>& widenings) {
  const std::vector<std::string> phases = {"forward", "decode", "train"};
  std::vector<std::vector<std::string>> rows;
  for (const std::string& what : band_subjects()) {
    std::vector<std::string> row = {what};
    std::int64_t machines = 0;
    for (const std::string& phase : phases) {
      const auto w = std::ranges::find_if(
          widenings, [&](const Widening& o) { return o.what == what && o.phase == phase; });
      if (w == widenings.end()) continue;
      row.push_back(fmt::format("{:.2f}", w->uncalibrated));
      machines = std::max(machines, w->machines);
    }
    if (row.size() != phases.size() + 1) continue;
    row.push_back(machines == 0 ? "assumed" : fmt::format("{} GPUs", machines));
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return {};
  return format_table(
             {{"bands of", Align::left}, {"forward"}, {"decode"}, {"train"}, {"from", Align::left}},
             rows) +
         wrap("how many times wider on a GPU that nobody measured, and how many such GPUs say so");
}

}  // namespace fuseline
