#include "gui/model/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "gui/model/sureness.h"
#include "gui/model/text.h"

namespace fuseline::gui {

namespace {

const std::vector<KernelColumn>& columns() {
  static const std::vector<KernelColumn> all = {
      {"order", "#", "order of the launch"},
      {"name", "kernel", "named after its main operator", false},
      {"kind", "kind", "gemm: any kernel with a GEMM mainloop", false},
      {"operators", "operators", "what one launch executes", false},
      {"time_us", "time µs", "from its start to the start of the next"},
      {"delta_time", "Δ time", "to the baseline's kernels of the same work", true},
      {"hbm_read_bytes", "HBM read", "bytes read from HBM, after L2"},
      {"hbm_write_bytes", "HBM write", "bytes written back to HBM"},
      {"delta_hbm", "Δ HBM", "to the baseline's kernels of the same work", true},
      {"l2_bytes", "L2", "bytes between L2 and the SMs"},
      {"flops", "FLOP", "multiplies, adds and transcendentals"},
      {"bound", "set by", "the limit that sets the kernel's time", false},
      {"tile", "tile", "rows x columns x depth of a thread block's tile", false},
      {"code", "code", "a measured kernel's own name", false}};
  return all;
}

KernelCell text_cell(std::string text) { return {.text = std::move(text), .tooltip = {}}; }
KernelCell bytes_cell(Bytes b) {
  return {.text = megabytes(b) + " MB", .sort_key = b.as_double(), .tooltip = exact_bytes(b)};
}
// With the 90 % band in the tooltip, where there is one.
KernelCell time_cell(Seconds t, const std::optional<SureFigures>& ends) {
  KernelCell cell{.text = in_microseconds(t),
                  .sort_key = to_us(t),
                  .tooltip = fmt::format("{:.3f} µs", to_us(t))};
  if (ends) {
    cell.tooltip += fmt::format(", 90 % {} to {} µs", in_microseconds(ends->time_low),
                                in_microseconds(ends->time_high));
  }
  return cell;
}
KernelCell delta_cell(const Delta& d, double absolute) {
  return {.text = d.relative_text,
          .sort_key = absolute,
          .tooltip = d.absolute_text,
          .colour = d.colour};
}

// Operators and sites of a launch.
struct Work {
  std::set<std::string> operators, sites;
};

Work work_of(const RunResult& r, std::size_t launch) {
  Work work;
  const auto& kernel = r.kernels[launch].plan_kernel;
  if (!kernel) return work;
  for (const OpId id : r.plan->kernels[*kernel].ops) {
    const Op& op = r.plan->graph.op(id);
    work.operators.insert(op.name);
    if (!op.site.empty()) work.sites.insert(op.site);
  }
  return work;
}

bool meet(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::ranges::any_of(a, [&](const std::string& x) { return b.contains(x); });
}

struct Charged {
  Seconds time;
  Bytes hbm;
  bool any = false;
};

// The baseline's launches, each charged to the first of the run's that does part of its work.
std::vector<Charged> charge(const RunResult& base, const RunResult& run) {
  std::vector<Charged> charged(run.kernels.size());
  std::vector<Work> works;
  for (std::size_t i = 0; i < run.kernels.size(); ++i) works.push_back(work_of(run, i));
  for (std::size_t b = 0; b < base.kernels.size(); ++b) {
    const Work work = work_of(base, b);
    auto found = std::ranges::find_if(
        works, [&](const Work& w) { return meet(w.operators, work.operators); });
    if (found == works.end()) {
      found = std::ranges::find_if(works, [&](const Work& w) { return meet(w.sites, work.sites); });
    }
    if (found == works.end()) continue;
    Charged& c = charged[static_cast<std::size_t>(found - works.begin())];
    c.time += base.kernels[b].estimate.time;
    c.hbm += base.kernels[b].hbm();
    c.any = true;
  }
  return charged;
}

std::string tile_text(const KernelEstimate& k) {
  std::string tile = fmt::format("{}", fmt::join(k.tile, "x"));
  if (k.split_k > 1) tile += fmt::format(" /{}", k.split_k);
  return tile;
}

std::vector<KernelCell> cells_of(const RunView& view, const KernelRow& row, std::size_t order,
                                 const Charged* base) {
  const KernelEstimate& k = row.estimate;
  KernelCell delta_time, delta_hbm;
  if (base != nullptr && base->any) {
    delta_time = delta_cell(delta_of(base->time, k.time), (k.time - base->time).value());
    delta_hbm = delta_cell(delta_of(base->hbm, row.hbm()), (row.hbm() - base->hbm).as_double());
  }
  return {
      {.text = std::to_string(order + 1), .sort_key = static_cast<double>(order), .tooltip = {}},
      text_cell(k.name),
      text_cell(name_of(k.kind)),
      text_cell(fmt::format("{}", fmt::join(k.operators, " "))),
      time_cell(k.time, sure_figures(view, row)),
      delta_time,
      bytes_cell(k.hbm_read),
      bytes_cell(k.hbm_write),
      delta_hbm,
      bytes_cell(k.l2),
      {.text = short_flops(k.flops),
       .sort_key = k.flops.as_double(),
       .tooltip = exact_flops(k.flops)},
      text_cell(row.measured ? "" : name_of(k.bound)),
      text_cell(tile_text(k)),
      text_cell(row.code)};
}

std::vector<KernelCell> total_cells(const Results& results, const RunView& view) {
  const Totals& t = view.result->totals;
  KernelCell delta_time, delta_hbm;
  const RunView* base = results.baseline_view();
  if (base != nullptr && base->run.id != view.run.id && is_comparable(*base, view)) {
    const ComparedTotals c = comparable_totals(*base, view);
    delta_time = delta_cell(delta_of(c.base.time, c.other.time), 0);
    if (c.base.has_bytes && c.other.has_bytes) {
      delta_hbm = delta_cell(delta_of(c.base.hbm(), c.other.hbm()), 0);
    }
  }
  const auto bytes = [&](Bytes b) { return t.has_bytes ? bytes_cell(b) : KernelCell{}; };
  const std::string launches =
      t.launches > 0 ? fmt::format("{} launch{}", t.launches, t.launches == 1 ? "" : "es") : "";
  return {KernelCell{},
          text_cell("total"),
          text_cell(launches),
          KernelCell{},
          time_cell(t.time, sure_figures(view)),
          delta_time,
          bytes(t.hbm_read),
          bytes(t.hbm_write),
          delta_hbm,
          bytes(t.l2),
          {.text = short_flops(t.flops), .tooltip = exact_flops(t.flops)},
          KernelCell{},
          KernelCell{},
          KernelCell{}};
}

std::string problem_of(const RunView* view) {
  if (view == nullptr) return "the run is gone";
  if (view->result != nullptr && view->result->problem) return view->result->problem->text;
  return view->ok() ? "" : "not computed yet";
}

}  // namespace

KernelTable kernel_table(const Results& results, RunId run) {
  KernelTable table;
  table.columns = columns();
  const RunView* view = results.find(run);
  table.problem = problem_of(view);
  if (!table.problem.empty()) return table;
  const RunResult& r = *view->result;
  table.about = subject_of(*view);
  std::vector<Charged> charged;
  const RunView* base = results.baseline_view();
  if (base != nullptr && base->run.id != run && is_comparable(*base, *view)) {
    table.base = subject_of(*base);
    charged = charge(*base->result, r);
  }
  for (std::size_t i = 0; i < r.kernels.size(); ++i) {
    table.lines.push_back(
        {i, cells_of(*view, r.kernels[i], i, charged.empty() ? nullptr : &charged[i]),
         kernel_thing(run, i)});
  }
  table.total = total_cells(results, *view);
  if (r.kernels.empty()) table.problem = "only the block's time was measured: no kernel trace";
  return table;
}

Table to_table(const KernelTable& kernels) {
  Table table{"kernels", {}, {}};
  for (const KernelColumn& c : kernels.columns) table.columns.push_back(c.key);
  for (const KernelLine& line : kernels.lines) {
    std::vector<Cell> row;
    for (std::size_t i = 0; i < line.cells.size(); ++i) {
      const KernelCell& cell = line.cells[i];
      const std::string& key = kernels.columns[i].key;
      if (cell.text.empty()) {
        row.emplace_back();
      } else if (!kernels.columns[i].is_number) {
        row.emplace_back(cell.text);
      } else if (key.ends_with("_bytes") || key == "order" || key == "flops") {
        row.emplace_back(static_cast<std::int64_t>(cell.sort_key));
      } else if (key == "delta_time") {
        row.emplace_back(cell.sort_key * 1e6);
      } else {
        row.emplace_back(cell.sort_key);
      }
    }
    add_row(table, std::move(row), kernels.about, kernels.base ? &*kernels.base : nullptr);
  }
  return table;
}

ProgramText program_text(const Results& results, RunId run, std::size_t kernel) {
  ProgramText out;
  const RunView* view = results.find(run);
  out.problem = problem_of(view);
  if (!out.problem.empty()) return out;
  out.about = subject_of(*view);
  const RunResult& r = *view->result;
  if (kernel >= r.kernels.size()) {
    out.problem = "the kernel is gone";
    return out;
  }
  const KernelRow& row = r.kernels[kernel];
  out.code = row.code;
  if (!row.plan_kernel || !r.explanation) {
    out.title = row.estimate.name;
    out.problem = "measured: no planned kernel corresponds to this launch";
    return out;
  }
  const KernelExplanation& k = r.explanation->kernels[*row.plan_kernel];
  out.title = fmt::format("{} ({}, {})", k.name, k.kind, k.implementation);
  out.phases = k.programs;
  const std::set<std::string> inside(k.operators.begin(), k.operators.end());
  for (const EdgeExplanation& e : r.explanation->edges) {
    if (!inside.contains(e.from) && !inside.contains(e.to)) continue;
    const OnChipEdge edge{e.from, e.to};
    out.notes.push_back(
        {edge, e.fused,
         fmt::format("{} → {}: {}: {}", e.from, e.to, e.fused ? "one kernel" : "apart", e.reason),
         edge_thing(edge)});
  }
  std::stable_partition(out.notes.begin(), out.notes.end(),
                        [](const ProgramNote& n) { return !n.fused; });
  return out;
}

}  // namespace fuseline::gui
